"""Residual stream: what happens to the vector of a token on its way through the model?"""

import streamlit as st

from gptviz.ui.records.stream import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.stream import show, words
from gptviz.ui.pages.stream.tries import tries, who_writes_most
from gptviz.ui.records.stream import DIRECTIONS, LENGTHS, WRITTEN
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.views.read import read_by
from gptviz.ui.widgets import controls, try_this
from gptviz.ui.widgets.details import details

subject = subject_bar()
read = read_by(subject)
controls.notices_in(st.container())
view = show.view_control()
picture = st.container()
index = None if view == LENGTHS else show.position_control(subject, read)

chosen = None
with picture:
    if view == WRITTEN:
        shown = show.written(subject, read, index)
        st.caption(who_writes_most(subject, read))
    elif view == LENGTHS:
        shown = show.lengths(subject, read)
    elif view == DIRECTIONS:
        shown = show.directions(subject, read, index)
    else:
        chosen = show.map_controls(subject, read)
        shown = show.map_of(subject, read, chosen, index)

try_this(tries(subject, read))

details(
    lambda: shown,
    code=words.code(subject, read, view, index, chosen),
    how=words.HOW,
    limits=words.LIMITS,
    key="stream",
)
next_step()
