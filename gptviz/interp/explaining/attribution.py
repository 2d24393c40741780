"""Direct logit attribution: what each part of a model adds to the logit of a token, or to the
difference of two logits.

The logit is the product of what the head reads with the token's row of the unembedding, and what
the head reads is a sum of what all parts wrote (see `decomposition`). "Direct" means: what a part
does by way of later parts counts as theirs.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits".
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import torch
from torch import Tensor

from gptviz.labelled_array import Axis, Float64Array, LabelledArray, number_axis
from gptviz.model import IDENTITY, Config, Transformer
from gptviz.model.parts.heads import HEADS, Unembed
from gptviz.model.parts.part import sharing

from ..reading.layers import layers
from ..units.unit import unit
from .decomposition import HEAD, Stream

# The parts add up if their sum is off by less than this share of the largest of them.
ADDS_UP = 1e-4
UNIT = "logit"
DIFFERENCE = "difference of logits"
MLP = "MLP"
REPLACED = "all"
_BIASES = {
    "embed_norm.bias": "bias of the norm after the embedding",
    "head.final_norm.bias": "bias of the final norm",
    "head.unembed.bias": "bias of the unembedding",
    "head.bias": "bias of the head",
}
_SUBLAYERS = {
    "attention": "attention",
    "cross_attention": "cross-attention",
    "cross": "cross-attention",
    "mlp": "MLP",
}


@dataclass(frozen=True)
class PartValue:
    """A part of a model and what it adds."""

    name: str  #: of a unit (see `units`), or of the parameter that a bias is
    title: str  #: its name in a sentence
    value: float  #: what it adds to the logit


@dataclass(frozen=True)
class Attribution:
    """A logit, or the difference of two, as a sum over the parts of a model."""

    position: int | None  #: after which token, or None if the logit is of a label of the whole text
    token: int  #: whose logit it is; of a classifier, the label
    against: int | None  #: whose logit is taken from it, or None where there is only one logit
    logit: float  #: what the model itself computed, before the cap where it caps its logits
    capped: float  #: the same behind the cap; equal to `logit` where there is none
    parts: tuple[PartValue, ...]  #: in the order in which they write into the stream
    #: by the name of a head, what it adds split by the token that it reads, [keys]
    sources: Mapping[str, Float64Array]
    #: by the name of an MLP, where that was asked for, what each neuron adds, [d_mlp]
    neurons: Mapping[str, Float64Array]

    @cached_property
    def values(self) -> dict[str, float]:
        """How much each part adds, by its name."""
        return {part.name: part.value for part in self.parts}

    def of(self, name: str) -> float:
        """How much the part of this name adds, such as "blocks.1.mlp". A ValueError if the model
        has no such part.
        """
        if name not in self.values:
            raise ValueError(f"the model has no part {name!r:.60}")
        return self.values[name]

    @cached_property
    def sum(self) -> float:
        """The sum of all parts."""
        return math.fsum(part.value for part in self.parts)

    @property
    def error(self) -> float:
        """The distance of the sum from the logit, as a share of the largest of the parts and the
        logit.
        """
        scale = max(abs(self.logit), *map(abs, self.values.values()))
        if scale:
            return abs(self.sum - self.logit) / scale
        return 0.0

    @property
    def adds_up(self) -> bool:
        """Whether that is only rounding. A part that is missing or counted twice is seen unless it
        adds next to nothing.
        """
        return self.error < ADDS_UP  # false if it is NaN

    @property
    def strongest(self) -> PartValue:
        """The part that adds most, of all but the biases."""
        return max(
            (part for part in self.parts if not part.name.endswith("bias")),
            key=lambda part: part.value,
        )

    @property
    def unit(self) -> str:
        """The quantity that is added up."""
        if self.against is None:
            return UNIT
        return DIFFERENCE

    def labelled(self) -> LabelledArray:
        """How much each part adds, [part]."""
        values = np.array([part.value for part in self.parts])
        return LabelledArray(
            values, (Axis("part", tuple(part.title for part in self.parts)),), self.unit
        )

    def grid(self, config: Config) -> LabelledArray:
        """How much heads and MLPs add, [block, piece], the first block first; the columns are heads
        by number, those of cross-attention as "cross 0", and the MLP. NaN for what there is not:
        where an edit replaced a whole sublayer, its column is "all".
        """
        values = self.values
        columns = dict[str, str]()
        for kind, prefix in (("attention", ""), ("cross_attention", "cross ")):
            columns |= {f"{kind}.head.{head}": f"{prefix}{head}" for head in range(config.n_head)}
            columns[kind] = f"{prefix}{REPLACED}"
        columns["mlp"] = MLP
        n_block = config.n_layer
        cells = np.array(
            [
                [values.get(f"blocks.{block}.{name}", math.nan) for name in columns]
                for block in range(n_block)
            ]
        )
        if n_block:
            used = ~np.isnan(cells).all(axis=0)
        else:
            used = np.zeros(len(columns), bool)
        labels = tuple(label for label, shown in zip(columns.values(), used, strict=True) if shown)
        axes = number_axis("block", n_block), Axis("head or MLP", labels)
        return LabelledArray(cells.reshape(n_block, len(columns))[:, used], axes, self.unit)

    def read_by(self, head: str, tokens: Sequence[str]) -> LabelledArray:
        """How much the head of this name adds by each token that it reads, [key]; `tokens` are
        those of the text.
        """
        return LabelledArray(
            self.sources[head], (Axis("token that is read", tuple(tokens)),), self.unit
        )


def attribute(
    model: Transformer,
    ids: Sequence[int],
    token: int | None = None,
    position: int | None = None,
    against: int | None = None,
    source: Sequence[int] | None = None,
    neurons_of: str | None = None,
) -> Attribution:
    """How much each part of `model` adds to the logit of `token` after the token at `position` of
    `ids`.

    Args:
        token: whose logit; by default the likeliest. Of a classifier, a label.
        position: by default the last. A classifier's logits are of the whole text: it has none.
        against: a token whose logit is taken from it, so that the sum is the difference of both.
        neurons_of: an MLP whose neurons are told apart, such as "blocks.1.mlp".

    Raises:
        ValueError: there is no such token, MLP or position, the model's logits are no sum of what
            its parts add, or as in `Stream`.
    """
    return attribute_logit(stream_at(model, ids, position, source), token, against, neurons_of)


def stream_at(
    model: Transformer,
    ids: Sequence[int],
    position: int | None = None,
    source: Sequence[int] | None = None,
) -> Stream:
    """The one run that all logits after a position are taken apart from; arguments and errors as in
    `attribute`.
    """
    config = model.config
    rows = None
    if config.kind != "classifier":
        rows = [len(ids) - 1 if position is None else position]
    elif not HEADS[config.head].has_shares:
        raise ValueError(
            f"under a {config.head} head a label's logit is no sum of what the parts of the model "
            "add"
        )
    return Stream(model, ids, rows, source)


def attribute_logit(
    stream: Stream,
    token: int | None = None,
    against: int | None = None,
    neurons_of: str | None = None,
) -> Attribution:
    """How much each part adds to a logit, from the run that `stream_at` gave; arguments and errors
    as in `attribute`.
    """
    config = stream.model.config
    labels = config.kind == "classifier"
    chosen = int(stream.logits.argmax()) if token is None else token
    for asked in (chosen,) if against is None else (chosen, against):
        if not 0 <= asked < len(stream.logits):
            kind = "label" if labels else "token"
            raise ValueError(
                f"there is no {kind} {asked}: they are counted from 0 to {len(stream.logits) - 1:,}"
            )
    logits, directions, bias = (_of_labels if labels else of_tokens)(stream, chosen, against)
    if neurons_of is not None and not (
        neurons_of.endswith(".mlp") and neurons_of in stream.layers()
    ):
        raise ValueError(f"{neurons_of} is no MLP that writes into this stream")
    pulled = stream.pull(HEAD, directions)
    values = {
        name: float(each.sum()) for name, each in stream.added_by_parts(pulled).items()
    } | bias
    return Attribution(
        None if labels else stream.rows[0],
        chosen,
        against,
        difference(logits, chosen, against),
        difference(stream.logits, chosen, against),
        tuple(PartValue(name, title(name, config), value) for name, value in values.items()),
        {
            f"{layer}.head.{head}": shares.numpy()
            for layer in stream.layers()
            if f"{layer}.head.0" in values
            # at all positions together
            for head, shares in enumerate(stream.sources(layer, pulled).sum(0))
        },
        {}
        if neurons_of is None
        else {neurons_of: stream.neurons(neurons_of, pulled).sum(0).numpy()},
    )


def difference(values: Tensor, token: int, against: int | None) -> float:
    """The number of a token, less that of the other where there is one."""
    return float(values[token]) - (0.0 if against is None else float(values[against]))


def of_tokens(
    stream: Stream, token: int, against: int | None
) -> tuple[Tensor, Tensor, dict[str, float]]:
    """The logits before the cap [vocab_size], the direction [1, d_model] that makes one of them,
    and its bias, if it has one.
    """
    head = cast(Unembed, stream.model.head)
    logits = stream.logits
    unembed = head.unembed
    if head.cap is not None:
        with torch.no_grad():
            logits = unembed(stream.final.to(unembed.weight.device))
    rows = [stream.numbers(unembed.weight[each]) for each in (token, against) if each is not None]
    direction = rows[0] if against is None else rows[0] - rows[1]
    if unembed.bias is None:
        bias = {}
    else:
        bias = {"head.unembed.bias": difference(stream.numbers(unembed.bias), token, against)}
    return logits, direction[None], bias


def _of_labels(
    stream: Stream, label: int, against: int | None
) -> tuple[Tensor, Tensor, dict[str, float]]:
    """As `of_tokens` for a label: the directions [T, d_model] at all tokens come from a pass of the
    head, which is linear.
    """
    head = copy.deepcopy(sharing(stream.model.head, final_norm=None)).cpu().double()
    with torch.inference_mode(False), torch.enable_grad():
        read = stream.inputs[HEAD].detach().requires_grad_()  # [1, T, d_model]
        logits = head(read, None, slice(None), IDENTITY)[0]  # [n_label]
        if against is None:
            wanted = logits[label]
        else:
            wanted = logits[label] - logits[against]
        (directions,) = torch.autograd.grad(wanted, read)
    bias = float(wanted.detach() - (directions * read.detach()).sum())
    return stream.logits, directions[0], {"head.bias": bias}


def title(name: str, config: Config) -> str:
    """The name of a part in a sentence."""
    if name in _BIASES:
        return _BIASES[name]
    if not name.endswith(".bias"):
        return unit(name, config).title
    if name.endswith(".edits.bias"):
        changed = next(layer for layer in layers(config) if name == f"{layer.tap}.edits.bias")
        at_end = changed.tap.endswith("resid_post")
        return f"what edits add after {f'block {changed.block}' if at_end else changed.title}"
    _, block, place, _, *_ = name.split(".")
    of_norm = place.endswith("_residual")
    return (
        "bias of the "
        f"{'norm of the ' if of_norm else ''}{_SUBLAYERS[place.removesuffix('_residual')]} of "
        f"block {block}"
    )
