"""What a page asks of its model: an analysis, computed once for all sessions, and the very call,
for a reader to copy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from inspect import Parameter, signature
from threading import Condition
from typing import Any, Generic, TypeVar, cast

import streamlit as st
from cachetools import cached

from gptviz.figures.kit.format import duration
from gptviz.machine.byte_cache import byte_cache
from gptviz.machine.hosting import hosting
from gptviz.machine.job import Job
from gptviz.machine.memory import gives_way
from gptviz.model.costs.effort import A_SECOND, LONG
from gptviz.text import passages
from gptviz.ui.widgets import jobs

from .models import ModelKey, Subject, language_model, opening

Result = TypeVar("Result")
# Of all results together, the most bytes that are kept.
MOST_BYTES = 384 * 2**20


@dataclass(frozen=True)
class AskedAnalysis(Generic[Result]):
    """An analysis of a model with its settings."""

    key: ModelKey  #: the model
    room: str  #: the module of what is asked
    analysis: str  #: the function in it, of a language model and its settings
    #: its arguments by name, but for those that are as they are by default
    settings: tuple[tuple[str, Any], ...]
    title: str  #: what is computed, in words, for the bar that a page shows meanwhile
    #: whether who asks only reads: what was fitted for one of those was not kept for the others
    reads_only: bool = False

    @property
    def function(self) -> Callable[..., Result]:
        """What is asked."""
        return cast(Callable[..., Result], getattr(sys.modules[self.room], self.analysis))

    @property
    def value(self) -> Result:
        """The result, which all sessions share: read-only.

        Raises:
            ValueError: as in the analysis.
        """
        return cast(Result, _keep_results()(self))

    def compute(self) -> Result:
        """The result, computed here and now."""
        return self.function(language_model(self.key), **dict(self.settings))

    def on_demand(
        self, *, begins: bool, waits: float | None = None
    ) -> tuple[Job[Result] | None, Callable[..., None]]:
        """The computation of the result, and what shows how far it is: see `jobs.on_demand`. While
        it goes on, its value is the result so far, where the analysis shows one.
        """
        return jobs.on_demand(self, self.title, lambda: self.value, begins=begins, waits=waits)

    def follow_value(self, begins: str, work: float = 0.0) -> Result | None:
        """The result of an analysis that takes long. Until it is there, show how far it is and a
        way to stop it, and return None.

        Args:
            begins: the label of the button that begins it: at first where it would take very long,
                which is then said, and again where it was stopped.
            work: about how many multiplications it takes.
        """
        going, say_how_far = self.on_demand(begins=work <= LONG, waits=0.0)
        say_how_far(begins, begins, self.analysis)
        if going is None:
            self.say_how_long(work)
            return None
        return going.value

    def say_how_long(self, work: float) -> None:
        """How long about `work` multiplications take."""
        st.caption(
            f"{self.title} takes about {duration(work / A_SECOND)} with this model on two "
            "processor cores. It goes on while you look at other pages, and can be stopped."
        )

    @property
    def call(self) -> str:
        """The call as a line of Python: `lm.lens('O Romeo', top=20)`."""
        parameters = signature(self.function).parameters
        needed = [name for name, each in parameters.items() if each.default is Parameter.empty]
        arguments = [
            in_code(value) if name in needed else f"{name}={in_code(value)}"
            for name, value in self.settings
        ]
        return f"lm.{self.analysis}({', '.join(arguments)})"

    def code(self, *lines: str) -> str:
        """The lines of Python that open the model and make the call, and those that follow, which
        read its `result`.
        """
        return "\n".join([opening(language_model(self.key)), f"result = {self.call}", *lines])


def ask(
    about: Subject | ModelKey, analysis: Callable[..., Result], title: str, **settings: Any
) -> AskedAnalysis[Result]:
    """Ask a model for an analysis; its text, unless another is given, is the prompt on screen.

    Args:
        about: the model, or the subject of a page.
        analysis: a function of a language model; where its call is printed, a method of it.
        title: as in `AskedAnalysis`.
        settings: its arguments; they have to be hashable.
    """
    parameters = signature(analysis).parameters
    if isinstance(about, Subject) and "prompt" in parameters:
        settings = {"prompt": about.text} | settings
    usual = {name: each.default for name, each in parameters.items()}
    chosen = tuple(
        (name, settings[name])
        for name in usual
        if name in settings and settings[name] != usual[name]
    )
    key = about.key if isinstance(about, Subject) else about
    return AskedAnalysis(
        key, analysis.__module__, analysis.__name__, chosen, title, hosting().read_only
    )


def in_code(value: object) -> str:
    """A setting in the lines of Python that a page prints; the passages of books are not written
    out.
    """
    if value == passages():
        return "gptviz.text.passages()"
    return repr(value)


@st.cache_resource(show_spinner=False, max_entries=1)
def _keep_results() -> Callable[[AskedAnalysis[Any]], Any]:
    return cached(byte_cache(bytes_of, MOST_BYTES), condition=Condition())(_wait_for)


gives_way(_keep_results.clear)


def _wait_for(asked: AskedAnalysis[Any]) -> Any:
    return jobs.wait_for(asked, asked.title, asked.compute)


def bytes_of(value: object) -> int:
    """About how many bytes a result takes: those of its tensors and arrays, and of all else that it
    is made of.
    """
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if is_dataclass(value):
        return sum(bytes_of(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, Mapping):
        return sum(bytes_of(each) for pair in value.items() for each in pair)
    if isinstance(value, list | tuple):
        return sys.getsizeof(value) + sum(map(bytes_of, value))
    return sys.getsizeof(value)
