"""Neurons: what makes each neuron of an MLP active, and which tokens it speaks for.

A neuron is a number in the middle of an MLP, after the activation; in a gated MLP, after the gate;
in a
mixture of experts, times the weight of its expert.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from gptviz.labelled_array import Float64Array
from gptviz.model import Transformer
from gptviz.model.parts.heads import Unembed
from gptviz.model.parts.mlps import AnyMLP
from gptviz.model.parts.norms import Norm

from ..explaining.through_norms import norms_of, written_through
from .activity import Observable, read_until
from .unit import Unit


def observable_neurons(model: Transformer, block: int) -> Observable:
    """The neurons of a block, with their activations. A ValueError if the model has no such block,
    or no MLP.
    """
    n_neuron = model.config.mlp_size
    if not n_neuron or block not in range(model.config.n_layer):
        sizes = f"{model.config.n_layer} blocks, counted from 0, with MLPs of {n_neuron} neurons"
        raise ValueError(f"there are no neurons in block {block!r:.40}: the model has {sizes}")
    return Observable(
        Unit("mlp", block),
        "activation",
        columns(model, block).norm(dim=0).cpu(),
        model.config.vocab_size,
        lambda ids: read_until(model, ids, f"blocks.{block}.mlp.neurons")[0].float().cpu(),
        lambda _length: n_neuron,
    )


def columns(model: Transformer, block: int) -> Tensor:
    """How much an activation of 1 of each neuron adds to the stream, [d_model, neuron]; a norm
    counts by its linear part.
    """
    part = model.blocks[block]
    after = norms_of(part.get_submodule("mlp_residual"))[1]
    return written_through(after, cast(AnyMLP, part.mlp).write_vectors()[0].detach().float())


@torch.inference_mode()
def promoted_tokens(model: Transformer, written: Tensor) -> Float64Array:
    """How much a vector `written` [d_model] to the stream adds to the logit of each token
    [vocab_size], if nothing lies between it and the end: that of a neuron with an activation of 1
    is one of the `columns`.

    Norms are replaced by what is linear in them (see `through_norms`), so all numbers lack one
    common factor. What all tokens have in common is taken away: a softmax does not see it. Later
    blocks, which read what was written, and a cap of the logits are left out. A ValueError if the
    model does not guess tokens.
    """
    if not isinstance(model.head, Unembed):
        raise ValueError("this model has no unembedding: it promotes no tokens")
    final = model.head.final_norm
    assert final is None or isinstance(final, Norm)
    read = written_through(final, written[:, None])  # [d_model, 1], what the unembedding reads
    logits = model.head.unembed.multiply(read.T, model.head.unembed.weight, None)[0]  # [vocab_size]
    values = logits.detach().double().cpu()
    return (values - values.mean()).numpy()
