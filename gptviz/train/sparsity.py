"""Training with few weights: after each step all but the largest of each matrix become 0.

A matrix is a parameter of two or more dimensions: embeddings too. Biases and gains are vectors, and
stay. The optimiser goes on as without it: a weight that is 0 still has a gradient, and comes back
where a step makes it large enough. The share that is kept falls from 1 over the first part of the
run (`Recipe.kept_share`).

Source: L. Gao et al., “Weight-sparse transformers have interpretable circuits” (2025). From there
come the largest of each matrix, the share that falls during the first half, and steps of the
optimiser that know nothing of it. Not taken: sparse activations, a least number of weights for each
neuron, and sparse biases.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def kept_number(matrix: Tensor, share: float) -> int:
    """How many weights of `matrix` are kept if that is a share of them: at least one."""
    return max(1, round(share * matrix.numel()))


@torch.no_grad()
def keep_largest(model: nn.Module, share: float) -> None:
    """Set all but the largest `share` of the weights, without sign, to 0 in each matrix of `model`
    that is trained.
    """
    for matrix in model.parameters():
        if matrix.dim() < 2 or not matrix.requires_grad:
            continue
        weights = matrix.view(-1)  # [weights]
        largest = weights.abs().topk(kept_number(matrix, share), sorted=False).indices
        kept = weights[largest]
        weights.zero_()
        weights[largest] = kept
