"""Compare: two prompts, steps, models or sets of edits side by side, and the difference."""

import streamlit as st

from gptviz.ui.pages.compare import words
from gptviz.ui.pages.compare.sides import bar_of_b
from gptviz.ui.pages.compare.views import VIEWS
from gptviz.ui.shell import pages
from gptviz.ui.shell.next_step import next_step
from gptviz.ui.shell.pages import open_page
from gptviz.ui.shell.subject import subject_bar
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.details import details
from gptviz.ui.widgets.tries import try_this

open_page(
    pages.COMPARE,
    "What is different?",
    "Two prompts, two steps of training, two models or two sets of edits side by side, A and B, and the difference B − A.",
)
subject = subject_bar()
notices = st.container()
sides = bar_of_b(subject)
view = controls.select(
    "Compared",
    list(VIEWS),
    key="compared",
    help="What is compared; each has a page of its own that says more about it.",
    label_visibility="collapsed",
    segmented=True,
    notices=notices,
)
st.caption(words.said(sides))
shown = VIEWS[view](sides, notices)

try_this(words.to_try(sides))

if shown is not None:
    details(shown.numbers, code=words.code(sides, shown), how=words.HOW, limits=words.LIMITS, key="compare")
next_step()
