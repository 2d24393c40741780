"""Training as a generator of events: its caller (the command line, a page) decides what to show and
when to stop.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gptviz.data.batches import NOT_COUNTED, Batch, Data, spread
from gptviz.data.trained_on import draw_seed
from gptviz.model import Transformer

from . import optimisers
from .balance import Imbalance
from .distributed import World
from .divergence import DivergedError, advice
from .evaluation import Evaluation, evaluate
from .recipe import Recipe
from .smoothing import nearby_targets
from .sparsity import keep_largest


@dataclass(frozen=True)
class Stepped:
    """A step was taken."""

    step: int  #: the number of steps taken so far
    progress: float  #: the share of the run that is done, from 0 to 1
    loss: float  #: the loss of the batch, in nats per token
    learning_rate: float  #: the learning rate of the step
    gradient_norm: float  #: the norm of all gradients, before clipping
    tokens_per_second: float  #: the speed of training
    seconds: float  #: the time that training has taken so far
    seconds_left: float  #: the time that the rest of the run is expected to take


@dataclass(frozen=True)
class Evaluated:
    """The model was evaluated on held-out data."""

    step: int  #: the number of steps taken so far
    evaluation: Evaluation  #: its loss and accuracy
    seconds: float  #: the time that training has taken so far
    rows: int  #: the number of held-out rows that it was evaluated on
    share: float  #: their share of all that is held out
    #: how good the model is on as many rows that it was trained on, or None if no row is trained on
    #: twice
    training: Evaluation | None = None

    @property
    def loss(self) -> float:
        """The validation loss in nats per token."""
        return self.evaluation.loss


Event = Stepped | Evaluated
# While a run goes on, it evaluates at most one row for ten that it trains on. Evaluating a row
# takes less time than training on it, so that this also limits the share of the time. Rows are
# counted, not seconds, so that a run that is resumed evaluates the same rows as one that was not
# stopped.
EVALUATED_PER_TRAINED = 0.1
COUNTS = ("step", "evaluated", "seconds")  # the numbers of a saved state


def evaluated_rows(recipe: Recipe, steps: int, evaluations: int) -> int:
    """How many rows each of `evaluations` evaluations may read, evenly over `steps` steps."""
    return int(EVALUATED_PER_TRAINED * recipe.batch_size * steps / max(evaluations, 1))


class Trainer:
    """Trains `model` in place while it is iterated over, and yields an event after every step and
    evaluation.

    Training stops when the iteration stops; the model then has the weights of the last step. To
    resume exactly, iterate again, or pass `state()` to `restore` of a trainer with the same
    arguments. Whenever the iteration ends, the model is in evaluation mode.

    Args:
        data: the batches to train on and the held-out batches.
        forward: the compiled model, which computes the same; default: the model itself.
        bfloat16: whether matrix products run in bfloat16.
        world: the processes that train together; each reads its share of every batch.
        between: called between the batches of an evaluation. An error that it raises ends the
        evaluation, which is then still due.
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
        between: Callable[[], None] = lambda: None,
    ) -> None:
        self.model = model
        self.data = data
        self.recipe = recipe
        self.between = between
        self.world = World() if world is None else world
        self.shard = self.world.shard(recipe.batch_size)
        self.device = model.embed.weight.device
        self.forward = self.world.share(model if forward is None else forward, self.device)
        self.autocast = torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=bfloat16)
        self.optimisers = optimisers.optimisers(model, recipe)
        nearby = nearby_targets(model.config, recipe.label_smoothing)
        self.nearby = None if nearby is None else nearby.to(self.device)  # [n_label, n_label]
        self.step = 0  #: the number of steps taken
        #: the time the steps took, without evaluations and without the time between two events
        self.seconds = 0.0
        #: the number of due evaluations that were made, not counting the one before the first step
        self.evaluated = -1
        self._pace = 0.0
        self._timed = 0

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
                # the first may compile
                if self._timed < 3:
                    self._pace = took
                else:
                    self._pace = 0.9 * self._pace + 0.1 * took
                progress = self._progress()
                left = (1 - progress) * (
                    self.recipe.steps * self._pace
                    if self.recipe.steps
                    else 60 * (self.recipe.minutes or 0)
                )
                yield Stepped(
                    self.step, progress, loss, rate, norm, tokens / self._pace, self.seconds, left
                )
                yield from self._evaluate_if_due(progress)
        finally:
            self.model.eval()

    def _progress(self) -> float:
        if self.recipe.steps:
            return self.step / self.recipe.steps
        return min(
            self.world.broadcast(self.seconds, self.device) / (60 * (self.recipe.minutes or 1)), 1.0
        )

    def advance(self, rate: float = 0.0) -> tuple[float, float, int]:
        """Take one step at the learning rate `rate`.

        Returns the loss of the batch in nats per token, the norm of the gradient, and the number of
        predictions that count.

        Raises:
            DivergedError: the loss or the norm is not a finite number; the weights are still those
                before the step.
        """
        batch = self.data.training(
            self.recipe.batch_size, draw_seed(self.recipe.seed, self.step, "batch")
        )
        batch = batch.rows(self.shard).to(self.device)
        torch.manual_seed(draw_seed(self.recipe.seed, self.step, "dropout", self.world.rank))
        self.model.train()  # the caller may have set it to evaluation mode
        for optimiser in self.optimisers:
            optimiser.zero_grad()
            for group in optimiser.param_groups:
                group["lr"] = rate
        loss, counted = self._loss(batch)
        loss.backward()
        norm = optimisers.clip(list(self.model.parameters()), self.recipe.clip)
        value = self.world.sum(loss.detach().clone()).item() / self.world.size
        self._check_finite(value, norm)
        for optimiser in self.optimisers:
            optimiser.step()
        self.step += 1
        if self.recipe.keep_weights < 1:
            keep_largest(self.model, self.recipe.kept_share(self._progress()))
        return value, norm, int(counted)

    def _loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """This process's part of the mean loss over the counted predictions of all processes, and
        the number of these.

        The part is multiplied by the number of processes, since gradients are averaged over them.
        What keeps experts equally busy is added.
        """
        counted = self.world.sum((batch.targets != NOT_COUNTED).sum())
        # Only where it is asked for: a tap is not free.
        balances = self.recipe.expert_balance > 0 and self.model.config.experts > 0
        busy = Imbalance(self.model.config.n_active) if balances else None
        watched = {} if busy is None else {"tap": busy}
        with self.autocast:
            logits = self.forward(*batch.inputs, **watched)  # [B, T, vocab_size], or [B, n_label]
            answers = logits.flatten(0, -2)
            targets = batch.targets.flatten()
            if self.nearby is not None:
                total = F.cross_entropy(answers, self.nearby[targets], reduction="sum")
            else:
                smoothing = self.recipe.label_smoothing
                total = F.cross_entropy(
                    answers,
                    targets,
                    ignore_index=NOT_COUNTED,
                    reduction="sum",
                    label_smoothing=smoothing,
                )
        loss = total * (self.world.size / counted)
        return (loss if busy is None else loss + self.recipe.expert_balance * busy.total), counted

    def _due_step(self, progress: float) -> int:
        return int(progress * self.recipe.evaluations + 1e-9)  # 0.58 · 100 is a little less than 58

    def _evaluate_if_due(self, progress: float) -> Iterator[Evaluated]:
        if self._due_step(progress) > self.evaluated:
            yield from self.evaluate()

    def evaluate(self, *, everything: bool = False) -> Iterator[Evaluated]:
        """Evaluate the model on held-out data now. Only the main process does so and yields the
        event.

        `everything` reads all held-out rows, as at the end of a run; otherwise as many as
        `evaluated_rows` allows are read. A `DivergedError` if the loss is not a finite number.
        """
        progress = self._progress()
        due = self._due_step(progress)
        if self.world.is_main:
            event = self._evaluation(due, everything or progress >= 1)
        else:
            event = None
        self.evaluated = due
        if event is not None:
            yield event

    def _evaluation(self, due: int, everything: bool) -> Evaluated:
        every = list(self.data.validation())
        total = sum(len(batch.targets) for batch in every)
        steps, evaluations = (
            (self.recipe.steps, self.recipe.evaluations) if self.recipe.steps else (self.step, due)
        )
        trained_on = list(self.data.trained_on())
        allowed = evaluated_rows(self.recipe, steps, evaluations) // (2 if trained_on else 1)
        some = every if everything else spread(every, allowed)
        rows = sum(len(batch.targets) for batch in some)
        evaluation = evaluate(self.model, self._interruptible(some))
        self._check_finite(evaluation.loss)
        if trained_on:
            again = evaluate(self.model, self._interruptible(spread(trained_on, rows)))
        else:
            again = None
        return Evaluated(self.step, evaluation, self.seconds, rows, rows / total, again)

    def _interruptible(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        for batch in batches:
            self.between()
            yield batch

    def _check_finite(self, *values: float) -> None:
        if not all(map(math.isfinite, values)):
            raise DivergedError(
                f"it diverged: the loss or its gradient is no longer a number after {self.step:,} "
                "steps. "
                f"To change: {advice(self.recipe)}"
            )

    def state(self) -> dict[str, Tensor]:
        """All that the next step depends on: weights, state of the optimisers, step; not copies,
        but the tensors in use.
        """
        weights = {
            f"weights.{name}": parameter.detach()
            for name, parameter in self.model.named_parameters()
        }
        memory = {
            f"optimiser.{name}": value
            for name, value in optimisers.tensors(self.optimisers).items()
        }
        counts = {"step": torch.tensor(self.step), "evaluated": torch.tensor(self.evaluated)}
        return (
            weights | memory | counts | {"seconds": torch.tensor(self.seconds, dtype=torch.float64)}
        )

    @torch.no_grad()
    def restore(self, state: dict[str, Tensor]) -> None:
        """Set weights, optimisers and step to a `state` of `state()`; a ValueError if it is of
        another model or recipe.
        """
        weights = {
            f"weights.{name}": parameter for name, parameter in self.model.named_parameters()
        }
        shapes = {name: parameter.shape for name, parameter in weights.items()} | dict.fromkeys(
            COUNTS, torch.Size()
        )
        if any(name not in state or state[name].shape != shape for name, shape in shapes.items()):
            raise ValueError("the saved state is of another model")
        step, evaluated, seconds = (state[name].item() for name in COUNTS)
        are_numbers = (
            isinstance(step, int) and isinstance(evaluated, int) and isinstance(seconds, float)
        )
        if not (are_numbers and step >= 0 and 0 <= seconds < math.inf):
            raise ValueError("the saved state counts no steps and seconds")
        memory = {
            name.removeprefix("optimiser."): value
            for name, value in state.items()
            if name.startswith("optimiser.")
        }
        if step:  # before the first step the optimisers have no state
            optimisers.restore(self.optimisers, memory)
        for name, parameter in weights.items():
            parameter.copy_(state[name])
        self.step = int(step)
        self.evaluated = int(evaluated)
        self.seconds = seconds
