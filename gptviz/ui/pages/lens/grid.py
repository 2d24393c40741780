"""What the model would guess after each layer: the grid, and the cell that is open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from gptviz.components import lens_grid
from gptviz.components.kit import fingerprint
from gptviz.components.kit.command import NO_COMMAND, ViewCommand
from gptviz.components.lens_grid import LensCell
from gptviz.figures.kit.format import brief, counted, percent
from gptviz.figures.reading.labels import labels as label_bars
from gptviz.figures.reading.lens import rise_and_fall
from gptviz.interp.reading import lens as interp
from gptviz.interp.reading.layers import ends_of_blocks, layers
from gptviz.interp.reading.lens import Course, Lens, settled
from gptviz.labelled_array import LabelledArray
from gptviz.model.costs.effort import MOST
from gptviz.ui.shell.subject import ModelKey, Subject, language_model
from gptviz.ui.views.by_token import NONE
from gptviz.ui.views.contrasts import ContrastQuestion, answered, when_it_appeared
from gptviz.ui.views.read import Read, opening_code
from gptviz.ui.views.vocabulary import labels, tokens
from gptviz.ui.widgets import Try, addresses, controls, escaped, in_quotes, jobs, show_figure, theme, visit

# Of a longer text the end is shown: the columns of more tokens would be narrower than a pixel on many screens.
MOST_POSITIONS = 256
SUBLAYERS, BLOCKS = "every sublayer", "every block"
OPENED, ASKED, ROWS = "lens cell", "lens asked", "rows"
_PITCH = 22


@dataclass(frozen=True)
class LensRows(Read):
    """The text that the model reads, and the layers after which its head is applied.

    Attributes:
        blocks_only: whether the layers within a block are left out.
    """

    blocks_only: bool = False


def rows_of(subject: Subject, read: Read) -> LensRows:
    """The control for the rows: one after every sublayer; at first one after every block where more would take long."""
    every = layers(subject.lm.model.config)
    ends = [every[index].name for index in ends_of_blocks(every)]
    if len(ends) == len(every):
        return LensRows(read.ids, read.source, read.written)
    cells = len(every) * min(len(read.ids), MOST_POSITIONS)
    is_quick = cells * subject.lm.model.embed.weight.numel() <= MOST
    asked, names = st.query_params.get("layer"), [layer.name for layer in every]
    if ROWS not in st.query_params and ROWS not in st.session_state and asked in names and asked not in ends:
        st.session_state[ROWS] = SUBLAYERS  # the link opens a cell within a block
    chosen = controls.select(
        "A row after",
        [SUBLAYERS, BLOCKS],
        key=ROWS,
        default=SUBLAYERS if is_quick else BLOCKS,
        segmented=True,
        help="Sublayers are the attention and the MLP of a block. A large model is at first read after every block alone, which "
        "takes half as long.",
    )
    return LensRows(read.ids, read.source, read.written, blocks_only=chosen == BLOCKS)


def grid(subject: Subject, read: LensRows) -> bool:
    """The grid; whether there is one: a damaged model has none."""
    seen, of = seen_by(subject.key, read), _text_of(subject.key, read)
    command: ViewCommand = st.session_state.get(ASKED, NO_COMMAND)
    try:
        packed = payload_of(subject.key, read, of, code(subject, read), command)
    except ValueError as error:
        st.error(escaped(f"{subject.key.name}: {error}. Choose another model or step above."))
        return False

    def give(value: object) -> None:
        cell = lens_grid.opened(value, of, len(seen.layers), len(seen.positions))
        if cell is not None:
            visit.remember(OPENED, (of, cell))

    addresses.takes_all(lens_grid.address([layer.name for layer in seen.layers], seen.positions))
    lens_grid.lens_grid(packed, key="lens", on_open=give)
    return True


# Shared by all sessions: read-only. An entry has the stream at the positions shown: 36 MB for 61 layers of 576 numbers.
@jobs.resource("Reading every layer", max_entries=4)
def seen_by(key: ModelKey, read: LensRows) -> Lens:
    """The guesses of the model after every layer, or after every block."""
    return interp.lens(
        language_model(key).model,
        read.ids,
        read.source,
        following=read.following,
        last=MOST_POSITIONS,
        blocks_only=read.blocks_only,
    )


def _text_of(key: ModelKey, read: LensRows) -> str:
    """Tells one text and model from another. The steps of one training are one: what is chosen stays while they are played."""
    return fingerprint(key.name, read)


@st.cache_resource(max_entries=8, show_spinner=False)
def payload_of(key: ModelKey, read: LensRows, of: str, code: str, command: ViewCommand) -> bytes:
    lm = language_model(key)
    name = key.title if key.step is None else f"{key.title}, step {key.step}"
    return lens_grid.payload(
        seen_by(key, read),
        lm.tokenizer.label,
        of=of,
        model=name,
        vocab_size=lm.model.config.vocab_size,
        code=code,
        spaced=lm.tokenizer.is_spaced,
        command=command,
    )


def code(subject: Subject, read: LensRows) -> str:
    """The lines of `gptviz` that compute the numbers of the grid."""
    and_source = "" if read.source is None else ", source"
    following = "" if read.following is None else f", following={read.following}"
    last = "" if len(read.ids) <= MOST_POSITIONS else f", last={MOST_POSITIONS}"
    last += ", blocks_only=True" if read.blocks_only else ""
    return f"""{opening_code(subject, read, "from gptviz.interp.reading.lens import lens")}
seen = lens(lm.model, ids{and_source}{following}{last})
seen.top, seen.probability  # [layer, position, k]: the likeliest tokens
seen.entropy, seen.rank, seen.true_probability  # [layer, position]"""


def where_the_answer_comes_from(subject: Subject, seen: Lens) -> str:
    """The guess after the whole text, and the layer after which it first comes on top to stay, as Markdown; empty where nothing
    can be said.
    """
    if not _can_be_read(seen):
        return ""
    layer, token = int(settled(seen)[-1]), int(seen.top[-1, -1, 0])
    share, name = percent(float(seen.probability[-1, -1, 0])), in_quotes(subject.lm.tokenizer.label(token))
    when = f"It comes on top after {seen.layers[layer].title}, and stays there."
    if layer == 0:
        when = "It is on top from the embedding on: the last token alone decides it."
    elif layer == len(seen.layers) - 1:
        when = f"It comes on top only in the last row, after {seen.layers[layer].title}."
    return f"After the whole text the model's guess is {name}, with {share}. {when}"


def _can_be_read(seen: Lens) -> bool:
    return len(seen.layers) > 1 and bool(np.isfinite(seen.probability).all())


def about_rows(subject: Subject, read: LensRows) -> str:
    """A caption: which head is applied to the stream, and how near the last row is to the model's own logits."""
    seen = seen_by(subject.key, read)
    error = seen.final_error
    exact = "exactly" if error == 0 else f"to {brief(error, 1)}"
    cut = ""
    if len(seen.positions) < len(read.ids):
        cut = f"The model reads all {counted(len(read.ids), 'token')}; the last {len(seen.positions):,} are shown. "
    return f"{cut}{interp.applied(subject.lm.model.config)} The last row is the model's own guess: its logits agree {exact}."


def opened(subject: Subject, read: LensRows) -> LensCell:
    """The cell that was opened: in the grid, or by the link; else the last one, the model's own guess after the whole text."""
    seen = seen_by(subject.key, read)
    kept = visit.remembered(OPENED)
    if kept is not None and kept[0] == _text_of(subject.key, read):
        cell: LensCell = kept[1]
        return cell
    end = LensCell(len(seen.layers) - 1, len(seen.positions) - 1)
    if kept is not None:
        return end
    query = st.query_params
    names = [layer.name for layer in seen.layers]
    return lens_grid.asked(query.get("layer"), query.get("position"), names, seen.positions) or end


def follow(subject: Subject, read: LensRows, cell: LensCell) -> int | None:
    """The control for a token that is followed through all layers beside the likeliest ones; None for no token."""
    names, leading = tokens(subject.key).names, seen_by(subject.key, read).top[::-1, cell.index, 0]
    listed = [names[i] for i in dict.fromkeys(leading.tolist())]
    about = "Its probability after every layer. Those that lead after one of the layers are listed; any other token can be typed."
    chosen = controls.select("Follow a token", (NONE, *listed), key="follow", help=about, other=names.__contains__)
    return None if chosen == NONE else names.index(chosen)


def cell_view(subject: Subject, read: LensRows, cell: LensCell, follow: int | None) -> LabelledArray:
    """The likeliest tokens of a cell and one to `follow`, and how they rose and fell from layer to layer; the numbers of both."""
    seen, followed = seen_by(subject.key, read), course_of(subject.key, read, cell, follow)
    label = subject.lm.tokenizer.label
    layer, place = seen.layers[cell.layer], seen.positions[cell.index]
    st.markdown(f"**After {layer.title}, at position {place}, {in_quotes(label(seen.ids[cell.index]))}**")
    left, right = st.columns([2, 5], gap="medium")
    probability = followed.probability
    here = LabelledArray(probability.values[:, cell.layer], probability.axes[:1], probability.unit)
    names = probability.axes[0].labels
    with left:
        st.caption(
            f"The {len(names)} likeliest tokens in this cell"
            if follow is None
            else f"{in_quotes(label(follow))}, then the likeliest tokens in this cell"
        )
        show_figure(
            label_bars(here, theme(), pitch=_PITCH),
            key="lens cell bars",
            alt=f"The likeliest tokens after {layer.title}: {', '.join(names[:5])}.",
        )
    with right:
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.caption("The same tokens after every layer; the dotted line is this cell")
            about = "Equal ratios have equal lengths, from 0.01 % up, so that small probabilities show."
            logarithmic = controls.switch("Logarithmic", key="log", help=about)
        show_figure(
            rise_and_fall(
                probability,
                [one.short for one in seen.layers],
                theme(),
                height=max(340, _PITCH * len(names)),
                opened=cell.layer,
                logarithmic=logarithmic,
            ),
            key="lens cell lines",
            alt=f"The probabilities of {', '.join(names[:5])} after each of {counted(len(seen.layers), 'layer')}.",
        )
    return probability


@st.cache_data(max_entries=64, show_spinner=False)
def course_of(key: ModelKey, read: LensRows, cell: LensCell, follow: int | None) -> Course:
    lm = language_model(key)
    return interp.course(lm.model, seen_by(key, read), cell.layer, cell.index, labels(key), follow=follow)


def tries(subject: Subject, read: LensRows) -> list[Try]:
    """The suggestions for this model and text; every sentence is computed from the lens."""
    seen = seen_by(subject.key, read)
    if not _can_be_read(seen):
        return []
    known = [_known(subject, question) for question in answered(subject.key)]
    when = when_it_appeared(subject.key, subject.prompt, lambda _: {}, **lens_state())
    cell = _cell_state(seen, int(settled(seen)[-1]), len(seen.positions) - 1)
    answer = Try("Where the answer comes from", where_the_answer_comes_from(subject, seen), cell)
    offers = [*known, when, answer, _late(subject, seen), _lost(subject, seen), _right(seen)]
    return [offer for offer in offers if offer is not None]


def _known(subject: Subject, question: ContrastQuestion) -> Try:
    """A prompt with a known answer: after which layer it leads."""
    layer, share, before = leads_of(subject.key, question)
    rows, label = layers(subject.lm.model.config), subject.lm.tokenizer.label
    led = f"; one layer earlier {in_quotes(label(before))} does" if before >= 0 else ""
    right = in_quotes(label(question.right))
    notice = (
        f"After {in_quotes(question.prompt)} the right answer, {right}, leads from {rows[layer].title} on, there with "
        f"{percent(share)}{led}. {question.contrast.about}"
    )
    cell = lens_state(layer=rows[layer].name, position=len(question.ids) - 1)
    return Try(question.contrast.title, notice, {"prompt": question.prompt, ROWS: SUBLAYERS, **cell})


@st.cache_data(max_entries=64, show_spinner=False)
def leads_of(key: ModelKey, question: ContrastQuestion) -> tuple[int, float, int]:
    """From which layer on the right answer leads for good after the prompt of a question, its probability there, and the token
    that leads one layer before; -1 where there is none.
    """
    seen = interp.lens(language_model(key).model, question.ids, last=1)
    layer = int(settled(seen)[-1])
    return layer, float(seen.probability[layer, -1, 0]), int(seen.top[layer - 1, -1, 0]) if layer else -1


def lens_state(**asked: Any) -> dict[str, ViewCommand]:
    """The state (as a `Try` sets it) in which the grid is asked for `layer` and `position`, `colour` or `words`."""
    return {ASKED: ViewCommand.to(asked)}


def _cell_state(seen: Lens, layer: int, index: int) -> dict[str, ViewCommand]:
    return lens_state(layer=seen.layers[layer].name, position=seen.positions[index])


def _late(subject: Subject, seen: Lens) -> Try | None:
    """The guess that is decided latest, the surest of them, if that is not the last one; none if all are decided late."""
    when = settled(seen)
    if len(seen.layers) < 3:
        return None
    sure = np.where(when == when.max(), seen.probability[-1, :, 0], -1)
    index = int(sure.argmax())
    if index == len(when) - 1 or when[index] < len(seen.layers) - 2:
        return None
    label = subject.lm.tokenizer.label
    before, after = (in_quotes(label(int(seen.top[layer, index, 0]))) for layer in (when[index] - 1, -1))
    notice = (
        f"At position {seen.positions[index]} the guess changes as late as after {seen.layers[when[index]].title}: from {before} "
        f"to {after}, which ends with {percent(float(sure[index]))}."
    )
    return Try("A late decision", notice, _cell_state(seen, int(when[index]), index))


def _lost(subject: Subject, seen: Lens) -> Try | None:
    """A place where an earlier layer had the true token on top, and the model did not end with it."""
    was_right = (seen.rank[:-1] == 1) & (seen.rank[-1] > 1)
    if not was_right.any():
        return None
    likely = np.where(was_right, np.nan_to_num(seen.true_probability[:-1]), -1)
    layer, index = (int(one) for one in np.unravel_index(likely.argmax(), likely.shape))
    label = subject.lm.tokenizer.label
    true, end = in_quotes(label(int(seen.true[index]))), in_quotes(label(int(seen.top[-1, index, 0])))
    notice = (
        f"At position {seen.positions[index]} the token that really comes next, {true}, is on top after "
        f"{seen.layers[layer].title} with {percent(float(likely[layer, index]))}; the model ends with {end}."
    )
    return Try("Right, then changed", notice, _cell_state(seen, layer, index))


def _right(seen: Lens) -> Try | None:
    """In how much of the text each end of the model has the true token on top."""
    known = seen.rank[-1] > 0
    if not known.any():
        return None
    first, last = (float((seen.rank[row][known] == 1).mean()) for row in (0, -1))
    notice = (
        f"The token that really comes next is the likeliest at {percent(last)} of the positions in the last row, and at "
        f"{percent(first)} in the first. Coloured by its rank, the grid shows where it rises."
    )
    return Try("Right and wrong", notice, lens_state(colour="rank"))


def code_of_cell(subject: Subject, read: LensRows, cell: LensCell, follow: int | None) -> str:
    """The lines of `gptviz` that follow the likeliest tokens of a cell, and the token `follow`, through all layers."""
    also = "" if follow is None else f", follow={follow}"
    return f"""{code(subject, read)}

from gptviz.interp.reading.lens import course

followed = course(lm.model, seen, layer={cell.layer}, index={cell.index}, labels=lm.tokenizer.labels(){also})
followed.probability.values  # [token, layer]"""
