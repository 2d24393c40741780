"""Facts about a head that its weights give without any text: whether it copies, and which heads
read what other heads write.

A head reads the stream by W_Q, W_K and W_V and writes to it by W_O. Norms are left out except for
what is linear in them: their gain, and for layernorm the mean that is taken away. Biases, the
rotation of rotary positions and norms of queries and keys are left out. All is computed in the few
numbers of a head: there is no matrix [d_model, d_model] for each pair of heads.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.machine import progress
from gptviz.model import Transformer
from gptviz.model.parts.heads import Unembed
from gptviz.model.parts.norms import Norm
from gptviz.model.parts.residuals import RESIDUALS

from ..explaining.through_norms import norms_of, read_through, written_through

HeadInput = Literal["query", "key", "value"]
# Rows of the vocabulary that are multiplied at a time.
ROWS = 8192


@dataclass(frozen=True)
class Matrices:
    """The matrices of a block's heads, as the stream meets them."""

    #: [n_head, d_head, d_model]; a head's query is `query @ x`, with x from the stream
    query: Tensor
    key: Tensor  #: likewise; heads that share keys have equal ones
    value: Tensor  #: likewise
    output: Tensor  #: [n_head, d_model, d_head]; a head adds `output @ z`


def matrices(model: Transformer, block: int) -> Matrices:
    """The matrices of the heads of a block, in float32, with the linear part of the norms beside
    them.
    """
    config = model.config
    part = model.blocks[block]
    before, after = norms_of(part.get_submodule("attention_residual"))
    stacked = read_through(before, part.get_parameter("attention.qkv.weight").detach().float())
    sizes = [config.n_head, config.key_heads, config.key_heads]
    query, key, value = stacked.view(-1, config.head_size, config.d_model).split(sizes)
    group = config.n_head // config.key_heads
    # [d_model, H · d_head]
    output = written_through(after, part.get_parameter("attention.output.weight").detach().float())
    # [H, d_model, d_head]
    by_head = output.view(config.d_model, config.n_head, config.head_size).transpose(0, 1)
    return Matrices(
        query, key.repeat_interleave(group, 0), value.repeat_interleave(group, 0), by_head
    )


@torch.inference_mode()
def copying(model: Transformer) -> Float64Array:
    """For each head [block, head] the sum of the eigenvalues of W_U W_O W_V W_E, divided by the sum
    of their absolute values.

    This matrix [vocab_size, vocab_size] says what reading a token adds to the logit of each token,
    if what the head reads is the token's embedding and what it writes goes straight to the
    unembedding. 1: every eigenvalue is positive, so the head makes what it reads likelier; −1:
    every one is negative. What all tokens' logits gain alike is taken away: a softmax does not see
    it.

    Its eigenvalues other than 0 are those of the small matrix W_O W_U W_E W_V [d_head, d_head],
    which is computed instead. A ValueError if the model does not guess tokens: it has no
    unembedding.
    """
    if not isinstance(model.head, Unembed):
        raise ValueError(
            "this model has no unembedding: what its heads add to the logit of a token cannot be "
            "said"
        )
    # W_Uᵀ W_E [d_model, d_model], with the linear part of the norms beside them, in pieces of the
    # vocabulary.
    final = model.head.final_norm
    embed = model.embed.weight
    unembed = model.head.unembed.weight
    assert final is None or isinstance(final, Norm)
    mean = unembed.detach().float().mean(0)
    through = embed.new_zeros(model.config.d_model, model.config.d_model, dtype=torch.float32)
    for start in range(0, len(embed), ROWS):
        at = slice(start, start + ROWS)
        tokens = written_through(model.embed_norm, embed[at].float().T)  # [d_model, rows]
        guesses = read_through(final, unembed[at].float() - mean)  # [rows, d_model]
        through += guesses.T @ tokens.T
    by_block = []
    for block in range(model.config.n_layer):
        of = matrices(model, block)
        # [H, d_head, d_head]
        small = (of.output.transpose(1, 2) @ through @ of.value.transpose(1, 2)).double().cpu()
        values = torch.linalg.eigvals(small)
        size = values.abs().sum(-1)
        by_block.append(
            torch.where(
                size > 0,
                values.real.sum(-1) / size.clamp(min=torch.finfo(size.dtype).tiny),
                torch.nan,
            )
        )
    if by_block:
        return np.stack([values.numpy() for values in by_block])
    return np.zeros((0, model.config.n_head))


@torch.inference_mode()
def composition(model: Transformer, reads: HeadInput) -> LabelledArray:
    """How much of what one head writes another one reads by one of its vectors, [reader, writer],
    only from weights.

    For the key it is ‖W_QK W_OV‖ / (‖W_QK‖ ‖W_OV‖), where W_QK = W_Qᵀ W_K is of the reader, W_OV =
    W_O W_V of the writer, and ‖·‖ is the Frobenius norm: the root of the sum of the squares. For
    the query W_QK is transposed, and for the value it is the reader's W_OV. From 0, nothing, to 1.
    If a writer is turned at random in the stream, the mean of the squares is 1 / d_model: see
    `by_chance`.

    NaN where the reader does not stand behind the writer. Without residual connections a head reads
    only what the block just before it wrote, and nothing at all where an MLP stands between.
    """
    config = model.config
    adds = "add" in RESIDUALS[model.config.residual].steps
    values = np.full((config.n_layer, config.n_head, config.n_layer, config.n_head), np.nan)
    size = min(config.head_size, config.d_model)
    # The writers of all blocks side by side: a reading block is multiplied with all before it at
    # once.
    writers = model.embed.weight.new_empty(
        config.d_model, config.n_layer, config.n_head, size, dtype=torch.float32
    )
    for later in range(config.n_layer):
        of = matrices(model, later)
        if adds:
            first = 0
        elif config.mlp_size or model.encoder is not None:
            first = later
        else:
            first = max(later - 1, 0)
        if first < later:
            # [d_model, heads, d_head]
            readers = _unit(_reader(of, reads))
            before = writers[:, first:later].flatten(1, 2)
            products = readers.flatten(0, 1) @ before.flatten(1)  # [H · d_head, heads · d_head]
            norms = (
                products.view(*readers.shape[:2], *before.shape[1:]).square_().sum((1, 3)).sqrt()
            )
            values[later, :, first:later] = (
                norms.view(config.n_head, -1, config.n_head).double().cpu().numpy()
            )
        # [d_model, H, d_head]
        writers[:, later] = _unit(of.output @ _triangle(of.value).transpose(1, 2)).transpose(0, 1)
        progress.report(later + 1, config.n_layer, "block")
    names = tuple(
        f"{block}.{head}" for block in range(config.n_layer) for head in range(config.n_head)
    )
    axes = Axis("head that reads", names), Axis("head that writes", names)
    return LabelledArray(values.reshape(len(names), len(names)), axes, f"{reads} composition")


def by_chance(model: Transformer) -> float:
    """The size of a composition, in the root of the mean square, where the writer is turned at
    random in the stream.
    """
    return float(model.config.d_model**-0.5)


def _triangle(rows: Tensor) -> Tensor:
    """For each matrix [H, n, m] a small one [H, ≤ n, n]: ‖rowsᵀ X‖ = ‖triangle X‖ for every X, as
    the rest is a rotation.
    """
    return torch.linalg.qr(rows.transpose(1, 2), mode="r").R


def _reader(of: Matrices, reads: HeadInput) -> Tensor:
    """For each head a matrix R [H, ≤ d_head, d_model] for which ‖R X‖ is ‖W X‖, W being what the
    head does to what it `reads`.
    """
    if reads == "key":
        return _triangle(of.query) @ of.key
    if reads == "query":
        return _triangle(of.key) @ of.query
    return _triangle(of.output.transpose(1, 2)) @ of.value


def _unit(each: Tensor) -> Tensor:
    """Matrices [H, n, m], each divided by its norm; one of zeros stays as it is."""
    return each / each.norm(dim=(1, 2), keepdim=True).clamp(min=torch.finfo(each.dtype).tiny)
