"""The suggestions of the page Open a model."""

from __future__ import annotations

from collections.abc import Sequence

from gptviz.pretrained.places.stores import Place, Summary
from gptviz.ui.widgets import Try, escaped

from .here import problem
from .source import SOURCE


def tries(known: Sequence[tuple[Place, Summary]]) -> list[Try]:
    """The suggestions: the smallest model here that opens, and two that the hub is known for."""
    opens = [(about.parameters, place, about) for place, about in known if about.parameters and not problem(about)]
    offers = []
    if opens:
        count, place, about = min(opens, key=lambda one: one[0])
        offers.append(
            Try(
                "The smallest one here",
                f"{escaped(place.name)}: {escaped(about.family)}, {count:,} parameters. It is on this machine already.",
                state={SOURCE: place.given},
            )
        )
    offers.append(
        Try(
            "GPT-2, from the hub",
            "The smallest of four models that OpenAI published in 2019. Asks the hub how large it is; nothing is fetched yet.",
            state={SOURCE: "openai-community/gpt2"},
        )
    )
    offers.append(
        Try(
            "TinyStories, from the hub",
            "A small model that learned from stories for children only. Asks the hub how large it is.",
            state={SOURCE: "roneneldan/TinyStories-33M"},
        )
    )
    return offers
