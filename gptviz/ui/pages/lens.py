"""What the Logit lens page shows: the grid, computed once for all sessions, and the cell that was opened."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import streamlit as st

from gptviz.components import lens_grid
from gptviz.components.kit.command import NO_COMMAND, Command
from gptviz.components.lens_grid import Cell
from gptviz.figures.format import counted, percent
from gptviz.figures.labels import labels as label_bars
from gptviz.figures.lens import rise_and_fall
from gptviz.interp import lens as interp
from gptviz.interp.layers import ends_of_blocks, layers
from gptviz.interp.lens import Course, Lens, settled
from gptviz.labelled_array import LabelledArray
from gptviz.ui.shell import reading
from gptviz.ui.shell.models import ModelKey, language_model
from gptviz.ui.shell.subject import Subject
from gptviz.ui.shell.theme import theme
from gptviz.ui.views.contrasts import Question, answered
from gptviz.ui.views.decoder_text import Read, opening_code
from gptviz.ui.widgets import addresses, controls, stoppable, visit
from gptviz.ui.widgets.figure import show_figure
from gptviz.ui.widgets.markdown import escaped, in_quotes
from gptviz.ui.widgets.tries import Try

# Of a longer text the end is shown: the columns of more tokens would be narrower than a pixel on many screens.
MOST_POSITIONS = 256
SUBLAYERS, BLOCKS = "every sublayer", "every block"
# So many multiplications by the unembedding, about a second on two cores, are made unless more rows are asked for.
AT_ONCE = 100e9
_OPENED, _ASKED, _ROWS = "lens cell", "lens asked", "rows"
_PITCH = 22

HOW = r"""
The residual stream $x$ is recorded after the embedding and after every sublayer, in the pass that makes the model's prediction
(the taps `resid_pre`, `resid_self`, `resid_mid` and `resid_post`; `interp/layers.py`). To each row the model's own head is
applied: $\text{logits} = W_U \cdot \text{norm}(x)$, with the bias of the unembedding and the cap on logits where the model has
them, and $p = \text{softmax}(\text{logits})$ (nostalgebraist 2020). The head is `model.head`, so the last row is the model's own
guess. Entropy is $-\sum_i p_i \ln p_i$ over the whole vocabulary; the rank of the true token is one more than the number of
tokens with a larger logit. Rows and positions are read some at a time, and of each cell only its likeliest tokens, its entropy
and the rank are kept: `lens` and `course` in `gptviz/interp/lens.py`.
"""
LIMITS = """The head was trained to read the end of the last block, not what is in between: an early row may hold the answer in
directions that the head does not read, and then looks as if the model knew nothing. What a row shows is what the head would make
of it, not what the next block makes of it."""


@dataclass(frozen=True)
class Rows(Read):
    """What the model reads, and after which layers the head reads it.

    Attributes:
        blocks_only: whether the layers within a block are left out.
    """

    blocks_only: bool = False


def rows_of(subject: Subject, read: Read) -> Rows:
    """The control for the rows: one after every sublayer; at first one after every block where more would take long."""
    every = layers(subject.lm.model.config)
    ends = [every[index].name for index in ends_of_blocks(every)]
    if len(ends) == len(every):
        return Rows(read.ids, read.source, read.following)
    cells = len(every) * min(len(read.ids), MOST_POSITIONS)
    is_quick = cells * subject.lm.model.embed.weight.numel() <= AT_ONCE
    asked, names = st.query_params.get("layer"), [layer.name for layer in every]
    if _ROWS not in st.query_params and _ROWS not in st.session_state and asked in names and asked not in ends:
        st.session_state[_ROWS] = SUBLAYERS  # the link opens a cell within a block
    chosen = controls.select(
        "A row after",
        [SUBLAYERS, BLOCKS],
        key=_ROWS,
        default=SUBLAYERS if is_quick else BLOCKS,
        segmented=True,
        help="Sublayers are the attention and the MLP of a block. A large model is at first read after every block alone, which "
        "takes half as long.",
    )
    return Rows(read.ids, read.source, read.following, blocks_only=chosen == BLOCKS)


# Shared by all sessions: read-only. An entry has the stream at the positions shown: 36 MB for 61 layers of 576 numbers.
@stoppable.resource("Reading every layer", max_entries=4)
def seen_by(key: ModelKey, read: Rows) -> Lens:
    """What the model would guess after every layer, or after every block."""
    return interp.lens(
        language_model(key).model,
        read.ids,
        read.source,
        following=read.following,
        last=MOST_POSITIONS,
        blocks_only=read.blocks_only,
    )


@st.cache_data(max_entries=64, show_spinner=False)
def _course(key: ModelKey, read: Rows, cell: Cell) -> Course:
    lm = language_model(key)
    return interp.course(lm.model, seen_by(key, read), cell.layer, cell.index, _labels(key))


# Kept for all sessions: the labels of a large vocabulary take a moment to make.
@st.cache_resource(max_entries=3, show_spinner=False)
def _labels(key: ModelKey) -> tuple[str, ...]:
    return tuple(language_model(key).tokenizer.labels())


@st.cache_resource(max_entries=8, show_spinner=False)
def _payload(key: ModelKey, read: Rows, of: str, code: str, command: Command) -> bytes:
    lm = language_model(key)
    name = key.title if key.step is None else f"{key.title}, step {key.step}"
    return lens_grid.payload(
        seen_by(key, read),
        lm.tokenizer.label,
        of=of,
        model=name,
        vocab_size=lm.model.config.vocab_size,
        code=code,
        spaced=reading.is_spaced(lm),
        command=command,
    )


def _text_of(key: ModelKey, read: Rows) -> str:
    """Tells one text and model from another. The steps of one training are one: what is chosen stays while they are played."""
    return blake2b(repr((key.name, read)).encode("utf-8", "backslashreplace"), digest_size=12).hexdigest()


def grid(subject: Subject, read: Rows) -> bool:
    """The grid; whether there is one: a damaged model has none."""
    seen, of = seen_by(subject.key, read), _text_of(subject.key, read)
    command: Command = st.session_state.get(_ASKED, NO_COMMAND)
    try:
        packed = _payload(subject.key, read, of, code(subject, read), command)
    except ValueError as error:
        st.error(escaped(f"{subject.key.name}: {error}. Choose another model or step above."))
        return False

    def give(value: object) -> None:
        cell = lens_grid.opened(value, of, len(seen.layers), len(seen.positions))
        if cell is not None:
            visit.remember(_OPENED, (of, cell))

    addresses.takes_all(lens_grid.address([layer.name for layer in seen.layers], seen.positions))
    lens_grid.lens_grid(packed, key="lens", on_open=give)
    return True


def opened(subject: Subject, read: Rows) -> Cell:
    """The cell that was opened: in the grid, or by the link; else the last one, the model's own guess after the whole text."""
    seen = seen_by(subject.key, read)
    kept = visit.remembered(_OPENED)
    if kept is not None and kept[0] == _text_of(subject.key, read):
        cell: Cell = kept[1]
        return cell
    end = Cell(len(seen.layers) - 1, len(seen.positions) - 1)
    if kept is not None:
        return end
    query = st.query_params
    names = [layer.name for layer in seen.layers]
    return lens_grid.asked(query.get("layer"), query.get("position"), names, seen.positions) or end


def cell_view(subject: Subject, read: Rows, cell: Cell) -> LabelledArray:
    """The likeliest tokens of a cell, and how they rose and fell from layer to layer; the numbers of both."""
    seen, followed = seen_by(subject.key, read), _course(subject.key, read, cell)
    label = subject.lm.tokenizer.label
    layer, place = seen.layers[cell.layer], seen.positions[cell.index]
    st.markdown(f"**After {layer.title}, at position {place}, {in_quotes(label(seen.ids[cell.index]))}**")
    left, right = st.columns([2, 5], gap="medium")
    probability = followed.probability
    here = LabelledArray(probability.values[:, cell.layer], probability.axes[:1], probability.unit)
    names = probability.axes[0].labels
    with left:
        st.caption(f"The {len(names)} likeliest tokens in this cell")
        show_figure(
            label_bars(here, theme(), pitch=_PITCH),
            key="lens cell bars",
            config={"displayModeBar": False},
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
            config={"displaylogo": False},
            alt=f"The probabilities of {', '.join(names[:5])} after each of {counted(len(seen.layers), 'layer')}.",
        )
    return probability


def about_rows(subject: Subject, read: Rows) -> str:
    """What is applied to the stream, and how near the last row is to the model's own logits."""
    seen = seen_by(subject.key, read)
    error = seen.final_error
    exact = "exactly" if error == 0 else f"to {error:.1g}"
    cut = ""
    if len(seen.positions) < len(read.ids):
        cut = f"The model reads all {counted(len(read.ids), 'token')}; the last {len(seen.positions):,} are shown. "
    return f"{cut}{interp.applied(subject.lm.model.config)} The last row is the model's own guess: its logits agree {exact}."


def to_try(subject: Subject, read: Rows) -> list[Try]:
    """What to try with this model and text; what is said is computed from the lens."""
    seen = seen_by(subject.key, read)
    if len(seen.layers) < 2 or not np.isfinite(seen.probability).all():
        return []
    known = [_known(subject, question) for question in answered(subject.key)]
    offers = [*known, _answer(subject, seen), _late(subject, seen), _lost(subject, seen), _right(seen)]
    return [offer for offer in offers if offer is not None]


@st.cache_data(max_entries=64, show_spinner=False)
def _leads(key: ModelKey, question: Question) -> tuple[int, float, int]:
    """From which layer on the right answer leads for good after the prompt of a question, its probability there, and the token
    that leads one layer before; -1 where there is none.
    """
    seen = interp.lens(language_model(key).model, question.ids, last=1)
    layer = int(settled(seen)[-1])
    return layer, float(seen.probability[layer, -1, 0]), int(seen.top[layer - 1, -1, 0]) if layer else -1


def _known(subject: Subject, question: Question) -> Try:
    """A prompt with a known answer: after which layer it leads."""
    layer, share, before = _leads(subject.key, question)
    rows, label = layers(subject.lm.model.config), subject.lm.tokenizer.label
    led = f"; one layer earlier {in_quotes(label(before))} does" if before >= 0 else ""
    right = in_quotes(label(question.right))
    notice = (
        f"After {in_quotes(question.prompt)} the right answer, {right}, leads from {rows[layer].title} on, there with "
        f"{percent(share)}{led}. {question.contrast.about}"
    )
    cell = lens_state(layer=rows[layer].name, position=len(question.ids) - 1)
    return Try(question.contrast.title, notice, {"prompt": question.prompt, _ROWS: SUBLAYERS, **cell})


def lens_state(**asked: Any) -> dict[str, Command]:
    """The state (as a `Try` sets it) in which the grid is asked for `layer` and `position`, `colour` or `words`."""
    return {_ASKED: Command.to(asked)}


def _cell_state(seen: Lens, layer: int, index: int) -> dict[str, Command]:
    return lens_state(layer=seen.layers[layer].name, position=seen.positions[index])


def _answer(subject: Subject, seen: Lens) -> Try:
    """Where the guess after the whole text first comes on top to stay."""
    layer, token = int(settled(seen)[-1]), int(seen.top[-1, -1, 0])
    share, name = percent(float(seen.probability[-1, -1, 0])), in_quotes(subject.lm.tokenizer.label(token))
    when = f"It comes on top after {seen.layers[layer].title}, and stays there."
    if layer == 0:
        when = "It is on top from the embedding on: the last token alone decides it."
    elif layer == len(seen.layers) - 1:
        when = f"It comes on top only in the last row, after {seen.layers[layer].title}."
    notice = f"After the whole text the model's guess is {name}, with {share}. {when}"
    return Try("Where the answer comes from", notice, _cell_state(seen, layer, len(seen.positions) - 1))


def _late(subject: Subject, seen: Lens) -> Try | None:
    """The guess that is decided latest, the surest of them, where that is not the last one; none where all are decided late."""
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


def code(subject: Subject, read: Rows) -> str:
    """The lines of `gptviz` that compute the numbers of the grid."""
    beside = "" if read.source is None else ", source"
    following = "" if read.following is None else f", following={read.following}"
    last = "" if len(read.ids) <= MOST_POSITIONS else f", last={MOST_POSITIONS}"
    last += ", blocks_only=True" if read.blocks_only else ""
    return f"""{opening_code(subject, read, "from gptviz.interp.lens import lens")}
seen = lens(lm.model, ids{beside}{following}{last})
seen.top, seen.probability  # [layer, position, k]: the likeliest tokens
seen.entropy, seen.rank, seen.true_probability  # [layer, position]"""


def code_of_cell(subject: Subject, read: Rows, cell: Cell) -> str:
    """The lines of `gptviz` that follow the likeliest tokens of a cell through all layers."""
    return f"""{code(subject, read)}

from gptviz.interp.lens import course

followed = course(lm.model, seen, layer={cell.layer}, index={cell.index}, labels=lm.tokenizer.labels())
followed.probability.values  # [token, layer]"""
