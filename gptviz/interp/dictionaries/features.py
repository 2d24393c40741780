"""Single features of a dictionary: where they are active, which are alike, and which parts of the
model write one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from gptviz.labelled_array import Axis, LabelledArray
from gptviz.model import Transformer

from ..explaining.attribution import attribute_logit, of_tokens, stream_at
from ..explaining.decomposition import HEAD, Stream
from ..trace import run
from ..units.activity import Observable, read_until
from ..units.unit import Unit, unit
from .dictionary import Dictionary

EMBEDDING = "embedding and positions"
OWN_BIAS = "its own bias"
REST = "norms on the way"
BIASES = "biases on the way"
# What is added to a logit beside the features: by the decoder's bias, by what the dictionary misses
# of the stream, and by what is not in the stream there yet.
DECODER_BIAS = "the decoder’s bias"
MISSED = "what the dictionary misses"
LATER = "what is written later"
# of the dictionary of an MLP, all that is not the MLP
OTHERS = "what other parts write"
# What the parts miss of the whole is said from this share of it on; less is rounding.
ROUNDING = 1e-3


def observable_features(model: Transformer, dictionary: Dictionary) -> Observable:
    """The features of a dictionary, with their activations."""
    return Observable(
        Unit("dictionary", called=dictionary.name),
        "activation",
        dictionary.decoder.norm(dim=1).cpu(),
        model.config.vocab_size,
        lambda ids: dictionary.encode(read_until(model, ids, dictionary.tap)[0]).float().cpu(),
        lambda _length: 2 * len(dictionary.encoder),
    )


def nearest_features(dictionary: Dictionary, feature: int, most: int = 8) -> LabelledArray:
    """The other features whose rows of the decoder point most where that of a feature does,
    [feature]: the cosines.
    """
    rows = F.normalize(dictionary.decoder.float().cpu(), dim=-1)
    cosines = rows @ rows[feature]
    cosines[feature] = -torch.inf
    values, order = cosines.topk(min(most, len(rows) - 1))
    return LabelledArray(
        values.double().numpy(), (Axis("feature", tuple(map(str, order.tolist()))),), "cosine"
    )


@torch.inference_mode()
def written_by_parts(
    model: Transformer, ids: Tensor, dictionary: Dictionary, feature: int
) -> tuple[int, LabelledArray]:
    """What each part of a model adds to the activation of a feature before the ReLU, at the token
    of `ids` [T] where that is highest: the position, and the numbers [part], which sum to it.

    The parts are the embedding with the positions, each head, what an attention adds without its
    heads (its bias), each MLP, and the feature's own bias. Where norms change what was written on
    its way, the difference is a part too. What the dictionary of an MLP reads lies behind a norm,
    which is kept as it was in this run (see `decomposition`).
    """
    if dictionary.is_transcoder:
        return _written_before_mlp(model, ids, dictionary, feature)
    names = ["blocks.0.resid_pre", dictionary.tap]
    names += [
        f"blocks.{block}.{one}"
        for block in range(dictionary.block + 1)
        for one in ("attention.z", "*.out")
    ]
    trace = run(model, ids[None], names, logits_at=slice(-1, None))
    reads = dictionary.encoder.float()
    bias = dictionary.bias
    whole = trace[dictionary.tap][0].float() @ reads[feature] + bias[feature]  # [T]
    at = int(whole.argmax())
    parts = {EMBEDDING: trace["blocks.0.resid_pre"][0, at].float() @ reads[feature]}
    for block in range(dictionary.block + 1):
        layer = Unit("attention", block)
        output = model.blocks[block].get_parameter("attention.output.weight").float()
        by_head = (output.T @ reads[feature]).view(model.config.n_head, -1)  # [H, d_head]
        heads = (by_head * trace[f"{layer.layer}.z"][0, :, at].float()).sum(-1)
        parts |= {Unit("attention", block, head).title: value for head, value in enumerate(heads)}
        parts[f"bias of the {layer.title}"] = (
            trace[f"{layer.layer}.out"][0, at].float() @ reads[feature] - heads.sum()
        )
        mlp = Unit("mlp", block)
        if f"{mlp.layer}.out" in trace:
            parts[mlp.title] = trace[f"{mlp.layer}.out"][0, at].float() @ reads[feature]
    parts[OWN_BIAS] = bias[feature]
    values = torch.stack([*parts.values()]).double().cpu()
    rest = whole[at].double().cpu() - values.sum()
    if abs(rest) > ROUNDING * values.abs().sum():
        parts = parts | {REST: rest}
        values = torch.cat((values, rest[None]))
    return at, LabelledArray(
        values.numpy(), (Axis("part", tuple(parts)),), "added to the activation"
    )


@torch.inference_mode(False)
@torch.no_grad()
def _written_before_mlp(
    model: Transformer, ids: Tensor, dictionary: Dictionary, feature: int
) -> tuple[int, LabelledArray]:
    """As `written_by_parts`, of the dictionary of an MLP."""
    layer = Unit("mlp", dictionary.block).layer
    stream = Stream(model, ids.tolist())
    own = dictionary.to(stream.device)
    reads = own.encoder[feature].to(stream.dtype)
    at = int((stream.inputs[layer][0] @ reads).argmax())
    here = stream.slice_positions(at, at + 1)
    parts = {BIASES: 0.0}
    for name, value in here.added_by_parts(here.pull(layer, reads[None])).items():
        if name.endswith(".bias"):
            parts[BIASES] += float(value)
        else:
            parts[unit(name, model.config).title] = float(value)
    parts[OWN_BIAS] = float(own.bias[feature])
    values = np.array([*parts.values()])
    return at, LabelledArray(values, (Axis("part", tuple(parts)),), "added to the activation")


@torch.inference_mode(False)
def direct_effects(
    model: Transformer,
    ids: Sequence[int],
    dictionary: Dictionary,
    token: int | None = None,
    position: int | None = None,
    against: int | None = None,
) -> LabelledArray:
    """What each active feature adds directly to a logit, [part], those that add most in size first:
    its activation times the dot product of its row of the decoder with the direction in the stream
    that makes the logit. Then what the decoder's bias adds, what the dictionary misses of the
    stream (its error), and all that is written later; of the dictionary of an MLP, all that other
    parts write. The sum is the logit, as `attribute` splits it; the arguments and errors are those
    of `attribute`.
    """
    stream = stream_at(model, ids, position)
    whole = attribute_logit(stream, token, against)
    _, direction, _ = of_tokens(stream, whole.token, against)
    own = dictionary.to(stream.device)
    # what is read and what is to be given back, and what the logit gains from that: [d_model] each
    if dictionary.is_transcoder:
        layer = Unit("mlp", dictionary.block).layer
        read = stream.inputs[layer].detach()[0, 0]
        x = stream.written[layer][0]
        along = stream.pull(HEAD, direction)[layer][0]
    else:
        here = stream.after[dictionary.block]  # [1, 1, d_model]
        x = read = here.detach()[0, 0]
        along = torch.autograd.grad(stream.inputs[HEAD], here, direction[None])[0][0, 0]
    active = own.encode(read).to(x)
    each = active * (own.decoder.to(x) @ along)
    bias = float(own.decoder_bias.to(x) @ along)
    in_stream = float(x @ along)
    missed = in_stream - float(each.sum()) - bias
    later = whole.sum - in_stream
    order = [i for i in each.abs().argsort(descending=True).tolist() if active[i] > 0]
    values = torch.tensor([*each[order].tolist(), bias, missed, later], dtype=torch.float64)
    rest = OTHERS if dictionary.is_transcoder else LATER
    parts = (*(f"feature {i}" for i in order), DECODER_BIAS, MISSED, rest)
    return LabelledArray(values.numpy(), (Axis("part", parts),), whole.unit)
