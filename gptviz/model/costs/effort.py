"""How much work a computation with a model is, estimated at once, and the levels above which it is
made smaller, shown, or begun only when somebody asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..transformer import Transformer

# About how many multiplications two cores do in a second.
A_SECOND = 2e10
# Levels of effort, in multiplications. On two cores they take about 0.2, 0.5, 1, 2, 5 and 50
# seconds.
LEAST = 3e9
LITTLE = 1e10
SOME = 2e10
MUCH = 3e10
MOST = 1e11
LONG = 1e12


def n_parameters(model: Transformer) -> int:
    """The number of parameters of a model; tied ones count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def effort(model: Transformer, tokens: int, passes: int = 1) -> int:
    """About how many multiplications `passes` forward passes over `tokens` tokens take: one for
    each parameter and token.

    `operations.flops` counts them exactly.
    """
    return n_parameters(model) * tokens * passes
