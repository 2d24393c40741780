"""Compare: two prompts, steps, models or sets of edits side by side, and the difference."""

import streamlit as st

from gptviz.ui.records.compare import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.compare.sides import bar_of_b, describe_sides
from gptviz.ui.pages.compare.views import SHOWS, tries
from gptviz.ui.records.compare import VIEWS
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.widgets import controls

subject = subject_bar()
with st.container(gap="xsmall"):
    # all views stand in one line, so that the picture begins high
    compared, of_b = st.columns([4, 1])
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
    st.caption(describe_sides(sides))
    shown = SHOWS[view](sides)

close(PAGE, tries(sides), *shown)
