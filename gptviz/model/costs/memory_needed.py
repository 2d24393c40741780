"""The memory of this machine that an open model needs, and the message if that is more than is
free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gptviz.machine.memory import FLOAT32, LEAST_WITHIN_A_PASS, MOST_OF_MEMORY, in_bytes, way_out

from ..builder import describe
from ..config import Config
from ..parts.attention import queries_at_once
from .operations import cache_numbers

# A longer text may be read where there is memory for it; a model is not refused for the longest
# text that it could read.
USUAL_TOKENS = 1_024


@dataclass(frozen=True)
class MemoryNeeded:
    """The memory that an open model takes, in bytes."""

    weights: int  #: its parameters
    #: the most that is needed at once in addition, to read them from their files or to read a text
    working: int
    tokens: int  #: the length of that text
    number: float  #: of one weight

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.working


def estimate_memory(
    config: Config, number: float = FLOAT32, tokens: int | None = None
) -> MemoryNeeded:
    """The memory that a model of `config` takes when it is open, with weights of `number` bytes (2
    for bfloat16 and float16, less for a file of fewer bits), and reads a text of so many tokens, by
    default what fits into the context, at most `USUAL_TOKENS`. Nothing is allocated to find out.
    """
    if tokens is None:
        tokens = min(config.context_length, USUAL_TOKENS)
    else:
        tokens = tokens
    layers = describe(config)
    largest = max(math.prod(shape) for layer in layers for shape in layer.shapes.values())
    weights = round(number * sum(layer.parameters for layer in layers))
    # The most numbers that live at once in a pass over `tokens` tokens that gives the logits of the
    # last one.
    stream = tokens * config.d_model
    heads = tokens * (config.n_head + 2 * config.key_heads) * config.head_size
    # Scores, what is visible of them and the pattern, of which a long text has a part at a time.
    # All heads share two masks, or the distances, which are numbers of 8 bytes.
    of_query = config.n_head * tokens
    scores = of_query * (min(tokens, queries_at_once(of_query)) if _in_parts(config) else tokens)
    attention = (
        3 * stream + 3 * heads + 3 * scores + (2 if _in_parts(config) else 8) * tokens**2 // FLOAT32
    )
    mlp = 3 * stream + 3 * tokens * config.mlp_size
    in_pass = cache_numbers(config, 1, tokens, source=0) + max(attention, mlp, config.vocab_size)
    return MemoryNeeded(weights, FLOAT32 * max(largest, in_pass), tokens, number)


def _in_parts(config: Config) -> bool:
    """Whether the scores of a long text are computed in parts: where no query may look ahead."""
    return config.mask == "causal" and not config.n_encoder_layer


def to_read(config: Config, tokens: int) -> int:
    """About how many bytes a page needs besides an open decoder to read a long text: its keys and
    values, what a block computes for every token, two masks of a byte for each pair of tokens, and
    memory that was freed but not released before a pass ends.
    """
    of_blocks = tokens * (8 * config.d_model + 4 * config.mlp_size)
    kept = cache_numbers(config, 1, tokens, source=0)
    return FLOAT32 * (kept + of_blocks + config.vocab_size) + 2 * tokens**2 + LEAST_WITHIN_A_PASS


def refusal(needs: MemoryNeeded, free: int) -> str | None:
    """Why a model is not opened with `free` bytes of memory: both numbers and a way out, or None if
    it may be opened.
    """
    if needs.total <= MOST_OF_MEMORY * free:
        return None
    if needs.number == FLOAT32:
        smaller = ", open it in bfloat16 (precision)"
    else:
        smaller = ""
    return (
        f"it needs about {in_bytes(needs.total)} of memory, {in_bytes(needs.weights)} of it for "
        "its weights and the rest to "
        f"read a text of {needs.tokens:,} tokens, and {in_bytes(free)} is free: "
        f"{way_out()}{smaller}, or choose a smaller model"
    )
