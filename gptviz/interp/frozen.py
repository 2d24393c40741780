"""A run with its patterns and norms frozen: then what one part of a model adds to the input of another is a product of matrices.

With the scale of every norm kept at what it was in this run, the way from what a part writes into the stream to what a later part
reads is linear. A direction goes that way downwards: it says how much a number at the top (a logit, say) gains from each number
that is written at a position. Its product with what a unit wrote there is what the unit adds, and all units, with the biases, sum
to the number at the top.

Three kinds of parts are no linear functions of what they read. Each is replaced by an affine one (a matrix and a bias) that gives
the same output in this run:

- a norm: its scale is kept;
- an MLP: the ratio r = f(x) / x of each neuron is kept, so that f(x) = r · x. In a gated MLP two numbers are multiplied, and each
  of them gets half of the product, which is its Shapley value. Source: Achtibat et al. 2024 (AttnLRP), section 3;
- a head: its pattern is kept. What the pattern itself owes to queries and keys is in `choice`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from gptviz.interp.trace import run
from gptviz.interp.units import Unit
from gptviz.memory import give_back
from gptviz.model import Config, Transformer
from gptviz.model.attention import Attention
from gptviz.model.blocks import Block, ParallelBlock
from gptviz.model.heads import Unembed
from gptviz.model.mlps import MLP, GatedMLP
from gptviz.model.norms import Norm
from gptviz.model.parts import sharing
from gptviz.model.residuals import Residual

# How a source reaches what reads it: as a value, key or query of a head, as the input of an MLP, or directly as a logit.
Kind = Literal["value", "key", "query", "mlp", "logit"]
WRITTEN = ("embed", "positions", "blocks.*.attention.z", "blocks.*.mlp.out")
READ = ("embed_norm", "blocks.*.resid_pre", "blocks.*.resid_mid", "blocks.*.attention.[qkv]", "blocks.*.attention.out")
# Points between −1 and 1 in each panel of the integral in `choice`, and their weights (Gauss–Legendre).
POINTS = np.polynomial.legendre.leggauss(12)


class KeptNorm(nn.Module):
    """A norm whose scale is kept from the first vectors that it gets: from then on an affine function of its input."""

    def __init__(self, norm: Norm, first: Tensor | None = None) -> None:
        """A norm that keeps the scale of `first`, or else of what it is called with first."""
        super().__init__()
        self.keep = norm  # in the model it belongs to; nothing of it is changed
        self.first = first
        self.gain = 1.0 if norm.weight is None else norm.weight.detach()
        self.bias = None if norm.bias is None else norm.bias.detach()

    def forward(self, x: Tensor) -> Tensor:
        """[..., size] → [..., size]."""
        if self.first is None:
            self.first = x.detach()
        normed = self.keep.frozen(x, self.first) * self.gain
        return normed if self.bias is None else normed + self.bias

    def back(self, directions: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        """Directions [N, size] after the norm at the positions `at` [N] → those before it, and [N], what the bias adds."""
        assert self.first is not None
        nothing = torch.zeros_like(directions, requires_grad=True)
        with torch.enable_grad():
            normed = self.keep.frozen(nothing, self.first[at]) * self.gain
        (before,) = torch.autograd.grad(normed, nothing, directions)
        return before, directions.new_zeros(len(directions)) if self.bias is None else directions @ self.bias


def inner(values: Tensor, directions: Tensor) -> Tensor:
    """The inner products of vectors [..., n] with directions [..., n]: [...]."""
    return (values * directions).sum(-1)


@dataclass(frozen=True)
class Sublayer:
    """An attention or an MLP of a run, with what it read and wrote.

    Attributes:
        units: what writes here: each head, or the MLP.
        part: the module.
        steps: the order of what its residual does: see `Residual.steps`.
        norms: by the name of the step, with their scales.
        inputs: [T, d_model], what the part itself read.
        written: [T, H, d_head], `z` of every head, or [T, 1, d_model], what the MLP gave.
        usual: what counts as nothing new: the mean of `written` over some texts, [H, d_head] or [1, d_model], or zeros.
        below: how many sublayers wrote into the stream before this one reads it.
    """

    units: tuple[Unit, ...]
    part: Attention | MLP
    steps: tuple[str, ...]
    norms: Mapping[str, KeptNorm]
    inputs: Tensor
    written: Tensor
    usual: Tensor
    below: int

    def adds(self, directions: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        """What each unit adds along directions [N, d_model] of what the sublayer writes at the positions `at` [N].

        Returns:
            [N, units], beyond what is usual; and [N], what the usual and the bias of the output add.
        """
        per_unit = directions[:, None]  # [N, 1, d_model]
        rest = directions.new_zeros(len(directions))
        if isinstance(self.part, Attention):
            output = self.part.output
            per_unit = (directions @ output.weight.detach().float()).view(len(directions), *self.usual.shape)  # [N, H, d_head]
            rest = rest if output.bias is None else directions @ output.bias.detach().float()
        return inner(self.written[at] - self.usual, per_unit), rest + inner(self.usual, per_unit).sum(-1)

    def back(self, directions: Tensor, at: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        """Directions [N, d_model] of the stream after the sublayer at the positions `at` [N].

        Returns:
            Those of the stream before it, None where the sublayer replaces the stream; those of what the part writes; and [N],
            what the biases of norms add.
        """
        skipped, rest = None, directions.new_zeros(len(directions))
        for step in reversed(self.steps):
            if step == "sublayer":
                break
            if step == "add":
                skipped = directions
            else:
                directions, added = self.norms[step].back(directions, at)
                rest = rest + added
        return skipped, directions, rest

    def read(self, directions: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        """Directions of what the part reads, [N, d_model] → those of the stream; and [N], what the bias of a norm adds."""
        rest = directions.new_zeros(len(directions))
        for step in reversed(self.steps[: self.steps.index("sublayer")]):
            directions, added = self.norms[step].back(directions, at)
            rest = rest + added
        return directions, rest


class Below(NamedTuple):
    """What all that is below a place in the stream adds along N directions.

    Attributes:
        adds: [N, units], by the order of `Frozen.units`, beyond what is usual; 0 for units that are not below.
        rest: [N], what the biases and the usual add.
        directions: for each sublayer below the directions [N, d_model] of what it writes; then those of the embedding.
    """

    adds: Tensor
    rest: Tensor
    directions: list[Tensor | None]


class Reads(NamedTuple):
    """What a unit reads in one way, along one direction of its output.

    Attributes:
        kind: the way.
        total: what all that it reads adds in this way, as the run computed it: it is `adds.sum() + rest`.
        adds: [N, units], what each unit adds at each of N positions.
        rest: what the biases and the usual add.
        at: [N], the positions.
        directions: [N, d_model] of what is written there, for each sublayer: see `Below`.
    """

    kind: Kind
    total: float
    adds: Tensor
    rest: float
    at: Tensor
    directions: list[Tensor | None]


class Frozen:
    """A decoder's run over one text.

    Attributes:
        model: the model.
        ids: [T].
        units: all that writes into the stream: embedding, positions (where the model adds them there), heads and MLPs, in the
            order of the pass.
        place: the number of each unit among them.
        sublayers: in the order of the pass.
    """

    def __init__(self, model: Transformer, ids: Tensor, usual: Mapping[str, Tensor] | None = None) -> None:
        """Run the model over `ids` [T].

        Args:
            model: a decoder.
            ids: the text.
            usual: what counts as nothing new, by tap name, as `means` gives it; by default nothing does: zeros.

        Raises:
            ValueError: the model is not a decoder, or there are no tokens, or too many.
        """
        if model.config.kind != "decoder":
            raise ValueError(f"a circuit is that of a decoder's guess, and this model is a {model.config.kind}")
        if ids.dim() != 1 or not len(ids):
            raise ValueError("there are no tokens to read")
        self.model, self.ids, self._usual = model, ids, usual or {}
        end = f"blocks.{len(model.blocks) - 1}.resid_post"
        found = dict(run(model, ids[None], (*WRITTEN, *READ, end), logits_at=slice(-1, None)))
        give_back()
        # Tensors of inference mode cannot take part in a gradient; copies can. Of a long text there is no room for both of all.
        self._values: dict[str, Tensor] = {}
        for name in list(found):
            value = found.pop(name)
            self._values[name] = (value if name == "positions" else value[0]).clone()
        self.first = [name for name in ("embed", "positions") if name in self._values]
        self._embed_norm: KeptNorm | None = None
        if model.embed_norm is not None:
            self._embed_norm = KeptNorm(
                model.embed_norm, sum((self._values[name] for name in self.first), start=torch.tensor(0.0))
            )
        self.sublayers = list(self._laid_out())
        self.units = [*(Unit(name) for name in self.first), *(unit for layer in self.sublayers for unit in layer.units)]
        self.place = {unit: i for i, unit in enumerate(self.units)}
        self.layer_of = {unit: i for i, layer in enumerate(self.sublayers) for unit in layer.units}

    def _usual_of(self, name: str) -> Tensor:
        """The usual of a tap, [d_model] or [H, d_head]; zeros unless there is a mean."""
        return self._usual[name] if name in self._usual else torch.zeros_like(self._values[name].select(-2, 0))

    def _laid_out(self) -> Iterator[Sublayer]:
        count = 0
        for number, laid_out in enumerate(self.model.blocks):
            block = cast(Block | ParallelBlock, laid_out)
            path, parallel = f"blocks.{number}", isinstance(block, ParallelBlock)
            parts = (("attention", block.attention, block.attention_residual), ("mlp", block.mlp, block.mlp_residual))
            for name, part, residual in parts:
                if part is None or residual is None:
                    continue
                stream = self._values[f"{path}.resid_{'mid' if name == 'mlp' and not parallel else 'pre'}"]
                out = self._values[f"{path}.{name}.out"]
                norms, inputs = _kept(residual, stream, out)
                written, usual = out[:, None], self._usual_of(f"{path}.mlp.out")[None] if name == "mlp" else out
                units: tuple[Unit, ...] = (Unit("mlp", number),)
                if name == "attention":
                    written, usual = self._values[f"{path}.attention.z"].transpose(0, 1), self._usual_of(f"{path}.attention.z")
                    units = tuple(Unit("attention", number, head) for head in range(len(usual)))
                below = count - 1 if parallel and name == "mlp" else count
                yield Sublayer(units, part, residual.steps, norms, inputs, written, usual, below)
                count += 1

    def below(self, directions: Tensor, at: Tensor, layers: int | None = None) -> Below:
        """What everything below adds along directions [N, d_model] of the stream at the positions `at` [N].

        Args:
            directions: what a number at the top gains from each number of the stream.
            at: the positions of the stream.
            layers: how many sublayers have written into the stream there; all, unless given.
        """
        adds = directions.new_zeros(len(directions), len(self.units))
        rest = directions.new_zeros(len(directions))
        written: list[Tensor | None] = [None] * (len(self.sublayers) + 1)
        stream: Tensor | None = directions
        for i in reversed(range(len(self.sublayers) if layers is None else layers)):
            if stream is None:  # a sublayer replaced it
                return Below(adds, rest, written)
            layer = self.sublayers[i]
            stream, here, of_norms = layer.back(stream, at)
            written[i] = here
            of_units, of_output = layer.adds(here, at)
            adds[:, self.place[layer.units[0]] :][:, : len(layer.units)] = of_units
            rest = rest + of_norms + of_output
        if stream is None:
            return Below(adds, rest, written)
        if self._embed_norm is not None:
            stream, of_norm = self._embed_norm.back(stream, at)
            rest = rest + of_norm
        written[-1] = stream
        for i, name in enumerate(self.first):
            usual = self._usual_of(name)
            adds[:, i] = inner(self._values[name][at] - usual, stream)
            rest = rest + stream @ usual
        return Below(adds, rest, written)

    def direction(self, below: Reads, unit: Unit, row: int) -> Tensor:
        """The direction [d_model] of what a unit writes, at one of the positions of `Reads`."""
        directions = below.directions[self.layer_of.get(unit, -1)]
        assert directions is not None
        return directions[row]

    @torch.no_grad()
    def logit(self, token: int, against: int | None, position: int) -> Reads:
        """What adds to the logit of a token at a position, before any cap; less that of another token, where there is one."""
        head = self.model.head
        assert isinstance(head, Unembed)
        chosen = [token] if against is None else [token, against]
        sign = torch.tensor([1.0, -1.0])[: len(chosen)].to(self.ids.device)
        direction = sign @ head.unembed.weight.detach()[chosen].float()
        rest = torch.zeros(1, device=direction.device)
        if head.unembed.bias is not None:
            rest = rest + sign @ head.unembed.bias.detach()[chosen].float()
        at = torch.tensor([position], device=self.ids.device)
        stream = self._values[f"blocks.{len(self.model.blocks) - 1}.resid_post"] if len(self.model.blocks) else self._embedded()
        row = direction[None]
        normed = stream
        if head.final_norm is not None:
            norm = KeptNorm(cast(Norm, head.final_norm), stream)
            normed = norm(stream)
            row, added = norm.back(row, at)
            rest = rest + added
        below = self.below(row, at)
        biases = 0.0 if head.unembed.bias is None else float(sign @ head.unembed.bias.detach()[chosen].float())
        total = float(normed[position] @ direction) + biases
        return Reads("logit", total, below.adds, float(rest + below.rest), at, below.directions)

    def likeliest(self, position: int) -> int:
        """The likeliest token after a position."""
        return int(run(self.model, self.ids[None], ("logits",), logits_at=slice(position, position + 1))["logits"].argmax())

    def _embedded(self) -> Tensor:
        if "embed_norm" in self._values:
            return self._values["embed_norm"]
        return torch.stack([self._values[name] for name in self.first]).sum(0)

    @torch.no_grad()
    def reads(self, unit: Unit, position: int, direction: Tensor) -> list[Reads]:
        """What a unit reads at a position, by the ways in which it reads; nothing if an edit replaced what it writes.

        Args:
            unit: a head or an MLP; anything else reads nothing.
            position: where it writes.
            direction: [d_model], what a number at the top gains from each number that it writes there.
        """
        if unit not in self.layer_of:
            return []
        index = self.layer_of[unit]
        layer = self.sublayers[index]
        if isinstance(layer.part, MLP):
            at = torch.tensor([position], device=self.ids.device)
            curve = _kept_mlp(layer.part, layer.inputs[at])
            if not torch.allclose(curve(layer.inputs[at])[0], layer.written[position, 0], rtol=1e-3, atol=1e-4):
                return []  # an edit put something else in its place
            return [self._read("mlp", layer, at, curve, direction[None], float(layer.written[position, 0] @ direction))]
        return self._head_reads(unit, layer, position, direction)

    def _read(
        self,
        kind: Kind,
        layer: Sublayer,
        at: Tensor,
        affine: Callable[[Tensor], Tensor],
        along: Tensor,
        total: float,
        beside: float = 0.0,
    ) -> Reads:
        """What is read through an affine function of a sublayer's input at the positions `at` [N], `along` a direction of its
        result; `beside` is what is added without any input.
        """
        nothing = torch.zeros_like(layer.inputs[at], requires_grad=True)
        with torch.enable_grad():
            result = (affine(nothing) * along).sum()
        (read,) = torch.autograd.grad(result, nothing)
        stream, of_norm = layer.read(read, at)
        below = self.below(stream, at, layer.below)
        rest = float(result.detach() + (of_norm + below.rest).sum()) + beside
        return Reads(kind, total, below.adds, rest, at, below.directions)

    def visible(self, block: int, position: int) -> Tensor:
        """The positions that a query may read in a block: [N]."""
        model, length = self.model, len(self.ids)
        blocked = model.masks[model.mask_of[block]](self.ids[None], slice(0, length), model.config.padding)
        everything = torch.arange(length, device=self.ids.device)
        if blocked is None:
            return everything
        rows = blocked.reshape(-1, length)  # [T, T], or [1, T] where all queries see the same
        return everything[~rows[position if len(rows) > 1 else 0]]

    def _head_reads(self, unit: Unit, layer: Sublayer, position: int, direction: Tensor) -> list[Reads]:
        attention, block, head = layer.part, unit.block, unit.index
        assert isinstance(attention, Attention)
        assert block is not None
        assert head is not None
        q, k, v = (self._values[f"blocks.{block}.attention.{name}"] for name in "qkv")
        served = head // (len(q) // len(k))  # the key head that serves it
        at, here = self.visible(block, position), torch.tensor([position], device=self.ids.device)
        row = _score_row(attention, q[:, position], k[:, at][served], head, position, at, len(self.ids))
        into = attention.output.weight.detach().float()[:, head * q.shape[-1] :][:, : q.shape[-1]]  # [d_model, d_head]
        along = direction @ into  # [d_head]
        pattern, each = row.scores.softmax(-1), v[served, at] @ along  # [N] both
        if not torch.allclose(
            pattern @ each, layer.written[position, head] @ along, rtol=1e-3, atol=1e-4 * float(each.abs().max())
        ):
            return []  # an edit put something else in its place
        weights = choice(row.scores, each)
        chosen = float(pattern @ each - each.mean())

        def value(x: Tensor) -> Tensor:
            return attention.heads(attention.qkv(x[None]))[0, len(q) + len(k) + served]  # [N, d_head]

        def key(x: Tensor) -> Tensor:
            return _queries_and_keys(attention, layer.inputs, x, at)[len(q) + served]  # [N, d_head]

        def query(x: Tensor) -> Tensor:
            return _queries_and_keys(attention, layer.inputs, x, here)[head]  # [1, d_head]

        of_keys, of_query = weights[:, None] * row.by_key, (weights @ row.by_query)[None]
        scored = weights @ row.scores
        beside_keys = float(scored - inner(of_keys, k[served, at]).sum())  # of scores, what comes from positions alone
        beside_query = float(scored - of_query[0] @ q[head, position])
        return [
            self._read("value", layer, at, value, pattern[:, None] * along, float(pattern @ each)),
            self._read("key", layer, at, key, of_keys, chosen, beside_keys),
            self._read("query", layer, here, query, of_query, chosen, beside_query),
        ]


class ScoreRow(NamedTuple):
    """The scores of one query of one head over the N positions that it sees.

    Attributes:
        scores: [N].
        by_key: [N, d_head], what each score gains from each number of its key.
        by_query: [N, d_head], what each score gains from each number of the query. A cap on scores is kept as a ratio.
    """

    scores: Tensor
    by_key: Tensor
    by_query: Tensor


def _score_row(attention: Attention, q: Tensor, k: Tensor, head: int, position: int, at: Tensor, length: int) -> ScoreRow:
    """Of a head, from the queries q [H, d_head] of all heads at a position, and its keys k [N, d_head] at the positions `at`."""
    by_query = attention.scale * k  # [N, d_head]
    raw = by_query @ q[head]
    if attention.positions.acts_on == "scores":
        asked = torch.cat(
            (q[head][None], torch.zeros_like(q[:1]), torch.eye(q.shape[-1], device=q.device))
        )  # [2 + d_head, d_head]
        queries = torch.zeros(len(asked), len(q), 1, q.shape[-1], device=q.device)
        queries[:, head, 0] = asked * attention.scale
        none = torch.zeros(len(asked), len(q), 1, length, device=q.device)
        here, nothing, *each = attention.positions.weigh(none, queries, slice(position, position + 1))[:, head, 0, at].detach()
        raw, by_query = raw + here, by_query + (torch.stack(each) - nothing).T
    scores = raw if attention.cap is None else attention.cap(raw)
    ratio = torch.where(raw == 0, 1.0, scores / torch.where(raw == 0, 1.0, raw))[:, None]
    return ScoreRow(scores, ratio * attention.scale * q[head], ratio * by_query)


def choice(scores: Tensor, values: Tensor) -> Tensor:
    """How much each score adds to what a head reads by choosing, per unit of the score: [N].

    A head reads Σ softmax(scores) · values. Were all scores equal, it would read the mean of the values. The difference is what
    it gains by its choice. On the straight way from equal scores to these, every score has its share in it: the integral of the
    gradient, times the score (Sundararajan et al. 2017, integrated gradients; the Aumann–Shapley value). The shares add up to the
    difference exactly, even where the softmax is so sure that its gradient is 0. The weights sum to 0: what is added to all
    scores alike changes nothing.

    Args:
        scores: [N].
        values: [N], what reading each key alone would give.
    """
    span = float(scores.max() - scores.min())
    # The softmax changes fast while the scores still differ little: panels that double in width, from there to the whole way.
    ends, end = [0.0], 1.0 / max(span, 1.0)
    while end < 1.0:
        ends.append(end)
        end *= 2
    ends.append(1.0)
    points, shares = (torch.from_numpy(array).to(scores.device) for array in POINTS)
    total = torch.zeros_like(scores, dtype=torch.float64)
    exact, of_keys = scores.double() - scores.max().double(), values.double()
    for low, high in pairwise(ends):
        way = low + (high - low) * (points + 1) / 2  # [POINTS]
        patterns = (way[:, None] * exact).softmax(-1)  # [POINTS, N]
        read = patterns @ of_keys  # [POINTS]
        total += (shares * (high - low) / 2) @ (patterns * (of_keys - read[:, None]))
    return total.float()


def _queries_and_keys(attention: Attention, inputs: Tensor, x: Tensor, at: Tensor) -> Tensor:
    """Queries and keys [H + n_kv_head, N, d_head] of inputs x [N, d_model] at the positions `at`, an affine function of x.

    Args:
        attention: the attention.
        inputs: [T, d_model], what it read in the run: norms of queries and keys keep their scale.
        x: what it is asked for.
        at: the positions, in order.
    """
    span = slice(int(at[0]), int(at[-1]) + 1)
    row = torch.zeros_like(inputs[span]).index_copy(0, at - span.start, x)

    def projected(rows: Tensor) -> Tensor:
        return attention.heads(attention.qkv(rows[None]))[:, : -attention.key_heads]  # [1, H + n_kv_head, span, d_head]

    norm = _kept_inside(attention.qk_norm)
    with torch.no_grad():
        norm(projected(inputs[span]))
    return attention.positions.turn(norm(projected(row)), span)[0, :, at - span.start]


def _kept_inside(module: nn.Module) -> nn.Module:
    """A copy of a module in which every norm keeps the scale of what it gets first; the module itself stays as it is."""
    if isinstance(module, Norm):
        return KeptNorm(module)
    return sharing(module, **{name: _kept_inside(child) for name, child in module.named_children()})


def _kept_mlp(mlp: MLP, inputs: Tensor) -> Callable[[Tensor], Tensor]:
    """The affine function [N, d_model] → [N, d_model] that gives what an MLP gives of `inputs`: see the top of this file."""
    gate = (mlp.gate if isinstance(mlp, GatedMLP) else mlp.up)(inputs).detach()  # [N, d_mlp]
    active = mlp.activation(gate).detach()
    ratio = active / torch.where(gate == 0, 1.0, gate)  # an activation of 0 is 0
    if not isinstance(mlp, GatedMLP):
        return lambda x: mlp.down(ratio * mlp.up(x))
    up = mlp.up(inputs).detach()
    return lambda x: mlp.down((active * mlp.up(x) + ratio * up * mlp.gate(x)) / 2)


def _kept(residual: Residual, stream: Tensor, out: Tensor) -> tuple[dict[str, KeptNorm], Tensor]:
    """The norms of a residual with their scales in a run, and what its part read, [T, d_model].

    Args:
        residual: the residual.
        stream: [T, d_model], before it.
        out: [T, d_model], what its part gave.
    """
    norms: dict[str, KeptNorm] = {}
    value = inputs = stream
    for step in residual.steps:
        if step == "sublayer":
            inputs, value = value, out
        elif step == "add":
            value = stream + value
        else:
            norms[step] = KeptNorm(getattr(residual, step), value)
            value = norms[step](value)
    return norms, inputs


def numbers_of_a_token(config: Config) -> int:
    """About how many numbers a run over a text and the search in it hold for each token: what `Frozen` keeps, and what a head
    reads in its three ways, each a direction for every sublayer.
    """
    heads = (2 * config.n_head + 2 * config.key_heads) * config.head_size
    kept = 4 * config.d_model + heads  # two places of the stream, and what attention and MLP wrote
    return config.d_model + config.n_layer * (kept + 3 * 2 * config.d_model)


def means(model: Transformer, texts: Tensor) -> dict[str, Tensor]:
    """What every unit writes on average over all positions of `texts` [B, T], by tap name.

    Token embeddings, positions and MLPs have [d_model] each, `z` of the heads of a block has [H, d_head].
    """
    trace = run(model, texts, WRITTEN, logits_at=slice(-1, None))
    axes = {"positions": (0,), "z": (0, 2)}
    return {name: value.mean(axes.get(name.rpartition(".")[2], (0, 1))).clone() for name, value in trace.items()}
