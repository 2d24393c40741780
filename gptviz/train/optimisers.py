"""The optimisers by name: those of torch, fused if that is faster."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Muon, Optimizer

from gptviz.model import Config, Transformer, lora
from gptviz.model.builder import parameter_shapes

from .recipe import Recipe


class BlockMuon(Muon):
    """Muon for the matrices inside blocks: a step along the orthogonalised momentum, equally large
    in all directions.

    Steps are scaled to the size of AdamW's, so that both use the same learning rate.

    Source: K. Jordan et al., “Muon: An optimizer for hidden layers in neural networks” (2024); the
    scale: J. Liu et al., “Muon is Scalable for LLM Training” (2025).
    """

    def __init__(self, matrices: list[nn.Parameter], recipe: Recipe) -> None:
        options: dict[str, Any] = {
            "weight_decay": recipe.weight_decay,
            "momentum": 0.95,
            "adjust_lr_fn": "match_rms_adamw",
        }
        super().__init__(matrices, lr=recipe.learning_rate, **options)


def optimisers(model: Transformer, recipe: Recipe) -> list[Optimizer]:
    """The optimisers for the weights of `model`; each parameter belongs to one of them. Biases and
    gains do not decay.
    """
    made: list[Optimizer] = []
    parameters = list(model.parameters())
    if recipe.optimiser == "muon":
        if model.encoder is None:
            stacks = [model]
        else:
            stacks = [model, model.encoder]
        matrices = [
            p
            for stack in stacks
            for p in stack.blocks.parameters()
            if p.dim() == 2 and p.requires_grad
        ]
        inside = {id(p) for p in matrices}
        parameters = [p for p in parameters if id(p) not in inside]
        if matrices:
            made.append(BlockMuon(matrices, recipe))
        if not parameters:  # an adapter has only matrices
            return made
    vectors = [p for p in parameters if p.dim() < 2]
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    # On two cores the fused step takes a third of the default's time.
    rate = recipe.learning_rate
    fused = model.embed.weight.device.type in ("cpu", "cuda")
    if recipe.optimiser == "sgd":
        return [SGD(groups, rate, momentum=recipe.beta1, fused=fused)]
    kind = Adam if recipe.optimiser == "adam" else AdamW
    return [*made, kind(groups, rate, betas=(recipe.beta1, recipe.beta2), fused=fused)]


def optimiser_numbers(config: Config, recipe: Recipe) -> int:
    """How many numbers the optimisers of a model of `config` keep from step to step; the count of
    steps is left out.

    Adam and AdamW keep two for each parameter, SGD one if it has momentum, and Muon one for each
    number of the matrices inside blocks and AdamW's two for all others.
    """
    parameters = sum(map(math.prod, trained_shapes(config, recipe).values()))
    match recipe.optimiser:
        case "sgd":
            if recipe.beta1:
                return parameters
            return 0
        case "muon":
            return 2 * parameters - sum(map(math.prod, block_matrices(config, recipe)))
        case _:
            return 2 * parameters


def trained_shapes(config: Config, recipe: Recipe) -> Mapping[str, tuple[int, ...]]:
    """The shape of every parameter that is trained, by its name: all of a model, or those of its
    adapter.
    """
    if recipe.lora_rank:
        return lora.parameter_shapes(config, lora.every_matrix(config, recipe.lora_rank))
    return parameter_shapes(config)


def block_matrices(config: Config, recipe: Recipe) -> list[tuple[int, ...]]:
    """The shapes of the trained matrices inside the blocks, which Muon takes."""
    shapes = trained_shapes(config, recipe).items()
    return [
        shape
        for name, shape in shapes
        if name.removeprefix("encoder.").startswith("blocks.") and len(shape) == 2
    ]


def tensors(optimizers: list[Optimizer]) -> dict[str, Tensor]:
    """The tensors in the state of the optimisers, by name: "optimiser.parameter.key", the first two
    as numbers.
    """
    named = {}
    for which, optimizer in enumerate(optimizers):
        for parameter, state in optimizer.state_dict()["state"].items():
            for key, value in state.items():
                if isinstance(value, Tensor):
                    named[f"{which}.{parameter}.{key}"] = value
    return named


def restore(optimizers: list[Optimizer], named: dict[str, Tensor]) -> None:
    """Give new optimisers a copy of the state `named` of others of their kind; a ValueError if it
    does not fit them.
    """
    _take_no_step(optimizers)
    expected = {name: value.shape for name, value in tensors(optimizers).items()}
    if {name: value.shape for name, value in named.items()} != expected:
        raise ValueError("what the optimiser remembers is of another model or optimiser")
    for which, optimizer in enumerate(optimizers):
        content = optimizer.state_dict()
        for parameter, state in content["state"].items():
            for key in state:
                if (name := f"{which}.{parameter}.{key}") in named:
                    state[key] = named[name].clone()
        optimizer.load_state_dict(content)


def _take_no_step(optimizers: list[Optimizer]) -> None:
    """Take a step with zero gradients and a learning rate of 0. It changes no weight, but creates
    the state of the optimisers.
    """
    for optimizer in optimizers:
        rates = [group["lr"] for group in optimizer.param_groups]
        for group in optimizer.param_groups:
            group["lr"] = 0.0
            for parameter in group["params"]:
                parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
        optimizer.zero_grad()
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate


def clip(parameters: list[nn.Parameter], most: float) -> float:
    """The norm of all gradients as one vector, before they are scaled to a norm of at most `most`;
    0 means no limit.
    """
    norm: Tensor = torch.nn.utils.clip_grad_norm_(parameters, most or math.inf)
    return norm.item()
