"""The suggestions of the page Switch off: edits whose effect on this model, over this text, was computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gptviz.figures.kit.format import percent
from gptviz.interp.units.unit import Unit
from gptviz.model.parts.positions import POSITIONS
from gptviz.ui.shell.subject import ModelKey, Subject
from gptviz.ui.shell.subject.edits import EDITS
from gptviz.ui.views.contrasts import answered, loss_of_head, needed_head, right_by_task, when_it_appeared
from gptviz.ui.views.loss_texts import LossText, guess_of, loss_of, unit_of, without_each
from gptviz.ui.widgets import Try


def example(subject: Subject, units: Sequence[Unit], without: Mapping[Unit, float]) -> ModelKey:
    """The model without one head, for a page on which nothing is switched off yet: the head that its guess needs most. Where that
    takes long to find, the one that its loss needs most; as long as no loss is known either, the first unit.

    Args:
        subject: the model, without edits, and the prompt.
        units: the heads and MLPs of the model.
        without: the loss without each of them, as far as it is known.
    """
    guesses = without_each(subject.key, subject.seen)
    if guesses:
        likeliest = int(guess_of(subject.key, subject.seen).argmax())
        head = min(guesses, key=lambda one: guesses[one][likeliest])
    else:
        heads = {unit: value for unit, value in without.items() if unit.is_head} or without
        head = max(heads, key=heads.__getitem__, default=units[0])
    return replace(subject.key, edits=(head.name,))


def known(subject: Subject) -> list[Try]:
    """For a model of tasks with known answers: the head that each answer needs, what is lost without it, and when it appeared."""
    key, found = subject.key.unedited, list[Try]()
    for question in answered(key):
        head = needed_head(key, question)
        if head is None:
            continue
        with_it, without_it = (right_by_task(one) for one in (key, replace(key, edits=(head.head.name,))))
        task = question.contrast.part
        notice = loss_of_head(key, question, head)
        if task in with_it:  # of a task that mixes no others, it is not counted how often it is right
            notice += (
                f" Of the held-out answers in the task {task}, {percent(without_it[task])} are right without it, "
                f"{percent(with_it[task])} with it."
            )
        found.append(Try(question.contrast.title, notice, {"prompt": question.prompt}, {EDITS: head.head.name}))
    when = when_it_appeared(key, subject.prompt, lambda head: {EDITS: head.name})
    return found if when is None else [*found, when]


def tries(subject: Subject, text: LossText, before: float, without: Mapping[Unit, float]) -> list[Try]:
    """The suggestions; `before` is the loss without edits, `without` that without each head and MLP, as far as it is known."""
    unit, found = unit_of(subject.lm), known(subject)
    heads = {one: value for one, value in without.items() if one.is_head}
    if heads:
        most, least = max(heads, key=heads.__getitem__), min(heads, key=lambda one: abs(heads[one] - before))
        notice = f"Without {most.title} the loss {_moves(before, heads[most])} {unit}; no other head leaves a higher loss."
        found.append(Try("The head that matters most", notice, query={EDITS: most.name}))
        if most != least:
            notice = f"Without {least.title} the loss {_moves(before, heads[least])} {unit}; no other head changes it less."
            found.append(Try("The head that matters least", notice, query={EDITS: least.name}))
    config = subject.lm.model.config
    if config.n_layer and POSITIONS[config.positions].acts_on != "nothing":
        after = loss_of(replace(subject.key, edits=("positions",), edit_text=None), text)
        moves = _moves(before, after)
        worth = {"rises": "so much is order worth", "falls": "order is worth nothing", "stays": "order is worth nothing"}
        notice = f"Without positions the loss {moves} {unit}: {worth[moves.split()[0]]} on this text."
        found.append(Try("No positions", notice, query={EDITS: "positions"}))
    if config.n_layer and config.n_head:
        name = "encoder.blocks.0.attention=uniform" if config.n_encoder_layer else "blocks.0.attention=uniform"
        after = loss_of(replace(subject.key, edits=(name,), edit_text=None), text)
        where = "the first block of the encoder" if config.n_encoder_layer else "block 0"
        notice = f"If every head of {where} reads all tokens alike, the loss {_moves(before, after)} {unit}."
        found.append(Try("Attention that does not choose", notice, query={EDITS: name}))
    return found


def _moves(before: float, after: float) -> str:
    if f"{before:.3f}" == f"{after:.3f}":
        return f"stays at {before:.3f}"
    return f"{'rises' if after > before else 'falls'} from {before:.3f} to {after:.3f}"
