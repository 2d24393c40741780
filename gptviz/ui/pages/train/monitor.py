"""Watching a run: the bar above it, its state and its chart, shown again each second while it trains."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from gptviz.runs import checkpoints
from gptviz.ui.menu import PAGES
from gptviz.ui.records.compare import ANSWERS
from gptviz.ui.records.compare import PAGE as COMPARE
from gptviz.ui.records.home import PAGE as HOME
from gptviz.ui.records.train import PAGE as TRAIN
from gptviz.ui.shell import frame
from gptviz.ui.views.learning_curves import curve_of, most_of_its_fall
from gptviz.ui.widgets import escaped

from .charts import chart_control, compare_controls, show_chart
from .state import headline, learned_from, numbers_line, show_sample, show_state
from .watched import WatchedRun, run_control, watched_run

EVERY = 1.0  # seconds


def bar() -> str | None:
    """The controls above the chart: which run is watched, and what its chart shows; its name, or None if there is no run."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        with st.container(width="stretch"):
            name = run_control()
        if name is None:
            return None
        try:
            run = watched_run(name)
        except checkpoints.CheckpointError as error:
            st.error(f"{escaped(str(error))}. Watch another model.")
            st.stop()
        with st.container(width="stretch"):
            chart_control(run)
        with st.popover("Compare"):
            compare_controls(run)
        with st.popover("Open in"):
            query = {key: value for key, value in frame.shared_state().items() if key != "step"} | {"model": name}
            for page in PAGES.values():
                if page not in (HOME, TRAIN) and run.kind in page.kinds:
                    frame.link(page, query=query)
    return name


def live(name: str) -> None:
    """How far the run is, its buttons, its chart, its numbers and its last sample; beside it, those of its twin."""

    def body() -> bool:
        run = watched_run(name)
        twin = run.twin
        show_state(run)
        show_chart(run)
        if twin is None:
            st.caption(numbers_line(run))
            if fell := most_of_its_fall(curve_of(run.folder)):
                st.caption(fell)
            show_sample(run)
            return run.is_active
        for column, one, other in zip(st.columns(2), (run, twin), (twin, run), strict=True):
            with column:
                st.markdown(f"**{escaped(one.name)}**, trained on {escaped(learned_from(one, other))}")
                st.caption(f"{headline(one)}  \n{numbers_line(one)}")
                show_sample(one)
        if not run.is_active and not twin.is_active:
            both = {"model": run.name, "b_model": twin.name, "compared": ANSWERS}
            frame.link(COMPARE, "Ask both: what did the data do?", query=both)
        return run.is_active or twin.is_active

    repeated(body, EVERY, _is_active(watched_run(name)))


def _is_active(run: WatchedRun) -> bool:
    """Whether the run trains or waits, or its twin does."""
    return run.is_active or ((twin := run.twin) is not None and twin.is_active)


def repeated(body: Callable[[], bool], every: float, active: bool) -> None:
    """Show `body`, which returns whether a run is active, each `every` seconds while one is; when that ends, the whole page runs
    once.
    """

    def tick() -> None:
        try:
            with st.container(key=f"again {body.__module__}"):  # does not fade while it waits for its turn: page.css
                is_active = body()
        except checkpoints.CheckpointError as error:  # it was deleted, or renamed
            st.text(str(error))
            return
        if is_active != active:
            st.rerun()

    st.fragment(tick, run_every=every if active else None)()
