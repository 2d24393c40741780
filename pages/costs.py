"""Size and cost: parameters, operations and memory of a model as formulas, what training it here would take, and fewer bits."""

import streamlit as st

from gptviz.ui.records.costs import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.costs import counts, fewer_bits, planner
from gptviz.ui.records.costs import BITS, COUNTS
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.widgets import try_this

subject = subject_bar(needs_prompt=False)
config = subject.lm.model.config
first, *others = st.columns([14, 5, 5, 7, 6], gap="small", vertical_alignment="bottom")
with first:
    view = counts.view_control()
if view == BITS:
    close(PAGE, None, *fewer_bits.show(subject))
    st.stop()
chosen = counts.setting(config, others)
found = counts.costs_of(config, chosen.batch, chosen.tokens)
if view == COUNTS:
    counts.charts(config, found, chosen)
    counts.headline(found, chosen)
    try_this(counts.tries(config, chosen))
    st.header("Where the parameters are", anchor=False)
    counts.parameters(config)
    counts.formulas(found, chosen)
else:
    planner.show(config, chosen, subject.key.device)
close(PAGE, None, lambda: counts.operations(config, chosen.batch, chosen.of), counts.code(subject, chosen))
