"""The suggestions of the page Compare."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gptviz.figures.kit.format import brief, counted, percent
from gptviz.interp import compare
from gptviz.runs import checkpoints
from gptviz.ui.pages.compare.show import distributions
from gptviz.ui.pages.compare.sides import EDITS, MODEL, PROMPT, SAME, STEP, Sides, other_prompt, own_text
from gptviz.ui.records.compare import ANSWERS, ROWS
from gptviz.ui.shell.subject import ModelKey, Subject, edits, kinds, language_model, model_key, scrubber
from gptviz.ui.widgets import Try, escaped, in_quotes


def tries(sides: Sides) -> list[Try]:
    """The suggestions: a step of training, another token, a head switched off; each sentence is computed for this model."""
    offers = [
        _half_way(sides.a),
        _other_data(sides.a),
        _training(sides.a),
        _other_token(sides.a),
        _without_head(sides.a),
        _rows(sides.a),
    ]
    found = [offer for offer in offers if offer is not None]
    if np.isfinite(distributions(sides.key).a.values).any():
        return found
    return []


def _state(**chosen: Any) -> dict[str, Any]:
    return {MODEL: SAME, PROMPT: "", EDITS: "", **chosen}


def _moved(a: ModelKey, a_ids: tuple[int, ...], b: ModelKey, b_ids: tuple[int, ...]) -> tuple[float, str, float, float]:
    """How much probability moves, and the likeliest token of A with its probability in A and in B."""
    found = distributions((a, a_ids, b, b_ids))
    top = int(np.nanargmax(found.a.values))
    before, after = float(found.a.values[top]), float(np.nan_to_num(found.b.values[top]))
    return compare.total_variation(found), in_quotes(found.a.axes[0].labels[top]), before, after


def _other_data(a: Subject) -> Try | None:
    """Another model of the same task with other settings: what both answer to the first question of the task."""
    sentences, words = ((), ()) if a.lm.task is None else a.lm.task.questions()
    other = _twin(a.key.name)
    if not sentences or other is None:
        return None
    b = language_model(model_key(other, a.key.device, None, a.key.precision))
    try:
        likely = [float(lm.answers(sentences[:1], words[:1]).values[0, 0]) for lm in (a.lm, b)]
    except ValueError:  # it has other words
        return None
    notice = (
        f"{escaped(a.key.name)} and {escaped(other)} were trained on other shares of the same sentences. After "
        f"{in_quotes(sentences[0])} one gives {in_quotes(words[0])} {percent(likely[0])}, the other {percent(likely[1])}: what "
        "are the shares in their data?"
    )
    return Try("Other data", notice, _state(**{MODEL: other, "compared": ANSWERS}))


def _twin(name: str) -> str | None:
    """The model that was begun together with this one, or else another one that has learned the same task with other settings."""
    own, names = checkpoints.read_card(checkpoints.find(name)), [one for one in kinds.models_of("decoder") if one != name]
    if own.twin in names:
        return own.twin
    cards = ((one, checkpoints.read_card(checkpoints.find(one))) for one in names)
    return next((one for one, card in cards if card.task == own.task is not None and card.source != own.source), None)


def _rows(a: Subject) -> Try | None:
    """The rows of the data one by one, for a model that was trained on a text or a task that is here."""
    try:
        a.lm.trained_on()
    except (ValueError, OSError):
        return None
    notice = (
        "The sentences or lines of its data one by one: which does it find hard, which had it read in its training, and what did "
        "that change?"
    )
    return Try("Row by row", notice, _state(compared=ROWS))


def _half_way(a: Subject) -> Try | None:
    """A LoRA adapter half way to its base."""
    if a.lm.base is None or a.key.edits:
        return None
    half = edits.at_strength(a.key, 0.5)
    moved, token, tuned, then = _moved(a.key, a.seen, half, a.seen)
    notice = (
        f"A is {escaped(a.lm.base.name)} with its adapter as trained. With half of its strength {token} has {percent(then)} "
        f"instead of {percent(tuned)}, and {percent(moved)} of the probability moves. The slider above does so on every page."
    )
    return Try("Half the adapter", notice, _state(**{EDITS: ", ".join(half.edits)}))


def _training(a: Subject) -> Try | None:
    """The model at the first of its snapshots, as a rule before its training."""
    steps = scrubber.steps(a.key.name)
    if len(steps) < 2 or a.key.step is not None:
        return None
    moved, token, last, then = _moved(a.key, a.seen, scrubber.at_step(a.key, steps[0]), a.seen)
    notice = (
        f"After {counted(steps[0], 'step')} {token} had {percent(then)}, and has {percent(last)} now: since then "
        f"{percent(moved)} of the probability of the next token moved."
    )
    return Try("Where it began", notice, _state(**{STEP: str(steps[0])}))


def _other_token(a: Subject) -> Try | None:
    changed = other_prompt(a)
    ids = tuple(a.lm.tokenizer.encode(changed).ids)
    if len(ids) != len(a.seen) or sum(one != other for one, other in zip(a.seen, ids, strict=True)) != 1:
        return None
    moved, token, before, after = _moved(a.key, a.seen, a.key, ids)
    at = next(i for i, (one, other) in enumerate(zip(a.seen, ids, strict=True)) if one != other)
    label = a.lm.tokenizer.label
    notice = (
        f"With {in_quotes(label(ids[at]))} in the place of {in_quotes(label(a.seen[at]))} at position {at}, {token} goes from "
        f"{percent(before)} to {percent(after)}, and {percent(moved)} of the probability moves."
    )
    step = {STEP: scrubber.LAST if a.key.step is None else str(a.key.step)} if scrubber.steps(a.key.name) else {}
    return Try("One other token", notice, _state(**{PROMPT: changed, **step}))


def _without_head(a: Subject) -> Try | None:
    """B without the head that adds most to the model's guess."""
    strongest = own_text(a.key, a.seen).strongest
    if strongest is None:
        return None
    name, title, value = strongest.name, strongest.title, strongest.value
    listed = [*(edit for edit in a.key.edits if edit.partition("=")[0] != name), name]
    try:
        _, token, before, after = _moved(a.key, a.seen, replace(a.key, edits=tuple(listed)), a.seen)
    except ValueError:  # there are as many edits as a model may have
        return None
    notice = (
        f"Of all heads, {title} adds most to the logit of the likeliest token, {token}: {brief(value)}. Switched off in B, that "
        f"token goes from {percent(before)} to {percent(after)}."
    )
    step = {STEP: scrubber.LAST if a.key.step is None else str(a.key.step)} if scrubber.steps(a.key.name) else {}
    return Try("Without its strongest head", notice, _state(**{EDITS: ", ".join(listed), **step}))
