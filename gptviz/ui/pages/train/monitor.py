"""Watching a run: the bar above it, its state and its chart, shown again each second while it trains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from gptviz.runs.checkpoints import CheckpointError
from gptviz.ui.pages import PAGES
from gptviz.ui.pages.home import PAGE as HOME
from gptviz.ui.pages.train import PAGE as TRAIN
from gptviz.ui.shell import frame
from gptviz.ui.widgets.markdown import escaped

from .charts import chart_control, compare_controls, show_chart
from .state import numbers_line, show_sample, show_state
from .watched import WatchedRun, run_control, watched_run

EVERY = 1.0  # seconds


def bar(notices: Any) -> str | None:
    """The controls above the chart: which run is watched, and what its chart shows; its name, or None if there is no run."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        with st.container(width="stretch"):
            name = run_control(notices)
        if name is None:
            return None
        try:
            run = watched_run(name)
        except CheckpointError as error:
            st.error(f"{escaped(str(error))}. Watch another model.")
            st.stop()
        with st.container(width="stretch"):
            chart_control(run, notices)
        with st.popover("Compare"):
            compare_controls(run)
        with st.popover("Open in"):
            query = {key: value for key, value in frame.shared_state().items() if key != "step"} | {"model": name}
            for page in PAGES.values():
                if page not in (HOME, TRAIN) and run.kind in page.kinds:
                    frame.link(page, query=query)
    return name


def live(name: str) -> None:
    """How far the run is, its buttons, its chart, its numbers and its last sample."""

    def body() -> WatchedRun:
        run = watched_run(name)
        show_state(run)
        show_chart(run)
        st.caption(numbers_line(run))
        show_sample(run)
        return run

    repeated(body, EVERY, watched_run(name).is_active)


def repeated(body: Callable[[], WatchedRun], every: float, active: bool) -> None:
    """Show `body`, which returns a run, each `every` seconds while that is active; when that ends, the whole page runs once."""

    def tick() -> None:
        try:
            run = body()
        except CheckpointError as error:  # it was deleted, or renamed
            st.text(str(error))
            return
        if run.is_active != active:
            st.rerun()

    st.fragment(tick, run_every=every if active else None)()
