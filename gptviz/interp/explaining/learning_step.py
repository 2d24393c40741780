"""One step of learning: from the loss of a text back to one weight, the optimiser's step, and the
loss after it.

The loss is the mean of the losses of all guesses, L = 1/T · Σ_t −log p_t(y_t). At the logits its
derivative is (p_t − y_t) / T, and the chain rule hands it back through every block. Each guess
pulls at the weight in its own way: the derivative of the loss is the mean of these pulls. The step
is computed in float32 as training does it, but without dropout; all else in float64.

Of a LoRA adapter only the adapter takes the step, as in training: its base stays as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.model import Record, Transformer, lora
from gptviz.train.optimisers import clip, optimisers
from gptviz.train.recipe import Recipe

from ..trace import one_row

MOST_PARAMETERS = 50_000_000  # the model is copied in float64, with a gradient for each number
POINTS = 41  # of the curve
# of the curve, to each side: so many times the weight, or the usual size of its tensor's weights if
# that is larger
REACH = 6
STEEPEST = 8


@dataclass(frozen=True, eq=False)
class LearningStep:
    """One step of learning on one text, seen from one weight."""

    ids: tuple[int, ...]  #: the text's tokens; the model guesses each but the first
    part: str  #: the name of the tensor that the weight is in
    at: tuple[int, ...]  #: its place there
    #: the places in that tensor with the steepest slopes, at most `STEEPEST`
    steepest: tuple[tuple[int, ...], ...]
    losses: Float64Array  #: [T], the loss of each guess, in nats; `loss` is their mean
    loss: float  #: the loss of the text before the step
    #: [T, vocab_size], the derivative of each guess's own loss by its logits: p − y
    error: Float64Array
    #: [n_layer + 1, T], the length of the derivative of the loss by the stream that enters each
    #: block and leaves the last, for each token that is read
    reaching: Float64Array
    #: [T], the derivative of each guess's own loss by the weight; their mean is `slope`
    pulls: Float64Array
    slope: float  #: the derivative of the loss by the weight
    #: the length of the derivative by all weights together, which is shortened to `clipped` at most
    #: (0: never)
    norm: float
    clipped: float  #: see `norm`
    #: the running mean of the slope, corrected for the zeros that it begins with; after the first
    #: step the slope itself
    mean: float | None
    #: the root of the running mean of its square, corrected too; both None for an optimiser other
    #: than Adam and AdamW
    root: float | None
    before: float  #: the weight before the step
    after: float  #: the weight after it
    loss_after: float  #: the loss of the text after the step of all weights
    loss_before: float  #: the loss before it, computed as `loss_after` is, in float32
    weights: Float64Array  #: [POINTS], other values of the weight
    #: [POINTS], the loss of the text with each, all other weights being as they were
    curve: Float64Array

    def way_back(self, labels: Sequence[str]) -> LabelledArray:
        """From the loss of each guess down to its pull at the weight: [row, token read], each row
        in its own unit; `labels` are those of the tokens that are read, all but the last.
        """
        right = self.error[np.arange(len(self.losses)), list(self.ids[1:])]
        blocks = [
            (f"into block {index}", lengths) for index, lengths in enumerate(self.reaching[:-1])
        ]
        end = (f"out of block {len(blocks) - 1}" if blocks else "embedding", self.reaching[-1])
        rows = [
            ("loss", self.losses),
            ("p − y", right),
            end,
            *reversed(blocks),
            ("pull", self.pulls),
        ]
        names, values = zip(*rows, strict=True)
        return LabelledArray(
            np.array(values),
            (Axis("from the loss to the weight", names), Axis("token", tuple(labels))),
            "",
        )


def parts_of(model: Transformer) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor of weights that training changes, by its name: of a LoRA adapter,
    those of its two factors beside each matrix.
    """
    trained = lora.parameters(lora.merged_adapter(model)) or dict(model.named_parameters())
    return {name: tuple(tensor.shape) for name, tensor in trained.items()}


def learning_step(
    model: Transformer,
    ids: Sequence[int],
    part: str,
    at: tuple[int, ...] | None = None,
    recipe: Recipe | None = None,
) -> LearningStep:
    """The first step that training on only this text would take. The model does not change.

    Args:
        ids: the tokens of the text, at least two; all but the last must fit in the context.
        part: the name of a tensor, one of `parts_of`.
        at: the place of the weight there; the one with the steepest slope unless given.
        recipe: what a run is trained with; its highest learning rate is that of the step.

    Raises:
        ValueError: the model is no decoder or too large, the text too short, or there is no such
            weight.
    """
    recipe = recipe or Recipe(steps=1)
    _check(model, ids, part, at)
    text, _ = one_row(model, ids)
    exact = copy_for_training(model).double().requires_grad_(True)
    places = [f"blocks.{index}.resid_pre" for index in range(len(exact.blocks))]
    record = Record([*places, f"blocks.{len(places) - 1}.resid_post"] if places else ["embed"])
    logits = exact(text[:, :-1], tap=record)[0]  # [T, vocab_size]
    losses = F.cross_entropy(logits, text[0, 1:], reduction="none")  # [T]
    tensor = exact.get_parameter(part)
    slopes, *streams = torch.autograd.grad(
        losses.mean(), [tensor, *record.values.values()], retain_graph=True
    )
    largest = slopes.abs().flatten().topk(min(STEEPEST, slopes.numel())).indices
    steepest = tuple(
        tuple(int(place) for place in torch.unravel_index(index, slopes.shape)) for index in largest
    )
    at = steepest[0] if at is None else at
    pulls = [torch.autograd.grad(loss, tensor, retain_graph=True)[0][at].item() for loss in losses]
    error = logits.detach().softmax(-1)
    error[torch.arange(len(error)), text[0, 1:]] -= 1
    weights, curve = _curve(exact, text, tensor, at)
    return LearningStep(
        ids=tuple(ids),
        part=part,
        at=at,
        steepest=steepest,
        losses=losses.detach().cpu().numpy(),
        loss=losses.mean().item(),
        error=error.cpu().numpy(),
        reaching=torch.stack([stream[0].norm(dim=-1) for stream in streams]).cpu().numpy(),
        pulls=torch.tensor(pulls, dtype=torch.float64).numpy(),
        slope=slopes[at].item(),
        before=tensor[at].item(),
        weights=weights.cpu().numpy(),
        curve=curve.cpu().numpy(),
        **_step(model, text, part, at, recipe),
    )


def refuse_no_text(model: Transformer, ids: Sequence[int]) -> None:
    """Refuse a model or a text that a step of learning is not computed for.

    Raises:
        ValueError: the model is no decoder or too large, or the text too short.
    """
    if model.config.kind != "decoder":
        raise ValueError("a step of learning is shown only of decoders")
    number = sum(parameter.numel() for parameter in model.parameters())
    if number > MOST_PARAMETERS:
        raise ValueError(
            f"the model has {number:,} parameters; a step is computed for at most "
            f"{MOST_PARAMETERS:,}"
        )
    if len(ids) < 2:
        raise ValueError("there is nothing to guess: give a text of at least two tokens")


def _check(model: Transformer, ids: Sequence[int], part: str, at: tuple[int, ...] | None) -> None:
    refuse_no_text(model, ids)
    shapes = parts_of(model)
    if part not in shapes:
        raise ValueError(
            f"the model has no weights called {part!r:.80}; it has {', '.join(shapes)}"
        )
    shape = shapes[part]
    if at is not None and (
        len(at) != len(shape)
        or not all(0 <= place < size for place, size in zip(at, shape, strict=True))
    ):
        raise ValueError(f"{part} has no weight at {at}; its shape is {shape}")


def copy_for_training(model: Transformer) -> Transformer:
    """A copy of the model as training has it, with weights of its own in float32, whatever they are
    kept in; whose gradients are computed, and without dropout.
    """
    fresh = {
        id(weight): nn.Parameter(weight.detach().float().clone()) for weight in model.parameters()
    }
    copied = copy.deepcopy(model, fresh).train()
    for part in copied.modules():
        # A matrix that is kept in fewer bits is multiplied and looked up in a way without a
        # gradient for it.
        part.__dict__.pop("multiply", None)
        part.__dict__.pop("look_up", None)
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    return lora.unmerge_adapter(copied)


@torch.no_grad()
def _curve(
    model: Transformer, text: Tensor, tensor: Tensor, at: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """Values of a weight, evenly around the one it has, and the loss with each: [POINTS] and
    [POINTS].
    """
    own = tensor[at].clone()
    reach = REACH * torch.maximum(own.abs(), tensor.square().mean().sqrt())
    values = own + torch.linspace(-1, 1, POINTS, dtype=torch.float64, device=own.device) * reach
    losses = []
    for value in values:
        tensor[at] = value
        losses.append(F.cross_entropy(model(text[:, :-1])[0], text[0, 1:]))
    tensor[at] = own
    return values, torch.stack(losses)


class StepTaken(NamedTuple):
    """A copy of a model after a step, and how it came there."""

    model: Transformer
    optimisers: list[torch.optim.Optimizer]
    loss: float  #: before the step
    norm: float  #: the length of the derivative by all weights together


def take_step(model: Transformer, text: Tensor, recipe: Recipe) -> StepTaken:
    """The optimiser's step on one text [1, T + 1], in the numbers and in the order of the trainer,
    in a copy of the model in float32.
    """
    trained = copy_for_training(model)
    steps = optimisers(trained, recipe)
    loss = _loss(trained, text)
    loss.backward()
    norm = clip(list(trained.parameters()), recipe.clip)
    for optimiser in steps:
        optimiser.step()
    return StepTaken(trained, steps, loss.item(), norm)


def _step(
    model: Transformer, text: Tensor, part: str, at: tuple[int, ...], recipe: Recipe
) -> dict[str, Any]:
    """The optimiser's step as one weight sees it."""
    taken = take_step(model, text, recipe)
    tensor = taken.model.get_parameter(part)
    mean = root = None
    state: dict[str, Tensor] = next(
        (each.state[tensor] for each in taken.optimisers if tensor in each.state), {}
    )
    if "exp_avg" in state:
        mean = state["exp_avg"][at].item() / (1 - recipe.beta1)
        root = (state["exp_avg_sq"][at].item() / (1 - recipe.beta2)) ** 0.5
    return {
        "norm": taken.norm,
        "clipped": recipe.clip,
        "mean": mean,
        "root": root,
        "after": tensor[at].item(),
        "loss_before": taken.loss,
        "loss_after": _loss(taken.model, text).item(),
    }


def _loss(model: Transformer, text: Tensor) -> Tensor:
    targets = text[:, 1:].flatten()
    return F.cross_entropy(model(text[:, :-1]).flatten(0, -2), targets, reduction="sum") * (
        1 / torch.tensor(len(targets))
    )
