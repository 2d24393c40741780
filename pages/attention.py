"""What does each head look at? All heads at a glance, the tokens they read, and the arithmetic of every cell."""

import streamlit as st

from gptviz.ui.records.attention import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.attention.tries import tries
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.views import attention, encoder_decoder
from gptviz.ui.widgets import try_this
from gptviz.ui.widgets.details import details

subject = subject_bar()
stack = attention.stack_of(subject)
if not encoder_decoder.n_blocks(subject.lm.model.config, stack):
    attention.no_attention(subject)
    st.stop()
attention.show(subject, stack, default=2)

try_this(tries(subject, stack))

details(how=attention.HOW, limits=attention.LIMITS, key="attention")
next_step()
