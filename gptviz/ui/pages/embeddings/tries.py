"""The suggestions of the page Embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gptviz.figures.kit.format import fixed, percent
from gptviz.interp.reading import embeddings
from gptviz.ui.shell.subject import Subject, scrubber
from gptviz.ui.views.vocabulary import tokens
from gptviz.ui.widgets import Try

from .computed import ProjectionChoice, capitals_together, vowel_cosines

# A sentence about where kinds of tokens lie is offered only if their cosines differ by at least this much.
CLEARLY = 0.05


def tries(subject: Subject, view: ProjectionChoice) -> list[Try]:
    """The suggestions for this model, at this step of its training: all sentences are computed from its vectors."""
    flat = {"method": "PCA", "dimensions": "2-D"}
    offers = [_first_step(subject, flat), _vowels(view), _praise(subject, flat), _capitals(view, flat)]
    notice = "Drag the picture: points that look like one group from one side may be two groups from another."
    return [*(offer for offer in offers if offer is not None), Try("Turn it", notice, {"method": "PCA", "dimensions": "3-D"})]


def _first_step(subject: Subject, flat: Mapping[str, Any]) -> Try | None:
    if not (steps := scrubber.steps(subject.key.name)):
        return None
    notice = f"Where the tokens lay at step {steps[0]:,}, the first that was kept. Press play and follow the grey line."
    return Try("The first step", notice, {"step": str(steps[0]), "trail": True, **flat})


def _vowels(view: ProjectionChoice) -> Try | None:
    alike, other = vowel_cosines(view.key, view.space)
    if "e" not in tokens(view.key).names or not alike > other + CLEARLY:
        return None
    notice = (
        f"Two vowels have a cosine of {fixed(alike)} on average, a vowel and a consonant {fixed(other)}: nobody told the model "
        "what a vowel is."
    ).replace("-", "−")
    return Try("Vowels", notice, {"token": "e", "method": "t-SNE", "dimensions": "2-D"})


def _praise(subject: Subject, flat: Mapping[str, Any]) -> Try | None:
    names = tokens(subject.key).names
    if subject.kind != "classifier" or not {"good", "bad"} <= set(names):
        return None
    rows = embeddings.vectors(subject.lm.model, "embedding")
    cosine = embeddings.mean_cosine(rows, [names.index("good")], [names.index("bad")])
    if not cosine < -CLEARLY:
        return None
    notice = f"“good” and “bad” point away from each other (cosine −{-cosine:.2f}). On which side are other words?"
    return Try("Good against bad", notice, {"token": "bad", **flat})


def _capitals(view: ProjectionChoice, flat: Mapping[str, Any]) -> Try | None:
    together, chance = capitals_together(view.key, view.space)
    if "A" not in tokens(view.key).names or not together > max(0.5, chance + CLEARLY):
        return None
    notice = (
        f"The nearest token to a capital is a capital too in {percent(together)} of cases; by chance it would be "
        f"{percent(chance)}."
    )
    return Try("Capitals apart", notice, {"token": "A", **flat})
