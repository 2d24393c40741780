"""The pictures of the page Logit lens: the grid, and the cell that is open."""

from __future__ import annotations

import streamlit as st

from gptviz.components import lens_grid
from gptviz.components.kit import fingerprint
from gptviz.components.kit.command import NO_COMMAND, ViewCommand
from gptviz.components.lens_grid import LensCell
from gptviz.figures.kit.format import brief, counted
from gptviz.figures.reading.labels import labels as label_bars
from gptviz.figures.reading.lens import rise_and_fall
from gptviz.interp.reading import lens as interp
from gptviz.interp.reading.layers import ends_of_blocks, layers
from gptviz.labelled_array import LabelledArray
from gptviz.model.costs.effort import MOST
from gptviz.ui.shell.subject import ModelKey, Subject
from gptviz.ui.views.read import Read
from gptviz.ui.widgets import addresses, controls, escaped, in_quotes, show_figure, theme, visit

from .computed import MOST_POSITIONS, LensRows, course_of, payload_of, seen_by
from .words import code

SUBLAYERS, BLOCKS = "every sublayer", "every block"
OPENED, ASKED, ROWS = "lens cell", "lens asked", "rows"
_PITCH = 22


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


def _text_of(key: ModelKey, read: LensRows) -> str:
    """Tells one text and model from another. The steps of one training are one: what is chosen stays while they are played."""
    return fingerprint(key.name, read)


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


def cell_view(subject: Subject, read: LensRows, cell: LensCell) -> LabelledArray:
    """The likeliest tokens of a cell, and how they rose and fell from layer to layer; the numbers of both."""
    seen, followed = seen_by(subject.key, read), course_of(subject.key, read, cell)
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


def about_rows(subject: Subject, read: LensRows) -> str:
    """A caption: which head is applied to the stream, and how near the last row is to the model's own logits."""
    seen = seen_by(subject.key, read)
    error = seen.final_error
    exact = "exactly" if error == 0 else f"to {brief(error, 1)}"
    cut = ""
    if len(seen.positions) < len(read.ids):
        cut = f"The model reads all {counted(len(read.ids), 'token')}; the last {len(seen.positions):,} are shown. "
    return f"{cut}{interp.applied(subject.lm.model.config)} The last row is the model's own guess: its logits agree {exact}."
