"""Runs: every model side by side, and how each of them learned."""

import streamlit as st

from gptviz.figures.curves import LEGEND
from gptviz.ui.pages.runs import experiments, manage
from gptviz.ui.pages.runs import table as ui
from gptviz.ui.shell import frame
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.details import details

frame.page(
    "pages/runs.py",
    "Which model learned best, and why?",
    "Every model, and how its loss fell as it learned: lower is better. Tick some to lay their curves over each other.",
)
found = ui.entries()
if not found:
    st.error("There is no model yet. Train one on the page Train.")
    st.stop()
active = any(entry.is_active for entry in found.values())


@st.fragment(run_every=2.0 if active else None)
def compare() -> None:
    """The table, the curves and what differs; read anew while something trains."""
    now = ui.entries()
    if active and not any(entry.is_active for entry in now.values()):
        st.rerun()
    shown = ui.chosen(now)
    ui.table(now, [entry.name for entry in shown], height=178)
    with st.container(horizontal=True, vertical_alignment="center"):
        log_steps = controls.switch(
            "Log steps", key="log_steps", help="Each doubling of the steps takes the same room; step 0 has none."
        )
        log_loss = controls.switch("Log loss", key="log_loss", help="Each halving of the loss takes the same room.")
        about = "The loss of every batch that was trained on, pale, beside the loss on held-out data."
        training = controls.switch("Training loss", key="training", help=about)
        ui.try_these(now)
    if not shown:
        st.info("Nothing is chosen. Tick a model in the table above.", icon=":material/check_box:")
        return
    ui.chart(shown, log_steps=log_steps, log_loss=log_loss, training=training, height=296)
    st.caption(LEGEND if training else "The loss on held-out data, a marker per evaluation.")
    ui.say_differences(shown)


compare()

st.subheader("One model", anchor=False)
manage.one_model(found)

st.subheader("The experiments", anchor=False)
st.caption("Each was published by somebody, or belongs beside one that was. Train it here, and compare.")
experiments.listed(found, ui.choose)

shown = ui.chosen(found, quiet=True)
details(
    lambda: ui.numbers(shown),
    code=ui.code([entry.name for entry in shown]),
    how=ui.HOW,
    limits=ui.LIMITS,
    key="runs",
)
