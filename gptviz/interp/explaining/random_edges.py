"""As many random edges as a circuit has: what they keep says how much any graph of this size would
keep.

A random graph grows from the logit downwards, as a circuit does, but by chance: of all edges that
lead into its nodes and are not in it, each is as likely to be taken next. An edge leads from a part
to a later one that can read it: to a head by value and by key from every position that it sees, and
by query from its own; to an MLP and to the logit from their own. It is not asked whether anything
is added along it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import torch

from gptviz.interp.explaining.circuit import Circuit, Node
from gptviz.interp.explaining.circuit_reads import visible_positions
from gptviz.interp.units.unit import Unit
from gptviz.model import Transformer
from gptviz.model.parts.residuals import RESIDUALS

# So many random graphs stand beside a circuit; they are the same ones each time.
DRAWS = 20
SEED = 0


@dataclass(frozen=True)
class Draws:
    """A number of several random graphs."""

    median: float
    low: float  #: the least of them
    high: float  #: the most

    @classmethod
    def of(cls, values: Sequence[float]) -> Draws:
        """Those of `values`; all are NaN where one of them is, or where there is none."""
        if not values or any(value != value for value in values):
            return cls(*3 * (float("nan"),))
        return cls(median(values), min(values), max(values))


class _Sources(NamedTuple):
    """All that a node can read, once for each way in which it reads it."""

    units: list[Unit]
    positions: list[int]

    @property
    def edges(self) -> int:
        return len(self.units) * len(self.positions)

    def node(self, number: int) -> Node:
        place, unit = divmod(number, len(self.units))
        return Node(self.units[unit], self.positions[place])


def draw_graphs(circuit: Circuit, model: Transformer, units: Sequence[Unit]) -> list[set[Node]]:
    """The nodes of `DRAWS` random graphs with as many edges as a circuit of `model` has, or with
    all
    edges that there are, where these are fewer. They are made of `units`, all that write into the
    stream.
    """
    chance = random.Random(SEED)
    ids = torch.tensor(circuit.ids, device=model.embed.weight.device)
    is_parallel = RESIDUALS[model.config.residual].parallel
    known = dict[Node, _Sources]()

    def place_of(unit: Unit) -> int:
        """Units with a lower place are read."""
        block = circuit.block_of(unit)
        if block is None:
            return -1
        return 2 * block + (not unit.is_head and not is_parallel)

    def find_sources(node: Node) -> _Sources:
        here = [node.position]
        if node.unit is None:
            return _Sources(list(units), here)
        if node.unit.part == "missed":
            return _Sources([], here)  # nobody knows what the error of a transcoder reads
        earlier = [unit for unit in units if place_of(unit) < place_of(node.unit)]
        if not node.unit.is_head:
            return _Sources(earlier, here)
        assert node.unit.block is not None
        seen = visible_positions(model, ids, node.unit.block, node.position).tolist()
        return _Sources(earlier, [*seen, *seen, *here])  # values, keys, query

    def draw_graph() -> set[Node]:
        top = circuit.nodes[0]
        edges = set[tuple[Node, int]]()
        known.setdefault(top, find_sources(top))
        nodes = {top: known[top].edges}
        while len(edges) < min(len(circuit.edges), sum(nodes.values())):
            # One edge of all that lead into the graph. It counts once if it is drawn again.
            (target,) = chance.choices(list(nodes), list(nodes.values()))
            number = chance.randrange(nodes[target])
            edges.add((target, number))
            source = known[target].node(number)
            if source not in known:
                known[source] = find_sources(source)
            nodes[source] = known[source].edges
        return set(nodes)

    return [draw_graph() for _ in range(DRAWS)]
