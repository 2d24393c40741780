"""Residual stream: what happens to the vector of a token on its way through the model?"""

import streamlit as st

from gptviz.ui.pages import stream
from gptviz.ui.shell import pages
from gptviz.ui.shell.next_step import next_step
from gptviz.ui.shell.pages import open_page
from gptviz.ui.shell.subject import subject_bar
from gptviz.ui.views.decoder_text import read_by
from gptviz.ui.widgets.details import details
from gptviz.ui.widgets.tries import try_this

open_page(
    pages.STREAM,
    "What happens to a token's vector on its way?",
    "The vector of a token runs through the whole model, and every attention and MLP writes something into it: how much, in "
    "which direction, and where it leads.",
)
subject = subject_bar()
read = read_by(subject)
notices = st.container()
view = stream.view_control(notices)
index = None if view == stream.LENGTHS else stream.position_control(subject, read, notices)

chosen = None
if view == stream.WRITTEN:
    shown = stream.written(subject, read, index)
elif view == stream.LENGTHS:
    shown = stream.lengths(subject, read)
elif view == stream.DIRECTIONS:
    shown = stream.directions(subject, read, index)
else:
    chosen = stream.map_controls(subject, read, notices)
    shown = stream.map_of(subject, read, chosen, index)

try_this(stream.to_try(subject, read))

details(
    lambda: shown,
    code=stream.code(subject, read, view, index, chosen),
    how=stream.HOW,
    limits=stream.LIMITS,
    key="stream",
)
next_step()
