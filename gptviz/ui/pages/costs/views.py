"""The choice of a view on the page Size and cost."""

from __future__ import annotations

import streamlit as st

from gptviz.ui.records.costs import BITS, PLAN, VIEWS
from gptviz.ui.widgets import addresses, controls

# The keys of the address that the controls of one view alone have.
OWN = {PLAN: {"plan_of", "plan_steps"}, BITS: {"bits", "scale", "matrix"}}


def view_control() -> str:
    """The control `view`. A link that names none, but a choice of one of them, opens that one."""
    asked = st.query_params
    if "view" not in asked and st.session_state.get("view") not in VIEWS:
        named = next((view for view, keys in OWN.items() if keys & asked.keys()), None)
        if named is not None:
            st.session_state["view"] = named
            addresses.write("view", named)
    about = (
        "Counts: parameters, operations and memory, as formulas. Training it here: what a run would take on this machine. With "
        "fewer bits: what the model loses if its weights are rounded."
    )
    return controls.select("View", VIEWS, key="view", help=about, segmented=True, label_visibility="collapsed")
