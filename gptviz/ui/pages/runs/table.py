"""What the Runs page knows of every model, and which of them are compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.figures import curves as figures
from gptviz.figures.curves import Curve
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.model import parameter_count
from gptviz.runs import checkpoints
from gptviz.runs import run as runs
from gptviz.runs.checkpoints import CheckpointError
from gptviz.runs.experiments import PLANS
from gptviz.train.recipe import HELP
from gptviz.ui.shell import kinds
from gptviz.ui.shell.frame import theme
from gptviz.ui.views.learning_curves import curve_of, per_text
from gptviz.ui.widgets.markdown import escaped

from . import experiments

MOST_CHOSEN = 12
NONE = "-"  # what the link says where nothing is chosen; no model can be called so
STATES = {"running": "training", "ready": "not begun"}
_TABLE, _ORDER = "table of models", "order of models"

MEANS = HELP | {
    "data": "What it learned from.",
    "vocab_size": "How many tokens it knows.",
    "context_length": "How many tokens it sees at a time.",
    "d_model": "How many numbers stand for a token between its blocks.",
    "n_layer": "How many blocks it has; none is a bigram.",
    "n_encoder_layer": "How many blocks read the source, before the others write the answer.",
    "n_head": "How many heads look at the text side by side in a block.",
    "d_head": "How many numbers a query, a key and a value have.",
    "d_mlp": "How many neurons a block's MLP has; 0 is no MLP.",
    "residual": "How what a sublayer computes joins the stream, and where it is normalised.",
    "norm": "How the numbers of a token are brought to one scale.",
    "positions": "How it knows the order of its tokens.",
    "mask": "Which tokens a token sees: earlier ones (causal), or all (full).",
    "activation": "What bends a neuron's input.",
    "tied": "Whether one matrix serves to read tokens and to guess them.",
    "qk_norm": "Whether queries and keys are brought to one length.",
    "head": "What its last state becomes: the next token (unembed), or a label, from a number of every token with a weight for "
    "its place (flatten) or from the mean of all tokens (mean).",
    "n_label": "How many labels it tells apart.",
    "padding": "The token that fills up the shorter texts of a batch, which nobody reads.",
    "dropout": "The share of numbers left out at random at each step of training.",
}

HOW = r"""
The **loss** is the mean of $-\ln p$ over all held-out tokens that count, $p$ the probability the model gave to the token that
came (a classifier: over all texts, to the right label); in nats. $e^{\text{loss}}$ is the **perplexity**: among how many equally
likely tokens the model might as well be choosing. Guessing without knowing anything has the loss $\ln V$, $V$ the number of
tokens known, or of labels. A task has a **floor**: its
random part, which nobody can guess.

The pale curve is the loss of each batch as it was trained on (in long runs the mean of some), noisy since every batch differs;
the thin one is its mean over the last twentieth of the steps until then. Long curves are thinned out to some 1,000 points, which
keep every extreme.

Read from `log.jsonl` in the model's folder, which `gptviz/runs/run.py` writes; evaluated by `evaluate` in
`gptviz/train/evaluation.py`.
"""
LIMITS = (
    "A loss compares two models only on the same data in the same tokens: a token of four letters is harder to guess than one "
    "letter. One seed is one draw: a difference of a hundredth may be chance. And a low loss is no good text where the model "
    "sees the answer (the generator with its mask off)."
)

# Laying out a model's parts takes a hundred times as long as reading its card, and cards may be wrong.
_parameter_count = lru_cache(maxsize=512)(parameter_count)
# By one of the plans compared: what the comparison is called, and what to notice.
WORTH_A_LOOK = {
    "ladder-0": ("The ladder", "Each rung has what the one before it lacks: which part lowers the loss most?"),
    "reversal": (
        "Positions",
        "Both can reach the floor. Without positions only the causal mask tells the order: it takes longer.",
    ),
    "generator": ("The mask off", "Without its mask it reads the answer: the loss falls far below, the text gets no better."),
    "finetune": ("Pretraining", "Where does the one that read Python's reference first begin, and does it stay ahead?"),
}


@dataclass(frozen=True)
class Entry:
    """What is known of one model: `problem` says why, where that is little.

    Attributes:
        settings: every field of its recipe and its config, and what it learned from.
        plan: the experiment it is of, where it is of one.
    """

    name: str
    folder: Path
    status: runs.Status
    problem: str = ""
    data: str = ""
    parameters: int | None = None
    curve: Curve | None = None
    accuracy: float | None = None
    steps: int | None = None
    seconds: float | None = None
    plan: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def best(self) -> float:
        """The lowest validation loss so far; NaN before the first."""
        return float(self.curve.validation.min()) if self.has_curve and self.curve is not None else math.nan

    @property
    def last(self) -> float:
        """The last validation loss; NaN before the first."""
        return float(self.curve.validation[-1]) if self.has_curve and self.curve is not None else math.nan

    @property
    def has_curve(self) -> bool:
        """Whether there is a loss to show."""
        return self.curve is not None and len(self.curve.validation) > 0

    @property
    def is_active(self) -> bool:
        """Whether it trains, or waits to."""
        return self.status.state in ("running", "waiting")

    @property
    def state(self) -> str:
        """What is becoming of it, in words."""
        if self.problem:
            return "damaged"
        planned = self.settings.get("steps")
        if self.status.state == "running" and isinstance(planned, int) and self.steps:
            return f"training {min(1.0, self.steps / planned):.0%}"
        return STATES.get(self.status.state, self.status.state)


def entries() -> dict[str, Entry]:
    """Every model by its name, the user's own first."""
    found = {}
    for name, folder in checkpoints.folders().items():
        status = runs.status(folder)
        try:
            found[name] = _entry(folder, status, curve_of(folder))
        except CheckpointError as error:
            found[name] = Entry(name, folder, status, problem=str(error))
    return found


def _entry(folder: Path, status: runs.Status, curve: Curve) -> Entry:
    card, config = checkpoints.read_card(folder), checkpoints.read_config(folder)
    recipe = card.get("recipe")
    data = str(card.get("task") or card.get("corpus") or "")[:80]
    known = recipe if isinstance(recipe, dict) else {}
    settings = {"data": data or None} | {name: known.get(name) for name in HELP} | config.to_dict()
    last = [*curve.steps[-1:].tolist(), *curve.validation_steps[-1:].tolist()]
    preset = card.get("preset")
    return Entry(
        folder.name,
        folder,
        status,
        data=data,
        parameters=_parameter_count(config),
        curve=curve,
        accuracy=_number(card.get("accuracy")),
        steps=int(max([*last, _number(card.get("steps")) or 0])),
        seconds=_number(card.get("seconds")),
        plan=preset if isinstance(preset, str) and preset in PLANS else None,
        settings=settings,
    )


def _number(value: object) -> float | None:
    sound = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
    return float(value) if sound else None  # type: ignore[arg-type]


def striking(found: Mapping[str, Entry]) -> list[str]:
    """What is compared unless asked otherwise: the ladder, or the task with and without positions, or all there is."""
    shown = [name for name, entry in found.items() if entry.has_curve]
    for group in experiments.groups():
        if len(group) > 1 and len(there := [name for name in group if name in shown]) > 1:
            return there[:MOST_CHOSEN]
    return shown[:MOST_CHOSEN]


def chosen(found: Mapping[str, Entry], *, quiet: bool = False) -> list[Entry]:
    """The control `chosen`: the models compared, in the order they were chosen; in the link, names with commas between.

    Not bound to the link as other controls are: the table says which rows are chosen, the link says names. Says what the
    link asks for in vain, unless `quiet`.
    """
    asked = st.query_params.get("chosen")
    if asked is None:
        return [found[name] for name in striking(found)]
    names = list(dict.fromkeys(map(unquote, asked[:2_000].split(","))))
    shown = [name for name in names if name in found and found[name].has_curve]
    lacking = [name for name in names if name not in shown and name != NONE]
    if lacking and not quiet:
        why = "has no curve yet" if lacking[0] in found else "is not to be had here"
        st.warning(f"The link asks for the model “{escaped(lacking[0][:80])}”, which {why}.", icon=":material/link_off:")
    if len(shown) > MOST_CHOSEN and not quiet:
        st.info(f"{len(shown)} models are chosen; the curves of the first {MOST_CHOSEN} are shown.")
    return [found[name] for name in shown[:MOST_CHOSEN]]


def choose(names: Sequence[str]) -> None:
    """Put the models compared into the link."""
    # A folder that somebody copied here may have a comma in its name.
    st.query_params["chosen"] = ",".join(quote(name, safe="") for name in names) or NONE


def table(found: Mapping[str, Entry], shown: Sequence[str], *, height: int) -> None:
    """All models, a row each; ticked are those `shown`, and ticking others sets `chosen`."""
    order = _order(found, shown)

    def ticked() -> None:
        rows = st.session_state[_TABLE]["selection"]["rows"]
        names = [order[row] for row in rows if row < len(order) and found[order[row]].has_curve]
        # Those chosen already keep their place, and with it their colour.
        choose([*(name for name in shown if name in names), *(name for name in names if name not in shown)])
        st.session_state[_ORDER] = st.query_params["chosen"], order

    st.session_state[_TABLE] = {"selection": {"rows": [order.index(name) for name in shown], "columns": [], "cells": []}}
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    about_perplexity = "e to the best loss: among how many equally likely tokens it might as well be choosing."
    st.dataframe(
        rows([found[name] for name in order]),
        key=_TABLE,
        on_select=ticked,
        selection_mode="multi-row",
        hide_index=True,
        height=height,
        placeholder="",
        column_config={
            "model": text(pinned=True, width=155),
            "state": text(width=95),
            "best loss": number(
                format="%.4f", width=70, help="The lowest on held-out data, in nats per token; of a classifier, per text."
            ),
            "perplexity": number(format="plain", width=80, help=about_perplexity),
            "published": text(width=105, help="What somebody published for this experiment."),
            "parameters": number(format="localized", width=85, help="Numbers that training sets."),
            "steps": number(format="localized", width=60, help="How many times its weights were changed."),
            "time": text(width=65, help="Spent on training steps."),
            "data": text(width=115, help="The text or the generated task it learned from."),
            "last loss": number(format="%.4f", width=75, help="The last on held-out data, in nats per token."),
            "accuracy": number(
                format="%.1f%%", width=75, help="How much of what is held out it gets right: tokens of a task, texts with labels."
            ),
        },
        alt="All models, one per row, with state, losses, size, steps, time and data",
    )


def _order(found: Mapping[str, Entry], shown: Sequence[str]) -> list[str]:
    """The models in the order of the table: those compared first, then those that train; ticking one moves none."""
    asked = st.query_params.get("chosen")
    link, order = st.session_state.get(_ORDER, (None, []))
    if not order or link != asked:
        order = [*shown, *sorted(set(found) - set(shown), key=lambda name: (not found[name].is_active, list(found).index(name)))]
    order = [name for name in order if name in found] + [name for name in found if name not in order]
    st.session_state[_ORDER] = asked, order
    return order


def rows(known: Sequence[Entry]) -> pd.DataFrame:
    """The table of the models `known`, numbers as numbers."""
    return pd.DataFrame(
        {
            "model": [entry.name for entry in known],
            "state": [entry.state for entry in known],
            "best loss": [entry.best for entry in known],
            "perplexity": [_significant(math.exp(min(entry.best, 700))) for entry in known],
            "published": [experiments.published(PLANS[entry.plan].target) if entry.plan else "" for entry in known],
            "parameters": pd.array([entry.parameters for entry in known], dtype="Int64"),
            "steps": pd.array([entry.steps for entry in known], dtype="Int64"),
            "time": [spoken(entry.seconds) for entry in known],
            "data": [entry.data for entry in known],
            "last loss": [entry.last for entry in known],
            "accuracy": [math.nan if entry.accuracy is None else 100 * entry.accuracy for entry in known],
        }
    )


def _significant(value: float) -> float:
    return float(f"{value:.3g}")


def spoken(seconds: float | None) -> str:
    """A length of time as a person says it, empty where none is known."""
    if not seconds:
        return ""
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def differences(shown: Sequence[Entry]) -> pd.DataFrame:
    """The settings in which the models differ, a row each; what is not written down of a model counts as no difference."""
    fields = dict.fromkeys(name for entry in shown for name in entry.settings)
    kept = []
    for name in fields:
        values = [entry.settings.get(name) for entry in shown]
        if len({repr(value) for value in values if value is not None}) > 1:
            kept.append([name, *map(_said, values), MEANS.get(name, "")])
    return pd.DataFrame(kept, columns=["setting", *(entry.name for entry in shown), "what it does"])


def _said(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,g}" if isinstance(value, int | float) else str(value)[:80]


def say_differences(shown: Sequence[Entry]) -> None:
    """The table of what differs between the models shown, where there is more than one."""
    if len(shown) < 2:
        return
    table = differences(shown)
    if table.empty:
        st.caption("Nothing that is written down differs between them.")
        return
    st.markdown("**In what they differ**")
    height: int | Literal["content"] = 318 if len(table) > 8 else "content"
    st.dataframe(table, hide_index=True, height=height, key="differences", alt="The settings in which the models differ")


def try_these(found: Mapping[str, Entry]) -> None:
    """Comparisons worth a look among the models there are."""
    offers = []
    for group in experiments.groups():
        there = [name for name in group if name in found and found[name].has_curve]
        offers += [(WORTH_A_LOOK[name], there) for name in group if name in WORTH_A_LOOK and len(there) > 1]
    if offers:
        st.text("Try this:", width="content")
    for (label, notice), there in offers:
        st.button(label, key=f"try {label}", on_click=choose, args=(there,), help=notice)


def numbers(shown: Sequence[Entry]) -> LabelledArray:
    """The validation losses [model, step]; NaN where a model was not evaluated."""
    known = [entry.curve for entry in shown if entry.curve is not None]
    steps = sorted({step for curve in known for step in curve.validation_steps.tolist()})
    values = np.full((len(known), len(steps)), np.nan)
    for row, curve in enumerate(known):
        values[row, np.searchsorted(steps, curve.validation_steps)] = curve.validation
    axes = Axis("model", tuple(curve.name for curve in known)), Axis("step", tuple(f"{step:.0f}" for step in steps))
    return LabelledArray(values, axes, "validation loss in nats per token")


def chart(shown: Sequence[Entry], *, log_steps: bool, log_loss: bool, training: bool, height: int) -> None:
    """The curves of some models over each other."""
    curves = [entry.curve for entry in shown if entry.curve is not None]
    figure = figures.losses(curves, theme(), log_steps=log_steps, log_loss=log_loss, training=training, height=height)
    figure = per_text(figure) if all(kinds.of(entry.folder) == "classifier" for entry in shown) else figure
    ends = "; ".join(f"{entry.name} ends at {entry.last:.4f}" for entry in shown)
    st.plotly_chart(figure, key="curves", alt=f"Validation loss over the steps of training: {ends} nats per token.")


def code(names: Sequence[str]) -> str:
    """The lines of `gptviz` that read the same losses."""
    return f"""from gptviz.runs import checkpoints
from gptviz.runs import run as runs

for name in {list(names)!r}:
    log = runs.read_log(checkpoints.find(name) / "log.jsonl")
    print(name, [(line["step"], line["loss"]) for line in log if line["kind"] == "evaluation"])"""
