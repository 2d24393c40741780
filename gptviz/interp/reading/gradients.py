"""The size of the gradient that reaches each block, of the stream at that block, and of the
gradient of its weights.

The stream x_i enters block i, and x_n leaves the last of n blocks. By the chain rule ∂L/∂x_i = J_iᵀ
… J_{n-1}ᵀ ∂L/∂x_n with J_i = ∂x_{i+1}/∂x_i: without a residual connection J_i is only the
sublayers' Jacobian, with one the identity is added to it.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from gptviz.labelled_array import Axis, LabelledArray
from gptviz.model import Config, Record, Transformer, build
from gptviz.model.parts.residuals import RESIDUALS, Residual
from gptviz.text import CharTokenizer

GRADIENT = "gradient of the stream"
STREAM = "stream"
WEIGHTS = "gradient of the weights"
QUANTITIES = (GRADIENT, STREAM, WEIGHTS)
OUT = "out"  # the place after the last block
# What small untrained models read, and how many heads they have.
LINES = "LYSANDER.\nHow now, my love? Why is your cheek so pale?\nHow chanc"
HEADS = 4
INITIAL_STD = 0.02  # what `model.builder.initialise` draws matrices with


def sizes(model: Transformer, ids: Tensor, targets: Tensor) -> LabelledArray:
    """The typical size (root mean square) of a number at each depth: [quantity, place].

    The quantities are

    - the gradient of the loss with respect to the stream that enters a block, ∂L/∂x_i (at "out":
      that leaves the last block)
    - that stream itself, x_i
    - the gradient of the loss with respect to the block's matrices; NaN at "out"

    The loss is the mean cross-entropy in nats. The model does not change, nor does the `.grad` of
    its parameters.

    Args:
        ids: [B, T].
        targets: [B, T], the ids that should follow; -100 does not count. For a classifier, the
            labels [B].

    Raises:
        ValueError: the model has no blocks, or the ids do not fit in its context.
    """
    if not len(model.blocks):
        raise ValueError("this model has no blocks, so there is no depth for a gradient to pass")
    record = Record(["blocks.*.resid_pre", f"blocks.{len(model.blocks) - 1}.resid_post"])
    logits = model(ids, tap=record)  # [B, T, vocab_size] or [B, n_label]
    loss = F.cross_entropy(logits.flatten(0, -2), targets.flatten())
    streams = list(record.values.values())
    matrices = [
        [weight for weight in block.parameters() if weight.dim() > 1] for block in model.blocks
    ]
    inputs = [*streams, *(weight for block in matrices for weight in block)]
    gradients = iter(torch.autograd.grad(loss, inputs))
    of_streams = [_rms(next(gradients)) for _ in streams]
    of_matrices = [_rms(*(next(gradients) for _ in block)) for block in matrices]
    values = np.array(
        [of_streams, [_rms(stream.detach()) for stream in streams], [*of_matrices, math.nan]]
    )
    places = Axis("block", (*(str(index) for index in range(len(matrices))), OUT))
    return LabelledArray(values, (Axis("quantity", QUANTITIES), places), "root mean square")


def _rms(*tensors: Tensor) -> float:
    """The root mean square of all numbers of the tensors. They are scaled first: the square of a
    small number may underflow.
    """
    numbers = torch.cat([tensor.flatten() for tensor in tensors])
    largest = numbers.abs().max()
    if not largest > 0 or largest.isinf():
        return float(largest)
    return float(largest * (numbers / largest).square().mean().sqrt())


@torch.no_grad()
def fresh_model(
    config: Config, *, seed: int, std: float = INITIAL_STD, shrink: bool = True
) -> Transformer:
    """A new model as `build` makes it, but with a standard deviation `std` in the matrices of its
    blocks, and in float64: small numbers do not underflow. With `shrink`, projections into the
    stream start smaller by √(2 · n_layer), as `build` makes them.
    """
    model = build(config, seed=seed).double()
    for name, weight in model.blocks.named_parameters():
        if weight.dim() > 1:
            weight.mul_(std / INITIAL_STD)
            if not shrink and name.endswith(("attention.output.weight", ".down.weight")):
                weight.mul_(math.sqrt(2 * config.n_layer))
    return model


def compared_residuals() -> dict[str, type[Residual]]:
    """The residuals that are compared: those in which attention and MLP act one after the other.

    Where both read the same stream, the sizes are nearly those of the residual with one after the
    other: a second line on top of the first.
    """
    return {name: kind for name, kind in RESIDUALS.items() if not kind.parallel}


def compare(
    config: Config,
    ids: Tensor,
    targets: Tensor,
    *,
    seed: int,
    std: float = INITIAL_STD,
    shrink: bool = True,
) -> LabelledArray:
    """The `sizes` [quantity, residual, place] for new models that differ only in their residual
    connections.

    All have the same matrices. If the config has a final norm, only models have one whose blocks
    have norms, but none on the stream itself: pre-norm, branch-norm and double-norm, as they were
    published. The arguments are those of `sizes` and `fresh_model`.
    """
    tables = []
    kinds = compared_residuals()
    for residual, kind in kinds.items():
        has_norms_in_blocks = kind.steps[-1] == "add" and len(kind.steps) > 2
        own = replace(
            config, residual=residual, final_norm=config.final_norm and has_norms_in_blocks
        )
        tables.append(sizes(fresh_model(own, seed=seed, std=std, shrink=shrink), ids, targets))
    quantities, places = tables[0].axes
    values = np.stack([table.values for table in tables], 1)
    return LabelledArray(
        values, (quantities, Axis("residual", tuple(kinds)), places), tables[0].unit
    )


def compare_untrained(
    depth: int = 12,
    std: float = INITIAL_STD,
    width: int = 64,
    activation: str = "relu",
    shrink: bool = True,
    seed: int = 0,
) -> LabelledArray:
    """As `compare`, for small decoders of characters that read `LINES`, with `depth` blocks and
    `width` numbers for a token in the stream, which `HEADS` heads share.
    """
    tokenizer = CharTokenizer(LINES)
    ids = torch.tensor([tokenizer.encode(LINES).ids])
    config = Config(
        vocab_size=tokenizer.vocab_size,
        context_length=ids.shape[1],
        d_model=width,
        n_layer=depth,
        n_head=HEADS,
        activation=activation,
    )
    return compare(config, ids[:, :-1], ids[:, 1:], seed=seed, std=std, shrink=shrink)


def one_quantity(table: LabelledArray, quantity: str) -> LabelledArray:
    """One quantity of `compare` [residual, place]; the gradient of the weights has no place
    "out".
    """
    quantities, residuals, places = table.axes
    count = len(places.labels) - (quantity == WEIGHTS)
    values = table.values[quantities.labels.index(quantity), :, :count]
    return LabelledArray(values, (residuals, Axis(places.name, places.labels[:count])), table.unit)


def reaching(table: LabelledArray) -> dict[str, float]:
    """The size of the gradient that enters block 0, as a share of the gradient at "out", by the
    residual.
    """
    gradient = one_quantity(table, GRADIENT)
    sizes = gradient.values.astype(np.float64)
    return dict(zip(gradient.axes[0].labels, (sizes[:, 0] / sizes[:, -1]).tolist(), strict=True))
