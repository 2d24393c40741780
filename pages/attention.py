"""What does each head look at? All heads at a glance, the tokens they read, and the arithmetic of every cell."""

import streamlit as st

from gptviz.ui.shell import frame, kinds
from gptviz.ui.views import attention
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.details import details

frame.page(
    "pages/attention.py",
    "What does each head look at?",
    "Every token (query) shares its attention among the tokens it may read (keys): hover one, and see how much goes where.",
)
subject = frame.subject()
stack = attention.stack_of(subject)
if not kinds.blocks(subject.lm.model.config, stack):
    attention.without(subject)
    st.stop()
attention.show(subject, stack, default=2)

with st.container(horizontal=True, vertical_alignment="center"):
    st.text("Try this:", width="content")
    for title, notice, state in attention.to_try(subject, stack):
        controls.try_this(title, notice, **state)

details(how=attention.HOW, limits=attention.LIMITS, key="attention")
