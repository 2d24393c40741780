"""The waves that a model of sums on a clock is made of: how much of what it computes follows each
frequency.

A column of numbers, one for each of the numbers 0 to p − 1, is a sum of waves cos(2π k n / p) and
sin(2π k n / p) and a constant. A model that adds modulo p can place its numbers on a few such
waves, and add angles. Source: Nanda et al. 2023, arXiv:2301.05217.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.func import functional_call

from gptviz.labelled_array import Axis, LabelledArray, number_axis
from gptviz.model import Transformer
from gptviz.model.tap import Watch
from gptviz.text.datasets.tasks import Modular

SHARE = "share of the variance"
# The frequencies that a model uses are those that hold together at least this share of its logits.
USED = 0.95
NEURONS = "blocks.0.mlp.neurons"


class ClockWaves(NamedTuple):
    """What a model of sums on a clock makes of waves."""

    powers: LabelledArray  #: the share of each frequency [part, frequency]
    used: tuple[int, ...]  #: the frequencies that it uses
    #: the share of all sums that are right: as it is, with only the used frequencies, and without
    #: them
    right: tuple[float, float, float]


def waves(p: int) -> npt.NDArray[np.float64]:
    """The waves [frequency, 2, p] of frequencies 1 to p // 2, cosine and sine of length 1; for an
    even p the last sine is 0.
    """
    angles = 2 * np.pi / p * np.outer(np.arange(1, p // 2 + 1), np.arange(p))  # [frequency, p]
    both = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    both[np.abs(both) < 1e-12] = 0.0
    lengths = np.linalg.norm(both, axis=-1, keepdims=True)
    return np.divide(both, lengths, out=np.zeros_like(both), where=lengths > 0)


def power(columns: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The share of each frequency [frequency] in the variance of columns [p, n] over their rows; 0
    where nothing varies.
    """
    # [frequency]
    squares = np.square(np.einsum("kcp,pn->kcn", waves(len(columns)), columns)).sum((1, 2))
    if squares.sum() > 0:
        return squares / squares.sum()
    return squares


def _questions(model: Transformer, task: Modular) -> Tensor:
    """All sums [p², 4], up to their equals sign: the second number changes fastest."""
    every = np.arange(task.modulus**2)
    ids = task.solve_pairs(np.stack(np.divmod(every, task.modulus), axis=1)).ids[:, :-1]
    return torch.from_numpy(ids).to(model.embed.weight.device)


@torch.no_grad()
def _compute_all(
    model: Transformer, task: Modular
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64] | None]:
    """The logits of the numbers [p², p] after the equals sign, and the neurons there [p², d_mlp],
    None without any.
    """
    kept: dict[str, Tensor] = {}
    watch = Watch((NEURONS,), lambda name, value: kept.__setitem__(name, value[:, -1]))
    logits = model(_questions(model, task), tap=watch, logits_at=slice(-1, None))[
        :, -1, : task.modulus
    ]
    neurons = kept.get(NEURONS)
    return (
        logits.cpu().double().numpy(),
        None if neurons is None else neurons.cpu().double().numpy(),
    )


def powers(model: Transformer, task: Modular) -> LabelledArray:
    """The share of each frequency in what the model computes [part, frequency].

    The embedding is read along the numbers; the neurons of the first block along the first number,
    with every second number; the logits along the answers, after every sum.
    """
    p = task.modulus
    logits, neurons = _compute_all(model, task)
    rows = {"embedding": power(model.embed.weight[:p].detach().cpu().double().numpy())}
    if neurons is not None:
        rows["neurons"] = power(neurons.reshape(p, -1))
    rows["logits"] = power(logits.T)
    axes = Axis("part", tuple(rows)), number_axis("frequency", p // 2, first=1)
    return LabelledArray(np.stack(list(rows.values())), axes, SHARE)


def used_frequencies(powers: LabelledArray) -> tuple[int, ...]:
    """The frequencies that the model uses, in rising order: the fewest that together hold `USED` of
    its logits.
    """
    shares = powers.values[-1]
    order = (-shares).argsort(kind="stable")
    many = int(np.searchsorted(shares[order].cumsum(), USED * shares.sum())) + 1
    return tuple(sorted(int(i) + 1 for i in order[:many]))


def circle(model: Transformer, task: Modular, frequency: int) -> LabelledArray:
    """The numbers [number, wave] where the embedding follows the cosine and the sine of a
    frequency: in its direction for the cosine, and in the direction for the sine.
    """
    rows = model.embed.weight[: task.modulus].detach().cpu().double().numpy()  # [p, d_model]
    directions = waves(task.modulus)[frequency - 1] @ rows  # [2, d_model]
    lengths = np.linalg.norm(directions, axis=-1, keepdims=True)
    directions = np.divide(directions, lengths, out=np.zeros_like(directions), where=lengths > 0)
    axes = number_axis("number", task.modulus), Axis("wave", ("cosine", "sine"))
    return LabelledArray(
        rows @ directions.T, axes, "part of the embedding along the direction of the wave"
    )


@torch.no_grad()
def accuracy(model: Transformer, task: Modular, keep: Iterable[int] | None = None) -> float:
    """The share of sums that are right with only the frequencies to `keep`, by default all, and the
    constant in the embedding.
    """
    ids = _questions(model, task)
    weights = {}
    if keep is not None:
        rows = model.embed.weight.detach().clone()
        numbers = rows[: task.modulus].cpu().double().numpy()
        # [2 · frequencies, p]
        kept = waves(task.modulus)[[k - 1 for k in keep]].reshape(-1, task.modulus)
        changed = numbers.mean(0) + kept.T @ (kept @ numbers)
        rows[: task.modulus] = torch.from_numpy(changed).to(rows)
        weights["embed.weight"] = rows
    logits: Tensor = functional_call(model, weights, (ids,), {"logits_at": slice(-1, None)})
    right = ids[:, [0, 2]].sum(1) % task.modulus
    return float((logits[:, -1].argmax(-1) == right).double().mean())
