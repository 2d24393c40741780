"""How the answers of a task are written, where a right one would look wrong."""

from __future__ import annotations

import streamlit as st

from gptviz.text.datasets.base import Task


def say_how_written(task: Task | None) -> None:
    """Say it, where people write answers of the task otherwise."""
    if task is not None and task.writes:
        st.markdown(task.writes)
