"""What does each head look at? All heads at a glance, the tokens they read, and the arithmetic of
every cell.
"""

import streamlit as st

from gptviz.ui.records.attention import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.attention.tries import tries
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.views import attention, encoder_decoder

subject = subject_bar()
stack = attention.stack_of(subject)
if not encoder_decoder.n_blocks(subject.lm.model.config, stack):
    attention.no_attention(subject)
    st.stop()
attention.show(subject, stack)

close(PAGE, tries(subject, stack))
