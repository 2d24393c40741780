"""Which words decide? A text's label, what each word adds to it, who reads whom, and where the model is wrong."""

import streamlit as st

from gptviz.ui.pages.classify.tries import tries
from gptviz.ui.pages.classify.view_names import VIEWS, WORDS
from gptviz.ui.pages.classify.views import show
from gptviz.ui.pages.classify.words import check_words, verdict
from gptviz.ui.shell import pages
from gptviz.ui.shell.next_step import next_step
from gptviz.ui.shell.pages import open_page
from gptviz.ui.shell.subject import subject_bar
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.details import details
from gptviz.ui.widgets.tries import try_this

open_page(
    pages.CLASSIFY,
    "Which words decide?",
    "The model gives the text a label. A bar for each word says what the word does for the decision.",
)
subject = subject_bar()
check_words(subject)
with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
    about = "“Words” and “attention” show the text above; the other views show many texts at once."
    view = controls.select("View", VIEWS, key="view", help=about, segmented=True, label_visibility="collapsed", default=WORDS)
    if view != WORDS:
        verdict(subject)

folded = show(view, subject)

try_this(tries(subject))

if folded is not None:
    details(folded.numbers, code=folded.code, how=folded.how, limits=folded.limits, key=view.lower())
next_step()
