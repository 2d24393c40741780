"""Which words decide? A text's label, what each word adds to it, who reads whom, and where the model is wrong."""

import streamlit as st

from gptviz.ui.pages.classify import one_text as classify
from gptviz.ui.shell import pages
from gptviz.ui.shell.pages import open_page
from gptviz.ui.shell.subject import subject_bar
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.details import details

open_page(
    pages.CLASSIFY,
    "Which words decide?",
    "The model gives the text a label. Each bar is what one word adds to the decision; with the bias they add up to it exactly.",
)
subject = subject_bar()
classify.doubts(subject)
with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
    about = "The words and the attention are of the text above; the others of many texts at once."
    view = controls.select(
        "View", classify.VIEWS, key="view", help=about, segmented=True, label_visibility="collapsed", default=classify.WORDS
    )
    if view != classify.WORDS:
        classify.verdict(subject)

if view == classify.WORDS:
    folded = classify.words(subject)
elif view == classify.ATTENTION:
    folded = classify.attending(subject)
else:
    folded = classify.many(subject, view)

with st.container(horizontal=True, vertical_alignment="center"):
    st.text("Try this:", width="content")
    for title, notice, state in classify.to_try(subject):
        controls.try_this(title, notice, **state)

if folded is not None:
    details(folded.numbers, code=folded.code, how=folded.how, limits=folded.limits, key=view.lower())
