"""The inputs of a model's parts in one run, as sums of what other parts wrote: the edges of a
circuit.

With the scale of every norm kept at what it was in this run, the way from what a part writes into
the stream to what a later part reads is linear (see `decomposition`). A direction goes that way
downwards: it says how much a number at the top (a logit, say) gains from each number that is
written at a position. Its product with what a unit wrote there is what the unit adds, and all
units, with the biases, sum to the number at the top.

A sublayer is no linear function of what it reads. Each is replaced by an affine one (a matrix and a
bias) that gives the same output in this run:

- an MLP: the ratio r = f(x) / x of each neuron is kept, so that f(x) = r · x. In a gated MLP two
  numbers are multiplied, and each
  of them gets half of the product, which is its Shapley value. Source: Achtibat et al. 2024
  (AttnLRP), section 3;
- a head: its pattern is kept, and so is the scale of the norms of its queries and keys. What the
  pattern itself owes to queries
  and keys is in `choice`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from gptviz.interp.trace import run
from gptviz.interp.units.unit import Unit, unit
from gptviz.model import Config, Transformer
from gptviz.model.kinds import MODEL_KINDS
from gptviz.model.parts.attention import Attention
from gptviz.model.parts.experts import Expert, MixtureOfExperts
from gptviz.model.parts.mlps import AnyMLP, GatedMLP
from gptviz.model.parts.norms import Norm
from gptviz.model.parts.part import with_stand_ins
from gptviz.model.tap import IDENTITY

from .attribution import difference, of_tokens
from .decomposition import HEAD, FrozenNorm, Stream

# How a source reaches what reads it: as a value, key or query of a head, as the input of an MLP, or
# directly as a logit.
ReadKind = Literal["value", "key", "query", "mlp", "logit"]
# What counts as nothing new: by tap name, as `means` gives it; or what is written on average in the
# text itself; or nothing.
Usual = Mapping[str, Tensor] | Literal["its mean"] | None
WRITTEN = ("embed", "smear", "positions", "blocks.*.attention.z", "blocks.*.mlp.out")
TAPS = (*WRITTEN, "blocks.*.attention.[qkv]", "blocks.*.attention.out")
# At most this many bytes of what is read at some positions are kept during the search for a
# circuit, but always two passes.
MOST_KEPT = 2**26
# Points between −1 and 1 in each panel of the integral in `choice`, and their weights
# (Gauss–Legendre).
POINTS = np.polynomial.legendre.leggauss(12)


def inner_products(values: Tensor, directions: Tensor) -> Tensor:
    """The inner products of vectors [..., n] with directions [..., n]: [...]."""
    return (values * directions).sum(-1)


class Reads(NamedTuple):
    """The input of a unit, read in one way, along one direction of its output."""

    kind: ReadKind  #: the way
    #: what all that it reads adds in this way, as the run computed it: it is `adds.sum() + rest`
    total: float
    #: [N, units], what each unit adds at each of N positions, beyond what is usual, by the order of
    #: `Frozen.units`
    adds: Tensor
    rest: float  #: what the biases and the usual add
    at: Tensor  #: [N], the positions
    #: by the layer of a unit (see `Unit.layer`), [N, d_model], what the total gains from each
    #: number that is written there; 0 where nothing of it arrives
    directions: Mapping[str, Tensor]


class Frozen:
    """A decoder's run over one text, with its norms and patterns frozen."""

    def __init__(self, model: Transformer, ids: Tensor, position: int, usual: Usual = None) -> None:
        """Run a decoder over `ids` [T]; it guesses at `position`. A ValueError as in `Stream`, or
        for no tokens, or too many.
        """
        if model.config.kind != "decoder":
            raise ValueError(
                "a circuit is that of a decoder's guess, and this model is "
                f"{MODEL_KINDS[model.config.kind].with_article}"
            )
        if ids.dim() != 1 or not len(ids):
            raise ValueError("there are no tokens to read")
        self.model = model
        self.ids = ids
        #: what was written into the residual stream at all positions
        self.stream = Stream(model, ids.tolist(), guess=position, taps=TAPS, exactly=False)
        if usual == "its mean":  # there is none of a text of a single token
            if len(ids) > 1:
                written = {name: value.mean(0) for name, value in self.stream.values.items()}
            else:
                written = {}
            # Where there is a smear, the stream begins behind it.
            if written:
                usual = written | {"smear": written["embed"]}
            else:
                usual = {}
        self._usual = usual or {}
        #: all that writes into the stream, in the order of the pass: embedding, positions (if they
        #: are added), heads and MLPs
        self.units: list[Unit] = []
        #: for each unit, the layer that it is a piece of, as `Reads.directions` names it
        self.layers: list[str] = []
        self._columns: dict[str, slice] = {}  # by layer, the places of its units
        for layer in self.stream.written:
            if not layer.endswith(".bias"):
                pieces = self._units_of(layer)
                self._columns[layer] = slice(len(self.units), len(self.units) + len(pieces))
                self.units += pieces
                self.layers += [layer] * len(pieces)
        self.place = {one: i for i, one in enumerate(self.units)}
        # What is read at the same positions, such as by key and by value, shares one pass through
        # the norms.
        nbytes = sum(read.nbytes for read in self.stream.inputs.values())
        self._at = lru_cache(maxsize=max(2, MOST_KEPT // nbytes))(self.stream.slice_positions)

    def _units_of(self, layer: str) -> list[Unit]:
        """The units that what a layer writes is the sum of."""
        if not _has_heads(layer):
            return [unit(layer, self.model.config)]
        heads = range(self.model.config.n_head)
        return [unit(f"{layer}.head.{head}", self.model.config) for head in heads]

    @torch.no_grad()
    def logit(self, token: int, against: int | None) -> Reads:
        """The parts that add to the logit of a token, before any cap; minus that of another token,
        if given.
        """
        logits, directions, bias = of_tokens(self.stream, token, against)
        total = difference(logits, token, against)
        constant = sum(bias.values())
        at = self.stream.guess
        return self._read_linear("logit", HEAD, slice(at, at + 1), directions, total, constant)

    @torch.no_grad()
    def inputs_of(self, reader: Unit, position: int, direction: Tensor) -> list[Reads]:
        """The inputs of a head or an MLP at a position, by the ways in which it reads; nothing if
        an edit replaced what it writes. The direction [d_model] says what a number at the top gains
        from each number that is written there.
        """
        if reader.is_head:
            return self._head_reads(reader, position, direction)
        if not reader.is_mlp:
            return []
        layer = reader.layer
        here = slice(position, position + 1)
        inputs = self._inputs(layer, here)
        written = self.stream.written[layer][here]
        curve = _kept_mlp(cast(AnyMLP, self.stream.part(layer)), inputs)
        if not torch.allclose(curve(inputs), written, rtol=1e-3, atol=1e-4):
            return []  # an edit put something else in its place
        return [
            self._read_affine(
                "mlp", layer, here, curve, direction[None], float(written[0] @ direction)
            )
        ]

    def _inputs(self, layer: str, at: slice) -> Tensor:
        """The input of a sublayer at the positions `at`, [N, d_model]."""
        return self._at(at.start, at.stop).inputs[layer][0].detach()

    def _read_affine(
        self,
        kind: ReadKind,
        layer: str,
        at: slice,
        affine: Callable[[Tensor], Tensor],
        along: Tensor,
        total: float,
        constant: float = 0.0,
    ) -> Reads:
        """A read through an affine function of a sublayer's input at the positions `at`, `along` a
        direction of its result; `constant` is added to it without any input.
        """
        nothing = torch.zeros_like(self._inputs(layer, at), requires_grad=True)
        with torch.enable_grad():
            result = (affine(nothing) * along).sum()
        (read,) = torch.autograd.grad(result, nothing)
        return self._read_linear(kind, layer, at, read, total, float(result.detach()) + constant)

    def _read_linear(
        self,
        kind: ReadKind,
        reader: str,
        at: slice,
        directions: Tensor,
        total: float,
        constant: float,
    ) -> Reads:
        """How much all units add along directions [N, d_model] of the reader's input at the
        positions `at`.
        """
        stream = self._at(at.start, at.stop)
        pulled = stream.pull(reader, directions)
        adds = torch.zeros(len(stream.rows), len(self.units), device=stream.device)
        for name, direction in pulled.items():
            if name in self._columns and not stream.is_replaced(name):
                adds[:, self._columns[name]] = self._beyond_usual(stream, name, direction)
        # the sum over writers: `pull` has checked it
        every = float(inner_products(stream.inputs[reader][0].detach(), directions).sum())
        rest = every - float(adds.sum()) + constant
        return Reads(
            kind, total, adds, rest, torch.tensor(stream.rows, device=stream.device), pulled
        )

    def _beyond_usual(self, stream: Stream, layer: str, direction: Tensor) -> Tensor:
        """How much the units of a layer add along a direction [N, d_model] of its output, beyond
        what is usual: [N, units].
        """
        if _has_heads(layer):
            z = stream.numbers(stream.values[f"{layer}.z"])  # [N, H, d_head]
            return inner_products(
                z - self._usual.get(f"{layer}.z", 0.0), stream.to_heads(layer, direction)
            )
        if layer == "embed" and self.model.smear is not None:
            name = "smear"
        else:
            name = layer
        usual = self._usual.get(f"{layer}.out" if "." in layer else name, 0.0)
        return inner_products(stream.written[layer] - usual, direction)[:, None]

    def _head_reads(self, reader: Unit, position: int, direction: Tensor) -> list[Reads]:
        layer = reader.layer
        head = reader.index
        assert reader.block is not None
        assert head is not None
        attention = cast(Attention, self.stream.part(layer))
        # [T, H or n_kv_head, d_head] each
        q, k, v, z = (self.stream.values[f"{layer}.{name}"] for name in "qkvz")
        n_head = q.shape[1]
        n_kv_head = k.shape[1]
        size = q.shape[2]
        served = head // (n_head // n_kv_head)  # the key head that serves it
        seen = visible_positions(self.model, self.ids, reader.block, position)
        at = slice(int(seen[0]), int(seen[-1]) + 1)
        here = slice(position, position + 1)
        read = seen - at.start  # their places among the positions `at`
        row = _score_row(
            attention, q[position], k[seen, served], head, position, seen, len(self.ids)
        )
        # [d_model, d_head]
        into = self.stream.numbers(attention.output.weight)[:, head * size :][:, :size]
        along = direction @ into  # [d_head]
        # [N] both
        pattern = row.scores.softmax(-1)
        each = v[seen, served] @ along
        if not torch.allclose(
            pattern @ each,
            z[position, head] @ along,
            rtol=1e-3,
            atol=1e-4 * float(each.abs().max()),
        ):
            return []  # an edit put something else in its place
        weights = choice(row.scores, each)
        chosen = float(pattern @ each - each.mean())

        def value(x: Tensor) -> Tensor:
            # [N, d_head]
            return attention.heads(attention.qkv(x[None]))[0, n_head + n_kv_head + served, read]

        def key(x: Tensor) -> Tensor:
            # [N, d_head]
            return _queries_and_keys(attention, self._inputs(layer, at), x, at)[
                n_head + served, read
            ]

        def query(x: Tensor) -> Tensor:
            # [1, d_head]
            return _queries_and_keys(attention, self._inputs(layer, here), x, here)[head]

        of_keys = weights[:, None] * row.by_key
        of_query = (weights @ row.by_query)[None]
        scored = weights @ row.scores
        # of scores, what comes only from positions
        beside_keys = float(scored - inner_products(of_keys, k[seen, served]).sum())
        beside_query = float(scored - of_query[0] @ q[position, head])
        of_values = pattern[:, None] * along
        with torch.no_grad():
            read_from_stream = inner_products(of_values, value(self._inputs(layer, at))).sum()
        # of values, what embeddings of their own add
        beside_values = float(pattern @ each - read_from_stream)
        return [
            self._read_affine(
                "value", layer, at, value, of_values, float(pattern @ each), beside_values
            ),
            self._read_affine("key", layer, at, key, of_keys, chosen, beside_keys),
            self._read_affine("query", layer, here, query, of_query, chosen, beside_query),
        ]


def visible_positions(model: Transformer, ids: Tensor, block: int, position: int) -> Tensor:
    """The positions of the text `ids` [T] that a query may read in a block: [N]."""
    length = len(ids)
    mask = model.masks[model.mask_of[block]]
    blocked = mask(ids[None], slice(0, length), model.config.padding)
    everything = torch.arange(length, device=ids.device)
    if blocked is None:
        return everything
    rows = blocked.reshape(-1, length)  # [T, T], or [1, T] where all queries see the same
    return everything[~rows[position if len(rows) > 1 else 0]]


def _has_heads(layer: str) -> bool:
    return layer.endswith(".attention")


class ScoreRow(NamedTuple):
    """The scores of one query of one head over the N positions that it sees."""

    scores: Tensor  #: [N]
    by_key: Tensor  #: [N, d_head], what each score gains from each number of its key
    #: [N, d_head], what each score gains from each number of the query. A cap on scores is kept as
    #: a ratio.
    by_query: Tensor


def _score_row(
    attention: Attention, q: Tensor, k: Tensor, head: int, position: int, at: Tensor, length: int
) -> ScoreRow:
    """The scores of a head at a `position`, from the queries q [H, d_head] there and the keys k [N,
    d_head] at positions `at`.
    """
    by_query = attention.scale * k  # [N, d_head]
    raw = by_query @ q[head]
    if attention.positions.acts_on == "scores":
        asked = torch.cat(
            (q[head][None], torch.zeros_like(q[:1]), torch.eye(q.shape[-1], device=q.device))
        )  # [2 + d_head, d_head]
        queries = torch.zeros(len(asked), len(q), 1, q.shape[-1], device=q.device)
        queries[:, head, 0] = asked * attention.scale
        none = torch.zeros(len(asked), len(q), 1, length, device=q.device)
        here, nothing, *each = attention.positions.weigh(
            none, queries, slice(position, position + 1)
        )[:, head, 0, at].detach()
        raw = raw + here
        by_query = by_query + (torch.stack(each) - nothing).T
    scores = raw if attention.cap is None else attention.cap(raw)
    ratio = torch.where(raw == 0, 1.0, scores / torch.where(raw == 0, 1.0, raw))[:, None]
    return ScoreRow(scores, ratio * attention.scale * q[head], ratio * by_query)


def choice(scores: Tensor, values: Tensor) -> Tensor:
    """How much each score [N] adds to what a head reads by choosing, per unit of the score: [N].
    The values [N] are what reading only one key would give.

    A head reads Σ softmax(scores) · values. Were all scores equal, it would read the mean of the
    values. The difference is what it gains by its choice. On the straight way from equal scores to
    these, every score has its share in it: the integral of the gradient, times the score
    (Sundararajan et al. 2017, integrated gradients; the Aumann–Shapley value). The shares add up to
    the difference exactly, even where the softmax is so sure that its gradient is 0. The weights
    sum to 0: what is added to all scores alike changes nothing.
    """
    span = float(scores.max() - scores.min())
    # The softmax changes fast while the scores still differ little: panels that double in width,
    # from there to the whole way.
    ends = [0.0]
    end = 1.0 / max(span, 1.0)
    while end < 1.0:
        ends.append(end)
        end *= 2
    ends.append(1.0)
    points, shares = (torch.from_numpy(array).to(scores.device) for array in POINTS)
    total = torch.zeros_like(scores, dtype=torch.float64)
    exact = scores.double() - scores.max().double()
    of_keys = values.double()
    for low, high in pairwise(ends):
        way = low + (high - low) * (points + 1) / 2  # [POINTS]
        patterns = (way[:, None] * exact).softmax(-1)  # [POINTS, N]
        read = patterns @ of_keys  # [POINTS]
        total += (shares * (high - low) / 2) @ (patterns * (of_keys - read[:, None]))
    return total.float()


def _queries_and_keys(attention: Attention, inputs: Tensor, x: Tensor, at: slice) -> Tensor:
    """Queries and keys [H + n_kv_head, N, d_head] of x [N, d_model] at the positions `at`, an
    affine function of x: norms of queries and keys keep the scale that they have for `inputs` [N,
    d_model], what the attention read in the run.
    """

    def project_rows(rows: Tensor) -> Tensor:
        # [1, H + n_kv_head, N, d_head]
        return attention.heads(attention.qkv(rows[None]))[:, : -attention.key_heads]

    norms = (part for part in attention.qk_norm.modules() if isinstance(part, Norm))
    kept: dict[nn.Module, nn.Module] = {
        part: FrozenNorm(part, Tensor.detach, Tensor.detach) for part in norms
    }
    norm = with_stand_ins(attention.qk_norm, kept, x.device)
    with torch.no_grad():
        norm(project_rows(inputs))
    return attention.positions.turn(norm(project_rows(x)), at)[0]


def _kept_mlp(mlp: AnyMLP | Expert, inputs: Tensor) -> Callable[[Tensor], Tensor]:
    """The affine function [N, d_model] → [N, d_model] that gives what an MLP gives of `inputs`: see
    the top of this file.
    """
    if isinstance(mlp, MixtureOfExperts):
        weights = mlp.weights(inputs, IDENTITY).detach()  # [N, expert]
        kept = [_kept_mlp(expert, inputs) for expert in mlp.every_expert]
        return lambda x: torch.stack(
            [weights[:, i, None] * each(x) for i, each in enumerate(kept)]
        ).sum(0)
    # [N, d_mlp]
    gate = (mlp.gate if isinstance(mlp, GatedMLP | Expert) else mlp.up)(inputs).detach()
    active = mlp.activation(gate).detach()
    ratio = active / torch.where(gate == 0, 1.0, gate)  # an activation of 0 is 0
    if not isinstance(mlp, GatedMLP | Expert):
        return lambda x: mlp.down(ratio * mlp.up(x))
    up = mlp.up(inputs).detach()
    return lambda x: mlp.down((active * mlp.up(x) + ratio * up * mlp.gate(x)) / 2)


def numbers_of_a_token(config: Config) -> int:
    """About how many numbers a run over a text and the search in it hold for each token: what
    `Frozen` keeps, and what a head reads in its three ways, each a direction for every sublayer.
    """
    heads = (2 * config.n_head + 2 * config.key_heads) * config.head_size
    kept = 4 * config.d_model + heads  # two places of the stream, and what attention and MLP wrote
    return config.d_model + config.n_layer * (kept + 3 * 2 * config.d_model)


def means(model: Transformer, texts: Tensor) -> dict[str, Tensor]:
    """The mean output of every unit over the positions of `texts` [B, T], by tap: [d_model], or [H,
    d_head] for `z` of heads.
    """
    trace = run(model, texts, WRITTEN, logits_at=slice(-1, None))
    axes = {"positions": (0,), "z": (0, 2)}
    averages = {
        name: value.mean(axes.get(name.rpartition(".")[2], (0, 1))).clone()
        for name, value in trace.items()
    }
    # What the embedding wrote is then that behind the smear, positions included (see `Stream`).
    return {
        name: mean
        for name, mean in averages.items()
        if "smear" not in averages or name not in ("embed", "positions")
    }
