"""Size and cost: parameters, operations and memory of a model as formulas, and what fewer bits
lose.
"""

import streamlit as st

from gptviz.ui.records.costs import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.costs import counts, fewer_bits
from gptviz.ui.records.costs import BITS
from gptviz.ui.records.train import PAGE as TRAIN
from gptviz.ui.shell import frame
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.widgets import try_this

# A link of an earlier version to "Training it here": Train says now what a run takes.
if (
    st.query_params.get("view") == "Training it here"
    or {"plan_of", "plan_steps"} & st.query_params.keys()
):
    st.switch_page(TRAIN.path, query_params=frame.shared_state())
subject = subject_bar(needs_prompt=False)
config = subject.lm.model.config
row = st.container(horizontal=True, vertical_alignment="bottom")
with row:
    view = counts.view_control()
if view == BITS:
    with st.container(gap="xsmall"):  # so that the picture begins high
        shown = fewer_bits.show(subject)
    close(PAGE, None, *shown)
    st.stop()
# no columns where the other view is open: on a phone they would leave a gap
chosen = counts.setting(config, row.columns([5, 5, 7, 6], gap="small", vertical_alignment="bottom"))
costs = counts.costs_of(config, chosen.batch, chosen.tokens)
counts.charts(config, costs, chosen)
counts.headline(costs, chosen)
try_this(counts.tries(config, chosen))
st.header("Where the parameters are", anchor=False)
counts.parameters(config)
counts.formulas(costs, chosen)
close(
    PAGE,
    None,
    lambda: counts.operations_over(config, chosen.batch, counts.context_lengths(config), chosen.of),
    counts.code(subject, chosen),
)
