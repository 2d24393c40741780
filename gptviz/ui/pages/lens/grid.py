"""What the model would guess after each layer: the grid, and the cell that is open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import streamlit as st

from gptviz.components import lens_grid
from gptviz.components.kit import fingerprint
from gptviz.components.kit.command import NO_COMMAND, ViewCommand
from gptviz.components.lens_grid import LensCell
from gptviz.figures.kit.format import brief, format_count, percent
from gptviz.figures.reading.labels import labels as label_bars
from gptviz.figures.reading.lens import rise_and_fall
from gptviz.interp.reading.layers import ends_of_blocks, layers
from gptviz.interp.reading.lens import (
    MOST_FOLLOWED,
    MOST_LED,
    Course,
    Lens,
    applied_norm,
    leaders,
    settled_layers,
)
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.language_model import reading
from gptviz.model import Config
from gptviz.model.costs.effort import MOST
from gptviz.ui.shell.subject import AskedAnalysis, Subject, ask, language_model
from gptviz.ui.views.by_token import NONE
from gptviz.ui.views.contrasts import known_offers
from gptviz.ui.views.read import read_by
from gptviz.ui.views.vocabulary import tokens
from gptviz.ui.widgets import (
    Try,
    addresses,
    controls,
    escape_markdown,
    in_quotes,
    show_figure,
    theme,
    visit,
)

from .fitted import LensChoice

# Of a longer text the end is shown: the columns of more tokens would be narrower than a pixel on
# many screens.
MOST_POSITIONS = 256
# A model of more blocks has at first a row for each block, coloured by how the final guess comes
# up.
MOST_BLOCKS = 12
SUBLAYERS = "every sublayer"
BLOCKS = "every block"
OPENED = "lens cell"
ASKED = "lens asked"
ROWS = "rows"
_PITCH = 22
# Of the tokens that were the likeliest after some layer and have no line, so many are named.
MOST_NAMED = 12


def ask_lens(subject: Subject, chosen: LensChoice, blocks_only: bool) -> AskedAnalysis[Lens]:
    """The guesses after every layer, or only after every block, through the lens that is chosen."""
    length = len(read_by(subject).ids)
    last = MOST_POSITIONS if length > MOST_POSITIONS else None
    lens = {"kept": chosen.kept} if chosen.kept else {"kind": chosen.kind, "fitted_to": chosen.text}
    return ask(
        subject, reading.lens, "Reading every layer", last=last, blocks_only=blocks_only, **lens
    )


def blocks_only(subject: Subject) -> bool:
    """The control for the rows: one after every sublayer; at first one after every block where more
    would take long.
    """
    length = len(read_by(subject).ids)
    every = layers(subject.lm.model.config)
    ends = [every[index].name for index in ends_of_blocks(every)]
    if len(ends) == len(every):
        return False
    cells = len(every) * min(length, MOST_POSITIONS)
    is_quick = cells * subject.lm.model.embed.weight.numel() <= MOST
    asked = st.query_params.get("layer")
    names = [layer.name for layer in every]
    if (
        ROWS not in st.query_params
        and ROWS not in st.session_state
        and asked in names
        and asked not in ends
    ):
        st.session_state[ROWS] = SUBLAYERS  # the link opens a cell within a block
    chosen = controls.select(
        "A row after",
        [SUBLAYERS, BLOCKS],
        key=ROWS,
        default=SUBLAYERS if is_quick and not _is_deep(subject.lm.model.config) else BLOCKS,
        segmented=True,
        help="Sublayers are the attention and the MLP of a block. A large model is at first read "
        "only after every block.",
    )
    return chosen == BLOCKS


def _is_deep(config: Config) -> bool:
    return config.n_layer > MOST_BLOCKS


def grid(subject: Subject, asked: AskedAnalysis[Lens]) -> bool:
    """The grid; whether there is one: a damaged model has none."""
    lens = asked.value
    of = _text_of(asked)
    command: ViewCommand = st.session_state.get(ASKED, NO_COMMAND)
    try:
        packed = payload_of(asked, of, subject.key.title, command)
    except ValueError as error:
        st.error(
            escape_markdown(f"{subject.key.name}: {error}. Choose another model or step above.")
        )
        return False

    def give(value: object) -> None:
        cell = lens_grid.read_click(value, of, len(lens.layers), len(lens.positions))
        if cell is not None:
            visit.remember(OPENED, (of, cell))

    addresses.takes_all(lens_grid.address([layer.name for layer in lens.layers], lens.positions))
    lens_grid.lens_grid(packed, key="lens", on_open=give)
    return True


def _text_of(asked: AskedAnalysis[Lens]) -> str:
    """Tells one text and model from another. The steps of one training are one: what is chosen
    stays while they are played.
    """
    return fingerprint(asked.key.name, asked.settings)


@st.cache_resource(max_entries=8, show_spinner=False)
def payload_of(asked: AskedAnalysis[Lens], of: str, title: str, command: ViewCommand) -> bytes:
    lm = language_model(asked.key)
    return lens_grid.payload(
        asked.value,
        lm.tokenizer.label,
        of=of,
        model=title if asked.key.step is None else f"{title}, step {asked.key.step}",
        vocab_size=lm.model.config.vocab_size,
        code=asked.code(
            "result.top, result.probability  # [layer, position, k]: the likeliest tokens",
            "result.entropy, result.rank, result.true_probability, result.final_probability  # "
            "[layer, position]",
        ),
        spaced=lm.tokenizer.is_spaced,
        colour="final" if _is_deep(lm.model.config) else "probability",
        command=command,
    )


def where_the_answer_comes_from(subject: Subject, lens: Lens) -> str:
    """The guess after the whole text, the layer after which it first comes on top to stay, and the
    guess after the layer before, as Markdown; empty where nothing can be said.
    """
    if not _can_be_read(lens):
        return ""
    layer = int(settled_layers(lens)[-1])
    token = int(lens.top[-1, -1, 0])
    share = percent(float(lens.probability[-1, -1, 0]))
    label = subject.lm.tokenizer.label
    name = in_quotes(label(token))
    if layer == 0:
        return (
            f"After every layer it would guess {name}, in the end with {share}: nothing but the "
            "last token decides that."
        )
    before = in_quotes(label(int(lens.top[layer - 1, -1, 0])))
    if layer == len(lens.layers) - 1:
        then = f"only after the last layer, {lens.layers[layer].title}, it guesses {name} ({share})"
    else:
        then = f"after {lens.layers[layer].title} it is {name}, and stays so ({share} in the end)"
    return f"After {lens.layers[layer - 1].title} it would guess {before}; {then}."


def _can_be_read(lens: Lens) -> bool:
    return len(lens.layers) > 1 and bool(np.isfinite(lens.probability).all())


def about_rows(subject: Subject, lens: Lens) -> str:
    """A caption: which head is applied to the stream, and how near the last row is to the model's
    own logits.
    """
    error = lens.final_error
    exact = "exactly" if error == 0 else f"to {brief(error, 1)}"
    cut = ""
    if lens.positions.start:
        cut = (
            f"The model reads all {format_count(lens.positions.stop, 'token')}; the last "
            f"{len(lens.positions):,} are shown. "
        )
    return (
        f"{cut}{applied_norm(subject.lm.model.config)} The last row is the model's own guess: its "
        f"logits agree {exact}."
    )


def opened_cell(asked: AskedAnalysis[Lens]) -> LensCell:
    """The cell that was opened: in the grid, or by the link; else the last one, the model's own
    guess after the whole text.
    """
    lens = asked.value
    kept = visit.remembered_value(OPENED)
    if kept is not None and kept[0] == _text_of(asked):
        cell: LensCell = kept[1]
        return cell
    end = LensCell(len(lens.layers) - 1, len(lens.positions) - 1)
    if kept is not None:
        return end
    query = st.query_params
    names = [layer.name for layer in lens.layers]
    return (
        lens_grid.read_address(query.get("layer"), query.get("position"), names, lens.positions)
        or end
    )


def follow(subject: Subject, lens: Lens, cell: LensCell) -> int | None:
    """The control for a token that is followed through all layers beside the likeliest ones; None
    for no token.
    """
    names = tokens(subject.key).names
    leading = lens.top[::-1, cell.index, 0]
    listed = [names[i] for i in dict.fromkeys(leading.tolist())]
    hint = (
        "Its probability after every layer. Those that lead after one of the layers are listed; "
        "any other token can be typed."
    )
    chosen = controls.select(
        "Follow a token", (NONE, *listed), key="follow", help=hint, other=names.__contains__
    )
    if chosen == NONE:
        return None
    return names.index(chosen)


def cell_view(subject: Subject, lens: Lens, cell: LensCell, course: Course) -> None:
    """The likeliest tokens of a cell, those that led after some layer, and how all rose and fell
    from layer to layer.
    """
    label = subject.lm.tokenizer.label
    layer = lens.layers[cell.layer]
    place = lens.positions[cell.index]
    st.markdown(
        f"**After {layer.title}, at position {place}, {in_quotes(label(lens.ids[cell.index]))}**"
    )
    left, right = st.columns([2, 5], gap="medium")
    probability = course.probability
    names = probability.axes[0].labels
    values = probability.values[:, cell.layer]
    order = sorted(range(len(names)), key=values.__getitem__, reverse=True)[:MOST_FOLLOWED]
    axis = Axis("token", tuple(names[i] for i in order))
    with left:
        st.caption(f"The {len(order)} likeliest tokens in this cell")
        show_figure(
            label_bars(
                LabelledArray(values[order], (axis,), probability.unit), theme(), pitch=_PITCH
            ),
            key="lens cell bars",
            alt=f"The likeliest tokens after {layer.title}: {', '.join(axis.labels[:5])}.",
        )
    with right:
        with st.container(
            horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
        ):
            st.caption(f"{_said_of_lines(lens, cell, label)} The dotted line is this cell.")
            hint = (
                "Equal ratios have equal lengths, from 0.01 % up, so that small probabilities show."
            )
            logarithmic = controls.switch("Logarithmic", key="log", help=hint)
        show_figure(
            rise_and_fall(
                probability,
                [each.short for each in lens.layers],
                theme(),
                height=max(340, _PITCH * len(order)),
                opened=cell.layer,
                logarithmic=logarithmic,
            ),
            key="lens cell lines",
            alt=f"The probabilities of {', '.join(names[:5])} after each of "
            f"{format_count(len(lens.layers), 'layer')}.",
        )


def _said_of_lines(lens: Lens, cell: LensCell, label: Callable[[int], str]) -> str:
    """Which tokens have a line of their own, and which others were the likeliest after some
    layer.
    """
    others = [in_quotes(label(token)) for token in leaders(lens, cell.index)[MOST_LED:]]
    if len(others) > MOST_NAMED:
        more = f", and {len(others) - MOST_NAMED:,} more"
    else:
        more = ""
    if others:
        led = f" Others led too: {', '.join(others[:MOST_NAMED])}{more}."
    else:
        led = ""
    return (
        "In colour: what is followed, tokens that led after some layer (the final guess first), "
        f"and the likeliest here.{led}"
    )


@st.cache_data(max_entries=64, show_spinner=False)
def course_of(asked: AskedAnalysis[Lens], cell: LensCell, follow: int | None) -> Course:
    return reading.course(language_model(asked.key), asked.value, cell.layer, cell.index, follow)


def code_of_cell(asked: AskedAnalysis[Lens], cell: LensCell, follow: int | None) -> str:
    """The lines of `gptviz` that follow the likeliest tokens of a cell, and the token `follow`,
    through all layers.
    """
    also = "" if follow is None else f", {follow}"
    return asked.code(
        f"course = lm.course(result, {cell.layer}, {cell.index}{also})", "course.probability"
    )


def tries(subject: Subject, lens: Lens) -> list[Try]:
    """The suggestions for this model and text; every sentence is computed from the lens."""
    if not _can_be_read(lens):
        return []
    offers = [_lost_guess(subject, lens), _latest_guess(subject, lens), _right_share(lens)]
    return [*known_offers(subject, lens_state()), *(offer for offer in offers if offer is not None)]


def lens_state(**asked: Any) -> dict[str, ViewCommand]:
    """The state (as a `Try` sets it) in which the grid is asked for `layer` and `position`,
    `colour` or `words`.
    """
    return {ASKED: ViewCommand.new_command(asked)}


def _cell_state(lens: Lens, layer: int, index: int) -> dict[str, ViewCommand]:
    return lens_state(layer=lens.layers[layer].name, position=lens.positions[index])


def _latest_guess(subject: Subject, lens: Lens) -> Try | None:
    """The guess that is decided latest, the surest of them, if that is not the last one; none if
    all are decided late.
    """
    when = settled_layers(lens)
    if len(lens.layers) < 3:
        return None
    sure = np.where(when == when.max(), lens.probability[-1, :, 0], -1)
    index = int(sure.argmax())
    if index == len(when) - 1 or when[index] < len(lens.layers) - 2:
        return None
    label = subject.lm.tokenizer.label
    before, after = (
        in_quotes(label(int(lens.top[layer, index, 0]))) for layer in (when[index] - 1, -1)
    )
    notice = (
        f"At position {lens.positions[index]} the guess changes as late as after "
        f"{lens.layers[when[index]].title}: from {before} "
        f"to {after}, which ends with {percent(float(sure[index]))}."
    )
    return Try("A late decision", notice, _cell_state(lens, int(when[index]), index))


def _lost_guess(subject: Subject, lens: Lens) -> Try | None:
    """A place where an earlier layer had the true token on top, and the model did not end with
    it.
    """
    was_right = (lens.rank[:-1] == 1) & (lens.rank[-1] > 1)
    if not was_right.any():
        return None
    likely = np.where(was_right, np.nan_to_num(lens.true_probability[:-1]), -1)
    layer, index = (int(one) for one in np.unravel_index(likely.argmax(), likely.shape))
    label = subject.lm.tokenizer.label
    true = in_quotes(label(int(lens.true[index])))
    end = in_quotes(label(int(lens.top[-1, index, 0])))
    notice = (
        f"At position {lens.positions[index]} the token that really comes next, {true}, is on top "
        "after "
        f"{lens.layers[layer].title} with {percent(float(likely[layer, index]))}; the model ends "
        f"with {end}."
    )
    return Try("Right, then changed", notice, _cell_state(lens, layer, index))


def _right_share(lens: Lens) -> Try | None:
    """In how much of the text each end of the model has the true token on top."""
    known = lens.rank[-1] > 0
    if not known.any():
        return None
    first, last = (float((lens.rank[row][known] == 1).mean()) for row in (0, -1))
    notice = (
        f"The token that really comes next is the likeliest at {percent(last)} of the positions "
        "in the last row, and at "
        f"{percent(first)} in the first. Coloured by its rank, the grid shows where it rises."
    )
    return Try("Right and wrong", notice, lens_state(colour="rank"))
