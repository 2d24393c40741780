"""What to try on the page Switch off: edits whose effect on this model, over this text, was computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gptviz.interp.units import Unit
from gptviz.model.positions import POSITIONS
from gptviz.ui.shell.edits import EDITS
from gptviz.ui.shell.models import ModelKey
from gptviz.ui.shell.subject import Subject
from gptviz.ui.widgets.tries import Try

from .texts import Text, loss_of, unit_of


def example(key: ModelKey, units: Sequence[Unit], without: Mapping[Unit, float]) -> ModelKey:
    """The model without the head that its loss needs most, for a page on which nothing is switched off yet; as long as no loss is
    known, without the first of its `units`.
    """
    heads = {unit: value for unit, value in without.items() if unit.is_head} or without
    return replace(key, edits=(max(heads, key=heads.__getitem__, default=units[0]).name,))


def tries(subject: Subject, text: Text, before: float, without: Mapping[Unit, float]) -> list[Try]:
    """The suggestions.

    Args:
        subject: the model.
        text: what the loss is over.
        before: its loss without edits.
        without: the loss without each head and MLP, as far as it is known.
    """
    unit, found = unit_of(subject.lm), list[Try]()
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
        notice = f"Without positions the loss {_moves(before, after)} {unit}: so much is order worth on this text."
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
