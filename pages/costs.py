"""Size and cost: parameters, operations and memory of a model as formulas, and what training it here would take."""

import streamlit as st

from gptviz.ui.pages.costs import counts, planner
from gptviz.ui.pages.costs.details import HOW, LIMITS
from gptviz.ui.shell import pages
from gptviz.ui.shell.next_step import next_step
from gptviz.ui.shell.pages import open_page
from gptviz.ui.shell.subject import subject_bar
from gptviz.ui.widgets.details import details
from gptviz.ui.widgets.tries import try_this

open_page(
    pages.COSTS,
    "What does this model take?",
    "How many numbers the model has, how many operations it takes to read texts and to learn from them, and how much memory: "
    "move batch and context, and see what grows.",
)
subject = subject_bar(needs_prompt=False)
config = subject.lm.model.config
notices = st.container()
chosen = counts.setting(config, notices)
found = counts.counted(config, chosen.batch, chosen.tokens)
counts.headline(found, chosen)
counts.charts(config, found, chosen)

try_this(counts.to_try(config, chosen))

st.header("Where the parameters are", anchor=False)
counts.parameters(config)
counts.formulas(found, chosen)

details(
    counts.numbers(config, chosen),
    code=counts.code(subject, chosen),
    how=HOW,
    limits=LIMITS,
    key="costs",
)

st.header("What would it cost to train here?", anchor=False)
run = planner.planned(config, chosen, subject.key.device, notices)
if run is not None:
    planner.prediction(run)
next_step()
