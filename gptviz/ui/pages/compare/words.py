"""The words of the page Compare: what A and B are, what to try, the code, and how it is computed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gptviz.figures.format import brief, counted, percent
from gptviz.interp import compare
from gptviz.ui.pages.compare.sides import EDITS, MODEL, PROMPT, SAME, STEP, Sides, other_prompt, own_text
from gptviz.ui.pages.compare.views import Shown, distributions
from gptviz.ui.shell import scrubber
from gptviz.ui.shell.models import ModelKey, load_call
from gptviz.ui.shell.subject import Subject
from gptviz.ui.widgets.markdown import escaped, in_quotes
from gptviz.ui.widgets.tries import Try

HOW = r"""
The same quantity is computed for A and for B, each in a pass of its own model, and subtracted: $B - A$, cell by cell, in float64.
Swapping the two changes the sign of every difference and nothing else; a side differs from itself by exactly 0. A and B share one
scale; the scale of the difference ends at its largest size on both sides, and 0 is the background.

- **Next token**: the softmax of the logits after the last token of each text. How much probability would have to move is
  $\frac12 \sum_i |p^B_i - p^A_i|$.
- **Attention**: the pattern of the same head in both. How much of it moved is half the sum of $|B - A|$ along a row, averaged
  over the rows.
- **Embeddings**: the vectors of all tokens that both have, along the principal axes of both together. Two steps of one model
  share their directions. Two models do not: both are centred, brought to a mean square length of 1, and turned onto each other
  (orthogonal Procrustes, Schönemann 1966). Distances are over all dimensions.
- **Logit lens**: the model's own head applied to the stream after every layer.
- **Attribution**: what each part adds to the logit of one token, with norms frozen at their value in that pass.
- **Heads**: scores of each head over its own text, or over repeated random tokens where the text repeats nothing.

Computed by `gptviz/interp/compare.py`, which asks the functions behind the other pages.
"""
LIMITS = (
    "Why two sides differ. The same number means the same head only in two steps or edits of one model: head 3 of another model "
    "is another head. Where two prompts have different tokens, cells are compared by their place in the text. And a small "
    "difference of a distribution may be a large one of the text that is drawn from it."
)


def said(sides: Sides) -> str:
    """What A and B are, and in what they differ, as Markdown."""
    a, b = sides.a, sides.b
    if sides.are_equal:
        return "A and B are the same model with the same text: every difference is 0."
    differ = [
        what
        for what, first, second in (
            ("the model", a.key.name, b.key.name),
            ("the step of training", a.key.step, b.key.step),
            ("the edits", a.key.edits, b.key.edits),
            ("the prompt", a.prompt, b.prompt),
        )
        if first != second
    ]
    what = " and ".join(differ) or "what is read of the prompt"
    return f"**A**: {_named(a)} · **B**: {_named(b)}. They differ in {what}."


def _named(one: Subject) -> str:
    step = " as saved last" if one.key.step is None else f" after {one.key.step:,} step{'' if one.key.step == 1 else 's'}"
    return escaped(f"{one.key.title}{step if scrubber.steps(one.key.name) else ''}")


def code(sides: Sides, shown: Shown) -> str:
    """The lines of `gptviz` that compute the same numbers."""
    lines = ["import gptviz", "from gptviz.interp import compare", ""]
    for name, one in (("a", sides.a), ("b", sides.b)):
        lines.append(f"{name} = {load_call(one.lm)}.side({one.prompt!r})")
    return "\n".join([*lines, f"compared = {shown.call}", "compared.a, compared.b, compared.difference  # B − A"])


def to_try(sides: Sides) -> list[Try]:
    """What to try: a step of training, another token, a head switched off; each sentence is computed for this model."""
    offers = [_training(sides.a), _other_token(sides.a), _without_head(sides.a)]
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


def _training(a: Subject) -> Try | None:
    """The model earlier in its training: the snapshot in the middle of those that were kept. Most are of early steps."""
    steps = scrubber.steps(a.key.name)
    if len(steps) < 2 or a.key.step is not None:
        return None
    middle = steps[len(steps) // 2]
    moved, token, last, then = _moved(a.key, a.seen, scrubber.at_step(a.key, middle), a.seen)
    notice = (
        f"After {counted(middle, 'step')} {token} had {percent(then)}, and has {percent(last)} now: since then "
        f"{percent(moved)} of the probability of the next token moved."
    )
    return Try("Earlier in its training", notice, _state(**{STEP: str(middle)}))


def _other_token(a: Subject) -> Try | None:
    changed = other_prompt(a.key, a.seen, a.prompt)
    ids = tuple(a.lm.tokenizer.encode(changed).ids)
    if len(ids) != len(a.seen) or ids == a.seen:
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
