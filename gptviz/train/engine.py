"""Precision and compiling: which of them trains fastest on this machine, found by a short probe, or as the recipe says."""

from __future__ import annotations

import copy
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import torch
from torch import nn

from gptviz.data.batches import Data
from gptviz.model import Transformer

from .recipe import Recipe
from .trainer import Trainer

PROBED = 3  # steps timed
WORTH_COMPILING = 240.0  # seconds of training; compiling takes about 30, and then saves 10 to 20 % of the time


@dataclass(frozen=True)
class Engine:
    """The precision a run computes with, whether its model is compiled, and why.

    Attributes:
        bfloat16: whether matrix products run in bfloat16.
        compiled: whether the model is compiled.
        why: the reason in a sentence, with the times measured.
        seconds_per_step: the time of a step as measured; None if it was not.
    """

    bfloat16: bool = False
    compiled: bool = False
    why: str = "as asked"
    seconds_per_step: float | None = None

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Engine:
        """An engine from JSON values.

        Raises:
            ValueError: the values are not those of an engine.
        """
        try:
            engine = cls(**values)
        except TypeError as error:
            raise ValueError(f"no engine is written down so ({error})") from None
        seconds = engine.seconds_per_step
        flags = isinstance(engine.bfloat16, bool) and isinstance(engine.compiled, bool)
        if not (flags and isinstance(engine.why, str) and (seconds is None or isinstance(seconds, int | float))):
            raise ValueError(f"no engine is written down so: {values!r:.80}")
        return engine

    def forward(self, model: Transformer) -> nn.Module:
        """The model itself, or the compiled model."""
        return _compiled(model) if self.compiled else model

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return asdict(self)


def choose(model: Transformer, data: Data, recipe: Recipe) -> Engine:
    """The engine for `recipe` on the device of `model`: what the recipe says, otherwise the fastest in a probe of a few steps.

    The probe trains a copy; the model is not changed.
    """
    device = model.embed.weight.device
    candidates = {
        "float32": [False],
        "bfloat16": [True],
        "auto": [False, True] if _may_bfloat16(device) else [False],
    }[recipe.precision]
    if len(candidates) == 1 and recipe.compile == "no":
        return Engine(candidates[0], False)
    times = {bfloat16: _seconds_per_step(model, data, recipe, bfloat16, compiled=False) for bfloat16 in candidates}
    fastest = min(times, key=lambda bfloat16: times[bfloat16])
    why = ", ".join(f"{_name(bfloat16)} {seconds * 1_000:,.1f} ms a step" for bfloat16, seconds in times.items())
    compiled, compiled_why, seconds = _compiling(model, data, recipe, fastest, times[fastest])
    return Engine(fastest, compiled, f"{why}; {compiled_why}", seconds)


def _compiling(model: Transformer, data: Data, recipe: Recipe, bfloat16: bool, eager: float) -> tuple[bool, str, float]:
    """Whether to compile, the reason, and the seconds that a step then takes; `eager` are those of a step without compiling."""
    if recipe.compile == "no":
        return False, "not compiled, as asked", eager
    if missing := compiler_missing():
        return False, f"not compiled: {missing}", eager
    length = eager * recipe.steps if recipe.steps else 60 * (recipe.minutes or 0)
    if recipe.compile == "auto" and length < WORTH_COMPILING:
        return False, f"not compiled: the run takes about {length:,.0f} s, too short to be worth it", eager
    try:
        compiled = _seconds_per_step(model, data, recipe, bfloat16, compiled=True)
    except Exception as error:  # compilers fail in many ways, and training works without one
        return False, f"not compiled: compiling failed ({type(error).__name__})", eager
    if compiled > eager and recipe.compile == "auto":
        return False, f"not compiled: that takes {compiled * 1_000:,.1f} ms a step", eager
    return True, f"compiled {compiled * 1_000:,.1f} ms a step", compiled


def compiler_missing() -> str | None:
    """What `torch.compile` lacks on this machine; None if it can run."""
    compiler = os.environ.get("CXX") or ("cl" if sys.platform == "win32" else "g++")
    if shutil.which(compiler) is None and shutil.which("clang++") is None:
        return f"there is no C++ compiler ({compiler}) on this machine"
    return None


def _may_bfloat16(device: torch.device) -> bool:
    """Whether bfloat16 can be faster. Without hardware for it, it is emulated, and a probe would only take time."""
    if device.type == "cpu":
        return torch.cpu.get_capabilities().get("avx512_bf16", False)
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def _name(bfloat16: bool) -> str:
    return "bfloat16" if bfloat16 else "float32"


def _compiled(model: Transformer) -> nn.Module:
    compiled: Callable[..., Any] = torch.compile(model)
    assert isinstance(compiled, nn.Module)
    return compiled


def _seconds_per_step(model: Transformer, data: Data, recipe: Recipe, bfloat16: bool, *, compiled: bool) -> float:
    duplicate = copy.deepcopy(model)
    trainer = Trainer(duplicate, data, recipe, forward=_compiled(duplicate) if compiled else None, bfloat16=bfloat16)
    times = []
    for _ in range(PROBED + 1):  # the first warms up
        begun = time.perf_counter()
        trainer.advance()
        times.append(time.perf_counter() - begun)
    return median(times[1:])
