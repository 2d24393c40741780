"""Which words decide? A text's label, what each word adds to it, who reads whom, and where the
model is wrong.
"""

import streamlit as st

from gptviz.ui.records.classify import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.classify import decision
from gptviz.ui.pages.classify.held_out import held_out
from gptviz.ui.pages.classify.own_file import own_file
from gptviz.ui.records.attention import PAGE as ATTENTION_PAGE
from gptviz.ui.records.classify import ATTENTION, HELD_OUT, VIEWS, WORDS
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.widgets import controls

subject = subject_bar()
decision.check_words(subject)
with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
    hint = "“Words” and “attention” show the text above; the other views show many texts at once."
    view = controls.select(
        "View",
        VIEWS,
        key="view",
        help=hint,
        segmented=True,
        label_visibility="collapsed",
        default=WORDS,
    )
    decision.verdict(subject)

if view == WORDS:
    shown = decision.by_word(subject)
elif view == ATTENTION:
    shown = decision.attention_between(subject)
else:  # where the held-out texts are not here, a file of the reader's may stand in for them
    shown = (held_out(subject) if view == HELD_OUT else None) or own_file(subject)

close(ATTENTION_PAGE if view == ATTENTION else PAGE, decision.tries(subject), *shown)
