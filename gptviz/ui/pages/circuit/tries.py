"""The suggestions of the page Circuit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gptviz.figures.kit.format import brief, percent, signed
from gptviz.interp.explaining.circuit import Circuit
from gptviz.text.datasets.base import Contrast
from gptviz.ui.shell.subject import Subject
from gptviz.ui.views.contrasts import known_contrasts
from gptviz.ui.views.guesses import logits_after
from gptviz.ui.views.text_position import END
from gptviz.ui.widgets import Try, capitalised, escaped

from .computed import CircuitChoice, found
from .show import BOXES, OFFERED, OPENED, RIVAL, SHARE, is_large, offered_ids, said_of

# The share of the logit that the suggestion of a smaller graph asks for.
CORE = 0.5
# Heads that a sentence names.
MOST_NAMED = 4


def tries(subject: Subject, chosen: CircuitChoice, data: Circuit) -> list[Try]:
    """The suggestions for this model, text and graph."""
    return [
        *(offer for contrast in known_contrasts(subject.lm) for offer in _known(subject, chosen, contrast)),
        *_the_core(subject, chosen, data),
        *_the_strongest(subject, chosen, data),
        *_the_difference(subject, chosen),
        *_the_example(subject),
    ]


def _known(subject: Subject, chosen: CircuitChoice, contrast: Contrast) -> list[Try]:
    """For a model of sentences: what decides between the right answer and the wrong one, if the model knows the right one, and
    the page does not show it already.
    """
    ids = tuple(subject.lm.tokenizer.encode(contrast.clean).ids)
    right, wrong = subject.lm.token(contrast.right), subject.lm.token(contrast.wrong)
    if len(ids) > subject.lm.model.config.context_length:
        return []
    asked = CircuitChoice(len(ids) - 1, right, wrong, SHARE, boxes=BOXES)
    if ids == subject.seen and chosen == asked:
        return []
    logits = logits_after(subject.key, ids, asked.position)
    if logits.argmax() != right or wrong not in np.argsort(-logits, kind="stable")[:OFFERED]:
        return []
    data = found(subject.key, ids, asked)
    heads = [node for node in data.nodes if node.unit is not None and node.unit.is_head]
    best = max(heads, key=lambda node: data.given[node], default=None)
    strongest = (
        ""
        if best is None or best.unit is None
        else f" Of all heads, {best.unit.title} gives most to the boxes above it ({signed(data.given[best])})."
    )
    notice = (
        f"“{escaped(contrast.clean)}”: {contrast.right} is ahead of {contrast.wrong} by {brief(data.total)}. "
        f"{len(data.nodes)} boxes hold {percent(data.share)} of what decides between them.{strongest}"
    )
    state = {"prompt": contrast.clean, "token": str(right), "against": RIVAL, "share": SHARE, "boxes": BOXES, "beyond_mean": True}
    return [Try(f"{contrast.right} or {contrast.wrong}?", notice, state, END)]


def _the_core(subject: Subject, chosen: CircuitChoice, data: Circuit) -> list[Try]:
    """A smaller graph, where there is one."""
    if chosen.share <= CORE or is_large(subject):
        return []
    core = found(subject.key, subject.seen, replace(chosen, share=CORE))
    if len(core.nodes) >= len(data.nodes):
        return []
    heads = [node.unit.title for node in core.nodes if node.unit is not None and node.unit.is_head]
    named = ", ".join(dict.fromkeys(heads[:MOST_NAMED]))
    among = f" Among them: {named}." if named else " There is no head among them."
    notice = f"{len(core.nodes)} of the {len(data.nodes)} boxes are enough for {percent(core.share)}.{among}"
    return [Try("Its core alone", notice, {"share": CORE, "boxes": chosen.boxes})]


def _the_strongest(subject: Subject, chosen: CircuitChoice, data: Circuit) -> list[Try]:
    """The head that gives most."""
    heads = [node for node in data.nodes if node.unit is not None and node.unit.is_head]
    if not heads:
        return []
    best = max(heads, key=lambda node: abs(data.given[node]))
    assert best.unit is not None
    name = capitalised(best.unit.title)
    notice = f"{name} at position {best.position}: {said_of(subject, chosen, data, best)} Open it, and see what it looks at."
    return [Try("The strongest head", notice, query={OPENED: best.name})]


def _the_difference(subject: Subject, chosen: CircuitChoice) -> list[Try]:
    """The likeliest token against the next one."""
    first, second, *_ = [*offered_ids(subject, chosen.position), None, None]
    if chosen.against is not None or first is None or second is None:
        return []
    logits = logits_after(subject.key, subject.seen, chosen.position)
    one, other = (escaped(subject.lm.tokenizer.label(token)) for token in (first, second))
    notice = (
        f"“{one}” is ahead of “{other}” by {brief(float(logits[first] - logits[second]))}. What parts add to both drops out: "
        "what is left decides between them."
    )
    return [Try("Why not the second one?", notice, {"token": str(first), "against": str(second)})]


def _the_example(subject: Subject) -> list[Try]:
    """For a model of a task: the example, where another text is on screen."""
    if not subject.on_task or subject.prompt == subject.default:
        return []
    notice = "A text of the kind that this model has learned: which of its tokens does the answer come from?"
    return [Try("An example", notice, {"prompt": subject.default}, END)]
