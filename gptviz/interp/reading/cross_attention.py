"""The attention of an encoder–decoder's output to its source, and what an average of its heads
hides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from gptviz.interp.reading.attention import Patterns
from gptviz.interp.trace import run
from gptviz.model import Transformer

from ..trace import one_row

# A row of cross-attention is named after the token that is written there. Its query comes from the
# token before, the last one that the decoder has read: it looks into the source to find out what to
# write.
WRITES = "query: output (reads)"
SOURCE = "key: source (is read)"


@dataclass(frozen=True)
class Output:
    """The results of one forward pass over a source of S tokens and an output of T."""

    #: the attention of the output (queries) over the source (keys), [n_head, T, S] in each block
    cross: Patterns
    #: [T, vocab_size], of the token after each one that the decoder has read. Shared: do not write
    #: to it.
    logits: npt.NDArray[np.float32]


def read_translation(model: Transformer, source: Sequence[int], decoded: Sequence[int]) -> Output:
    """One forward pass of an encoder–decoder over the ids of a source; `decoded` are those that the
    decoder reads: the start token, then what has been written. A ValueError if the model has no
    encoder, its decoder has no blocks, or there are more ids than the context holds.
    """
    config = model.config
    if model.encoder is None or not config.n_layer:
        raise ValueError(
            "this model has no cross-attention: it needs an encoder, and a decoder with at least "
            "one block"
        )
    ids, encoded = one_row(model, decoded, source)
    trace = run(model, ids, ["blocks.*.cross_attention.pattern", "logits"], source=encoded)

    blocks = [
        trace[f"blocks.{block}.cross_attention.pattern"][0] for block in range(config.n_layer)
    ]
    cross = Patterns(tuple(block.float().cpu().numpy() for block in blocks), None)
    return Output(cross, trace["logits"][0].float().cpu().numpy())


@dataclass(frozen=True)
class Certainty:
    """How likely the model finds an output."""

    total: float  #: the log-probability of the whole output in nats, the sum over its tokens
    place: int  #: the index of the token it finds least likely
    probability: float  #: of that token


def certainty(logits: npt.NDArray[np.float32], written: Sequence[int]) -> Certainty:
    """How likely the tokens `written` [T] are by the `logits` [T, vocab_size] at their places."""
    exact = logits[: len(written)].astype(np.float64)
    largest = exact.max(axis=-1, keepdims=True)
    normal = largest + np.log(np.exp(exact - largest).sum(axis=-1, keepdims=True))
    each = np.take_along_axis(exact - normal, np.asarray(written)[:, None], axis=-1)[:, 0]
    place = int(each.argmin())
    return Certainty(float(each.sum()), place, float(np.exp(each[place])))


def average_heads(patterns: Patterns, block: int | None) -> Patterns:
    """The mean of the heads of `block`, or of all heads of all blocks where it is None, as the
    pattern of a single head.
    """
    if block is None:
        some = patterns.blocks
    else:
        some = patterns.blocks[block : block + 1]
    return Patterns((np.mean(np.concatenate(some), axis=0, keepdims=True),), patterns.blocked)


@dataclass(frozen=True)
class Hidden:
    """The differences that an average of heads hides."""

    #: how many heads it is the mean of; a source token that only one of them reads has at most 1 /
    #: heads in it
    heads: int
    #: over how many source tokens a row of the average is spread: e to the mean entropy (in nats)
    spread: float
    #: the same for each head by itself, as e to the mean of their entropies: at most `spread`, and
    #: equal to it where all heads read alike
    alone: float
    sharpest: tuple[int, int]  #: the block and the head with the least spread
    sharpest_spread: float  #: the spread of that head


def hidden_by_mean(cross: Patterns, block: int | None) -> Hidden:
    """The differences that the mean of the heads of `block`, or of all heads of all blocks where it
    is None, hides.
    """
    first = 0 if block is None else block
    entropies = np.stack(
        [
            _entropy(values)
            for values in (cross.blocks if block is None else cross.blocks[block : block + 1])
        ]
    )
    mean = float(_entropy(average_heads(cross, block).blocks[0])[0])
    at = np.unravel_index(int(entropies.argmin()), entropies.shape)
    return Hidden(
        entropies.size,
        float(np.exp(mean)),
        float(np.exp(entropies.mean())),
        (first + int(at[0]), int(at[1])),
        float(np.exp(entropies.min())),
    )


def _entropy(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """The entropy in nats of the rows of patterns [n_head, query, key], averaged over the queries:
    [n_head].
    """
    return torch.special.entr(torch.from_numpy(values).double()).sum(-1).mean(-1).numpy()
