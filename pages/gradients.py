"""Gradients: what of the loss's gradient reaches the first block, with and without residual connections and norms."""

import streamlit as st

from gptviz.ui.records.gradients import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.interp.reading.gradients import GRADIENT, STREAM, WEIGHTS
from gptviz.ui.pages.gradients import computed, show, words
from gptviz.ui.pages.gradients.tries import tries
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.widgets import controls, try_this
from gptviz.ui.widgets.details import details

controls.notices_in(st.container())
chosen = show.setup()
sizes = computed.table(chosen)

left, right = st.columns(2)
with left:
    with st.container(horizontal=True, vertical_alignment="center", key="as-high-as-controls"):
        st.markdown("**Gradient of the loss**", width="content")
        span, left_out = show.scale_control(sizes)
    show.panel("gradient", sizes, GRADIENT, span, height=340)
with right:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("**Beside it**", width="content")
        beside = controls.select(
            "Beside it",
            [STREAM, WEIGHTS],
            key="beside",
            help=(
                "The stream goes the other way, from left to right. The gradient of a block's weights, by which training "
                "changes them, depends on both: the gradient that arrives from the later blocks, and the stream that arrives "
                "from the earlier ones."
            ),
            format_func=str.capitalize,
            label_visibility="collapsed",
            segmented=True,
        )
    show.panel("beside", sizes, beside, span, height=340)
st.caption(left_out + show.summary(sizes))

try_this(tries())

details(lambda: sizes, code=words.code(chosen), how=words.HOW, limits=words.LIMITS, key="gradients")
next_step()
