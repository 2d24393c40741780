"""Runs: every model side by side, and how each of them learned."""

import streamlit as st

from gptviz.ui.records.runs import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.settings.address_values import ANY
from gptviz.ui.pages.runs import curves
from gptviz.ui.pages.runs.experiments import experiments, ladder
from gptviz.ui.pages.runs.manage import one_model
from gptviz.ui.shell.close import close
from gptviz.ui.views.entries import entries
from gptviz.ui.views.fits import show_fits, watched_fits
from gptviz.ui.widgets import addresses, try_this

models = entries()
if not models:
    st.error("There is no model yet. Train one on the page Train.")
    st.stop()
active = any(entry.is_active for entry in models.values())


@st.fragment(run_every=2.0 if active else None)
def compare() -> None:
    """The table, the curves and what differs; read again every two seconds while something
    trains.
    """
    now = entries()
    if active and not any(entry.is_active for entry in now.values()):
        st.rerun()
    compared = curves.chosen_entries(now)
    st.html(curves.STYLE)
    with st.container(horizontal=True):
        with st.container(key=curves.BESIDE):
            curves.table(now, [entry.name for entry in compared])
        with st.container(key=curves.CURVES):
            with st.container(horizontal=True, vertical_alignment="center"):
                log_steps, log_loss, training = curves.choose_axes()
            if compared:
                curves.chart(
                    compared,
                    log_steps=log_steps,
                    log_loss=log_loss,
                    training=training,
                    height=curves.HEIGHT,
                )
            else:
                st.info(
                    "Nothing is chosen. Tick a model in the table, or choose one by name.",
                    icon=":material/check_box:",
                )
            curves.by_name(now, [entry.name for entry in compared])
    curves.table_of_differences(compared)


addresses.accept_values("below", ANY)
bought, offered = st.tabs(
    ["What does each part bring?", "The experiments"], key="below", bind="query-params"
)
with bought:
    ladder(models)
with offered:
    st.caption(
        "Each experiment was published by somebody, or is a comparison for one that was. Open a "
        "group to train one of them here, "
        "and compare."
    )
    experiments(models)

st.header("The curves", anchor=False)
compare()
try_this(curves.tries(models))
st.header("One model", anchor=False)
one_model(models)
if any(watched_fits()):
    st.header("Dictionaries", anchor=False)
    show_fits()

compared = curves.chosen_entries(models, quiet=True)
close(
    PAGE,
    None,
    lambda: curves.validation_losses(compared),
    curves.code([entry.name for entry in compared]),
)
