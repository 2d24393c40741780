"""The button that trains a classifier on a file of the user's."""

from __future__ import annotations

import streamlit as st

from gptviz.data.classification import LabelledSource
from gptviz.runs.experiments import PLANS
from gptviz.runs.names import free_name
from gptviz.text import LabelledTexts
from gptviz.ui.shell import pages
from gptviz.ui.views import planned_run
from gptviz.ui.views.planned_run import PlannedRun
from gptviz.ui.widgets.buttons import pressed
from gptviz.ui.widgets.markdown import escaped

PLAN, NAME = "stars", "my-classifier"


@st.cache_resource(max_entries=4, show_spinner=False, hash_funcs={LabelledTexts: lambda texts: texts.sha256})
def _planned(labelled: LabelledTexts) -> PlannedRun:
    """The plan for texts of the user's own, with these as its data; it has a problem where they are too few."""
    plan = PLANS[PLAN]
    source = LabelledSource(labelled, plan.fraction)
    try:
        config, problem = source.fitted(plan.config, plan.learn_tokenizer(source)), None
    except ValueError as error:
        config, problem = None, str(error)
    return PlannedRun(
        plan_name=PLAN,
        plan=plan,
        source=source,
        vocabulary=None,
        recipe=plan.recipe,
        changes={},
        config=config,
        begin=None,
        problem=problem,
    )


def train_on_file(labelled: LabelledTexts, device: str) -> None:
    """The button that trains a classifier on texts with labels and opens the page that shows it learn."""
    planned, name = _planned(labelled), free_name(NAME)
    expected = planned_run.estimate_of(planned, device)
    refused = planned_run.refusal(planned, expected, name, device)
    with st.container(horizontal=True, vertical_alignment="center"):
        about = (
            f"Follows the plan {PLAN}: nine in ten texts are trained on, the others test the model. The Train page then shows "
            "how it learns."
        )
        look = {"type": "primary", "icon": ":material/model_training:", "help": about}
        started = pressed("Train a classifier on it", key="train on file", disabled=refused is not None, **look)
        if expected is not None:
            st.caption(planned_run.summary(expected), width="content")
        query = {**pages.shared_state(), "plan": PLAN, "data": planned_run.UPLOADED}
        st.page_link(pages.TRAIN.path, label="Choose every dimension instead", query_params=query)
    if refused:
        st.info(f"None can be trained on it: {escaped(refused)}.")
    if not started:
        return
    try:
        with st.spinner("Getting the data ready"):
            planned_run.begin(planned, name, device)
    except (ValueError, OSError, MemoryError, RuntimeError) as error:
        st.error(escaped(str(error)) or "There is not enough memory for this model.")
        return
    st.session_state["run"] = name
    st.switch_page(pages.TRAIN.path, query_params={"run": name})
