"""The cost of training a model here, from the measured speed of this machine, and how far that is from real steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from gptviz.figures.kit.format import counted, duration, moment
from gptviz.machine import memory
from gptviz.machine.hosting import hosting
from gptviz.machine.memory import in_bytes
from gptviz.model import Config
from gptviz.train import estimate
from gptviz.train.estimate import Estimate
from gptviz.train.recipe import Recipe
from gptviz.ui.views.planned_run import BUSY, estimated, explanation, measuring, speed_so_far
from gptviz.ui.widgets import controls, escaped, jobs, pressed
from gptviz.ui.widgets.details import folded

from .counts import CostSetting, metrics

OWN, OTHER = "this model", "another size"
STEPS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
BLOCKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)
WIDTHS = (32, 64, 128, 256, 384, 512, 768, 1_024, 2_048, 4_096)
HEADS = (1, 2, 4, 8, 12, 16, 32)
# A step that is expected to take longer is not tried here.
LONGEST_STEP = 20.0
_TIMED = "timed steps"


@dataclass(frozen=True)
class Planned:
    """A run that is only planned: an architecture whose context is as long as the texts, a recipe, and a device."""

    config: Config
    recipe: Recipe
    device: str


def show(own: Config, chosen: CostSetting, device: str) -> None:
    """The view: the controls of a plan, and what the run would take here."""
    if (run := planned(own, chosen, device)) is not None:
        prediction(run)


def planned(own: Config, chosen: CostSetting, device: str) -> Planned | None:
    """The controls of the planner, and the run that they describe, or None, with a message, if sizes do not go together."""
    left, right = st.columns([2, 5], gap="medium", vertical_alignment="bottom")
    with left:
        which = controls.select(
            "What to train",
            [OWN, OTHER],
            key="plan_of",
            help="The model on screen, from fresh weights; or one that is built like it and has other sizes.",
            format_func=str.capitalize,
            segmented=True,
        )
    with right:
        steps = controls.notch(
            "Steps", STEPS, key="plan_steps", default=3_000, format_func=lambda count: f"{count:,}",
            help="How often the weights are changed, each time after one batch.",
        )  # fmt: skip
    config = own
    if which == OTHER:
        try:
            config = _other_size(own)
        except ValueError as error:
            st.warning(escaped(f"These sizes do not go together: {error}."), icon=":material/rule:")
            return None
    recipe = Recipe(steps=steps, batch_size=chosen.batch, optimiser=chosen.optimiser)
    return Planned(replace(config, context_length=chosen.tokens), recipe, device)


def _other_size(own: Config) -> Config:
    """The model's config with other sizes.

    Raises:
        ValueError: these do not go together; the message names them.
    """
    first, second, third = st.columns(3, gap="medium")
    with first:
        n_layer = controls.notch(
            "Blocks", _with(BLOCKS, own.n_layer), key="plan_blocks", default=own.n_layer, help="How many blocks it has."
        )
    with second:
        d_model = controls.notch(
            "Width",
            _with(WIDTHS, own.d_model),
            key="plan_width",
            default=own.d_model,
            help="How many numbers a token has in the residual stream (d_model). An MLP has four times as many neurons.",
        )
    with third:
        n_head = controls.notch(
            "Heads", _with(HEADS, own.n_head), key="plan_heads", default=own.n_head,
            help="How many heads share the width of a block.",
        )  # fmt: skip
    if (n_layer, d_model, n_head) == (own.n_layer, own.d_model, own.n_head):
        return own
    d_mlp = None if own.mlp_size else 0
    encoder = n_layer if own.n_encoder_layer else 0
    changes: dict[str, Any] = {"n_kv_head": None, "d_head": None, "d_mlp": d_mlp, "n_encoder_layer": encoder}
    return replace(own, n_layer=n_layer, d_model=d_model, n_head=n_head, **changes)


def _with(usual: tuple[int, ...], own: int) -> tuple[int, ...]:
    return tuple(sorted({*usual, own}))


def prediction(run: Planned) -> None:
    """The time, memory and disk that the run would take here, what that assumes, and on demand the time of real steps.

    It stands there as soon as it is measured how fast this machine is.
    """
    if (fast := speed_so_far(run.device)) is None:
        jobs.follow(measuring(run.device), "speed")
        return
    expected = estimated(run.config, run.recipe, fast, run.config.context_length)
    free = memory.room(expected.memory, run.device)
    read = run.recipe.batch_size * run.config.context_length * (run.recipe.steps or 0)
    cells = [
        ("Parameters", f"{expected.parameters:,}", "The numbers that training would find."),
        ("Time", duration(expected.seconds), "All steps, and the evaluations in between, if this machine does nothing else."),
        ("A step", moment(expected.seconds_per_step), f"{expected.flops:,.0f} operations"),
        (
            "Memory",
            in_bytes(expected.memory),
            f"The most that the process holds at once; {in_bytes(free)} is free.",
        ),
        ("Disk", in_bytes(expected.disk), f"The run's files, with {counted(expected.snapshots, 'snapshot')}."),
    ]
    metrics(cells)
    if (why := estimate.refusal(expected, free)) is not None:
        st.warning(escaped(f"It does not fit: {why}."), icon=":material/memory:")
    busy = f" If it stays as busy as it is, the time is {duration(expected.seconds * expected.slowdown)}."
    busy = busy if expected.slowdown >= BUSY else ""
    st.caption(
        f"Assumed: {read:,} tokens are read in {run.recipe.steps:,} steps of {run.recipe.batch_size:,} × "
        f"{run.config.context_length:,} tokens, on {run.device}, which gets through {fast.flops / 1e9:,.3g} billion operations a "
        f"second and writes {fast.bytes / 1e9:,.3g} GB a second, and takes {moment(fast.overhead)} to start an operation. "
        f"These three were measured here on three small models.{busy} Nothing is assumed about how good the model becomes."
    )
    _check(run, expected, fast, free)
    if fold := folded("Where these numbers come from", icon=":material/help:", key="where numbers come from"):
        fold.markdown(explanation(expected))


def _check(run: Planned, expected: Estimate, fast: estimate.Speed, free: int) -> None:
    """A button that takes a few real steps, and how far they are from what was predicted."""
    timed: dict[Planned, float] = st.session_state.setdefault(_TIMED, {})
    too_long, too_large = expected.seconds_per_step > LONGEST_STEP, estimate.refusal(expected, free) is not None
    about = "Trains a model of this size on random tokens for a few steps, about a second, and throws it away."
    if too_long or too_large:
        about = "A step would take too long to try." if too_long else "There is not enough memory to try a step."
    trains = hosting().training > 0 and not hosting().read_only
    if not trains:
        about = "This server trains nothing."
    disabled = too_long or too_large or not trains
    if pressed("Take some real steps", key="time steps", help=about, icon=":material/timer:", disabled=disabled):
        with st.spinner("Taking real steps"):
            timed[run] = estimate.timed_step(run.config, run.recipe, run.device, fast)
    if (seconds := timed.get(run)) is not None:
        st.markdown(
            f"**Measured: {moment(seconds)} a step; predicted: {moment(expected.seconds_per_step)}.** "
            f"The prediction is {_apart(expected.seconds_per_step, seconds)}."
        )


def _apart(predicted: float, measured: float) -> str:
    """How far a prediction is from what was measured, in words."""
    if 0.95 < predicted / measured < 1.05:
        return "within 5 % of it"
    return f"{max(predicted / measured, measured / predicted):.2g} times too {'long' if predicted > measured else 'short'}"
