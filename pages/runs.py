"""Runs: every model side by side, and how each of them learned."""

import streamlit as st

from gptviz.ui.records.runs import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.settings.address_values import ANY
from gptviz.ui.pages.runs.curves import chart, switches, validation_losses
from gptviz.ui.pages.runs.differences import table_of_differences
from gptviz.ui.pages.runs.experiments import experiments
from gptviz.ui.pages.runs.ladder import ladder
from gptviz.ui.pages.runs.manage import one_model
from gptviz.ui.pages.runs.selection import by_name, chosen
from gptviz.ui.pages.runs.table import BESIDE, CURVES, HEIGHT, STYLE, table
from gptviz.ui.pages.runs.tries import tries
from gptviz.ui.pages.runs.words import HOW, LIMITS, code
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.views.entries import entries
from gptviz.ui.widgets import addresses, try_this
from gptviz.ui.widgets.details import details

models = entries()
if not models:
    st.error("There is no model yet. Train one on the page Train.")
    st.stop()
active = any(entry.is_active for entry in models.values())


@st.fragment(run_every=2.0 if active else None)
def compare() -> None:
    """The table, the curves and what differs; read again every two seconds while something trains."""
    now = entries()
    if active and not any(entry.is_active for entry in now.values()):
        st.rerun()
    compared = chosen(now)
    st.html(STYLE)
    with st.container(horizontal=True):
        with st.container(key=BESIDE):
            table(now, [entry.name for entry in compared])
        with st.container(key=CURVES):
            with st.container(horizontal=True, vertical_alignment="center"):
                log_steps, log_loss, training = switches()
            if compared:
                chart(compared, log_steps=log_steps, log_loss=log_loss, training=training, height=HEIGHT)
            else:
                st.info("Nothing is chosen. Tick a model in the table, or choose one by name.", icon=":material/check_box:")
            by_name(now, [entry.name for entry in compared])
    table_of_differences(compared)


compare()
try_this(tries(models))
addresses.takes("below", ANY)
bought, offered = st.tabs(["What does each part bring?", "The experiments"], key="below", bind="query-params")
with bought:
    ladder(models)
with offered:
    st.caption(
        "Each experiment was published by somebody, or is a comparison for one that was. Open a group to train one of them here, "
        "and compare."
    )
    experiments(models)

st.header("One model", anchor=False)
one_model(models)

compared = chosen(models, quiet=True)
details(
    lambda: validation_losses(compared),
    code=code([entry.name for entry in compared]),
    how=HOW,
    limits=LIMITS,
    key="runs",
)
next_step()
