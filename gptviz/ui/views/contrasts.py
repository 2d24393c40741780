"""Prompts with known answers, for models of tasks that have some: the answer of the model on
screen, the head that each answer needs, and since which step of training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st
import torch

from gptviz.figures.kit.format import percent
from gptviz.interp.changing.before_after import guess
from gptviz.interp.changing.edit import Inputs
from gptviz.interp.changing.edits import edit_unit, edited_by_each
from gptviz.interp.units.unit import Unit, heads_and_mlps
from gptviz.language_model import LanguageModel
from gptviz.language_model.changing import corrupted
from gptviz.model import Transformer
from gptviz.model.costs.effort import LITTLE, effort, n_parameters
from gptviz.text.datasets.base import Contrast
from gptviz.ui.shell.subject import ModelKey, Subject, language_model, scrubber
from gptviz.ui.shell.subject.unit_titles import said_title
from gptviz.ui.widgets import Try, in_quotes, jobs

# About how many held-out sequences are used to measure how often a model is right in each of its
# tasks.
TESTED = 400


def known_contrasts(lm: LanguageModel) -> tuple[Contrast, ...]:
    """The pairs of prompts with known answers of the task that this model was trained on."""
    if (task := lm.task) is None:
        return ()
    return task.contrasts()


def known_contrast(lm: LanguageModel, prompt: str, right: int) -> Contrast | None:
    """The pair of a known prompt whose right answer is the token `right`, if there is one."""
    contrasts = (one for one in known_contrasts(lm) if one.clean == prompt)
    return next((one for one in contrasts if lm.token(one.right) == right), None)


def suggestion(subject: Subject) -> str:
    """A corrupted prompt for the prompt on screen; empty if none was found."""
    for contrast in known_contrasts(subject.lm):
        if contrast.clean == subject.prompt:
            return contrast.corrupted
    return suggest_contrast(subject.key, subject.seen, tuple(subject.encoding.ids))


@jobs.data("Looking for a prompt with another answer", max_entries=64)
def suggest_contrast(key: ModelKey, seen: tuple[int, ...], ids: tuple[int, ...]) -> str:
    """A text that differs from `ids` within their end `seen`, and takes the answer away; empty if
    there is none.
    """
    return corrupted(language_model(key), ids, seen)


@dataclass(frozen=True)
class ContrastQuestion:
    """A prompt with a known answer, as the model reads it."""

    contrast: Contrast  #: the prompt, its answer, and the wrong answer compared with it
    ids: tuple[int, ...]  #: the tokens of the prompt
    right: int  #: the token of the right answer
    wrong: int  #: the token of the wrong answer

    @property
    def prompt(self) -> str:
        """The prompt as text."""
        return self.contrast.clean


# The known circuits of small models: an entry is a few numbers.
@st.cache_data(max_entries=128, show_spinner=False)
def answered_questions(key: ModelKey) -> tuple[ContrastQuestion, ...]:
    """The prompts with known answers for which the model's likeliest token is the right one."""
    lm = language_model(key)
    asked = [_question(lm, contrast) for contrast in known_contrasts(lm)]
    return tuple(
        one
        for one in asked
        if _fits_model(lm, one)
        and (int(guess(lm.model, _reading(lm.model, one)).argmax()) == one.right)
    )


def _question(lm: LanguageModel, contrast: Contrast) -> ContrastQuestion:
    ids = tuple(lm.tokenizer.encode(contrast.clean).ids)
    return ContrastQuestion(contrast, ids, lm.token(contrast.right), lm.token(contrast.wrong))


def _fits_model(lm: LanguageModel, question: ContrastQuestion) -> bool:
    """Whether the model reads the whole prompt, and all its heads can be tried quickly."""
    config = lm.model.config
    work = effort(lm.model, len(question.ids), max(1, config.n_layer * config.n_head))
    return len(question.ids) <= config.context_length and work <= LITTLE


def _reading(model: Transformer, question: ContrastQuestion) -> Inputs:
    return Inputs(torch.tensor([question.ids], device=model.embed.weight.device))


def chosen_question(questions: Sequence[ContrastQuestion], prompt: str) -> ContrastQuestion | None:
    """The question whose prompt is on screen, else the first."""
    return next(
        (one for one in questions if one.prompt == prompt), questions[0] if questions else None
    )


@dataclass(frozen=True)
class NeededHead:
    """The head without which a right answer loses most of its probability."""

    head: Unit  #: the head, which is replaced by zero
    before: float  #: the probability of the right answer with it
    after: float  #: that without it
    likeliest: int  #: the likeliest token without it
    probability: float  #: the probability of that token


@st.cache_data(max_entries=256, show_spinner=False)
def needed_head(key: ModelKey, question: ContrastQuestion) -> NeededHead | None:
    """The head that the right answer to the question needs most; None for a model without heads."""
    model = language_model(key).model
    reading = _reading(model, question)
    heads = [unit for unit in heads_and_mlps(model.config) if unit.is_head]
    if not heads:
        return None
    without = {
        one.unit: guess(twin, reading)
        for one, twin in edited_by_each(model, [edit_unit(head) for head in heads])
    }
    head = min(heads, key=lambda one: without[one][question.right])
    left = without[head]
    likeliest = int(without[head].argmax())
    before = guess(model, reading)
    return NeededHead(
        head,
        float(before[question.right]),
        float(left[question.right]),
        likeliest,
        float(left[likeliest]),
    )


def loss_of_head(key: ModelKey, question: ContrastQuestion, needed: NeededHead) -> str:
    """The effect on the right answer of leaving out the head, as a sentence of Markdown."""
    label = language_model(key).tokenizer.label
    if needed.likeliest == question.right:
        turned = ""
    else:
        turned = f", and {in_quotes(label(needed.likeliest))} leads with "
    leads = f"{turned}{percent(needed.probability)}" if turned else ""
    return (
        f"Without {said_title(key, needed.head)}, {in_quotes(label(question.right))} goes from "
        f"{percent(needed.before)} to "
        f"{percent(needed.after)} after {in_quotes(question.prompt)}{leads}."
    )


def known_prompt(subject: Subject, state: Mapping[str, Any] | None = None) -> list[Try]:
    """A suggestion for a model whose task has prompts with known answers: such a prompt, unless one
    is on screen.

    Args:
        subject: the model and the prompt on screen.
        state: the values that it sets besides the prompt.
    """
    found = answered_questions(subject.key)
    if not found or subject.prompt in [question.prompt for question in found]:
        return []
    question = found[0]
    right = in_quotes(subject.lm.tokenizer.label(found[0].right))
    notice = (
        f"After {in_quotes(question.prompt)} the model’s answer is {right}, and that is right. "
        f"{question.contrast.about}"
    )
    return [Try(question.contrast.title, notice, {"prompt": question.prompt, **(state or {})})]


def known_offers(
    subject: Subject,
    state: Mapping[str, Any] | None = None,
    query: Callable[[Unit], Mapping[str, str]] = lambda _: {},
) -> list[Try]:
    """`known_prompt`, and the step of training at which the head that a known answer needs
    appeared; `query` are the values that the second one writes into the address, given the head.
    """
    when = when_it_appeared(subject.key, subject.prompt, query, **(state or {}))
    return [*known_prompt(subject, state), *([] if when is None else [when])]


@dataclass(frozen=True)
class Appeared:
    """The time in training at which a head began to be needed for an answer."""

    #: the first snapshot from which on the answer was always right with the head and never without
    #: it
    step: int
    before: int | None = None  #: the snapshot before that one, if there is one
    right: float = 0.0  #: the probability of the right answer at that earlier snapshot
    without: float = 0.0  #: the same without the head


@scrubber.same_at_every_step
@jobs.data("Reading how it was trained", max_entries=64)
def find_appearance(key: ModelKey, question: ContrastQuestion, head: Unit) -> Appeared | None:
    """When in training the model began to need this head for the right answer, if it does and that
    is known.
    """
    appeared_at = None
    last = None
    # The snapshots, if all of them can be read quickly; else none.
    steps = scrubber.steps(key.name)
    for step in (
        steps
        if n_parameters(language_model(key).model) * len(steps) <= scrubber.MOST_PARAMETERS
        else ()
    ):
        model = language_model(scrubber.at_step(key, step)).model
        reading = _reading(model, question)
        ((_, twin),) = edited_by_each(model, [edit_unit(head)])
        now = guess(model, reading)
        without = guess(twin, reading)
        if int(now.argmax()) != question.right or int(without.argmax()) == question.right:
            appeared_at = None
        elif appeared_at is None:
            if last is not None:
                appeared_at = Appeared(step, *last)
            else:
                appeared_at = Appeared(step)
        last = step, float(now[question.right]), float(without[question.right])
    return appeared_at


def when_it_appeared(
    key: ModelKey, prompt: str, query: Callable[[Unit], Mapping[str, str]], **state: Any
) -> Try | None:
    """A suggestion that leads to the step of training at which the head for a known answer
    appeared: the answer to the prompt on screen, else the first one. None if no head is needed that
    much, or if its training is not known.

    Args:
        key: the model on screen.
        prompt: the prompt on screen.
        query: the values that the suggestion writes into the address, given the head.
        state: the values that it sets besides prompt and step.
    """
    question = chosen_question(answered_questions(key), prompt)
    needed = None if question is None else needed_head(key, question)
    if question is None or needed is None:
        when = None
    else:
        when = find_appearance(key, question, needed.head)
    if question is None or needed is None or when is None:
        return None
    right = in_quotes(language_model(key).tokenizer.label(question.right))
    if when.before is None:
        earlier = ""
    else:
        earlier = (
            f" At step {when.before:,}, the snapshot before, {right} had {percent(when.right)} "
            "with it and "
            f"{percent(when.without)} without it."
        )
    notice = (
        f"In training, {said_title(key, needed.head)} is needed from step {when.step:,} on: "
        f"{right} is "
        "always the likeliest token after "
        f"{in_quotes(question.prompt)} from there, and never without this head.{earlier}"
    )
    return Try(
        "When this head appeared",
        notice,
        {"prompt": question.prompt, "step": str(when.step), **state},
        query(needed.head),
    )
