"""Whether the run of a model has diverged, according to its card."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

from gptviz.model import Config
from gptviz.train.divergence import advice, has_diverged
from gptviz.train.recipe import Recipe

from .card import Card, LossEntry

LONGEST = 400  # characters of the sentence on a card, which may come from a stranger


def describe_divergence(card: Card, config: Config) -> str | None:
    """A sentence that says that the run has diverged and what to change, or None if it has not.

    It is computed from the losses if the card does not have such a sentence: cards of older
    versions never have one.
    """
    recipe = None
    with suppress(TypeError, ValueError):
        if card.recipe:
            recipe = Recipe.from_dict(dict(card.recipe))
        else:
            recipe = None
    return (card.diverged or "")[:LONGEST] or divergence_of(card.losses, config, recipe)


def divergence_of(losses: Sequence[LossEntry], config: Config, recipe: Recipe | None) -> str | None:
    """The same sentence, from the evaluations of a run in the order they were made."""
    made = [entry for entry in losses if entry.validation is not None]
    if not made or made[-1].step == 0 or made[-1].validation is None:
        return None
    last = made[-1]
    before = next((entry.validation for entry in made if entry.step == 0), None)
    uniform = math.log(config.n_label or config.vocab_size)
    if not has_diverged(before, last.training, made[-1].validation, uniform):
        return None
    change = "" if recipe is None else f". To change: {advice(recipe)}"
    if before is None:
        beginning = ""
    else:
        beginning = f", and before the first step it was {_nats(before)}"
    return (
        f"it diverged: after {last.step:,} steps its loss is {_nats(made[-1].validation)} nats. "
        f"A blind guess has {_nats(uniform)}{beginning}{change}"
    )


def _nats(loss: float) -> str:
    if loss < 1_000:
        return f"{loss:,.3f}"
    if loss < 1e9:
        return f"{loss:,.0f}"
    return f"{loss:.3g}"
