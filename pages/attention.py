"""What does each head look at? All heads at a glance, the tokens they read, and the arithmetic of every cell."""

import streamlit as st

from gptviz.ui.shell import pages
from gptviz.ui.shell.next_step import next_step
from gptviz.ui.shell.pages import open_page
from gptviz.ui.shell.subject import subject_bar
from gptviz.ui.views import attention, encoder_decoder
from gptviz.ui.widgets.details import details
from gptviz.ui.widgets.tries import try_this

open_page(
    pages.ATTENTION,
    "What does each head look at?",
    "Every token (query) shares its attention among the tokens it may read (keys): hover one, and see how much goes where.",
)
subject = subject_bar()
stack = attention.stack_of(subject)
if not encoder_decoder.n_blocks(subject.lm.model.config, stack):
    attention.no_attention(subject)
    st.stop()
attention.show(subject, stack, default=2)

try_this(attention.to_try(subject, stack))

details(how=attention.HOW, limits=attention.LIMITS, key="attention")
next_step()
