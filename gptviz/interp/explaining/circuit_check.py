"""Whether a circuit does what it claims: the model runs with everything outside of it replaced by
its mean.

Every unit at every position that is no node of the graph writes what it writes on average over the
positions of a reference text (mean ablation; Wang et al. 2023, section 3). Nodes go on computing:
they read what the others now write. So a graph that lacks something important loses the answer,
though its edges were computed with patterns and norms frozen. As many random edges stand beside
it: see `random_edges`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from gptviz.interp.explaining.attribution import difference
from gptviz.interp.explaining.circuit import Circuit, Node
from gptviz.interp.explaining.circuit_features import active_units, features_outside
from gptviz.interp.explaining.random_edges import DRAWS, Draws, draw_graphs
from gptviz.interp.trace import run
from gptviz.interp.units.unit import Unit, UnitKind, heads_and_mlps
from gptviz.machine import progress
from gptviz.model import Transformer


@dataclass(frozen=True)
class Checked:
    """The part that is left of a logit, or of the difference of two."""

    whole: float  #: of the model as it is
    kept: float  #: with everything outside the graph at its mean
    without: float  #: with everything at its mean
    likeliest: int  #: the likeliest token with everything outside the graph at its mean
    probability: float  #: that of the circuit's token then, 0 to 1
    kept_at_random: tuple[float, ...]  #: as `kept`, by random graphs with as many edges

    @property
    def share(self) -> float:
        """The part of `whole` - `without` that is kept: 1 is all, below 0 is the opposite; NaN
        where there is nothing to keep.
        """
        return self._share_of(self.kept)

    @property
    def random(self) -> Draws:
        """The same of as many random edges: over 20 draws."""
        return Draws.of([self._share_of(kept) for kept in self.kept_at_random])

    def _share_of(self, kept: float) -> float:
        everything = self.whole - self.without
        if everything:
            return (kept - self.without) / everything
        return float("nan")


def check(
    circuit: Circuit,
    model: Transformer,
    means: Mapping[str, Tensor],
    reference: Tensor | None = None,
) -> Checked:
    """Run the model that a circuit was found in with everything outside it at its mean; the `means`
    are those of `circuit_reads.means`, over the positions of a `reference` text [T], which those of
    features are taken over too: by default the circuit's own.
    """
    ids = torch.tensor(circuit.ids, device=model.embed.weight.device)

    def logits(edits: Mapping[str, Callable[[Tensor], Tensor]]) -> Tensor:
        at = slice(circuit.position, circuit.position + 1)
        return run(model, ids[None], ("logits",), edits=edits, logits_at=at)["logits"][0, 0]

    def answer(logits: Tensor) -> float:
        return difference(logits, circuit.token, circuit.against)

    text = ids if reference is None else reference

    def logits_of(nodes: Collection[Node]) -> Tensor:
        kept = {(node.unit, node.position) for node in nodes if node.unit is not None}
        of_features = features_outside(model, circuit.transcoders, kept, len(ids), text)
        return logits(mean_outside(model, kept, len(ids), means) | of_features)

    whole = answer(logits({}))
    kept = logits_of(circuit.nodes)
    everything = answer(logits_of(()))
    features = active_units(model, circuit.transcoders, ids)
    units = [
        own
        for written in _written(model, means).values()
        for unit in written
        for own in features.get(unit.name, [unit])
    ]
    kept_at_random = [
        answer(logits_of(nodes))
        for nodes in progress.report_each(draw_graphs(circuit, model, units), DRAWS, "random graph")
    ]
    probability = float(kept.softmax(-1)[circuit.token])
    likeliest = int(kept.argmax())
    return Checked(whole, answer(kept), everything, likeliest, probability, tuple(kept_at_random))


def _written(model: Transformer, means: Mapping[str, Tensor]) -> dict[str, list[Unit]]:
    """The units that write what each of `means` is the mean of."""
    inside = heads_and_mlps(model.config)
    outside: dict[str, UnitKind] = {"embed": "embed", "smear": "embed", "positions": "positions"}
    return {
        name: [Unit(outside[name])]
        if name in outside
        else [unit for unit in inside if name.startswith(f"{unit.layer}.")]
        for name in means
    }


def mean_outside(
    model: Transformer,
    nodes: Collection[tuple[Unit, int]],
    length: int,
    means: Mapping[str, Tensor],
) -> dict[str, Callable[[Tensor], Tensor]]:
    """Edits, for `trace.run`, that put all but these `nodes` (units at positions) of a text of this
    length at their means.
    """
    edits: dict[str, Callable[[Tensor], Tensor]] = {}
    for name, units in _written(model, means).items():
        mean = means[name]
        outside = torch.tensor(
            [[(unit, place) not in nodes for place in range(length)] for unit in units],
            device=mean.device,
        )

        def replace(value: Tensor, mean: Tensor = mean, outside: Tensor = outside) -> Tensor:
            if mean.dim() == 2:  # z of heads: value [1, H, T, d_head], mean [H, d_head]
                return torch.where(outside[None, :, :, None], mean[None, :, None], value)
            # [1, T, d_model], or [T, d_model] of positions
            return torch.where(outside[0, :, None], mean, value)

        edits[name] = replace
    return edits
