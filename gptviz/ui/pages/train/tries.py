"""The suggestions of the page Train: shipped runs worth looking at, with what is computed from their logs, and one to begin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from gptviz.figures.kit.format import percent
from gptviz.figures.training.curves import Curve
from gptviz.runs import checkpoints
from gptviz.ui.views.learning_curves import curve_of
from gptviz.ui.widgets import Try

from .charts import LOSS
from .data import TWO
from .rules import plan_named
from .watched import log_of

TOO_FAST = 1.0  # a learning rate
RIGHT = 0.99  # of the answers, for a model that can do it
CLEAR = 0.1  # nats between two losses, to be seen in the chart


def tries(watched: str, plan_name: str) -> list[Try]:
    """The suggestions for the model watched and the experiment in the form, as far as their models are here."""
    offers: list[Try] = []
    for name, offer in _OFFERS.items():
        if name != watched:
            with suppress(checkpoints.CheckpointError):
                offers += offer(name)
    rate = plan_named(plan_name).recipe.learning_rate
    about = f"{TOO_FAST / rate:,.0f} times that of the experiment. Press Train: does the loss fall, and where does it end?"
    fast = Try("Far too fast", f"Sets the learning rate to {TOO_FAST:g}: {about}", {"run_learning_rate": TOO_FAST})
    data = (
        "Two models that differ in their data alone: in one text a nurse is “she” in nine sentences of ten, in the other in one. "
        "Press Train, wait for both, and ask them."
    )
    return [*offers, fast, Try("What did my data do?", data, {"plan": "jobs", TWO: True})]


def steepest(curve: Curve) -> tuple[int, int]:
    """Two evaluations in a row, by their numbers, between which the validation loss falls most."""
    last = int(np.argmin(np.diff(curve.validation))) + 1
    return last - 1, last


def _sudden(name: str) -> Sequence[Try]:
    curve = curve_of(checkpoints.find(name))
    if len(curve.validation) < 3:
        return ()
    before, after = steepest(curve)
    steps, losses = curve.validation_steps, curve.validation
    notice = (
        f"“{name}” was trained for {steps[-1]:,.0f} steps, and {losses[before] - losses[after]:.2f} of the "
        f"{losses[0] - losses.min():.2f} nats by which its loss fell came between steps {steps[before]:,.0f} and "
        f"{steps[after]:,.0f}."
    )
    return [Try("A sudden insight", notice, {"run": name, "chart": LOSS.label, "log_steps": True, "block": 1})]


def _by_place(name: str) -> Sequence[Try]:
    places = checkpoints.read_card(checkpoints.find(name)).accuracy_by_place
    known = [share for share in places or () if share is not None]
    if len(known) < 2 or known[0] > 0.5 or min(known[-2:]) < 0.9:
        return ()
    first = next(place for place, share in enumerate(known, 2) if share > 0.5)
    least = percent(min(known[first - 2 :]))
    notice = (
        f"The second half of each text mirrors the first, which is random. “{name}” guesses token 2 right {percent(known[0])} of "
        f"the time; from token {first} on it is right {least} of the time{'' if least.startswith('100') else ' or more'}."
    )
    return [Try("Random, then certain", notice, {"run": name, "chart": "Right by place"})]


def _by_heart(name: str) -> Sequence[Try]:
    curve = curve_of(checkpoints.find(name))
    if curve.training is None or not len(curve.validation) or curve.validation[-1] - curve.training[-1] < CLEAR:
        return ()
    notice = (
        f"“{name}” ends with a loss of {curve.training[-1]:.2f} on the texts that it is trained on, and of "
        f"{curve.validation[-1]:.2f} on texts held out: part of what it learned is true only of the texts it is trained on."
    )
    return [Try("Learning by heart", notice, {"run": name, "chart": LOSS.label, "log_steps": False})]


def _by_rule(name: str) -> Sequence[Try]:
    known = [line for line in log_of(checkpoints.find(name)) if line.training_accuracy is not None and line.accuracy is not None]
    learned = next((line.step for line in known if (line.training_accuracy or 0) >= RIGHT), None)
    found = next((line.step for line in known if (line.accuracy or 0) >= RIGHT), None)
    if learned is None or found is None or found < 2 * learned:
        return ()
    notice = (
        f"“{name}” gets {percent(RIGHT)} of what it is trained on right from step {learned:,} on, and of what it never saw only "
        f"from step {found:,} on: first it learns by heart, and long after that it finds a rule (grokking)."
    )
    return [Try("By heart, then by rule", notice, {"run": name, "chart": "Accuracy", "log_steps": True})]


_OFFERS: dict[str, Callable[[str], Sequence[Try]]] = {
    "induction": _sudden,
    "modular": _by_rule,
    "reversal": _by_place,
    "classifier-no-dropout": _by_heart,
}
