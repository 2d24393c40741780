"""The fits of dictionaries: one is begun, and all of them stand side by side, with their curves and
how far they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import streamlit as st

from gptviz.figures.kit.format import duration, percent
from gptviz.figures.training import curves
from gptviz.language_model.dictionaries import effort_of_dictionary
from gptviz.language_model.fits import prepare_fit
from gptviz.machine.errors import reason_of
from gptviz.machine.files import file_stamp
from gptviz.machine.hosting import hosting
from gptviz.model import devices
from gptviz.model.costs.effort import A_SECOND
from gptviz.runs import checkpoints, fits, queue
from gptviz.runs.card import finite_or_none
from gptviz.runs.fits import FitPlan, read_fit
from gptviz.runs.status import RunError
from gptviz.ui.records.features import PAGE as FEATURES
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import ModelKey, language_model
from gptviz.ui.widgets import escape_markdown, show_figure, theme
from gptviz.ui.widgets.buttons import press_button
from gptviz.ui.widgets.tables import show_table

from .learning_curves import losses_of
from .run_bar import RunState, files_of, last_line, log_of, repeat_body, run_bar

NUMBERS_OF_A_STEP = ("loss", "active", "progress", "seconds_left")
EVERY = 1.0  # seconds
MOST_CURVES = 6
HEIGHT = 280
LEGEND = (
    "Missed: the share of the variance that the features do not give back, on data held out; of a "
    "fit that goes on, on what it is fitted to. The curves show it over the steps, with a marker "
    "where it was measured on data held out."
)


@dataclass(frozen=True)
class WatchedFit(RunState):
    """All that is known of a fit now."""

    plan: FitPlan

    def measured(self, name: str) -> float | None:
        """A number of how good the dictionary is on data held out, None before it is measured."""
        quality = self.card.values.get("quality")
        return finite_or_none(quality.get(name)) if isinstance(quality, dict) else None

    @property
    def dictionary(self) -> str | None:
        """The name of the dictionary that it has made."""
        name = self.card.values.get("dictionary")
        return name if isinstance(name, str) else None

    @property
    def row(self) -> dict[str, Any]:
        """Its row in the table."""
        missed = self.measured("explained")
        going = self.step
        active = self.measured("l0")
        if missed is not None:
            missed = 1 - missed
        elif going is not None:
            missed, active = going.loss, going.active
        dead = self.measured("dead")
        where = "MLP of block" if self.plan.target == "mlp" else "stream after block"
        return {
            "fit": self.name,
            "model": self.plan.of,
            "gives back": f"{where} {self.plan.block}",
            "features": self.plan.size,
            "active at a token": None if active is None else round(active, 1),
            "missed": "" if missed is None else percent(missed),
            "dead": "" if dead is None else percent(dead),
            "loss with it (nats)": self.measured("loss_with"),
            "steps": self.card.steps if going is None else going.step,
            "time": duration(self.card.seconds),
            "state": self.status.state,
            "dictionary": self.dictionary or "",
        }


def fit_button(key: ModelKey, **settings: Any) -> None:
    """A button that puts the fit of a dictionary with these settings into the queue, and how long
    it takes.
    """
    lm = language_model(key)
    steps = settings["steps"]
    work = effort_of_dictionary(lm, settings.get("size"), steps, settings.get("text"))
    allowed = not hosting().read_only and hosting().training > 0
    refused = "This server fits no dictionaries for its visitors."
    if press_button(
        "Fit a dictionary",
        key="fit dictionary",
        icon=":material/calculate:",
        disabled=not allowed,
        help=None if allowed else refused,
    ):
        try:
            with st.spinner("Getting the fit ready"):
                folder = prepare_fit(lm, **settings)
                own = None if key.device == devices.devices()[0] else key.device
                queue.submit(folder.name, own)
        except (ValueError, OSError, MemoryError, RuntimeError) as error:
            st.error(escape_markdown(reason_of(error)) or "There is not enough memory for it.")
    st.caption(
        f"It takes about {duration(work / A_SECOND)} with this model on two processor cores, in a "
        "process of its own: it goes on while you look at other pages, after a reload, and without "
        "the server. Paused, it can go on; stopped, the dictionary is kept as it is then."
    )


def watched_fits(of: str | None = None) -> tuple[list[WatchedFit], list[str]]:
    """The fits of a model, or of all that are shown here, the last one first; and what is wrong
    with those that cannot be read.
    """
    known = checkpoints.folders()
    found = []
    problems = []
    for folder in fits.folders().values():
        try:
            plan = read_fit(folder)
            if plan.of not in known or of not in (None, plan.of):
                continue
            found.append(
                WatchedFit(
                    folder,
                    *files_of(folder),
                    planned=plan.steps,
                    step=last_line(log_of(folder), "step", NUMBERS_OF_A_STEP),
                    diverged=None,
                    is_planned=True,
                    plan=plan,
                )
            )
        except (RunError, checkpoints.CheckpointError) as error:
            problems.append(str(error))
    return sorted(found, key=lambda fit: file_stamp(fit.folder / "log.jsonl") or (0, 0))[
        ::-1
    ], problems


def show_fits(of: str | None = None, *, links: bool = True) -> None:
    """The fits of a model, or of all models: how far those are that have not ended, the curves of
    the last ones, and a table of all.

    Args:
        of: the name of the model.
        links: whether a link leads to the features of the last dictionary.
    """

    def body() -> bool:
        found, problems = watched_fits(of)
        for problem in problems:
            st.warning(escape_markdown(problem))
        for fit in found:
            if fit.is_active or fit.can_go_on:
                st.markdown(f"**{escape_markdown(fit.name)}**, of {escape_markdown(fit.plan.of)}")
                run_bar(fit)
                if fit.status.message and not fit.is_active:
                    st.text(fit.status.message)
        if found:
            _show_curves(found)
            rows = pd.DataFrame([fit.row for fit in found])
            show_table(
                rows, hide_index=True, placeholder="", alt="The fits of dictionaries side by side"
            )
            st.caption(LEGEND)
        made = next((fit for fit in found if fit.dictionary), None)
        if links and made is not None:
            query = {"model": made.plan.of, "dictionary": str(made.dictionary)}
            frame.link(FEATURES, f"Look at the features of {made.name}", query=query)
        return any(fit.is_active for fit in found)

    repeat_body(body, EVERY, any(fit.is_active for fit in watched_fits(of)[0]))


def _show_curves(found: list[WatchedFit]) -> None:
    """The share that each of the last fits misses over its steps."""
    some = [fit for fit in found if fit.step is not None][:MOST_CURVES]
    if not some:
        return
    drawn = [replace(losses_of(fit.folder), quantity="share missed") for fit in some]
    going = [fit.planned or 0 for fit in some if fit.is_active]
    figure = curves.losses(
        drawn,
        theme(),
        height=HEIGHT,
        until=max(going, default=None),
        log_steps=True,
        log_loss=True,
    )
    names = ", ".join(fit.name for fit in some)
    show_figure(
        figure, key="fits", alt=f"The share that the features miss over the steps: {names}."
    )
