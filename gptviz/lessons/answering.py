"""Answers: computing the model's answer to a question, checking the reader's, and filling computed
values into texts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gptviz.text.visible_form import make_visible

from .expression import ExpressionError, compute_expression
from .lesson import EXPRESSION, Question

Functions = Mapping[str, Callable[..., Any]]
# Characters that Markdown gives a meaning.
_MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_{}[]()<>#+-.!|~$:"})


@dataclass(frozen=True)
class Answer:
    """The right answer to a question, computed by the model."""

    #: an option, a number, the text of a token, or the values in a page's address
    value: str | float
    question: Question  #: the question that it answers

    def is_right(self, given: str | float) -> bool:
        """Whether a reader's answer is right: a number within the tolerance, else the same text; a
        token may lack its space.
        """
        if self.question.kind == "token" and isinstance(given, str) and isinstance(self.value, str):
            return given == self.value or given.strip() == self.value.strip() != ""
        if self.question.kind != "number":
            return given == self.value
        if not isinstance(given, int | float) or not isinstance(self.value, int | float):
            return False
        return math.isfinite(given) and abs(
            given - self.value
        ) <= self.question.within + 1e-9 * abs(self.value)

    @property
    def in_words(self) -> str:
        """The answer as a reader sees it: a number with its unit, a token in visible form, an
        option as it is written.
        """
        question = self.question
        value = self.value
        if not isinstance(value, str):
            if abs(value) >= 10_000:
                return f"{value:,.0f} {question.unit}".strip()
            return f"{value:.4g} {question.unit}".strip()
        if question.kind == "token":
            return f"“{make_visible(value)}”"
        if len(question.state) > 1:
            return ", ".join(
                f"{name} {chosen}" for name, chosen in question.in_address(value).items()
            )
        return f"“{question.label(value)}”"


def answer_to(question: Question, functions: Functions) -> Answer:
    """The answer that the model gives; an ExpressionError if there is none, or it is no number or
    option as the question asks.
    """
    if question.kind == "guess":
        # in an expression, so that what is wrong with it is said as of any other
        goes_on = f"first_token({question.prompt!r}, {question.answer})"
        return Answer(compute_expression(goes_on, functions), question)
    value = compute_expression(question.answer, functions)
    if question.kind == "number":
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            raise ExpressionError(f"the answer is {value!r:.40}; it must be a number")
        return Answer(value, question)
    text = value if isinstance(value, str) else str(value)
    if question.kind == "choice" and text not in question.options:
        raise ExpressionError(
            f"the answer is {text!r:.40}, which is none of the options: "
            f"{', '.join(question.options)}"
        )
    return Answer(text, question)


def fill_text(text: str, functions: Functions) -> str:
    """A text of a lesson, as Markdown, with each `{{ expression }}` replaced by its escaped value,
    or an ExpressionError.
    """
    return EXPRESSION.sub(
        lambda found: _format_value(compute_expression(found[1], functions)), text
    )


def _format_value(value: Any) -> str:
    if isinstance(value, float):
        text = f"{value:.4g}"
    elif isinstance(value, list):
        text = ", ".join(map(str, value))
    else:
        text = str(value)
    return text.replace("\n", "⏎").translate(_MARKDOWN)
