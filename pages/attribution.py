"""Which parts of the model speak for this token? A logit as a sum over embedding, heads, MLPs and biases."""

import streamlit as st

from gptviz.ui.records.attribution import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.interp.over_prompts import Asked
from gptviz.ui.pages.attribution import show
from gptviz.ui.pages.attribution.setting import position_control, setting
from gptviz.ui.pages.attribution.tries import tries
from gptviz.ui.pages.attribution.words import HOW, LIMITS, code
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.views.over_prompts import over_prompts
from gptviz.ui.views.read import read_by
from gptviz.ui.widgets import controls, escaped, try_this
from gptviz.ui.widgets.details import details

subject = subject_bar()
controls.notices_in(st.container())
show.check_head(subject)
text = read_by(subject)
*beside, of, less = st.columns([6, 1.6, 2, 2.4] if subject.kind != "classifier" else 2)
strip, place = beside or [controls.notices()] * 2
position = position_control(subject, text, strip, place)
with show.refused():
    chosen = setting(subject, text, position, of, less)
    found = chosen.found()

left, right = st.columns([1, 1], gap="medium")
with left:
    show.parts(chosen, found)
with right:
    part = show.part_control(found)
    if found.grid(subject.lm.model.config).values.size:
        show.grid(chosen, found, part)
show.verdict(chosen, found)
if part is not None:
    show.split(chosen, found, part)
    show.into(chosen, part)
st.caption(escaped(show.frozen(subject.lm.model.config)))
if position is not None:
    over_prompts(subject, "attribute", Asked(tuple(text.ids[: position + 1]), chosen.token, chosen.against))

try_this(tries(chosen, found))

details(found.labelled, code=code(chosen), how=HOW, limits=LIMITS, key="attribution")
next_step()
