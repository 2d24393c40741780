"""Training, as a generator of events: whoever iterates (a command line, a page) decides what to show and when to stop."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gptviz.data.batches import NOT_COUNTED, Batch, Data
from gptviz.model import Transformer

from . import optimisers
from .distributed import World
from .evaluation import Evaluation, evaluate
from .recipe import Recipe


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
    """The model was evaluated on all held-out data after `step` steps."""

    step: int
    evaluation: Evaluation
    seconds: float

    @property
    def loss(self) -> float:
        """The validation loss in nats per token."""
        return self.evaluation.loss


Event = Stepped | Evaluated
COUNTS = ("step", "evaluated", "seconds")  # the numbers of a saved state


class DivergedError(RuntimeError):
    """The loss or its gradient is no longer a number; the message says what to change."""


def draw_seed(*what: object) -> int:
    """A seed for whatever is drawn at one place of a run: a hash, so that every place has numbers of its own.

    Nothing drawn depends on what was drawn before: a run that is stopped and resumed, or shares its process with
    another, draws the same.
    """
    return int.from_bytes(blake2b(" ".join(map(str, what)).encode(), digest_size=8).digest(), "big") >> 1


class Trainer:
    """One run: iterate over it to train `model` in place, an event after every step and evaluation.

    Stop iterating to stop training: the model then holds the weights of the last step. Iterate again, or give `state()`
    to a trainer made alike, to go on as if nothing had happened. Whenever the iteration ends, the model is in
    evaluation mode.

    Args:
        forward: the model, or what computes the same faster (the model compiled).
        bfloat16: whether matrix products run in bfloat16.
        world: the processes that train together; each reads its share of every batch.

    Attributes:
        step: how many steps were taken.
        evaluated: how many of the evaluations due were made, not counting the one before the first step.
        seconds: the time they took; evaluating, and whatever is done between two events, does not count.
    """

    def __init__(
        self,
        model: Transformer,
        data: Data,
        recipe: Recipe,
        *,
        forward: nn.Module | None = None,
        bfloat16: bool = False,
        world: World | None = None,
    ) -> None:
        self.model, self.data, self.recipe = model, data, recipe
        self.world = World() if world is None else world
        self.shard = self.world.shard(recipe.batch_size)
        self.device = model.embed.weight.device
        self.forward = self.world.share(model if forward is None else forward, self.device)
        self.autocast = torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=bfloat16)
        self.optimisers = optimisers.optimisers(model, recipe)
        self.step, self.seconds, self.evaluated = 0, 0.0, -1
        self._pace, self._timed = 0.0, 0

    def __iter__(self) -> Iterator[Event]:
        progress = self._progress()
        try:
            yield from self._evaluate_if_due(progress)
            while progress < 1:
                begun = time.perf_counter()
                rate = self.recipe.rate(progress)
                loss, norm, tokens = self.advance(rate)
                took = max(time.perf_counter() - begun, 1e-9)
                self.seconds += took
                self._timed += 1
                self._pace = took if self._timed < 3 else 0.9 * self._pace + 0.1 * took  # the first may compile
                progress = self._progress()
                left = (1 - progress) * (self.recipe.steps * self._pace if self.recipe.steps else 60 * (self.recipe.minutes or 0))
                yield Stepped(self.step, progress, loss, rate, norm, tokens / self._pace, self.seconds, left)
                yield from self._evaluate_if_due(progress)
        finally:
            self.model.eval()

    def _progress(self) -> float:
        if self.recipe.steps:
            return self.step / self.recipe.steps
        return min(self.world.broadcast(self.seconds, self.device) / (60 * (self.recipe.minutes or 1)), 1.0)

    def advance(self, rate: float = 0.0) -> tuple[float, float, int]:
        """Take one step at this learning rate; the batch's loss, the gradient's norm, and how many predictions count.

        Raises:
            DivergedError: the loss or the norm is not a number; the weights are those before the step.
        """
        batch = self.data.training(self.recipe.batch_size, draw_seed(self.recipe.seed, self.step, "batch"))
        batch = batch.rows(self.shard).to(self.device)
        torch.manual_seed(draw_seed(self.recipe.seed, self.step, "dropout", self.world.rank))
        self.model.train()  # whoever watches may have set it to evaluation
        for optimiser in self.optimisers:
            optimiser.zero_grad()
            for group in optimiser.param_groups:
                group["lr"] = rate
        loss, counted = self._loss(batch)
        loss.backward()
        norm = optimisers.clip(list(self.model.parameters()), self.recipe.clip)
        value = self.world.sum(loss.detach().clone()).item() / self.world.size
        self._still_numbers(value, norm)
        for optimiser in self.optimisers:
            optimiser.step()
        self.step += 1
        return value, norm, int(counted)

    def _loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The mean over the predictions of all processes that count, as this one's share, and their number.

        Gradients are averaged over processes, so the share is scaled up by how many there are.
        """
        counted = self.world.sum((batch.targets != NOT_COUNTED).sum())
        with self.autocast:
            logits = self.forward(*batch.inputs)  # [B, T, vocab_size], or [B, n_label]
            total = F.cross_entropy(logits.flatten(0, -2), batch.targets.flatten(), ignore_index=NOT_COUNTED, reduction="sum")
        return total * (self.world.size / counted), counted

    def _due(self, progress: float) -> int:
        return int(progress * self.recipe.evaluations + 1e-9)  # 0.58 · 100 is a little less than 58

    def _evaluate_if_due(self, progress: float) -> Iterator[Evaluated]:
        if self._due(progress) > self.evaluated:
            yield from self.evaluate()

    def evaluate(self) -> Iterator[Evaluated]:
        """The model on all held-out data now, told by the first process alone."""
        self.evaluated = self._due(self._progress())
        if self.world.is_main:
            evaluation = evaluate(self.model, self.data.validation())
            self._still_numbers(evaluation.loss)
            yield Evaluated(self.step, evaluation, self.seconds)

    def _still_numbers(self, *values: float) -> None:
        if not all(map(math.isfinite, values)):
            raise DivergedError(
                f"the loss or its gradient is no longer a number after {self.step:,} steps: "
                f"lower the learning rate ({self.recipe.learning_rate:g})"
            )

    def state(self) -> dict[str, Tensor]:
        """All that the next step depends on: weights, what the optimisers remember, the step.

        Weights and memory are those in use, no copies: the next step changes them.
        """
        weights = {f"weights.{name}": parameter.detach() for name, parameter in self.model.named_parameters()}
        memory = {f"optimiser.{name}": value for name, value in optimisers.tensors(self.optimisers).items()}
        counts = {"step": torch.tensor(self.step), "evaluated": torch.tensor(self.evaluated)}
        return weights | memory | counts | {"seconds": torch.tensor(self.seconds, dtype=torch.float64)}

    @torch.no_grad()
    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from what `state()` gave.

        Raises:
            ValueError: it is of another model or recipe.
        """
        weights = {f"weights.{name}": parameter for name, parameter in self.model.named_parameters()}
        shapes = {name: parameter.shape for name, parameter in weights.items()} | dict.fromkeys(COUNTS, torch.Size())
        if any(name not in state or state[name].shape != shape for name, shape in shapes.items()):
            raise ValueError("the saved state is of another model")
        step, evaluated, seconds = (state[name].item() for name in COUNTS)
        are_numbers = isinstance(step, int) and isinstance(evaluated, int) and isinstance(seconds, float)
        if not (are_numbers and step >= 0 and 0 <= seconds < math.inf):
            raise ValueError("the saved state counts no steps and seconds")
        memory = {name.removeprefix("optimiser."): value for name, value in state.items() if name.startswith("optimiser.")}
        if step:  # before the first there is nothing to remember
            optimisers.restore(self.optimisers, memory)
        for name, parameter in weights.items():
            parameter.copy_(state[name])
        self.step, self.evaluated, self.seconds = int(step), int(evaluated), seconds
