"""Size and cost: parameters, operations and memory of a model as formulas, what training it here would take, and fewer bits."""

import streamlit as st

from gptviz.ui.records.costs import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.costs import counts, fewer_bits, planner
from gptviz.ui.pages.costs.tries import tries
from gptviz.ui.pages.costs.views import view_control
from gptviz.ui.pages.costs.words import HOW, LIMITS, code
from gptviz.ui.records.costs import BITS, COUNTS
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.widgets import controls, try_this
from gptviz.ui.widgets.details import details

subject = subject_bar(needs_prompt=False)
config = subject.lm.model.config
controls.notices_in(st.container())
first, *others = st.columns([14, 5, 5, 7, 6], gap="small", vertical_alignment="bottom")
with first:
    view = view_control()
if view == BITS:
    fewer_bits.show(subject)
    next_step()
    st.stop()
chosen = counts.setting(config, others)
found = counts.costs_of(config, chosen.batch, chosen.tokens)
if view == COUNTS:
    counts.charts(config, found, chosen)
    counts.headline(found, chosen)
    try_this(tries(config, chosen))
    st.header("Where the parameters are", anchor=False)
    counts.parameters(config)
    counts.formulas(found, chosen)
else:
    planner.show(config, chosen, subject.key.device)
details(
    lambda: counts.operations(config, chosen.batch, chosen.of),
    code=code(subject, chosen),
    how=HOW,
    limits=LIMITS,
    key="costs",
)
next_step()
