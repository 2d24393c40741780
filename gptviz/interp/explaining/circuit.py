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
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from gptviz.interp.explaining.circuit_reads import Frozen, ReadKind, Reads, Usual
from gptviz.interp.units.unit import Unit
from gptviz.machine import progress
from gptviz.model import Transformer

# Thresholds that are tried, the highest first.
THRESHOLDS = tuple(0.5 * 0.75**i for i in range(23))
MOST_NODES = 60
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
        frozen = Frozen(model, ids, position, usual)
    token = int(frozen.stream.logits.argmax()) if token is None else token
    if token == against:
        raise ValueError("token and against are the same: their difference is 0")
    top = frozen.logit(token, against)
    with progress.part(1, 1 + SEARCHES, SEARCHES):
        grown = _grow(frozen, top, position, share, most)
    weights = {node: growing.weight for node, growing in grown.nodes.items()}
    given = {node: growing.given for node, growing in grown.nodes.items()} | {
        Node(None, position): top.total
    }
    read = tuple(ids.tolist())
    edges = tuple(grown.edges)
    reached = grown.share >= share
    numbers = (top.total, top.rest, weights, given, edges, grown.share, reached, grown.error)
    return Circuit(read, token, against, position, *numbers)


def _grow(frozen: Frozen, top: Reads, position: int, share: float, most: int) -> _Grown:
    """The smallest graph with this share; where it would have more than `most` nodes, the largest
    that has not.

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


class _Grown:
    """A graph of all edges that carry at least a threshold."""

    def __init__(
        self, frozen: Frozen, top: Reads, position: int, threshold: float, most: int | None
    ) -> None:
        self.frozen = frozen
        self.threshold = threshold
        logit = Node(None, position)
        self.nodes: dict[Node, _GrowingNode] = {logit: _GrowingNode(weight=1.0)}
        self.edges: list[Edge] = []
        self.is_whole = True
        self.share = 0.0
        self.error = 0.0
        self._expand(logit, [top])
        of = MOST_NODES if most is None else most
        # From the top down: what a node gives is complete before its own sources are looked for.
        for unit in reversed(frozen.units):
            for node in [node for node in self.nodes if node.unit == unit]:
                direction = self.nodes[node].direction
                assert direction is not None
                self._expand(node, frozen.inputs_of(unit, node.position, direction))
                progress.report(min(len(self.nodes), of), of, "node")
                if most is not None and len(self.nodes) > most:
                    self.is_whole = False
                    return
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
                for row, place in (carried >= self.threshold).nonzero().tolist():
                    source = Node(self.frozen.units[place], int(reads.at[row]))
                    value = float(reads.adds[row, place])
                    edge = Edge(source, node, reads.kind, value, float(sizes[row, place]) / every)
                    kept.append(edge)
                    below = self.nodes.setdefault(source, _GrowingNode())
                    below.weight = max(below.weight, float(carried[row, place]))
                    below.given += value
                    direction = reads.directions[self.frozen.units[place].layer][row]
                    if below.direction is None:
                        below.direction = direction
                    else:
                        below.direction = below.direction + direction
            kept.sort(key=lambda edge: -abs(edge.value))
            self.edges += kept
            growing.reads.append((matters, rest / every if every > 0 else 1.0, kept))

    def _share_inside(self) -> float:
        """The probability that a walk from the logit stays in the graph."""
        inside: dict[Node, float] = {}
        order = {None: len(self.frozen.units)} | dict(self.frozen.place)
        for node in sorted(self.nodes, key=lambda node: order[node.unit]):
            reads = self.nodes[node].reads
            parts = [
                (matters, rest + sum(edge.share * inside[edge.source] for edge in kept))
                for matters, rest, kept in reads
            ]
            every = sum(matters for matters, _ in parts)
            inside[node] = sum(matters * part for matters, part in parts) / every if every else 1.0
        return inside[next(iter(self.nodes))]
