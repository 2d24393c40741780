"""Label smoothing for labels with an order: a part of the target probability goes to the neighbours
of the right label.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gptviz.model import Config


def nearby_targets(config: Config, smoothing: float) -> Tensor | None:
    """The probabilities to train a classifier towards, a row for each right label: [n_label,
    n_label].

    The probability of a label falls by the factor `smoothing` with every step away from the right
    one; each row sums to 1. None if the labels have no order, or nothing is smoothed.
    """
    if not config.ordered or not smoothing:
        return None
    places = torch.arange(config.n_label)
    nearness = torch.as_tensor(smoothing) ** (places[:, None] - places).abs()  # [n_label, n_label]
    return nearness / nearness.sum(1, keepdim=True)
