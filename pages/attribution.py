"""Which parts of the model speak for this token? A logit as a sum over embedding, heads, MLPs and
biases.
"""

import streamlit as st

from gptviz.ui.records.attribution import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.interp.over_prompts import AskedPrompt
from gptviz.ui.pages.attribution import logit
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.views.over_prompts import over_prompts
from gptviz.ui.views.read import read_by
from gptviz.ui.widgets import controls, escape_markdown, say_answer

subject = subject_bar()
logit.check_head(subject)
text = read_by(subject)
*beside, of, less = st.columns([6, 1.6, 2, 2.4] if subject.kind.guesses == "token" else 2)
strip, place = beside or [controls.notice_place()] * 2
position = logit.position_control(subject, text, strip, place)
with logit.explain_refusal():
    chosen = logit.setting(subject, text, position, of, less)
    attribution = chosen.attribution()

say_answer(logit.result(chosen, attribution))
left, right = st.columns([1, 1], gap="medium")
with left:
    logit.parts(chosen, attribution)
with right:
    part = logit.part_control(chosen, attribution)
    if attribution.grid(subject.lm.model.config).values.size:
        logit.grid(chosen, attribution, part)
logit.verdict(chosen, attribution)
if part is not None:
    logit.split(chosen, attribution, part)
    logit.link_unit(chosen, part)
st.caption(escape_markdown(logit.frozen_parts(subject.lm.model.config)))
if position is not None:
    over_prompts(
        subject,
        "attribute",
        AskedPrompt(tuple(text.ids[: position + 1]), chosen.token, chosen.against),
    )

close(PAGE, logit.tries(chosen, attribution), attribution.labelled, logit.code(chosen))
