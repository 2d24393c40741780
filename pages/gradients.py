"""Gradients: what of the loss's gradient reaches the first block, with and without residual
connections and norms.
"""

import streamlit as st

from gptviz.ui.records.gradients import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.interp.reading.gradients import GRADIENT, STREAM, WEIGHTS
from gptviz.ui.pages.gradients import by_block, one_step
from gptviz.ui.records.gradients import STEP, VIEWS
from gptviz.ui.shell.around import cores
from gptviz.ui.shell.close import close
from gptviz.ui.widgets import controls, say_answer

hint = (
    "Gradients: the way back through many blocks, in fresh models. One step: a model of yours "
    "learns from a text."
)
first, *others = st.columns([5, 7, 7, 3], gap="medium", vertical_alignment="bottom")
with first:
    view = controls.select("View", VIEWS, key="view", help=hint, segmented=True)
if view == STEP:
    close(PAGE, *one_step.show(), view)
    st.stop()
controls.notices_in(st.container())
chosen, every = by_block.setup(others)
cores.share()  # no model is opened here, which would do it
result = by_block.table(**chosen)
sizes = by_block.drawn_lines(result, every=every)

say_answer(*by_block.sentence(result))
left, right = st.columns(2)
with left:
    with st.container(horizontal=True, vertical_alignment="center", key="as-high-as-controls"):
        st.markdown("**What each block is told**", width="content")
        span, left_out = by_block.scale_control(sizes)
    by_block.panel("gradient", sizes, GRADIENT, span, height=340)
with right:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("**Beside it**", width="content")
        beside = controls.select(
            "Beside it",
            [STREAM, WEIGHTS],
            key="beside",
            help=(
                "The stream goes the other way, from left to right. The gradient of a block's "
                "weights, by which training "
                "changes them, depends on both: the gradient that arrives from the later blocks, "
                "and the stream that arrives "
                "from the earlier ones."
            ),
            format_func=str.capitalize,
            label_visibility="collapsed",
            segmented=True,
        )
    by_block.panel("beside", sizes, beside, span, height=340)
st.caption(left_out + by_block.summary(result, every=every))

close(PAGE, by_block.tries(), lambda: result, code=by_block.code(chosen))
