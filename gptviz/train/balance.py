"""A loss that keeps the experts of a mixture equally busy: without it a router may send all tokens
to a few of them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gptviz.model.tap import Watch


def imbalance(scores: Tensor, n_active: int) -> Tensor:
    """N · Σ f_e · P_e over the N experts of a router: 1 where they are equally busy, up to N ÷
    n_active where they are not.

    f_e is the share of all choices that fell on expert e, and P_e the mean of its share of the
    softmax, which has the gradient. The router's `scores` are [..., n_expert]; it chooses
    `n_active` experts for each token.
    Source: Fedus, Zoph & Shazeer 2021, “Switch Transformers”, equations 4 to 6, where a router
    chooses one expert.
    """
    shares = scores.float().flatten(0, -2).softmax(-1)  # [N, n_expert]
    chosen = torch.zeros_like(shares).scatter(
        -1, shares.topk(n_active, dim=-1).indices, 1.0 / n_active
    )
    return scores.shape[-1] * (chosen.mean(0) * shares.mean(0)).sum()


class Imbalance(Watch):
    """A tap that adds up the `imbalance` of all routers in a pass."""

    def __init__(self, n_active: int) -> None:
        self.total: Tensor | float = 0.0  #: the sum so far
        self.n_active = n_active
        super().__init__(("*.mlp.router",), self._add)

    def _add(self, _name: str, scores: Tensor) -> None:
        self.total = self.total + imbalance(scores, self.n_active)
