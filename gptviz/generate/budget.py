"""The number of tokens that a page may write at once, by the sizes of the model and the text."""

from __future__ import annotations

from gptviz.model import Transformer
from gptviz.model.costs.effort import SOME, n_parameters

# The multiplications that a text may cost.
BUDGET = SOME
# A text has at least this many tokens, even if they cost more.
LEAST_TOKENS = 8
# The other costs of a forward pass, expressed as a number of multiplications: reading the weights
# (as much as
# this many tokens cost), and calling the parts of a block.
PASS_TOKENS = 4
BLOCK_COST = 1e6


def affordable(model: Transformer, length: int, tokens: int, budget: float = BUDGET) -> int:
    """How many of `tokens` tokens may be written at once after a text of `length` tokens.

    It depends only on the sizes of the model and the text, so that a page opens with the same text
    on every machine.
    """
    config = model.config
    parameters = n_parameters(model)
    is_cached = config.mask == "causal"
    for written in range(tokens):
        seen = min(length + written, config.context_length)
        # Within the context a pass computes only the last token; beyond it, all tokens that the
        # model sees.
        if is_cached and length + written <= config.context_length:
            computed = 1
        else:
            computed = seen
        budget -= parameters * (computed + PASS_TOKENS) + config.n_layer * BLOCK_COST
        if budget < 0:
            return min(tokens, max(written, LEAST_TOKENS))
    return tokens
