"""The text that the page Generate opens on: some tokens, and a branch beside them."""

from __future__ import annotations

from gptviz.generate.tree import ROOT
from gptviz.model import Transformer

from .writing import Writing

# How many tokens the text and the branch have; with a large model, fewer.
FIRST_TOKENS, FORK_TOKENS = 120, 60
# What a text of `FIRST_TOKENS` may cost, in multiplications: about 1.5 seconds on two cores. While training is played, a text is
# shown for a moment only, and may cost less.
BUDGET, FRAME_BUDGET = 20e9, 2e9
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


def begin(writing: Writing) -> None:
    """Write the text that the page opens on, with a branch."""
    with writing.lock:
        grow(writing, FIRST_TOKENS - writing.length)
        fork(writing)
        writing.opened_as = writing.state


def begin_short(writing: Writing) -> None:
    """Write what is shown for a moment, between two steps of training that is being played."""
    with writing.lock:
        writing.cut_short = True
        grow(writing, FIRST_TOKENS, FRAME_BUDGET)
        writing.opened_as = writing.state


def begin_again(writing: Writing) -> None:
    """Write the text once more from the prompt, with the settings of now; what was written stays as a branch."""
    with writing.lock:
        writing.go(ROOT)
        grow(writing, FIRST_TOKENS)


def grow(writing: Writing, tokens: int, budget: float = BUDGET) -> None:
    """Draw up to `tokens` tokens, fewer where the model ends its text or they cost more than `budget`, see `affordable`."""
    length = len(writing.tree.prompt) + writing.length
    for _ in range(affordable(writing.lm.model, length, tokens, budget)):
        if writing.stops and writing.is_at_end:
            return
        writing.step()


def fork(writing: Writing) -> None:
    """Write beside the text how it goes on from another token, where the model gave that one nearly as high a probability.

    The place is in the first half of the text, after its first sixth.
    """
    with writing.lock:
        path, current = writing.written, writing.tree.current
        others = [
            (candidate.probability, node.parent, candidate.token)
            for node in path[len(path) // 6 : -(-len(path) // 2)]
            if node.parent is not None
            for candidate in node.candidates
            if candidate.token not in writing.tree.nodes[node.parent].children
        ]
        if not others:
            return
        _, after, token = max(others)
        writing.take(token, after)
        grow(writing, FORK_TOKENS - 1, BUDGET / 2)
        writing.go(current)
