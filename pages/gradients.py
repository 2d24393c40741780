"""Gradients: what of the loss's gradient reaches the first block, with and without residual connections and norms."""

import streamlit as st

from gptviz.interp.gradients import GRADIENT, STREAM, WEIGHTS
from gptviz.ui.pages import gradients
from gptviz.ui.shell import pages
from gptviz.ui.shell.next_step import next_step
from gptviz.ui.shell.pages import open_page
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.details import details
from gptviz.ui.widgets.figure import pixels
from gptviz.ui.widgets.tries import try_this

open_page(
    pages.GRADIENTS,
    "Does the gradient reach the first block?",
    "The gradient says how to lower the loss. It starts behind the last block and must pass every block on its way to the first: "
    "here in fresh models that differ only in how a block joins the stream.",
)
notices = st.container()
chosen = gradients.setup(notices)
sizes = gradients.table(chosen)
span, left_out = gradients.scale_control(sizes, notices)

left, right = st.columns(2)
with left:
    with st.container(vertical_alignment="center", height=pixels(48), border=False):
        st.markdown("**Gradient of the loss**: read from right to left")
    gradients.panel("gradient", sizes, GRADIENT, span, height=340)
with right:
    with st.container(horizontal=True, vertical_alignment="center", height=pixels(48), border=False):
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
            notices=notices,
        )
    gradients.panel("beside", sizes, beside, span, height=340)
st.caption(left_out + gradients.summary(sizes))

try_this(gradients.TRIES)

details(lambda: sizes, code=gradients.code(chosen), how=gradients.HOW, limits=gradients.LIMITS, key="gradients")
next_step()
