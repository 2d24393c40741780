"""What does each head do? Every head scored, the pattern of each, and which head reads what another one wrote."""

import streamlit as st

from gptviz.ui.records.heads import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.heads import does, reads
from gptviz.ui.pages.heads.choices import setting
from gptviz.ui.pages.heads.computed import composed, scores, with_losses
from gptviz.ui.pages.heads.tries import tries
from gptviz.ui.pages.heads.words import HOW, HOW_READS, LIMITS, LIMITS_READS, code, code_reads
from gptviz.ui.records.heads import DOES, VIEWS
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.views import attention, encoder_decoder
from gptviz.ui.views.by_token import by_token
from gptviz.ui.widgets import controls, try_this
from gptviz.ui.widgets.details import details

subject = subject_bar()
stack = attention.stack_of(subject)
if not encoder_decoder.n_blocks(subject.lm.model.config, stack):
    attention.no_attention(subject)
    st.stop()
row = st.container(horizontal=True, vertical_alignment="bottom")
with row:
    view = controls.select(
        "View", VIEWS, key="view", help="Scores of single heads, or how much each reads of what the others write.", segmented=True
    )
    read_by_heads = setting(subject, stack, view)

if view == DOES:
    does.show(subject, read_by_heads, row)
    about = "A token: heads whose weights add most to its logit, each by the token that makes it add most."
    by_token(subject, PAGE, "heads", about)
    try_this(tries(read_by_heads, subject.prompt))
    found = with_losses(read_by_heads, scores(read_by_heads))
    details(found.table, code=code(read_by_heads, subject.prompt), how=HOW, limits=LIMITS, key="heads")
else:
    by = reads.show(read_by_heads)
    try_this(tries(read_by_heads, subject.prompt))
    if by is not None:
        values = composed(subject.key, stack, by)
        details(lambda: values, code=code_reads(read_by_heads, by), how=HOW_READS, limits=LIMITS_READS, key="composition")
next_step()
