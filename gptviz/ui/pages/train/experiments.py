"""The list of experiments on the Train page: what each is for, and how long it takes."""

from __future__ import annotations

import streamlit as st

from gptviz.data.registry import source_named
from gptviz.data.source import Source
from gptviz.runs.experiments import GROUPS, PLANS, Plan
from gptviz.text import corpora
from gptviz.ui.views.planned_run import PlannedRun, estimate_of, time_needed


def experiment_list(device: str) -> None:
    """A button that opens the list; a click on the name of an experiment sets the form to it."""
    with st.popover("All experiments", icon=":material/list:", on_change="rerun", key="all experiments") as box:
        if not box.open:  # what each takes is worked out when somebody asks
            return
        for group in GROUPS:
            with st.container(border=True, gap="xsmall"):
                st.markdown(f"**{group.title}**")
                for name in group.plans:
                    st.button(name, key=f"choose {name}", type="tertiary", on_click=_choose, args=(name,))
                    st.caption(f"{PLANS[name].sentence} About {time_of(name, device)}.")


def _choose(name: str) -> None:
    st.session_state["plan"] = name


@st.cache_data(max_entries=128, ttl=600, show_spinner="Working out how long each takes")
def time_of(name: str, device: str) -> str:
    """How long an experiment takes on `device`, as it is planned."""
    plan = PLANS[name]
    expected = estimate_of(PlannedRun(name, plan, _source(plan), None, plan.recipe, {}, plan.config, None, None), device)
    assert expected is not None
    return time_needed(expected)


def _source(plan: Plan) -> Source | None:
    """The data of a plan where they are on this machine; None where they would have to be fetched."""
    absent = {offer.name for offer in corpora() if not offer.ready}
    return None if plan.data in absent else source_named(plan.data, plan.fraction)
