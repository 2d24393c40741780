"""Which parts of the model speak for this token? A logit as a sum over embedding, heads, MLPs and biases."""

import streamlit as st

from gptviz.ui.pages.attribution import views
from gptviz.ui.pages.attribution.details import HOW, LIMITS, code
from gptviz.ui.pages.attribution.setting import position_control, setting, text_of
from gptviz.ui.pages.attribution.tries import to_try
from gptviz.ui.shell import pages
from gptviz.ui.shell.next_step import next_step
from gptviz.ui.shell.pages import open_page
from gptviz.ui.shell.subject import subject_bar
from gptviz.ui.widgets.details import details
from gptviz.ui.widgets.markdown import escaped
from gptviz.ui.widgets.tries import try_this

open_page(
    pages.ATTRIBUTION,
    "Which parts of the model speak for this token?",
    "A logit, the score that a token gets, is a sum: every head, MLP and bias adds something to it or takes something away.",
)
subject = subject_bar()
notices = st.container()
views.check_head(subject)
text = text_of(subject)
strip, place = st.columns([3, 1], gap="medium") if subject.kind != "classifier" else (notices, notices)
position = position_control(subject, text, strip, place)
with views.refused():
    chosen = setting(subject, text, position, notices)
    found = chosen.found()

views.verdict(chosen, found)
left, right = st.columns([1, 1], gap="medium")
with left:
    views.parts(chosen, found)
with right:
    part = views.part_control(chosen, found, notices)
    if found.grid(subject.lm.model.config).values.size:
        views.grid(chosen, found, part)
if part is not None:
    views.split(chosen, found, part)
    views.into(chosen, part)
st.caption(escaped(views.frozen(subject.lm.model.config)))

try_this(to_try(chosen, found))

details(found.labelled, code=code(chosen), how=HOW, limits=LIMITS, key="attribution")
next_step()
