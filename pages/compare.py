"""Compare: two prompts, steps, models or sets of edits side by side, and the difference."""

import streamlit as st

from gptviz.ui.records.compare import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.compare import words
from gptviz.ui.pages.compare.show import SHOWS
from gptviz.ui.pages.compare.sides import bar_of_b
from gptviz.ui.pages.compare.tries import tries
from gptviz.ui.records.compare import VIEWS
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.widgets import controls, try_this
from gptviz.ui.widgets.details import details

subject = subject_bar()
controls.notices_in(st.container())
with st.container(gap="xsmall"):
    compared, of_b = st.columns([4, 1])  # all views stand in one line, so that the picture begins high
    with of_b:
        sides = bar_of_b(subject)
    with compared:
        view = controls.select(
            "Compared",
            VIEWS,
            key="compared",
            help="What is compared; each has a page of its own that says more about it.",
            label_visibility="collapsed",
            segmented=True,
        )
    st.caption(words.said(sides))
    shown = SHOWS[view](sides)

try_this(tries(sides))

if shown is not None:
    details(shown.numbers, code=words.code(sides, shown), how=words.HOW, limits=words.LIMITS, key="compare")
next_step()
