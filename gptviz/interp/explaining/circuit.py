"""The circuit of one guess: the parts that a logit owes most to, and what each of them owes to
those before it.

The graph grows from the logit downwards. Its nodes are units (token embeddings, positions, heads,
MLPs) at positions. An edge is what one adds to the input of another, in logits, with patterns and
norms frozen (see `circuit_reads.py`): what it writes, times what the logit gains from that by way
of the parts in the graph. Of a head there are three kinds of edges, since it reads in three ways:

- value: what it reads, with its pattern as it is. All value edges and the biases sum to what the
  head gives.
- key, query: what it gains by choosing, that is, by its pattern instead of one that reads all
  tokens alike. The key edges (with
  biases, and with what positions add to scores) sum to this gain, and so do the query edges. Each
  score has its share of it by integrated gradients (`circuit_reads.choice`), and is itself a sum
  over the sources of its key, and over those of its query.

This is the edge attribution of Nanda 2023 and Syed et al. 2023 (a value times a gradient), except
that the gradient of a softmax is an average over the way from equal scores: at its end, where a
head is sure, it is 0 (Kramár et al. 2024, AtP*).

Which edges are kept. Every node passes its weight on to its sources, in proportion to what they
add, without sign. The logit has the weight 1, and a choice that matters less than the values has
less to pass on. Edges that carry at least a threshold are kept. The threshold falls until a walk
from the logit downwards, which at each node takes an edge at random, in proportion to what it adds,
stays in the graph with the probability that the reader asks for, until it ends at a token, a
position or a bias: the share.

Where the MLPs are drawn as features of their transcoders (see `circuit_features.py`), what a
transcoder misses is a node too, the error. Nobody knows what it reads: a walk that ends there has
explained nothing. It is never left out: at least the largest one is in the graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from gptviz.interp.dictionaries.dictionary import Dictionary
from gptviz.interp.explaining.circuit_features import FrozenFeatures
from gptviz.interp.explaining.circuit_reads import Frozen, ReadKind, Reads, Usual
from gptviz.interp.units.unit import Unit
from gptviz.machine import progress
from gptviz.model import Transformer

# Thresholds that are tried, the highest first.
THRESHOLDS = tuple(0.5 * 0.75**i for i in range(23))
MOST_NODES = 60
MOST_LINES = 10_000  # where no number of edges is asked for
# At most this many of them are tried, as what is left of them is halved each time.
SEARCHES = len(THRESHOLDS).bit_length()


@dataclass(frozen=True)
class Node:
    """A unit at a position; None stands for the logit."""

    unit: Unit | None
    position: int

    @property
    def name(self) -> str:
        """Its name, such as `blocks.1.attention.head.3@5`."""
        return f"{'logit' if self.unit is None else self.unit.name}@{self.position}"


@dataclass(frozen=True)
class Edge:
    """The amount that a node adds to the input of another one."""

    source: Node  #: the node that adds
    target: Node  #: the node that reads
    kind: ReadKind  #: how it reads: see the top of this file
    value: float  #: what is added, in logits
    share: float  #: of all that the target reads in this way, without sign: 0 to 1


@dataclass(frozen=True)
class Circuit:
    """A graph."""

    ids: tuple[int, ...]  #: the text
    token: int  #: the token whose logit it is about
    against: int | None  #: the token whose logit is subtracted, or None if none is
    position: int  #: where the model guesses
    total: float  #: the logit or the difference, before any cap, as the model computed it
    rest: float  #: what of it comes from biases and from what is usual
    weights: Mapping[Node, float]  #: every node → its weight, from the logit down: 0 to 1
    #: every node → what it gives to the nodes above it in the graph, in logits
    given: Mapping[Node, float]
    edges: tuple[Edge, ...]  #: from the logit down
    share: float  #: the probability that a walk downwards stays inside
    #: whether that is what was asked for; if not, the graph would have become too large
    reached: bool
    #: by how much any of the sums behind the edges is off, as a share of all that is summed,
    #: without sign
    error: float
    #: of a graph over features, the dictionaries whose features stand for the MLPs of their blocks
    transcoders: tuple[Dictionary, ...] = ()
    #: the probability that a walk downwards ends in what they miss
    missed: float = 0.0

    def block_of(self, unit: Unit) -> int | None:
        """The block that a unit writes in; of a feature that of its dictionary."""
        named = {one.name: one.block for one in self.transcoders}
        return named.get(unit.called, unit.block)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, the logit first."""
        return tuple(self.weights)

    @property
    def main_edges(self) -> tuple[Edge, ...]:
        """The edges of the main path, from one node that nothing in the graph is passed on to up to
        the logit: from the logit back, each time along the edge that passes on most, as long as one
        adds something. Keys and queries pass nothing on; they choose what is read.
        """
        edges = list[Edge]()
        target = self.nodes[0]
        while passed := [
            edge
            for edge in self.edges
            if edge.target == target and edge.kind not in ("key", "query") and edge.value > 0
        ]:
            edges.insert(0, max(passed, key=lambda edge: edge.value))
            target = edges[0].source
        return tuple(edges)

    @property
    def main_path(self) -> tuple[Node, ...]:
        """The nodes along `main_edges`, the logit last."""
        return (*(edge.source for edge in self.main_edges), self.nodes[0])


def circuit(
    model: Transformer,
    ids: Tensor,
    position: int,
    token: int | None = None,
    against: int | None = None,
    share: float = 0.9,
    *,
    usual: Usual = None,
    most: int = MOST_NODES,
    lines: int | None = None,
    transcoders: Sequence[Dictionary] = (),
) -> Circuit:
    """The circuit of the logit of `token` at `position` of the text `ids` [T].

    Args:
        position: where the model guesses the next token.
        token: the token whose logit is looked into; by default the likeliest.
        against: another token, whose logit is subtracted: what both share then drops out.
        share: how much of the logit is to be traced back to tokens within the graph, above 0, at
            most 1.
        usual: what every unit writes on average, from `circuit_reads.means`, or "its mean": the
            averages over this text. Edges are then about what differs from it; without it, about
            all that is written.
        most: the most nodes that the graph may have.
        lines: the most edges that it may have.
        transcoders: dictionaries of MLPs, whose features stand for them.

    Raises:
        ValueError: the model is not a decoder, or there is no such position, token or share.
    """
    if not 0 <= position < len(ids):
        raise ValueError(
            f"there is no position {position}: the text has {len(ids)} tokens, counted from 0"
        )
    for name, value in (("token", token), ("against", against)):
        if value is not None and not 0 <= value < model.config.vocab_size:
            raise ValueError(
                f"{name} is {value}; the ids of tokens go from 0 to {model.config.vocab_size - 1:,}"
            )
    if not 0 < share <= 1:
        raise ValueError(f"share is {share!r:.40}; it must be above 0 and at most 1")
    with progress.part(0, 1 + SEARCHES):
        if transcoders:
            frozen: Frozen = FrozenFeatures(model, ids, position, usual, transcoders)
        else:
            frozen = Frozen(model, ids, position, usual)
    token = int(frozen.stream.logits.argmax()) if token is None else token
    if token == against:
        raise ValueError("token and against are the same: their difference is 0")
    top = frozen.logit(token, against)
    with progress.part(1, 1 + SEARCHES, SEARCHES):
        grown = _grow(frozen, top, position, share, (most - bool(transcoders), lines or MOST_LINES))
    weights = {node: growing.weight for node, growing in grown.nodes.items()}
    given = {node: growing.given for node, growing in grown.nodes.items()} | {
        Node(None, position): top.total
    }
    read = tuple(ids.tolist())
    edges = tuple(grown.edges)
    reached = grown.share >= share
    numbers = (top.total, top.rest, weights, given, edges, grown.share, reached, grown.error)
    of_features = tuple(transcoders), grown.missed
    return Circuit(read, token, against, position, *numbers, *of_features)


def _grow(frozen: Frozen, top: Reads, position: int, share: float, most: tuple[int, int]) -> _Grown:
    """The smallest graph with this share; where it would have more than `most` nodes or edges, the
    largest that has not.

    A lower threshold gives a larger graph, so the right one is found by halving what is left of
    them.
    """
    low = 0
    high = len(THRESHOLDS)
    enough = None
    within = None
    searched = 0
    while low < high:
        middle = (low + high) // 2
        with progress.part(searched, SEARCHES, step="search"):
            grown = _Grown(frozen, top, position, THRESHOLDS[middle], most)
        searched += 1
        if grown.is_whole and grown.share < share:
            within = grown
            low = middle + 1
        else:
            enough = grown if grown.is_whole else enough
            high = middle
    if (found := enough or within) is not None:
        return found
    with progress.part(SEARCHES, SEARCHES, 0, step="search"):
        return _Grown(frozen, top, position, THRESHOLDS[0], None)


@dataclass
class _GrowingNode:
    """A node of a graph that grows."""

    weight: float = 0.0
    given: float = 0.0
    direction: Tensor | None = None  # [d_model], of what it writes
    # importance, share of the rest, kept edges
    reads: list[tuple[float, float, list[Edge]]] = field(default_factory=list)
    # for each of these, the share of what transcoders miss in all that is read
    missed: list[float] = field(default_factory=list)


class _Grown:
    """A graph of all edges that carry at least a threshold."""

    def __init__(
        self,
        frozen: Frozen,
        top: Reads,
        position: int,
        threshold: float,
        most: tuple[int, int] | None,
    ) -> None:
        self.frozen = frozen
        self.threshold = threshold
        logit = Node(None, position)
        self.nodes: dict[Node, _GrowingNode] = {logit: _GrowingNode(weight=1.0)}
        self.edges: list[Edge] = []
        self.is_whole = True
        self.share = 0.0
        self.error = 0.0
        #: the probability that a walk from the logit ends in what transcoders miss
        self.missed = 0.0
        self._is_missed = torch.tensor([unit.part == "missed" for unit in frozen.units])
        # what a node reads of what transcoders miss, the edge that carries most of all
        self._most_missed: tuple[float, Edge, Tensor] | None = None
        self._expand(logit, [top])
        of = MOST_NODES if most is None else most[0]
        # From the top down: what a node gives is complete before its own sources are looked for.
        for unit in reversed(frozen.units):
            for node in [node for node in self.nodes if node.unit == unit]:
                direction = self.nodes[node].direction
                assert direction is not None
                self._expand(node, frozen.inputs_of(unit, node.position, direction))
                progress.report(min(len(self.nodes), of), of, "node")
                if most is not None and (len(self.nodes) > most[0] or len(self.edges) > most[1]):
                    self.is_whole = False
                    return
        self._show_what_is_missed()
        self.share = self._share_inside()

    def _expand(self, node: Node, all_reads: list[Reads]) -> None:
        growing = self.nodes[node]
        values = next((abs(reads.total) for reads in all_reads if reads.kind == "value"), 0.0)
        for reads in all_reads:
            # How much a head's choice matters, compared with all that it gives.
            if reads.kind not in ("key", "query"):
                matters = 1.0
            elif values:
                matters = min(1.0, abs(reads.total) / values)
            else:
                matters = 1.0
            sizes = reads.adds.abs()
            rest = 0.0 if node.unit is None else abs(reads.rest)
            every = float(sizes.sum()) + rest
            summed = float(reads.adds.sum()) + reads.rest
            self.error = max(
                self.error,
                abs(summed - reads.total) / max(float(sizes.sum()), abs(reads.total), 1e-30),
            )
            kept = []
            if every > 0:
                carried = growing.weight * matters * sizes / every
                self._note_missed(node, reads, carried, every)
                for row, place in (carried >= self.threshold).nonzero().tolist():
                    edge = self._edge(node, reads, row, place, every)
                    kept.append(edge)
                    direction = reads.directions[self.frozen.layers[place]][row]
                    self._add_source(edge, float(carried[row, place]), direction)
            kept.sort(key=lambda edge: -abs(edge.value))
            self.edges += kept
            growing.reads.append((matters, rest / every if every > 0 else 1.0, kept))
            missed = float(sizes[:, self._is_missed].sum()) / every if every > 0 else 0.0
            growing.missed.append(missed)

    def _edge(self, target: Node, reads: Reads, row: int, place: int, every: float) -> Edge:
        """The edge from the unit at a `place` to what reads it; `every` is all that it reads."""
        source = Node(self.frozen.units[place], int(reads.at[row]))
        value = float(reads.adds[row, place])
        return Edge(source, target, reads.kind, value, abs(value) / every)

    def _add_source(self, edge: Edge, carried: float, direction: Tensor) -> None:
        """Note a node of the graph by an edge that leads from it."""
        below = self.nodes.setdefault(edge.source, _GrowingNode())
        below.weight = max(below.weight, carried)
        below.given += edge.value
        if below.direction is None:
            below.direction = direction
        else:
            below.direction = below.direction + direction

    def _note_missed(self, node: Node, reads: Reads, carried: Tensor, every: float) -> None:
        """Note what a node reads of what transcoders miss, if it is the most so far."""
        if not self._is_missed.any():
            return
        of_missed = torch.where(self._is_missed, carried, -1.0)
        row, place = divmod(int(of_missed.argmax()), of_missed.shape[1])
        most = float(of_missed[row, place])
        if self._most_missed is None or most > self._most_missed[0]:
            direction = reads.directions[self.frozen.layers[place]][row]
            self._most_missed = most, self._edge(node, reads, row, place, every), direction

    def _show_what_is_missed(self) -> None:
        """Keep the largest error where none is large enough to be in the graph."""
        if self._most_missed is None:
            return
        if any(node.unit is not None and node.unit.part == "missed" for node in self.nodes):
            return
        carried, edge, direction = self._most_missed
        self._add_source(edge, carried, direction)
        self.edges.append(edge)

    def _share_inside(self) -> float:
        """The probability that a walk from the logit stays in the graph until it ends at what is
        known; notes the probability that it ends in what transcoders miss.
        """
        inside: dict[Node, float] = {}
        missed: dict[Node, float] = {}
        order = {None: len(self.frozen.units)} | dict(self.frozen.place)
        for node in sorted(self.nodes, key=lambda node: order[node.unit]):
            growing = self.nodes[node]
            if node.unit is not None and node.unit.part == "missed":
                # its share is counted where it is read
                inside[node] = missed[node] = 0.0
                continue
            weights = [matters for matters, _, _ in growing.reads]
            insides = [
                rest + sum(edge.share * inside[edge.source] for edge in kept)
                for _, rest, kept in growing.reads
            ]
            errors = [
                own + sum(edge.share * missed[edge.source] for edge in kept)
                for own, (_, _, kept) in zip(growing.missed, growing.reads, strict=True)
            ]
            inside[node] = _weighted_mean(insides, weights, 1.0)
            missed[node] = _weighted_mean(errors, weights, 0.0)
        logit = next(iter(self.nodes))
        self.missed = missed[logit]
        return inside[logit]


def _weighted_mean(numbers: Sequence[float], weights: Sequence[float], without: float) -> float:
    """The mean of numbers with weights; `without` any weight that."""
    every = sum(weights)
    if not every:
        return without
    return sum(each * weight for each, weight in zip(numbers, weights, strict=True)) / every
