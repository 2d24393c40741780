"""What does each head do? Every head scored, where each does most, and which head reads what
another one wrote.
"""

import streamlit as st

from gptviz.ui.records.heads import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.heads import does, reads, where
from gptviz.ui.records.heads import DOES, VIEWS, WHERE
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.views import attention, encoder_decoder
from gptviz.ui.views.by_token import by_token
from gptviz.ui.widgets import controls

subject = subject_bar()
stack = attention.stack_of(subject)
if not encoder_decoder.n_blocks(subject.lm.model.config, stack):
    attention.no_attention(subject)
    st.stop()
row = st.container(horizontal=True, vertical_alignment="bottom")
with row:
    about = (
        "Scores of single heads; the texts where one does most; or how much each reads of what "
        "the others write."
    )
    view = controls.select("View", VIEWS, key="view", help=about, segmented=True)
    asked = does.ask_scores(subject, stack, view)

if view == DOES:
    shown = does.show(subject, asked, row)
    about = (
        "A token: heads whose weights add most to its logit, each by the token that makes it add "
        "most."
    )
    by_token(subject, PAGE, "heads", about)
elif view == WHERE:
    heads = does.by_score(asked.value, does.first_score(asked, asked.value))
    shown = where.show(subject, heads, does.chosen_head(subject, heads))
else:
    shown = reads.show(subject, stack)
close(PAGE, does.tries(subject, asked), *shown)
