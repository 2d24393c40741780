"""Positions: how alike two positions are to the model, and the waves that tell them apart."""

import streamlit as st

from gptviz.ui.records.positions import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.figures.kit import heat, lines
from gptviz.interp.reading import positions
from gptviz.ui.pages.positions import computed, show, words
from gptviz.ui.pages.positions.tries import tries
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.views import edits, encoder_decoder
from gptviz.ui.widgets import controls, escaped, try_this
from gptviz.ui.widgets.details import details
from gptviz.ui.widgets.figure import show_figure, theme

subject = subject_bar()
key, config = subject.key, subject.lm.model.config
controls.notices_in(st.container())
for sentence in edits.about_positions(subject.lm):
    controls.notices().info(escaped(sentence), icon=":material/edit:")
stack, block = encoder_decoder.DECODER, 0
if subject.kind == "encoder-decoder" and computed.has_own_stacks(config.positions):
    stack = encoder_decoder.stack_control()  # each has vectors of its own
own, fixed = computed.kinds(key, stack)
own_config = encoder_decoder.stack_of(subject.lm.model, stack).config
if own != "none" and positions.differ_by_block(own_config):
    about = "Blocks have positions of their own."
    block = controls.whole("Block", 0, own_config.n_layer - 1, key="block", help=about, default=0)
left, right = st.columns(2)
with left:
    with st.container(horizontal=True, vertical_alignment="center", key="as-high-as-controls"):
        st.markdown(f"**In this model**: {show.name(own)} positions", width="content")
    show.panel("own", subject, own, block, height=400, stack=stack)
with right:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("**Beside it**", width="content")
        beside = controls.select(
            "Beside it",
            [kind for kind in fixed if kind != own] or [own],
            key="beside",
            help="Kinds of positions that need no training, at this model's sizes.",
            format_func=show.name,
            label_visibility="collapsed",
            segmented=True,
        )
    show.panel("beside", subject, beside, 0, height=400)

try_this(tries(subject, own, fixed))

tables = [kind for kind in dict.fromkeys(("sinusoidal", own)) if kind in (own, *fixed) and positions.has_vectors(kind)]
if tables:
    st.header("One wave at a time", anchor=False)
    left, right = st.columns(2)
    with right:
        kind = controls.select(
            "Table", tables, key="table", help="Whose vectors: one row per position.", format_func=show.name, segmented=True
        )
        table = computed.vectors(key, kind, block, stack)
        size = len(table.axes[1].labels)
        wave = controls.whole(
            "Dimension", 0, size - 1, key="wave", help="One column of the table, drawn as a wave.", default=size // 4
        )
        limit = computed.limit(key, kind, block, stack)
        note = show.wave_note(key, table, kind, wave, block, stack)
        show_figure(
            lines.wave(positions.column(table, wave), theme(), height=250, limit=limit),
            key="wave line",
            alt=f"Dimension {wave} of the {kind} vectors over the positions. {note}",
        )
        st.caption(note)
    with left:
        show_figure(
            heat.signed_matrix(table, theme(), height=430, limit=limit, column=wave),
            key="wave map",
            alt=f"The {kind} vectors, {table.axes[0].name} by dimension; dimension {wave} is framed.",
        )

details(
    lambda: computed.numbers(key, beside if own == "none" else own, block, stack),
    code=words.code(subject.lm, beside if own == "none" else own, block, stack),
    how=words.HOW,
    limits=words.LIMITS,
    key="positions",
)
next_step()
