"""A toy model of superposition: five features in two dimensions (Elhage et al. 2022, "Toy Models of
Superposition").

A vector x has five numbers. Each is 0 with the probability of the sparsity, else anything from 0 to
1. The model writes it as two numbers, h = W x, and reads it back as relu(Wᵀ h + b). The error of
each number counts by its importance. The columns of W are arrows in the plane: a feature whose
arrow has length 0 is given up. A dictionary that is fitted to h only (see `fitting`) has to find
the arrows again.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from gptviz.labelled_array import Axis, LabelledArray
from gptviz.machine import progress
from gptviz.machine.cores import sharing

from .fitting import Fit

FEATURES = 5
WIDTH = 2
SPARSITIES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
# For each sparsity so many models are trained at the same time, and the best one counts; likewise
# dictionaries.
TRIES = 4
STEPS = 2_000
BATCH = 256
RATE = 5e-3
# the vectors over which the loss is measured, and which a dictionary is fitted to
MEASURED = 20_000
OF_DICTIONARY = 600  # steps
# A feature whose arrow is at least so long is kept.
KEPT = 0.5


@dataclass(frozen=True)
class Toy:
    """The best models of all sparsities."""

    importance: Tensor  #: [feature], how much the error of each feature counts
    arrows: Tensor  #: [sparsity, WIDTH, feature], W
    bias: Tensor  #: [sparsity, feature], b
    loss: Tensor  #: [sparsity]

    @property
    def lengths(self) -> LabelledArray:
        """How long the arrow of each feature is, [sparsity, feature]."""
        axes = (
            Axis("sparsity", tuple(f"{one:g}" for one in SPARSITIES)),
            Axis("feature", tuple("12345")),
        )
        return LabelledArray(self.arrows.norm(dim=1).double().numpy(), axes, "length")


@dataclass(frozen=True)
class Found:
    """What a dictionary finds of the features that a toy keeps at one sparsity."""

    rows: Tensor  #: [FEATURES, WIDTH], the directions of the dictionary, of length 1
    cosines: Tensor  #: [kept feature], the largest cosine of its arrow with one of them


def draw_vectors(sparsity: Tensor, count: int, draw: torch.Generator) -> Tensor:
    """Vectors x, [model, count, FEATURES], for the sparsities [model]."""
    shape = len(sparsity), count, FEATURES
    absent = torch.rand(shape, generator=draw) < sparsity[:, None, None]
    return torch.where(absent, 0.0, torch.rand(shape, generator=draw))


def losses(x: Tensor, arrows: Tensor, bias: Tensor, importance: Tensor) -> Tensor:
    """The mean over the vectors x [model, count, feature] of the squared errors, each times its
    importance: [model].
    """
    back = torch.relu(x @ arrows.mT @ arrows + bias[:, None])
    return ((x - back).square() * importance).sum(-1).mean(-1)


@torch.enable_grad()
def train(importance: float = 0.9, seed: int = 0) -> Toy:
    """The models of all `SPARSITIES`; each feature counts `importance` times as much as the one
    before.
    """
    draw = torch.Generator().manual_seed(seed)
    sparsity = torch.tensor(SPARSITIES).repeat_interleave(TRIES)
    counts = importance ** torch.arange(FEATURES)
    arrows = (0.5 * torch.randn(len(sparsity), WIDTH, FEATURES, generator=draw)).requires_grad_()
    bias = torch.zeros(len(sparsity), FEATURES, requires_grad=True)
    adam = torch.optim.Adam([arrows, bias], lr=RATE)
    rate = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: min(1.0, 2 * (1 - step / STEPS)))
    with sharing() as share:
        for step in range(STEPS):
            share()
            loss = losses(draw_vectors(sparsity, BATCH, draw), arrows, bias, counts)
            adam.zero_grad()
            # sparse vectors have small errors, which count as much
            (loss / (1 - sparsity)).sum().backward()
            adam.step()
            rate.step()
            if step % 50 == 49:
                progress.report(step + 1, STEPS, "step")
    arrows = arrows.detach()
    bias = bias.detach()
    loss = losses(draw_vectors(sparsity, MEASURED, draw), arrows, bias, counts)
    best = loss.view(-1, TRIES).argmin(1) + TRIES * torch.arange(len(SPARSITIES))
    return Toy(counts, arrows[best], bias[best], loss[best])


def find(toy: Toy, sparsity: float, seed: int = 0) -> Found:
    """The features of a toy of one of the `SPARSITIES`, as a dictionary of h finds them. Of `TRIES`
    dictionaries of five features, one of which is active at a time, the one that gives back most of
    h counts.
    """
    arrows = toy.arrows[SPARSITIES.index(sparsity)]
    x = draw_vectors(torch.tensor([sparsity]), MEASURED, torch.Generator().manual_seed(seed))[0]
    h = x[x.any(-1)] @ arrows.T
    tries = []
    for number in range(TRIES):
        with progress.part(number, TRIES):
            tries.append(Fit(h, 0, FEATURES, k=1, steps=OF_DICTIONARY, seed=seed + number).finish())
    best = min(tries, key=lambda one: float((one.reconstruct(h) - h).square().mean()))
    rows = F.normalize(best.decoder, dim=-1)
    kept = arrows[:, arrows.norm(dim=0) >= KEPT]
    return Found(rows, (F.normalize(kept, dim=0).T @ rows.T).max(1).values)
