"""Precision and compiling: which of them trains fastest on this machine, found by a short probe, or
as the recipe says.
"""

from __future__ import annotations

import copy
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from threading import Thread
from typing import Any

import torch
from torch import nn

from gptviz.data.batches import Data
from gptviz.model import Transformer
from gptviz.model.devices import may_bfloat16

from .recipe import Recipe
from .trainer import Trainer

PROBED = 3  # steps timed
EVERY = 0.1  # seconds between two checks whether a probe is to be given up
# seconds of training; compiling takes about 30, and then saves 10 to 20 % of the time
WORTH_COMPILING = 240.0


@dataclass(frozen=True)
class Engine:
    """The precision a run computes with, whether its model is compiled, and why."""

    bfloat16: bool = False  #: whether matrix products run in bfloat16
    compiled: bool = False  #: whether the model is compiled
    why: str = "as asked"  #: the reason in a sentence, with the times measured
    seconds_per_step: float | None = None  #: the time of a step as measured, or None if it was not

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Engine:
        """An engine from JSON values; a ValueError if they are not those of an engine."""
        try:
            engine = cls(**values)
        except TypeError as error:
            raise ValueError(f"this does not describe an engine ({error})") from None
        seconds = engine.seconds_per_step
        flags = isinstance(engine.bfloat16, bool) and isinstance(engine.compiled, bool)
        if not (
            flags
            and isinstance(engine.why, str)
            and (seconds is None or isinstance(seconds, int | float))
        ):
            raise ValueError(f"this does not describe an engine: {values!r:.80}")
        return engine

    def forward(self, model: Transformer) -> nn.Module:
        """The model itself, or the compiled model."""
        if self.compiled:
            return _compile_model(model)
        return model

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return asdict(self)


def choose_engine(
    model: Transformer,
    data: Data,
    recipe: Recipe,
    *,
    meanwhile: Callable[[str], None] = lambda doing: None,
) -> Engine:
    """The engine for `recipe` on the device of `model`: what the recipe says, otherwise the fastest
    in a probe of a few steps.

    The probe trains a copy; the model is not changed. `meanwhile` is called ten times a second with
    a description of the current trial; an error that it raises ends the choice at once, also while
    the model is being compiled.
    """
    device = model.embed.weight.device
    candidates = {
        "float32": [False],
        "bfloat16": [True],
        "auto": [False, True] if may_bfloat16(device) else [False],
    }[recipe.precision]
    if len(candidates) == 1 and recipe.compile == "no":
        return Engine(candidates[0], False)
    times = {}
    for bfloat16 in candidates:
        doing = f"timing steps in {_name(bfloat16)}"
        times[bfloat16] = _seconds_per_step(
            model, data, recipe, bfloat16, compiled=False, meanwhile=partial(meanwhile, doing)
        )
    fastest = min(times, key=lambda bfloat16: times[bfloat16])
    why = ", ".join(
        f"{_name(bfloat16)} {seconds * 1_000:,.1f} ms a step" for bfloat16, seconds in times.items()
    )
    compiled, compiled_why, seconds = _compiling(
        model, data, recipe, fastest, times[fastest], meanwhile
    )
    return Engine(fastest, compiled, f"{why}; {compiled_why}", seconds)


def _compiling(
    model: Transformer,
    data: Data,
    recipe: Recipe,
    bfloat16: bool,
    eager: float,
    meanwhile: Callable[[str], None],
) -> tuple[bool, str, float]:
    """Whether to compile, the reason, and the seconds that a step then takes; `eager` are those of
    a step without compiling.
    """
    if recipe.compile == "no":
        return False, "not compiled, as asked", eager
    if missing := compiler_missing():
        return False, f"not compiled: {missing}", eager
    if recipe.steps:
        length = eager * recipe.steps
    else:
        length = 60 * (recipe.minutes or 0)
    if recipe.compile == "auto" and length < WORTH_COMPILING:
        return (
            False,
            f"not compiled: the run takes about {length:,.0f} s, too short to be worth it",
            eager,
        )
    doing = partial(meanwhile, "compiling the model, which takes about half a minute")
    try:
        compiled = _seconds_per_step(model, data, recipe, bfloat16, compiled=True, meanwhile=doing)
    except _ProbeError as error:  # compilers fail in many ways, and training works without one
        return False, f"not compiled: compiling failed ({type(error.__cause__).__name__})", eager
    if compiled > eager and recipe.compile == "auto":
        return False, f"not compiled: that takes {compiled * 1_000:,.1f} ms a step", eager
    return True, f"compiled {compiled * 1_000:,.1f} ms a step", compiled


def compiler_missing() -> str | None:
    """The thing that `torch.compile` lacks on this machine, or None if it can run."""
    compiler = os.environ.get("CXX") or ("cl" if sys.platform == "win32" else "g++")
    if shutil.which(compiler) is None and shutil.which("clang++") is None:
        return f"there is no C++ compiler ({compiler}) on this machine"
    return None


def _name(bfloat16: bool) -> str:
    if bfloat16:
        return "bfloat16"
    return "float32"


def _compile_model(model: Transformer) -> nn.Module:
    compiled: Callable[..., Any] = torch.compile(model)
    assert isinstance(compiled, nn.Module)
    return compiled


class _ProbeError(RuntimeError):
    """A probe failed; the cause says why."""


class _Probe(Thread):
    """Takes some steps with a copy of a model, in a thread, so that it can be given up while a step
    or a compiler is at work.
    """

    def __init__(
        self, model: Transformer, data: Data, recipe: Recipe, bfloat16: bool, compiled: bool
    ) -> None:
        super().__init__(name="probe", daemon=True)
        self.times: list[float] = []  #: the seconds of the steps that were timed
        self.failure: Exception | None = None  #: the error that ended it too early
        self.given_up = False  #: whether it is to end after the step it takes now
        self._model = model
        self._data = data
        self._recipe = recipe
        self._bfloat16 = bfloat16
        self._compiled = compiled

    def run(self) -> None:
        try:
            duplicate = copy.deepcopy(self._model)
            forward = _compile_model(duplicate) if self._compiled else None
            trainer = Trainer(
                duplicate, self._data, self._recipe, forward=forward, bfloat16=self._bfloat16
            )
            trainer.advance()  # warms up
            while len(self.times) < PROBED and not self.given_up:
                begun = time.perf_counter()
                trainer.advance()
                self.times.append(time.perf_counter() - begun)
        except Exception as error:
            self.failure = error

    def wait(self, meanwhile: Callable[[], None]) -> None:
        """Wait until it ends, or until `meanwhile`, which is called repeatedly, raises an error."""
        while self.is_alive():
            meanwhile()
            self.join(EVERY)


_given_up: list[_Probe] = []


def _seconds_per_step(
    model: Transformer,
    data: Data,
    recipe: Recipe,
    bfloat16: bool,
    *,
    compiled: bool,
    meanwhile: Callable[[], None],
) -> float:
    """The seconds of the fastest of some steps; other work makes the others slower. A `_ProbeError`
    if a step failed.
    """
    while _given_up:  # such a probe draws from the same random numbers until its step has ended
        _given_up[-1].wait(meanwhile)
        _given_up.pop()
    probe = _Probe(model, data, recipe, bfloat16, compiled)
    probe.start()
    try:
        probe.wait(meanwhile)
    except BaseException:
        probe.given_up = True
        _given_up.append(probe)
        raise
    if probe.failure is not None:
        raise _ProbeError(str(probe.failure)) from probe.failure
    return min(probe.times)
