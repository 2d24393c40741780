"""The computations of the page Over training: each measure at each snapshot, once for all sessions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from gptviz.interp.over_training.history import History
from gptviz.interp.over_training.measures import MEASURES, Given, Measure, Question, Values
from gptviz.machine import progress
from gptviz.machine.job import Results
from gptviz.model.costs.effort import LITTLE, MOST, effort
from gptviz.ui.shell.subject import ModelKey, language_model, scrubber
from gptviz.ui.views.loss_texts import guess_of
from gptviz.ui.widgets import jobs

# How many likely tokens are listed.
LISTED = 30


def likeliest(key: ModelKey, ids: tuple[int, ...]) -> tuple[int, ...]:
    """The tokens that this model finds likeliest after `ids`, or its labels, the likeliest first. An encoder–decoder reads `ids`
    as its source, and guesses the first token of its answer.
    """
    return tuple((-guess_of(key, ids)).argsort(kind="stable")[:LISTED].tolist())


@st.cache_resource(max_entries=24, show_spinner="Reading the data")
def _given(last: ModelKey, measure: str, question: Question) -> Given:
    return language_model(last).given(MEASURES[measure], question)


# The values of one snapshot: a few hundred numbers.
@st.cache_data(max_entries=4_096, show_spinner=False)
def values(key: ModelKey, measure: str, question: Question) -> Values:
    """A measure of the snapshot of `key`; what it reads is that of the model as it was saved last."""
    given = _given(scrubber.as_saved_last(key.unedited), measure, question)
    return MEASURES[measure].compute(language_model(key).model, given)


def followed(key: ModelKey, measure: Measure, question: Question) -> tuple[History | None, Callable[[], None]]:
    """The history of a measure as far as it is known, or None; and what shows how far it is, or a button that begins it where it
    takes long. A history that takes no longer than a moment is whole.

    Raises:
        ValueError: as in `LanguageModel.given`.
        OSError: as in `LanguageModel.given`.
    """
    last, steps = scrubber.as_saved_last(key), scrubber.steps(key.name)
    given = _given(last.unedited, measure.name, question)
    name, title = ("over training", last, measure.name, question, steps), f"{measure.title}, at {len(steps)} snapshots"

    def compute(results: Results) -> None:
        for done, step in enumerate(steps):
            with progress.part(done, len(steps), step="snapshot"):
                results[str(step)] = values(scrubber.at_step(key, step), measure.name, question)

    model = language_model(last).model
    work = effort(model, given.tokens, measure.passes(model.config) * len(steps))
    is_quick = work <= LITTLE
    found, show = jobs.on_demand(name, title, compute, begins=work <= MOST, waits=None if is_quick else 0.0, spins=is_quick)
    ready = {} if found is None else {int(step): one for step, one in list(found.results.items())}
    about = f"{len(steps)} snapshots; it goes on while you look at other pages."
    labels = f"Compute it: {measure.title}", f"Go on: {measure.title}"
    shows = partial(show, *labels, f"over training {measure.name}", about)
    return History.of(measure, ready) if ready else None, shows
