"""The suggestions of the page Over training."""

from __future__ import annotations

from collections.abc import Sequence

from gptviz.figures.kit.format import brief
from gptviz.interp.over_training.history import History
from gptviz.interp.over_training.measures import Question
from gptviz.ui.records.over_training import APART, RELATIVES
from gptviz.ui.shell.subject import Subject, scrubber
from gptviz.ui.widgets import Try, escaped

from .beside import relatives
from .choices import KEY, Axes, possible
from .computed import values
from .show import STEP, sharpest


def tries(subject: Subject, histories: Sequence[History], axes: Axes) -> list[Try]:
    """The suggestions for this model and these measures; what they say is computed from the charts on screen."""
    own = [*_at_the_cliff(subject, histories, axes), *_panels(histories), *_vowels(subject), *_matrices(subject)]
    return [*own, *_side_by_side()]


def _at_the_cliff(subject: Subject, histories: Sequence[History], axes: Axes) -> list[Try]:
    """The step just after the sharpest change of the first measure that changes."""
    found = ((one, one.sharpest(log_steps=axes.log_steps)) for one in histories)
    for history, change in found:
        if change is not None:
            notice = f"{sharpest(subject, history, axes)} Open a page at the second of these two, then move the slider back."
            return [Try("At the sharpest change", escaped(notice), {STEP: str(change.steps[1])})]
    return []


def _panels(histories: Sequence[History]) -> list[Try]:
    heads = next((one for one in histories if one.measure.name.startswith("heads.")), None)
    if heads is None or len(heads.series) < 2:
        return []
    last = heads.values[-1]
    above = int((last > (last.min() + last.max()) / 2).sum())
    notice = (
        "A panel for each head, all on the same axes. In the upper half between the lowest and the highest value of the end: "
        f"{above} of {len(last)} heads. Did they rise together?"
    )
    return [Try("A panel for each head", notice, {"show": APART}, {KEY: heads.measure.name})]


def _vowels(subject: Subject) -> list[Try]:
    """A model of letters whose training brought the vowels together, as the picture of its embeddings shows."""
    name, steps = "similarity.vowels", scrubber.steps(subject.key.name)
    if name not in possible(subject):
        return []
    ends = [values(scrubber.at_step(subject.key, step), name, Question()) for step in (steps[0], steps[-1])]
    if ends[1]["two vowels"] < ends[0]["two vowels"] + 0.1:
        return []
    said = [
        f"{brief(found['two vowels'])} for two vowels and {brief(found['a vowel and a consonant'])} for a vowel and a consonant"
        for found in ends
    ]
    notice = (
        f"Mean cosines of embeddings: at step {steps[0]:,} {said[0]}, at step {steps[-1]:,} {said[1]}. Sinai 2024 shows "
        "in a picture of the embeddings of such a model that vowels come together: see when."
    )
    return [Try("Do vowels come together?", notice, {}, {KEY: name})]


def _matrices(subject: Subject) -> list[Try]:
    notice = "The loss beside the rank and the size of every matrix: do weights change when the loss does?"
    names = [name for name in ("loss", "weights.rank", "weights.norm") if name in possible(subject)]
    return [Try("The weights themselves", notice, {}, {KEY: ",".join(names)})]


def _side_by_side() -> list[Try]:
    """The models that show what one part, or a training before, is worth: each with its relatives."""
    offers = []
    for name, title, what, ask in (
        ("ladder-8", "The ladder, part by part", "From the bigram to a GPT, one part more each time", "Which lowers it most?"),
        (
            "finetune",
            "Pretraining first",
            "The same steps on Shakespeare with and without a training on another text before",
            "Who begins lower, and does it stay ahead?",
        ),
    ):
        cards = list(relatives(name).values())
        if cards:
            low, high = cards[0].validation_loss, cards[-1].validation_loss
            notice = f"{what}: {len(cards)} losses, from {high:.4f} at the end down to {low:.4f}. {ask}"
            offers.append(Try(title, notice, {"model": name, **({"show": RELATIVES} if scrubber.steps(name) else {})}))
    return offers
