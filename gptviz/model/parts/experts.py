"""A mixture of experts: of many small MLPs, a router chooses a few for each token (Shazeer et al.
2017; Jiang et al. 2024).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise

import torch
from torch import Tensor, nn

from ..tap import Tap
from .activations import ACTIVATIONS
from .part import LightCall, Linear, ModelPart, Settings


class Expert(LightCall):
    """A gated MLP of its own width, without biases: down(activation(gate(x)) · up(x))."""

    def __init__(self, settings: Settings, size: int) -> None:
        super().__init__()
        self.gate = Linear(settings.d_model, size, bias=False)
        self.activation = ACTIVATIONS[settings.activation]()
        self.up = Linear(settings.d_model, size, bias=False)
        self.down = Linear(size, settings.d_model, bias=False)

    def neurons(self, x: Tensor) -> Tensor:
        """[N, d_model] → [N, size]."""
        passed: Tensor = self.activation(self.gate(x))
        return passed * self.up(x)


class MixtureOfExperts(ModelPart):
    """Σ weight_e · expert_e(x) over the experts that the router chose for a token.

    The weights are the softmax of the router's scores, of which the `n_active` largest are kept;
    where `expert_norm` is set, they are divided by their sum. A shared expert, if there is one,
    comes last: every token passes it, with the weight σ(shared_gate(x)). So a mixture is one wide
    gated MLP, whose neurons are multiplied by the weight of their expert, and are 0 where the
    expert was not chosen. Only the chosen experts are computed.
    """

    title = "Experts"
    equation = "Σ weight_e · down_e(activation(gate_e(x)) · up_e(x))"
    about = (
        "A mixture of experts: many gated MLPs side by side, of which a router chooses a few for "
        "each token and weighs what they "
        "give."
    )

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.n_active = settings.n_active
        self.normed = settings.expert_norm
        self.router = Linear(settings.d_model, settings.n_expert, bias=False)
        self.experts = nn.ModuleList(
            Expert(settings, settings.expert_size) for _ in range(settings.n_expert)
        )
        shared = settings.d_shared
        self.shared_gate = Linear(settings.d_model, 1, bias=False) if shared else None
        self.shared = Expert(settings, shared) if shared else None
        ends = [0, *accumulate(expert.down.in_features for expert in self.every_expert)]
        # of the neurons of each expert among all
        self.columns = [slice(*both) for both in pairwise(ends)]

    @property
    def every_expert(self) -> list[Expert]:
        """The experts, the shared one last."""
        return [*self.experts, *([] if self.shared is None else [self.shared])]

    def weights(self, x: Tensor, tap: Tap) -> Tensor:
        """How much each expert counts for each token, 0 where it was not chosen: [..., d_model] →
        [..., expert].
        """
        shares = tap("router", self.router(x)).softmax(-1)  # [..., n_expert]
        largest, chosen = shares.topk(self.n_active, dim=-1)  # [..., n_active] each
        if self.normed:
            largest = largest / largest.sum(-1, keepdim=True)
        weights = torch.zeros_like(shares).scatter(-1, chosen, largest)
        if self.shared_gate is not None:
            weights = torch.cat((weights, self.shared_gate(x).sigmoid().to(weights)), dim=-1)
        return tap("experts", weights)

    def forward(self, x: Tensor, tap: Tap) -> Tensor:
        """[B, T, d_model] → [B, T, d_model]."""
        x = tap("read", x)
        weights = self.weights(x, tap).flatten(0, -2)  # [B · T, expert]
        # [B · T, d_model]
        rows = x.flatten(0, -2)
        chosen = list(self._chosen_experts(weights))
        made = rows.new_zeros(len(rows), self.columns[-1].stop)
        for number, expert, at in chosen:
            made[at, self.columns[number]] = (
                expert.neurons(rows[at]) * weights[at, number, None]
            ).to(made)
        made = made.view(*x.shape[:-1], -1)
        neurons = tap("neurons", made)  # [B, T, d_mlp]
        if neurons is not made:  # an edit may have made neurons of other experts active
            chosen = list(self._chosen_experts(torch.ones_like(weights)))
        active = neurons.flatten(0, -2)
        out = torch.zeros_like(rows)
        for number, expert, at in chosen:
            out[at] += expert.down(active[at, self.columns[number]]).to(out)
        return tap("out", out.view_as(x))  # [B, T, d_model]

    def _chosen_experts(self, weights: Tensor) -> Iterator[tuple[int, Expert, Tensor | slice]]:
        """Each expert that some token has a weight for, with its number and those tokens; of
        weights [N, expert].

        Where gradients are asked for, an expert without tokens comes too: its gradient is 0. On the
        meta device, where weights have no numbers, all experts read all tokens.
        """
        if weights.is_meta:
            yield from (
                (number, expert, slice(None)) for number, expert in enumerate(self.every_expert)
            )
            return
        experts, places = weights.T.nonzero(as_tuple=True)  # in the order of the experts
        tokens = places.split(experts.bincount(minlength=len(self.columns)).tolist())
        for number, (expert, at) in enumerate(zip(self.every_expert, tokens, strict=True)):
            if len(at) or torch.is_grad_enabled():
                yield number, expert, at

    def write_vectors(self) -> tuple[Tensor, Tensor | None]:
        """What an activation of 1 of each neuron adds [d_model, d_mlp], and the bias, which a
        mixture lacks.
        """
        return torch.cat([expert.down.weight for expert in self.every_expert], dim=1), None
