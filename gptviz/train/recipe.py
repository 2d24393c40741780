"""The recipe of a training run: every setting except the architecture and the data."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from gptviz.settings.fields import check_choices, check_numbers, setting
from gptviz.settings.known_names import name_known

Optimiser = Literal["adamw", "adam", "sgd", "muon"]
Schedule = Literal["cosine", "linear", "constant"]
Precision = Literal["auto", "bfloat16", "float32"]

# The share of the run after which a run with few weights has as few as it ends with.
SPARSE_FROM = 0.5


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a model is trained. Give `steps`, or `minutes`, after which training ends at any step.

    The learning rate rises linearly over the first `warmup` share of the run to `learning_rate`,
    then falls to `final_rate` of it along a cosine or a line, or stays. Matrices decay by
    `weight_decay`, biases and gains do not. Gradients are clipped to a norm of `clip`. Each field
    says what it does: see `gptviz.settings.fields.field_infos`.

    Raises:
        ValueError: a setting no run can have; the message names it and its value.
    """

    steps: int | None = setting(
        None,
        "Steps",
        "How many times the weights are changed. A step reads one batch.",
        low=1,
        high=10**9,
    )
    minutes: float | None = setting(
        None,
        "Minutes instead",
        "Instead of a number of steps: training ends after this many minutes, at whatever step it "
        "is.",
        above=0,
    )
    batch_size: int = setting(
        16,
        "Batch size",
        "How many pieces of the data one step reads side by side. With more, training is steadier "
        "and each step takes longer.",
        low=1,
        high=10**6,
    )
    optimiser: Optimiser = setting(
        "adamw",
        "Optimiser",
        "How a gradient becomes a step. AdamW suits almost everything. Muon takes fewer steps "
        "with matrices. "
        "Adam is AdamW without its separate weight decay. SGD follows the gradient itself, and "
        "usually needs a higher "
        "learning rate.",
    )
    learning_rate: float = setting(
        2.5e-3,
        "Learning rate",
        "How far a step goes, at most. Too high: the loss jumps or explodes. Too low: it hardly "
        "falls.",
        above=0,
    )
    schedule: Schedule = setting(
        "cosine",
        "Schedule",
        "How the learning rate goes on after the warm-up: it falls along a cosine or a line, or "
        "stays constant.",
    )
    warmup: float = setting(
        0.05,
        "Warmup",
        "The share of the run in which the learning rate rises from 0, since the first gradients "
        "are unsteady.",
        low=0,
        below=1,
    )
    final_rate: float = setting(
        0.1,
        "Final rate",
        "The learning rate at the end, as a share of the highest. Small steps at the end settle "
        "the weights.",
        low=0,
    )
    weight_decay: float = setting(
        0.1,
        "Weight decay",
        "How strongly matrices are pulled towards 0 at each step, which makes learning by heart "
        "harder.",
        low=0,
    )
    label_smoothing: float = setting(
        0.0,
        "Label smoothing",
        "The share of the target probability that goes to the wrong answers, so that the model "
        "becomes "
        "less certain. If labels have an order, such as stars, nearby labels get more: each step "
        "away from the right one "
        "multiplies the share by this number. The training loss is measured with smoothing, the "
        "validation loss without.",
        low=0,
        below=1,
    )
    expert_balance: float = setting(
        0.0,
        "Balance of experts",
        "Of a mixture of experts: how strongly its routers are pushed to choose all experts "
        "equally often, as 0.01 does. 0 never "
        "pushes. The training loss is measured with it, the validation loss without.",
        low=0,
    )
    keep_weights: float = setting(
        1.0,
        "Weights kept",
        "The share of the weights that is kept in each matrix: after each step all others, the "
        "smallest, become 0. It falls from 1 over the first half of the run. With few weights what "
        "a model computes can be followed from weight to weight; it needs more steps. 1 keeps all.",
        above=0,
        high=1,
    )
    lora_rank: int = setting(
        0,
        "LoRA rank",
        "0 trains all weights. Any other number leaves the weights of the model that the run "
        "begins with as they are, and trains "
        "a small adapter beside each matrix of its blocks: two factors of this rank. Only the "
        "adapter is saved, and it needs "
        "that model to be opened.",
        low=0,
        high=10**4,
    )
    beta1: float = setting(
        0.9,
        "Beta 1",
        "How much of the running mean of gradients is kept from step to step (Adam), or how much "
        "of the momentum (SGD, Muon).",
        low=0,
        below=1,
    )
    beta2: float = setting(
        0.99,
        "Beta 2",
        "How much of the running mean of squared gradients is kept (Adam): higher is steadier, "
        "but slower to notice a change.",
        low=0,
        below=1,
    )
    clip: float = setting(
        1.0,
        "Clip gradients at",
        "Gradients longer than this are shortened to it, so that one odd batch does no harm. 0 "
        "never shortens.",
        low=0,
    )
    precision: Precision = setting(
        "auto",
        "Precision",
        "The kind of number in which matrices are multiplied. bfloat16 is faster where the "
        "processor has it; “auto” tries both.",
    )
    compile: Literal["auto", "yes", "no"] = setting(
        "auto",
        "Compile",
        "Whether torch.compile first turns the model into machine code. That takes about half a "
        "minute, which long runs win "
        "back.",
    )
    evaluations: int = setting(
        10,
        "Evaluations",
        "How often the loss on held-out data is computed, evenly over the run.",
        low=1,
        high=10**4,
    )
    snapshots: int = setting(
        3,
        "Snapshots per doubling",
        "How many snapshots of the weights are kept each time the number of steps doubles, to "
        "move through with the slider: "
        "3 keeps steps 1, 2, 3, 4, 5, 6, 8, 10, 13 …",
        low=0,
        high=64,
    )
    seed: int = setting(
        0,
        "Seed",
        "Decides the first weights, the batches and the dropout: the same seed gives the same "
        "curve, up to rounding.",
        low=0,
        high=2**63 - 1,
    )

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.minutes is None):
            raise ValueError("give a number of steps or of minutes, and not both")
        check_choices(self)
        check_numbers(self)

    def rate(self, progress: float) -> float:
        """The learning rate at `progress`, from 0 at the beginning to 1 at the end."""
        if progress < self.warmup:
            return self.learning_rate * progress / self.warmup
        fallen = (progress - self.warmup) / (1 - self.warmup)
        left = {
            "cosine": (1 + math.cos(math.pi * fallen)) / 2,
            "linear": 1 - fallen,
            "constant": 1.0,
        }[self.schedule]
        return self.learning_rate * (self.final_rate + (1 - self.final_rate) * left)

    def kept_share(self, progress: float) -> float:
        """The share of weights kept at `progress`, from 0 at the beginning to 1 at the end."""
        return self.keep_weights ** min(1.0, progress / SPARSE_FROM)

    def saves_snapshot(self, step: int) -> bool:
        """Whether a snapshot is saved after `step` steps: the first, then `snapshots` for every
        doubling, evenly in the log.
        """
        if not self.snapshots or step < 1:
            return bool(self.snapshots) and step == 0
        nearest = round(self.snapshots * math.log2(step))
        return any(
            round(2 ** (i / self.snapshots)) == step for i in (nearest - 1, nearest, nearest + 1)
        )

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Recipe:
        """A recipe from JSON values; a ValueError names a field that is unknown or impossible."""
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise ValueError(
                f"unknown setting {unknown[0]!r:.80}{name_known(unknown[0], sorted(known))}"
            )
        return cls(**values)
