"""The end of the form: the name of the model, what its training will take, and the button that begins it."""

from __future__ import annotations

import streamlit as st

from gptviz.runs.names import free_name
from gptviz.ui.views import planned_run
from gptviz.ui.views.planned_run import PlannedRun
from gptviz.ui.widgets.buttons import pressed
from gptviz.ui.widgets.markdown import escaped

from .rules import OWN
from .watched import watch_next

LONGEST_NAME = 400  # a name too long for a model gets a message, which says more than a field that takes no more
_STARTED = "a run was started"


def name_control(planned: PlannedRun) -> str:
    """The control `save_as`: the name of the model; left empty, the first free one."""
    free = free_name(OWN.replace(" ", "-") if planned.plan_name == OWN else planned.plan_name)
    if st.session_state.pop(_STARTED, False):
        st.session_state["save_as"] = ""
    typed = st.text_input(
        "Save as",
        placeholder=free,
        key="save_as",
        max_chars=LONGEST_NAME,
        persist_state="session",
        help="What the model is called: letters, digits, '-', '_' and '.'. Left empty, it gets the name in grey.",
    )
    return (typed or "").strip() or free


def train_button(planned: PlannedRun, name: str, device: str) -> None:
    """What the run will take, or why it cannot begin, and the button that begins it and shows it."""
    expected = planned_run.estimate_of(planned, device)
    refused = planned_run.refusal(planned, expected, name, device)
    if expected is not None:
        st.caption(planned_run.summary(expected), help=planned_run.explanation(expected))
    if refused:
        st.error(escaped(refused))
    look = {"type": "primary", "icon": ":material/model_training:", "width": "stretch"}
    if pressed("Train", key="train", disabled=refused is not None, **look):
        try:
            with st.spinner("Getting the data ready"):
                planned_run.begin(planned, name, device)
        except (ValueError, OSError, MemoryError, RuntimeError) as error:
            st.error(escaped(str(error)) or "There is not enough memory for this model.")
        else:
            watch_next(name)
            st.session_state[_STARTED] = True  # the name is taken now: the field goes back to the next free one
            st.rerun()
