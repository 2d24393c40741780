"""The recipe of a training run: every setting beside the architecture and the data."""

from __future__ import annotations

import math
import sys
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args, get_type_hints

Optimiser = Literal["adamw", "adam", "sgd", "muon"]
Schedule = Literal["cosine", "linear", "constant"]
Precision = Literal["auto", "bfloat16", "float32"]
Compiling = Literal["auto", "yes", "no"]
LARGEST = sys.float_info.max

# What each setting does, in a sentence a newcomer understands: the help of the command line and of the Train page.
HELP: dict[str, str] = {
    "steps": "How many times the weights are changed. A step reads one batch.",
    "minutes": "Instead of a number of steps: training ends after so many minutes, wherever it is.",
    "batch_size": "How many pieces of the data one step reads side by side. More: steadier, and each step takes longer.",
    "optimiser": "How a gradient becomes a step. AdamW suits almost everything. Muon takes fewer steps with matrices. "
    "Adam lacks AdamW's weight decay proper. SGD follows the bare gradient, and mostly needs a higher learning rate.",
    "learning_rate": "How far a step goes, at most. Too high: the loss jumps or explodes. Too low: it hardly falls.",
    "schedule": "What becomes of the learning rate after the warm-up: it falls along a cosine or a line, or stays.",
    "warmup": "The share of the run over which the learning rate rises from 0: the first gradients are wild.",
    "final_rate": "The learning rate at the end, as a share of the highest. Small steps at the end settle the weights.",
    "weight_decay": "How strongly matrices are pulled towards 0 at each step, which holds back learning by heart.",
    "beta1": "How much of the last gradients' mean is kept from step to step (Adam), or of the momentum (SGD, Muon).",
    "beta2": "How much of the mean of their squares is kept (Adam): higher is steadier and slower to notice a change.",
    "clip": "Gradients longer than this are shortened to it, so that one odd batch does no harm. 0 never shortens.",
    "precision": "What matrix products run in. bfloat16 is faster where the processor has it; “auto” tries both.",
    "compile": "Whether torch.compile turns the model into machine code first: worth its half minute in long runs.",
    "evaluations": "How often the loss on held-out data is computed, evenly over the run.",
    "snapshots": "Weights kept per doubling of the step, to be scrubbed through: 3 keeps steps 1, 2, 3, 4, 5, 6, 8, 10, 13 …",
    "seed": "Fixes first weights, batches and dropout: one seed, one curve.",
}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a model is trained. Give `steps`, or `minutes`, after which training ends wherever it is.

    The learning rate rises linearly over the first `warmup` share of the run to `learning_rate`, then falls to
    `final_rate` of it along a cosine or a line, or stays. Matrices decay by `weight_decay`, biases and gains do not.
    Gradients are clipped to a norm of `clip`. `HELP` says what each field does.

    Raises:
        ValueError: a setting no run can have; the message names it and its value.
    """

    steps: int | None = None
    minutes: float | None = None
    batch_size: int = 16
    optimiser: Optimiser = "adamw"
    learning_rate: float = 2.5e-3
    schedule: Schedule = "cosine"
    warmup: float = 0.05
    final_rate: float = 0.1
    weight_decay: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.99
    clip: float = 1.0
    precision: Precision = "auto"
    compile: Compiling = "auto"
    evaluations: int = 10
    snapshots: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.minutes is None):
            raise ValueError("give a number of steps or of minutes, and not both")
        for name, choice in get_type_hints(type(self)).items():
            allowed = get_args(choice)
            if allowed and all(isinstance(value, str) for value in allowed) and getattr(self, name) not in allowed:
                raise ValueError(f"{name} is {getattr(self, name)!r:.80}; it must be one of {', '.join(allowed)}")
        limits: dict[str, tuple[float, float, str]] = {
            "steps": (1, 10**9, "1 or more"),
            "batch_size": (1, 10**6, "1 or more"),
            "evaluations": (1, 10**4, "from 1 to 10,000"),
            "snapshots": (0, 64, "from 0, none, to 64"),
            "seed": (0, 2**63 - 1, "0 or more"),
        }
        for name, (least, most, must) in limits.items():
            value = getattr(self, name)
            is_whole = _is_number(value) and isinstance(value, int) and least <= value <= most
            if not (is_whole or (name == "steps" and value is None)):
                raise ValueError(f"{name} is {value!r:.80}; it must be a whole number, {must}")
        shares = {"warmup": "a share of the run", "beta1": "a share", "beta2": "a share"}
        for name, what in shares.items():
            if not (_is_number(getattr(self, name)) and 0 <= getattr(self, name) < 1):
                raise ValueError(f"{name} is {getattr(self, name)!r:.80}; it must be {what}, from 0 up to, not including, 1")
        for name in ("minutes", "learning_rate"):
            value = getattr(self, name)
            if not ((_is_number(value) and value > 0) or (name == "minutes" and value is None)):
                raise ValueError(f"{name} is {value!r:.80}; it must be more than 0")
        for name in ("final_rate", "weight_decay", "clip"):
            if not (_is_number(getattr(self, name)) and getattr(self, name) >= 0):
                raise ValueError(f"{name} is {getattr(self, name)!r:.80}; it must be 0 or more")

    def rate(self, progress: float) -> float:
        """The learning rate at `progress`, from 0 at the beginning to 1 at the end."""
        if progress < self.warmup:
            return self.learning_rate * progress / self.warmup
        fallen = (progress - self.warmup) / (1 - self.warmup)
        left = {"cosine": (1 + math.cos(math.pi * fallen)) / 2, "linear": 1 - fallen, "constant": 1.0}[self.schedule]
        return self.learning_rate * (self.final_rate + (1 - self.final_rate) * left)

    def keeps(self, step: int) -> bool:
        """Whether a snapshot is kept after `step` steps: the first, then `snapshots` for every doubling, evenly in its log."""
        if not self.snapshots or step < 1:
            return bool(self.snapshots) and step == 0
        nearest = round(self.snapshots * math.log2(step))
        return any(round(2 ** (i / self.snapshots)) == step for i in (nearest - 1, nearest, nearest + 1))

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Recipe:
        """A recipe from JSON values.

        Raises:
            ValueError: a field is unknown or impossible; the message names it.
        """
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise ValueError(f"unknown setting {unknown[0]!r:.80}; known are {', '.join(sorted(known))}")
        return cls(**values)


def _is_number(value: object) -> bool:
    # Compared rather than asked for being finite: a whole number may be too large for a float.
    return isinstance(value, int | float) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST
