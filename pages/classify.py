"""Which words decide? A text's label, what each word adds to it, who reads whom, and where the model is wrong."""

import streamlit as st

from gptviz.ui.records.classify import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.classify.decision import check_words, verdict
from gptviz.ui.pages.classify.show import show
from gptviz.ui.pages.classify.tries import tries
from gptviz.ui.records.classify import VIEWS, WORDS
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.widgets import controls, try_this
from gptviz.ui.widgets.details import details

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
