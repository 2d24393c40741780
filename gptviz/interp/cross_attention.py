"""What the output of an encoder–decoder reads from its source: cross-attention, beside the self-attention of both stacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from gptviz.interp import attention
from gptviz.interp.attention import Patterns
from gptviz.interp.trace import run
from gptviz.labelled import Axis, Labelled
from gptviz.model import Transformer

WRITES = "query: output (reads)"
SOURCE = "key: source (is read)"


@dataclass(frozen=True)
class Stacks:
    """The attention of both stacks over a source of S tokens and an output of T, from one forward pass.

    Attributes:
        encoder: of the source over itself, [n_head, S, S] in each block.
        decoder: of what the decoder has read, the start mark first, over itself, [n_head, T, T].
        cross: of the output (queries) over the source (keys), [n_head, T, S].
        logits: [T, vocab_size], of the token written after each the decoder has read. Shared: not to be written to.
    """

    encoder: Patterns
    decoder: Patterns
    cross: Patterns
    logits: npt.NDArray[np.float32]


def read(model: Transformer, source: Sequence[int], decoded: Sequence[int]) -> Stacks:
    """One forward pass of an encoder–decoder that reads `source` and has written `decoded`, whose first id is the start mark.

    Raises:
        ValueError: the model has no encoder, its decoder no blocks, or there are more ids than the context holds.
    """
    config = model.config
    if model.encoder is None or not config.n_layer:
        raise ValueError("this model has no cross-attention: it needs an encoder, and a decoder with at least one block")
    device = model.embed.weight.device
    ids, encoded = (torch.tensor([each], device=device) for each in (decoded, source))
    trace = run(model, ids, ["*attention.pattern", "logits"], source=encoded)

    def patterns(name: str, count: int, blocked: torch.Tensor | None = None) -> Patterns:
        blocks = tuple(trace[name.format(block)][0].float().cpu().numpy() for block in range(count))
        return Patterns(blocks, None if blocked is None else blocked.numpy())

    ahead = model.mask(ids.cpu(), slice(0, len(decoded)), None)
    return Stacks(
        patterns("encoder.blocks.{}.attention.pattern", config.n_encoder_layer),
        patterns("blocks.{}.attention.pattern", config.n_layer, ahead),
        patterns("blocks.{}.cross_attention.pattern", config.n_layer),
        trace["logits"][0].float().cpu().numpy(),
    )


def averaged(patterns: Patterns, block: int | None) -> Patterns:
    """One head in place of many: the mean of the heads of `block`, of all heads of all blocks where it is None."""
    chosen = patterns.blocks if block is None else patterns.blocks[block : block + 1]
    return Patterns((np.mean(np.concatenate(chosen), axis=0, keepdims=True),), patterns.blocked)


def chosen(patterns: Patterns, block: int | None, head: int | None) -> Patterns:
    """The head asked for, alone; where `head` is None, or both are, the mean of those it stands for."""
    if block is None or head is None:
        return averaged(patterns, block)
    return Patterns((patterns.blocks[block][head : head + 1],), patterns.blocked)


def itself(patterns: Patterns, labels: Sequence[str]) -> Labelled:
    """The one head of `patterns` [query, key], self-attention of the tokens called `labels`; NaN where the mask blocks."""
    return attention.one_head(patterns, 0, 0, labels)


def between(patterns: Patterns, written: Sequence[str], source: Sequence[str]) -> Labelled:
    """The one head of `patterns`, cross-attention: [output, source].

    A row is called by the token that is written there. Its query comes from the token before, the last that the decoder
    has read: it looks into the source to find out what to write.
    """
    return Labelled(patterns.blocks[0][0], (Axis(WRITES, tuple(written)), Axis(SOURCE, tuple(source))), attention.UNIT)


@dataclass(frozen=True)
class Hidden:
    """What an average of heads hides.

    Attributes:
        heads: how many heads it is the mean of; a source token that one of them reads alone has at most 1 / heads in it.
        spread: among how many source tokens a row of the average is shared out (e to the mean entropy).
        alone: the same for the heads taken one by one, never more than `spread`; they are equal where all heads read alike.
        sharpest: block and head that spread their rows least.
        sharpest_spread: among how many tokens they do.
    """

    heads: int
    spread: float
    alone: float
    sharpest: tuple[int, int]
    sharpest_spread: float


def hidden(cross: Patterns, block: int | None) -> Hidden:
    """What the mean of the heads of `block`, or of all blocks where it is None, hides of them."""
    first = 0 if block is None else block
    entropies = np.stack([_entropy(values) for values in (cross.blocks if block is None else cross.blocks[block : block + 1])])
    mean = float(_entropy(averaged(cross, block).blocks[0])[0])
    at = np.unravel_index(int(entropies.argmin()), entropies.shape)
    return Hidden(
        entropies.size,
        float(np.exp(mean)),
        float(np.exp(entropies.mean())),
        (first + int(at[0]), int(at[1])),
        float(np.exp(entropies.min())),
    )


def _entropy(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """The entropy of the rows of patterns [n_head, query, key] in nats, its mean over the queries: [n_head]."""
    return torch.special.entr(torch.from_numpy(values).double()).sum(-1).mean(-1).numpy()
