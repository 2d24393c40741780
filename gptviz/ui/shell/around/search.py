"""The search over all that has a name: pages, lessons, words, models, heads and commands, from the
records that they have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import NamedTuple

import streamlit as st

from gptviz.commands import COMMANDS
from gptviz.components.kit import PayloadPart
from gptviz.components.search import index, payload, search
from gptviz.languages import translate, wanted
from gptviz.lessons.checking import with_model
from gptviz.runs import checkpoints
from gptviz.streamlit_internals import period
from gptviz.ui.menu import pages_here
from gptviz.ui.records.home import PAGE as HOME
from gptviz.ui.widgets.words import MEANINGS

from ..subject.model_list import said_by_card
from .lesson import OpenLesson, address_of, lessons, numbers


class Entry(NamedTuple):
    """Something that can be found."""

    kind: str  #: what it is
    name: str  #: what it is called
    about: str  #: a sentence about it
    #: where it is, relative to any page; one without a query keeps what the reader has chosen;
    #: empty for a command
    address: str = ""
    more: str = ""  #: further words that find it


def entries() -> Iterator[Entry]:
    """All that can be found now."""
    models = checkpoints.folders()
    every = lessons().lessons.values()
    here = pages_here()
    # The pages, and those that open on a model of their own also with that model, whatever the
    # reader has chosen.
    for page in here.values():
        explained = chain.from_iterable(page.about.values())
        yield Entry(
            "Page",
            translate(page.title),
            translate(page.sentence),
            address_of(page.name),
            " ".join([page.title, *page.words, *explained]),
        )
        if (own := page.opens_on) in models:
            yield Entry(
                "Page",
                f"{translate(page.title)} on {own}",
                translate(page.sentence),
                address_of(page.name, {"model": own}),
            )
    # The lessons by their numbers and titles, then their steps.
    for lesson in every:
        yield Entry(
            "Lesson",
            lesson.title,
            f"Lesson {numbers().get(lesson.name, 0)}. {lesson.about}",
            OpenLesson(lesson, 0, {}).address,
        )
    for lesson in every:
        for number, step in enumerate(lesson.steps):
            about = f"Step {number + 1} of the lesson “{lesson.title}”."
            yield Entry(
                "Lesson", step.title, about, OpenLesson(lesson, number, {}).address, step.text
            )
    # The words, each on the first page that explains it.
    for word, meaning in MEANINGS.items():
        explains = next((page.name for page in here.values() if word in page.words), None)
        if explains is not None:
            yield Entry("Word", word, translate(meaning), address_of(explains))
    for name, folder in models.items() if HOME.name in here else ():
        yield Entry("Model", name, said_by_card(folder), address_of("home", {"model": name}))
    # The heads that lessons show, each once and as the first of them shows it.
    heads: dict[str, Entry] = {}
    for lesson in every:
        for step in lesson.steps:
            if step.page is not None and {"block", "head"} <= step.page.query.keys():
                page_state = with_model(step.page, lesson)
                name = (
                    f"{page_state.query['model']}, block {page_state.query['block']}, head "
                    f"{page_state.query['head']}"
                )
                about = f"As the lesson “{lesson.title}” shows it: {step.title}."
                heads.setdefault(
                    name,
                    Entry(
                        "Head",
                        name,
                        about,
                        address_of(page_state.page, page_state.query),
                        step.text,
                    ),
                )
    yield from heads.values()
    for command in COMMANDS:
        yield Entry("Command", f"python -m gptviz {command.name}", command.summary)


# All visitors share it: a new model is found at once, and what a card or a lesson says after a
# while.
@st.cache_resource(max_entries=8, show_spinner=False)
def _index(
    models: tuple[str, ...],
    pages: tuple[str, ...],
    languages: tuple[str, ...],
    this_period: int,
) -> PayloadPart:
    return index(list(entries()))


def box(state: Mapping[str, str], around: Mapping[str, str]) -> None:
    """The button that opens the search; see `components.search.payload`."""
    found = _index(tuple(checkpoints.folders()), tuple(pages_here()), tuple(wanted()), period(30))
    search(key="search", data=payload(found, state, around))
