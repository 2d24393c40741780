"""An estimate of the cost of a run before it begins: parameters, arithmetic, memory, disk and time.

Memory is found by following one step on torch's meta device, where tensors have a shape and no
content, and arithmetic by `gptviz.model.costs.operations`, or, where only an adapter is trained, by
torch's counter in the same step: so both hold for every architecture, and nothing is allocated. The
time is computed from three numbers of the step (products, bytes written, operations) and three
speeds of this machine, which a short probe measures.
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from gptviz.data.batches import EVALUATION_TOKENS, Batch
from gptviz.machine.memory import FLOAT32, MOST_OF_MEMORY, in_bytes
from gptviz.model import Config, Transformer, build, parameter_count
from gptviz.model.builder import lay_out
from gptviz.model.costs.operations import flops
from gptviz.model.devices import may_bfloat16
from gptviz.model.lora import AdaptedTransformer, every_matrix

from .evaluation import MOST_LOGITS
from .optimisers import block_matrices, optimiser_numbers, trained_shapes
from .recipe import Recipe
from .trainer import Trainer, evaluated_rows

# The memory that Python and torch take themselves.
PROCESS = 300 * 2**20


@dataclass(frozen=True)
class PassCost:
    """The cost of one pass."""

    flops: float  #: operations of its matrix products
    bytes: float  #: the bytes that it writes into new tensors
    operations: float  #: the number of tensors that it makes
    peak: float  #: the most bytes that live at once, weights not counted


@dataclass(frozen=True)
class Speed:
    """How fast a machine is when it has nothing else to do."""

    flops: float  #: operations of matrix products a second
    bytes: float  #: bytes that other operations write a second
    overhead: float  #: seconds per operation
    #: the same with products in bfloat16, or None if the machine has no hardware for it
    bfloat16: Speed | None = None
    #: the factor by which other work on the machine slowed the steps while this was measured
    slowdown: float = 1.0

    def seconds(self, work: PassCost) -> float:
        """The seconds that `work` takes in float32."""
        return work.flops / self.flops + work.bytes / self.bytes + work.operations * self.overhead

    def seconds_of_step(self, work: PassCost, recipe: Recipe) -> float:
        """The seconds that a step of `recipe` takes, in the precision that it will be trained
        in.
        """
        ways = {
            "float32": [self],
            "bfloat16": [self.bfloat16 or self],
            "auto": [self, self.bfloat16 or self],
        }
        return min(way.seconds(work) for way in ways[recipe.precision])

    def or_faster(self, other: Speed) -> Speed:
        """The result of two measurements of one machine: the faster speed, and how busy it was in
        the second one.
        """
        overhead = min(self.overhead, other.overhead)
        flops = max(self.flops, other.flops)
        if self.bfloat16 and other.bfloat16:
            bfloat16 = self.bfloat16.or_faster(other.bfloat16)
        else:
            bfloat16 = None
        return Speed(flops, max(self.bytes, other.bytes), overhead, bfloat16, other.slowdown)


UNMEASURED = Speed(1.0, 1.0, 0.0)  # for estimates that are only of memory


@dataclass(frozen=True)
class Estimate:
    """The expected cost of a run. Memory and disk are in bytes, times in seconds."""

    parameters: int  #: the number of weights of the model
    trained: int  #: the number of those that are trained; for an adapter, the numbers that it adds
    flops: float  #: operations of the matrix products of one step, forward and backward
    weights: int  #: memory of the weights
    optimiser: int  #: memory of the optimiser's state
    #: the most memory that one step takes in addition to these two, with gradients and logits
    activations: int
    #: the part of `activations` that the model's output takes: [B, T, vocab_size], for a classifier
    #: [B, n_label]
    logits: int
    memory: int  #: the most memory that the whole process has at once
    snapshots: int  #: the number of snapshots
    disk: int  #: the size of the run's files
    seconds_per_step: float  #: the time of a step if the machine has nothing else to do
    seconds: float  #: the time of the whole run, under the same condition
    #: the factor by which the run is slower if the machine stays as busy as when its speed was
    #: measured
    slowdown: float = 1.0


def estimate(
    config: Config, recipe: Recipe, speed: Speed, *, tokens: int | None = None, held_out: int = 0
) -> Estimate:
    """The cost of training a model of `config` by `recipe` on a machine of this `speed`, with so
    many `tokens` in a row of a batch, by default the context, and so many `held_out`, all of which
    the last evaluation reads.
    """
    tokens = config.context_length if tokens is None else tokens
    parameters = parameter_count(config)
    trained = sum(map(math.prod, trained_shapes(config, recipe).values()))
    added = trained if recipe.lora_rank else 0
    weights = FLOAT32 * (parameters + added)
    optimiser = FLOAT32 * optimiser_numbers(config, recipe)
    products = step_work(config, recipe.batch_size, tokens, recipe.lora_rank)
    if recipe.optimiser == "muon":
        matrices = block_matrices(config, recipe)
    else:
        matrices = []
    sizes = [(min(shape), max(shape)) for shape in matrices]
    # Muon adds five steps of Newton and Schulz for each matrix (Jordan 2024).
    orthogonalising = sum(5 * (4.0 * low * low * high + 2.0 * low**3) for low, high in sizes)
    step = replace(products, flops=products.flops + orthogonalising)
    evaluation = evaluation_work(config, tokens)
    seconds_per_step = speed.seconds_of_step(step, recipe)
    if recipe.steps:
        steps = recipe.steps
        seconds = recipe.steps * seconds_per_step
    else:
        seconds = 60 * (recipe.minutes or 0)
        steps = max(1, int(seconds / seconds_per_step))
    read = min(
        held_out, max(EVALUATION_TOKENS, tokens * evaluated_rows(recipe, steps, recipe.evaluations))
    )
    evaluating = (
        speed.seconds(evaluation) * (recipe.evaluations * read + held_out) / EVALUATION_TOKENS
    )
    snapshots = snapshot_count(recipe, steps)
    # gradients, and the state once more while it is brought to the disk
    written = weights + FLOAT32 * trained + optimiser
    return Estimate(
        parameters=parameters,
        trained=trained,
        flops=products.flops,
        weights=weights,
        optimiser=optimiser,
        activations=int(step.peak),
        logits=FLOAT32 * recipe.batch_size * (config.n_label or tokens * config.vocab_size),
        memory=int(
            PROCESS + weights + optimiser + max(step.peak, evaluation.peak + weights, written)
        ),
        snapshots=snapshots,
        disk=(snapshots + 2) * FLOAT32 * trained + optimiser,
        seconds_per_step=seconds_per_step,
        seconds=seconds + evaluating,
        slowdown=speed.slowdown if recipe.steps else 1.0,
    )


def evaluation_work(config: Config, tokens: int) -> PassCost:
    """An evaluation of `EVALUATION_TOKENS` tokens. Its peak of memory is at most what one block and
    the head write.
    """
    rows = max(1, EVALUATION_TOKENS // tokens)
    forward = step_work(config, rows, tokens, backward=False)
    once = step_work(replace(config, n_layer=min(config.n_layer, 1)), rows, tokens, backward=False)
    at_once = min(1.0, MOST_LOGITS / (config.vocab_size * tokens * rows))
    return replace(forward, peak=once.bytes * at_once)


def step_work(
    config: Config, rows: int, tokens: int, rank: int = 0, *, backward: bool = True
) -> PassCost:
    """One step of training over `rows` of `tokens`, without the optimiser, or its forward pass
    only.

    With a rank, only an adapter is trained: there are no gradients of the other weights.
    """
    if config.n_layer <= 2:
        work = _follow_pass(config, rows, tokens, rank, backward)
    else:  # each block after the second writes what the second writes
        few = (
            _follow_pass(replace(config, n_layer=blocks), rows, tokens, rank, backward)
            for blocks in (1, 2)
        )
        first, second = (np.array(astuple(work)) for work in few)
        work = PassCost(*(second + (config.n_layer - 2) * (second - first)).tolist())
    if rank:
        return work
    forward, step = flops(config, rows, tokens)
    return replace(work, flops=step if backward else forward)


class Follow(TorchDispatchMode):
    """Counts the tensors made, their bytes, and how many of these live at once; views of `known`
    tensors are not counted.
    """

    def __init__(self, known: Iterable[Tensor] = ()) -> None:
        super().__init__()
        self.operations = self.bytes = self.live = self.peak = 0
        self._known = {tensor.untyped_storage()._cdata for tensor in known}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        fresh = 0
        for tensor in made if isinstance(made, tuple | list) else (made,):
            if (
                isinstance(tensor, Tensor)
                and (storage := tensor.untyped_storage())._cdata not in self._known
            ):
                self._known.add(storage._cdata)
                weakref.finalize(storage, self._forget, storage._cdata, storage.nbytes())
                fresh += storage.nbytes()
        if fresh:
            self.operations += 1
            self.bytes += fresh
            self.live += fresh
            self.peak = max(self.peak, self.live)
        return made

    def _forget(self, which: int, size: int) -> None:
        self._known.discard(which)
        self.live -= size


@lru_cache(maxsize=256)
def _follow_pass(config: Config, rows: int, tokens: int, rank: int, backward: bool) -> PassCost:
    """The work of a step, or of its forward pass, as a pass on the meta device shows it, with an
    adapter's products.
    """
    with torch.device("meta"):
        model = _train_only(lay_out(config), rank).train()
        ids = torch.zeros(rows, tokens, dtype=torch.long)
    counter = FlopCounterMode(display=False)
    with counter if rank else nullcontext(), Follow() as follow:
        logits = model(ids, ids if config.n_encoder_layer else None)
        if backward and logits.requires_grad:  # without blocks an adapter has nothing to change
            targets = torch.zeros(logits.shape[:-1], dtype=torch.long, device="meta")
            F.cross_entropy(logits.flatten(0, -2), targets.flatten(), reduction="sum").backward()
    return PassCost(counter.get_total_flops(), follow.bytes, follow.operations, follow.peak)


def _train_only(model: Transformer, rank: int) -> Transformer:
    """The model; with a rank, only a LoRA adapter of that rank is trained."""
    if rank:
        return AdaptedTransformer(model, every_matrix(model.config, rank))
    return model


def snapshot_count(recipe: Recipe, steps: int) -> int:
    """The number of snapshots of a run of `steps` steps: those of `Recipe.keeps`, of the start and
    of the end.
    """
    if not recipe.snapshots:
        return 0
    # 2^(i / snapshots), rounded, without steps after the end of the run.
    rounded = (
        round(2 ** (i / recipe.snapshots))
        for i in range(int(recipe.snapshots * math.log2(max(steps, 1))) + 2)
    )
    return len({0, steps, *(step for step in rounded if step <= steps)})


# Three small models: the first spends most of its time on operations, the second on bytes, the
# third on products.
_PROBES: Sequence[tuple[Config, int]] = (
    (Config(vocab_size=20, context_length=16, d_model=16, n_layer=2, n_head=2), 2),
    (Config(vocab_size=64, context_length=128, d_model=32, n_layer=1, n_head=4, d_mlp=0), 8),
    (Config(vocab_size=64, context_length=64, d_model=384, n_layer=1, n_head=6), 4),
)
# seconds and steps, each
_PROBED = 0.1
_FEWEST = 5
_MOST_PROBED = 1.0  # seconds


def measure(device: torch.device | str = "cpu") -> Speed:
    """The speed of training on `device`: some steps of three small models, about half a second,
    longer on a busy machine.

    The fastest step of each counts. On a machine with other work, most steps wait for a processor:
    on two cores that eight processes shared, the median step took fifty times as long as the
    fastest.
    """
    device = torch.device(device)
    speed = _measure_speed(device, bfloat16=False)
    if may_bfloat16(device):
        return replace(speed, bfloat16=_measure_speed(device, bfloat16=True))
    return speed


def _measure_speed(device: torch.device, bfloat16: bool) -> Speed:
    times = [
        _step_times(config, Recipe(steps=1, batch_size=rows), device, bfloat16)
        for config, rows in _PROBES
    ]
    works = [step_work(config, rows, config.context_length) for config, rows in _PROBES]
    # [probe, kind of work]
    amounts = np.array([[work.operations, work.bytes, work.flops] for work in works], float)
    fastest = np.array([taken.min() for taken in times])  # [probe]
    # The seconds [kind] that a unit of each kind of work takes. Probe i does mostly work of kind i,
    # and gives the price of this kind once the time of its other work is subtracted, again and
    # again. At least a quarter of the time stays, so that noise makes no speed infinite or
    # negative, which could happen if the equations were solved at once.
    own = amounts.diagonal()
    prices = fastest / own
    for _ in range(20):
        for kind in range(len(own)):
            others = amounts[kind] @ prices - own[kind] * prices[kind]
            prices[kind] = max(fastest[kind] - others, fastest[kind] / 4) / own[kind]
    overhead, per_byte, per_flop = prices.tolist()
    slowdown = float(np.median([taken.mean() / taken.min() for taken in times]))
    return Speed(1 / per_flop, 1 / per_byte, overhead, slowdown=slowdown)


class _Noise:
    """Batches of random tokens; a step takes the same time as with any others."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def training(self, size: int, seed: int) -> Batch:
        config = self.config
        ids = torch.randint(config.vocab_size, (size, config.context_length + 1))
        if config.padding is not None:  # a text of nothing but padding has no loss
            ids[ids == config.padding] = (config.padding + 1) % config.vocab_size
        if config.kind == "classifier":
            return Batch((ids[:, :-1],), torch.randint(config.n_label, (size,)))
        read = (ids[:, :-1], ids[:, 1:]) if config.n_encoder_layer else (ids[:, :-1],)
        return Batch(read, ids[:, 1:])

    def validation(self) -> Sequence[Batch]:
        return ()

    def trained_on(self) -> Sequence[Batch]:
        return ()


def _step_times(
    config: Config, recipe: Recipe, device: torch.device, bfloat16: bool
) -> npt.NDArray[np.float64]:
    """The seconds of some steps: as many as `_PROBED` seconds hold, or `_FEWEST`, but no more than
    `_MOST_PROBED` seconds.
    """
    trainer = Trainer(
        _train_only(build(config, seed=0, device=device), recipe.lora_rank),
        _Noise(config),
        recipe,
        bfloat16=bfloat16,
    )
    trainer.advance()  # warms up
    taken: list[float] = []
    while not taken or (
        sum(taken) < _MOST_PROBED and (sum(taken) < _PROBED or len(taken) < _FEWEST)
    ):
        begun = time.perf_counter()
        trainer.advance()  # ends by reading the loss, so that a GPU has finished
        taken.append(time.perf_counter() - begun)
    return np.array(taken)


def refusal(estimated: Estimate, free: int) -> str | None:
    """The reason why a run must not begin with `free` bytes of memory, and what to change, or None
    if it may begin.
    """
    if estimated.memory <= MOST_OF_MEMORY * free:
        return None
    return (
        f"a step would need about {in_bytes(estimated.memory)} of memory, and {in_bytes(free)} is "
        "free: "
        "take a smaller batch, a shorter context or a smaller model"
    )
