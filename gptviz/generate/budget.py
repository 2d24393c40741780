"""How many tokens a page may write at once: what that costs, by the sizes of the model and the text."""

from __future__ import annotations

from gptviz.model import Transformer

# What a text may cost, in multiplications: about 1.5 seconds on two cores.
BUDGET = 20e9
# A text has at least this many tokens, whatever they cost.
LEAST_TOKENS = 8
# What a forward pass costs besides its multiplications, counted as if it were multiplications: reading the weights (as much as
# this many tokens cost), and calling the parts of a block.
PASS_TOKENS, BLOCK_COST = 4, 1e6


def affordable(model: Transformer, length: int, tokens: int, budget: float = BUDGET) -> int:
    """How many of `tokens` tokens may be written at once after a text of `length` tokens.

    It depends on the sizes of the model and the text alone, so that a page opens on the same text on every machine.
    """
    config = model.config
    parameters = sum(parameter.numel() for parameter in model.parameters())
    is_cached = config.mask == "causal"
    for written in range(tokens):
        seen = min(length + written, config.context_length)
        # Within the context a pass computes the last token alone; beyond it, all that the model sees.
        computed = 1 if is_cached and length + written <= config.context_length else seen
        budget -= parameters * (computed + PASS_TOKENS) + config.n_layer * BLOCK_COST
        if budget < 0:
            return min(tokens, max(written, LEAST_TOKENS))
    return tokens
