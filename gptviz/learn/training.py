"""Training, as a generator of events: whoever iterates (a command line, a page) decides what to show and when to stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from gptviz.model import Transformer

from .evaluation import evaluate

Precision = Literal["auto", "bfloat16", "float32"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a model is trained. Give `steps`, or `minutes`, after which training ends wherever it is.

    AdamW; the learning rate rises linearly over the first `warmup` share of the run to `learning_rate`, then falls along
    a cosine to `final_rate` of it. Matrices decay by `weight_decay`, biases and gains do not. Gradients are clipped to a
    norm of `clip`.

    Attributes:
        precision: what the matrix products run in; "auto" takes bfloat16 where the processor has it.
        evaluations: how often the validation loss is computed, spread evenly over the run, the end included.

    Raises:
        ValueError: a setting no run can have; the message names it and its value.
    """

    steps: int | None = None
    minutes: float | None = None
    batch_size: int = 16
    learning_rate: float = 2.5e-3
    warmup: float = 0.05
    final_rate: float = 0.1
    weight_decay: float = 0.1
    betas: tuple[float, float] = (0.9, 0.99)
    clip: float = 1.0
    precision: Precision = "auto"
    evaluations: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.minutes is None):
            raise ValueError("give a number of steps or of minutes, and not both")
        if self.steps is not None and self.steps < 1:
            raise ValueError(f"steps is {self.steps}; it must be 1 or more")
        if self.minutes is not None and not 0 < self.minutes < float("inf"):
            raise ValueError(f"minutes is {self.minutes}; it must be more than 0")
        if not 0 <= self.warmup < 1:
            raise ValueError(f"warmup is {self.warmup}; it must be a share of the run, from 0 up to, not including, 1")
        if self.batch_size < 1:
            raise ValueError(f"batch_size is {self.batch_size}; it must be 1 or more")
        if not 0 < self.learning_rate < float("inf"):
            raise ValueError(f"learning_rate is {self.learning_rate}; it must be more than 0")

    def rate(self, progress: float) -> float:
        """The learning rate at `progress`, from 0 at the beginning to 1 at the end."""
        if progress < self.warmup:
            return self.learning_rate * progress / self.warmup
        fall = (progress - self.warmup) / (1 - self.warmup)
        return self.learning_rate * (self.final_rate + (1 - self.final_rate) * (1 + math.cos(math.pi * fall)) / 2)


@dataclass(frozen=True)
class Stepped:
    """A step was taken. Losses are in nats per token, times in seconds."""

    step: int
    progress: float
    loss: float
    learning_rate: float
    gradient_norm: float
    tokens_per_second: float
    seconds: float
    seconds_left: float


@dataclass(frozen=True)
class Evaluated:
    """The validation loss, over the whole validation text, after `step` steps."""

    step: int
    loss: float
    seconds: float


Event = Stepped | Evaluated


class Diverged(RuntimeError):  # noqa: N818
    """The loss or its gradient is no longer a number; the message says what to change."""


def batches(ids: Tensor, context: int, batch_size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Windows [batch_size, context + 1] at random places of `ids` [N]: all but the last token predict all but the first.

    Raises:
        ValueError: the text is shorter than one window.
    """
    if len(ids) <= context:
        raise ValueError(f"the text has {len(ids):,} tokens to train on; a context of {context} needs at least {context + 1}")
    windows = ids.unfold(0, context + 1, 1)  # [N - context, context + 1], a view
    while True:
        yield windows[torch.randint(len(windows), (batch_size,), generator=generator)]


def use_bfloat16(precision: Precision, device: torch.device) -> bool:
    """Whether to multiply in bfloat16: as asked, or where this processor has it in hardware."""
    if precision != "auto":
        return precision == "bfloat16"
    if device.type == "cpu":
        return torch.cpu.get_capabilities().get("avx512_bf16", False)
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def optimiser(model: Transformer, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW, fused: on two cores its step takes a third of the default's time."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": recipe.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    fused = next(model.parameters()).device.type in ("cpu", "cuda")
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=recipe.betas, fused=fused)


def train(
    model: Transformer,
    training: Tensor,
    validation: Tensor,
    recipe: Recipe,
    *,
    forward: Callable[[Tensor], Tensor] | None = None,
) -> Iterator[Event]:
    """Train `model` in place on the token ids `training` [N], yielding an event after every step and evaluation.

    `forward` may be the model compiled; it must compute what the model computes.

    Stop iterating to stop training: the model then holds the weights of the last step. Whenever the iteration ends, the
    model is in evaluation mode.

    Raises:
        ValueError: a text to train on no longer than the context, or one to validate of fewer than two tokens.
        Diverged: the loss, on either text, or its gradient is not a number any more.
    """
    if len(validation) < 2:
        raise ValueError(f"the text to validate has {len(validation)} tokens; it needs at least 2")
    device = model.embed.weight.device
    context = model.config.context_length
    step_forward = model if forward is None else forward
    torch.manual_seed(recipe.seed)  # dropout
    data = batches(training, context, recipe.batch_size, torch.Generator().manual_seed(recipe.seed))
    adam = optimiser(model, recipe)
    autocast = torch.autocast(device.type, dtype=torch.bfloat16, enabled=use_bfloat16(recipe.precision, device))
    begun, step, progress, evaluated, paused = time.perf_counter(), 0, 0.0, 0, 0.0
    try:
        while progress < 1:
            model.train()  # whoever watches may have set it to evaluation
            window = next(data).to(device, non_blocking=True)  # [B, T + 1]
            rate = recipe.rate(progress)
            for group in adam.param_groups:
                group["lr"] = rate
            with autocast:
                logits = step_forward(window[:, :-1])  # [B, T, vocab_size]
                loss = F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())
            adam.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip).item()
            value = loss.item()
            _still_numbers(value, norm, step=step, recipe=recipe)
            adam.step()
            step += 1
            # Evaluating and whatever the iterating side does between events is not training time.
            yielded = time.perf_counter()
            seconds = max(yielded - begun - paused, 1e-9)
            progress = step / recipe.steps if recipe.steps else min(seconds / (60 * (recipe.minutes or 1)), 1.0)
            tokens_per_second = step * window[:, 1:].numel() / seconds
            yield Stepped(step, progress, value, rate, norm, tokens_per_second, seconds, seconds / progress - seconds)
            if int(progress * recipe.evaluations) > evaluated:
                evaluated = int(progress * recipe.evaluations)
                validation_loss = evaluate(model, validation)[0]
                _still_numbers(validation_loss, step=step, recipe=recipe)
                yield Evaluated(step, validation_loss, seconds)
            paused += time.perf_counter() - yielded
    finally:
        model.eval()


def _still_numbers(*values: float, step: int, recipe: Recipe) -> None:
    if not all(map(math.isfinite, values)):
        raise Diverged(
            f"the loss or its gradient is no longer a number after {step:,} steps: "
            f"lower the learning rate ({recipe.learning_rate:g})"
        )
