"""The circuit of a task in a language model, down to single weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from gptviz.interp.explaining import weight_circuit as circuits
from gptviz.interp.explaining.weight_circuit import (
    End,
    Questions,
    Switchable,
    Weight,
    WeightCheck,
    WeightCircuit,
    check,
    ends,
    prune,
)
from gptviz.interp.explaining.weight_circuit import weight_circuit as compute_circuit
from gptviz.model import Transformer
from gptviz.settings.kinds import Count

from .core import LoadedModel
from .settings import check_settings

if TYPE_CHECKING:
    from gptviz.text import Task


@check_settings
def weight_circuit(
    lm: LoadedModel, part: str, share: float = 0.9, *, questions: Count = 256
) -> WeightCircuit:
    """The few weights that keep what the model answers to questions of a task, such as "names": see
    `gptviz.interp.explaining.weight_circuit`.

    Args:
        part: which of the tasks that the model has learned: as `weight_tasks` lists
            them.
        share: how much of the mean difference between the right and the wrong token is kept, above
            0, below 1.
        questions: how many sentences are asked, drawn as for training.
    """
    return compute_circuit(lm.model, _ask(lm, part, questions), share)


def weight_tasks(lm: LoadedModel) -> tuple[str, ...]:
    """The tasks that the model has learned for which `weight_circuit` has questions."""
    task = lm.task
    if task is None:
        return ()
    return tuple(part for part in task.parts or (task.name,) if task.choices(part, 1) is not None)


@check_settings
def check_weights(
    lm: LoadedModel, circuit: WeightCircuit, part: str, *, questions: Count = 256
) -> WeightCheck:
    """How a circuit of weights answers sentences that it was not found with, and what is left of
    the whole model without it, and without as many other weights.
    """
    found_with = _ask(lm, part, questions)
    return check(lm.model, found_with, _ask(lm, part, questions, held_out=True), circuit.weights)


@check_settings
def pruned(
    lm: LoadedModel, circuit: WeightCircuit, part: str, *, questions: Count = 256
) -> Transformer:
    """The model in which all weights outside of a circuit are switched off."""
    return prune(lm.model, _ask(lm, part, questions), circuit.weights)


def name_weights(lm: LoadedModel, circuit: WeightCircuit) -> tuple[tuple[str, str], ...]:
    """What each weight of a circuit leads from and to, with the words of the vocabulary."""
    return tuple(_name_ends(lm, weight) for weight in circuit.weights)


def _name_ends(lm: LoadedModel, weight: Weight) -> tuple[str, str]:
    def name_end(end: End) -> str:
        if end.kind in ("token", "logit"):
            return f"{end.kind} {lm.tokenizer.label(end.index)}"
        return end.name

    source, target = ends(weight, lm.model.config)
    return name_end(source), name_end(target)


def weight_between(lm: LoadedModel, circuit: WeightCircuit, source: str, target: str) -> Weight:
    """The weight of a circuit that leads from one place to another, named as in `name_weights`; a
    ValueError if it has none.
    """
    for weight in circuit.weights:
        if _name_ends(lm, weight) == (source, target):
            return weight
    raise ValueError(f"no weight of the circuit leads from {source!r:.40} to {target!r:.40}")


def right_without(lm: LoadedModel, part: str, weight: Weight, *, questions: Count = 256) -> float:
    """The share of held-out questions in which the model prefers the right token if one weight is
    switched off.
    """
    of = Switchable(lm.model, _ask(lm, part, questions, held_out=True))
    return circuits.right_without(of, weight.matrix, weight.row, weight.column)


def _ask(lm: LoadedModel, part: str, count: int, *, held_out: bool = False) -> Questions:
    """The questions of a part of the model's task."""
    known = weight_tasks(lm)
    if part not in known:
        raise ValueError(
            f"{lm.name} has no questions about {part!r:.40}: "
            + (f"choose {', '.join(known)}" if known else "it has learned no task that has any")
        )
    task: Task | None = lm.task
    choices = None if task is None else task.choices(part, count, held_out=held_out)
    assert choices is not None
    of = (choices.ids, choices.at, choices.right, choices.wrong)
    return Questions(*(torch.as_tensor(one, device=lm.device).long() for one in of))
