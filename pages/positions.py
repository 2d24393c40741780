"""Positions: how alike two positions are to the model, and the waves that tell them apart."""

import streamlit as st

from gptviz.figures import lines, matrix
from gptviz.interp import positions
from gptviz.ui import behind, controls, frame
from gptviz.ui import positions as ui

frame.page(
    "pages/positions.py",
    "How does the model know where a token stands?",
    "Attention alone is blind to order. Each square says how alike two positions look to the model: blue alike, orange opposed.",
)
subject = frame.subject(needs_prompt=False)
key, config = subject.key, subject.lm.model.config
own, fixed = ui.kinds(key)

left, right = st.columns(2)
with left:
    with st.container(horizontal=True, vertical_alignment="center", height=48, border=False):
        st.markdown(f"**In this model**: {ui.name(own)} positions")
        block = 0
        if own == "relative":
            block = controls.whole("Block", 0, config.n_layer - 1, key="block", help="Each block has its own vectors.", default=0)
    ui.panel(key, own, block, height=400)
with right:
    with st.container(horizontal=True, vertical_alignment="center", height=48, border=False):
        st.markdown("**Beside it**", width="content")
        beside = controls.select(
            "Beside it",
            [kind for kind in fixed if kind != own],
            key="beside",
            help="Kinds of positions that need no training, at this model's sizes.",
            format_func=ui.name,
            label_visibility="collapsed",
            segmented=True,
        )
    ui.panel(key, beside, 0, height=400)

with st.container(horizontal=True, vertical_alignment="center"):
    st.markdown("**Try this**", width="content")
    if learned := ui.model_with("learned"):
        controls.try_this(
            "Learned positions",
            "The model was told nothing about order. Do neighbours still look alike? Is a diagonal of one colour?",
            model=learned,
        )
    controls.try_this("Steep and flat heads", "Each head of ALiBi forgets at its own speed.", beside="alibi")
    controls.try_this("A slow wave", "The last waves hardly move: they tell far from near, the first tell odd from even.", wave=20)

st.subheader("One wave at a time", anchor=False)
tables = [kind for kind in dict.fromkeys(("sinusoidal", own)) if kind in positions.WITH_VECTORS]
left, right = st.columns(2)
with right:
    kind = controls.select(
        "Table", tables, key="table", help="Whose vectors: one row per position.", format_func=ui.name, segmented=True
    )
    table = ui.vectors(key, kind, block)
    last = len(table.axes[1].labels) - 1
    wave = controls.whole("Dimension", 0, last, key="wave", help="One column of the table, drawn as a wave.", default=(last + 1) // 4)
    limit = 1.0 if kind in positions.FIXED else positions.bound(table)
    column = positions.column(table, wave)
    st.plotly_chart(lines.wave(column, frame.theme(), height=250, limit=limit), key="wave line", alt=f"Dimension {wave} over the positions.")
    st.caption(ui.wave_note(table, kind, wave))
with left:
    figure = matrix.signed(table, frame.theme(), height=400, limit=limit, column=wave)
    st.plotly_chart(figure, key="table map", alt=f"The {kind} vectors, position by dimension.")
