"""One step of learning on the reader's text: from the loss back to one weight, the optimiser's
step, and the loss around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import streamlit as st

from gptviz.figures.kit.format import format_count
from gptviz.figures.training import learning_step as figures
from gptviz.interp.explaining.learning_step import MOST_PARAMETERS, POINTS, LearningStep, parts_of
from gptviz.labelled_array import LabelledArray
from gptviz.language_model import explaining
from gptviz.model import Transformer, lora, parameter_count
from gptviz.text.datasets.jobs import Jobs
from gptviz.train.recipe import Recipe
from gptviz.ui.records.gradients import STEP
from gptviz.ui.shell.subject import AskedAnalysis, Subject, ask
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.widgets import Try, controls, show_figure, theme

from . import as_words

MOST_GUESSED = 40  # tokens: each is followed back on its own


class StepView(NamedTuple):
    """What the page has to say below the view."""

    offers: list[Try]
    numbers: Callable[[], LabelledArray] | None
    code: str | None


def show() -> StepView:
    """The view."""
    subject = subject_bar()
    if (why := _why_not(subject)) is not None:
        st.info(why)
        return StepView([], None, None)
    asked = _ask(subject)
    step = asked.value
    labels = [subject.lm.tokenizer.label(token) for token in asked.value.ids]
    st.markdown(_slope(step))
    show_figure(
        figures.way_back(
            step.way_back(labels[:-1]), theme(), height=26 * (len(step.reaching) + 3) + 76
        ),
        key="way back",
        alt=f"From the loss of {format_count(len(step.losses), 'guess', 'guesses')} back to one "
        f"weight: {_slope(step)}",
    )
    st.caption(
        "Each column is a token that is read, from the loss of the guess after it down to its "
        "pull at the weight; each row has "
        "its own scale, blue above zero and orange below."
    )
    st.markdown(_step(step))
    # The loss around the weight, and a slider that moves it.
    middle = POINTS // 2
    hint = (
        "How many points of the curve to move. It shows the loss if only this weight had another "
        "value."
    )
    moved = middle + controls.whole_number(
        "Move only this weight", -middle, middle, key="moved", help=hint, default=0
    )
    weight = float(step.weights[moved])
    at = (float(step.weights[middle]), step.loss)
    promised = step.loss + step.slope * (weight - at[0])
    said = (
        f"With the weight at {_number(weight)} the loss is {step.curve[moved]:.4f}; the tangent, "
        "whose slope is the gradient, "
        f"says {promised:.4f}."
    )
    show_figure(
        figures.around(step.weights, step.curve, at, step.slope, moved, theme(), height=300),
        key="around the weight",
        alt=f"The loss by the value of this weight, with the tangent at {_number(at[0])}. {said}",
    )
    st.caption(said)
    read = "result.way_back([lm.tokenizer.label(i) for i in result.ids[:-1]])"
    written = as_words.show(subject, MOST_GUESSED)
    if written is None:
        words = []
    else:
        words = [f"written = {written.call}", "written.changed_words(lm.tokenizer.label)"]
    code = asked.code(
        "result.slope, result.pulls, result.before, result.after, result.loss_after", *words, read
    )
    return StepView(_tries(subject), lambda: step.way_back(labels[:-1]), code)


def _why_not(subject: Subject) -> str | None:
    """The reason why there is no step of learning to show, or None."""
    config = subject.lm.model.config
    if not subject.kind.continues:
        return "This works for models that continue a text: choose a decoder above."
    if parameter_count(config) > MOST_PARAMETERS:
        return (
            f"This model is too large: this works for models of up to {MOST_PARAMETERS:,} "
            "parameters."
        )
    if len(subject.seen) < 2:
        return "There is nothing to guess: write a longer prompt."
    return None


def _ask(subject: Subject) -> AskedAnalysis[LearningStep]:
    """The step, seen from the weight that the controls choose."""
    parts = parts_of(subject.lm.model)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        hint = (
            "A tensor of weights. Those of attention and of an MLP lie in a block; “qkv” makes "
            "queries, keys and values. Of a LoRA adapter only its factors A and B are trained."
        )
        part = controls.select(
            "Weights", list(parts), key="part", help=hint, default=_default_tensor(subject.lm.model)
        )
    title = "Following the loss back"
    steepest: AskedAnalysis[LearningStep] = ask(
        subject, explaining.learning_step, title, part=part, last=MOST_GUESSED
    )
    places = [", ".join(map(str, place)) for place in steepest.value.steepest]

    def is_place(typed: str) -> bool:
        numbers = re.findall(r"\d+", typed)
        sizes = parts[part]
        return len(numbers) == len(sizes) and all(
            int(number) < size for number, size in zip(numbers, sizes, strict=True)
        )

    with right:
        hint = (
            "The row and the column of the weight. The list has those with the steepest slopes; "
            "you can type any other."
        )
        place = controls.select(
            "Row, column", places, key="at", help=hint, other=is_place, follows=True
        )
    if place == places[0]:
        return steepest
    at = tuple(map(int, re.findall(r"\d+", place)))
    return ask(subject, explaining.learning_step, title, part=part, at=at, last=MOST_GUESSED)


def _default_tensor(model: Transformer) -> str:
    """The tensor that the view opens on: what the first MLP or attention writes with, or the
    embedding.
    """
    usual = ("blocks.0.mlp.down", "blocks.0.attention.output", "embed")
    parts = parts_of(model)
    named = (name + end for name in usual for end in (".weight", lora.B))
    return next((name for name in named if name in parts), next(iter(parts)))


def _slope(step: LearningStep) -> str:
    return (
        f"Loss {step.loss:.4f} nats; slope at this weight {_number(step.slope)}, the mean of the "
        "pulls in the last row."
    )


def _step(step: LearningStep) -> str:
    """The optimiser's step in numbers, as Markdown."""
    recipe = Recipe(steps=1)
    if step.clipped and step.norm:
        scale = min(1.0, step.clipped / step.norm)
    else:
        scale = 1.0
    if scale < 1:
        shortened = (
            f" All slopes together are {step.norm:.3g} long, so each is multiplied by {scale:.3g} "
            "first."
        )
    else:
        shortened = ""
    assert step.mean is not None
    assert step.root is not None
    return (
        f"**The step.**{shortened} AdamW divides the mean of the slopes so far, "
        f"{_number(step.mean)}, by the root of the mean "
        f"of their squares, {_number(step.root)}: in a first step only the sign is left. Times "
        "the learning rate "
        f"{recipe.learning_rate:g}, the weight goes from {_number(step.before, 6)} to "
        f"{_number(step.after, 6)}. All weights "
        f"take their step at once: **the loss goes from {step.loss_before:.4f} to "
        f"{step.loss_after:.4f}**."
    )


def _number(value: float, digits: int = 4) -> str:
    return f"{value:.{digits}g}".replace("-", "−")


def _tries(subject: Subject) -> list[Try]:
    offers = []
    task = subject.lm.task
    if isinstance(task, Jobs):
        first, second = task.pair.split()
        notice = (
            f"The data say “{first}” of {task.nurse} in 100 nurses. What does one sentence with "
            f"“{second}” teach? See which words the step writes into the MLP."
        )
        prompt = f"the nurse said that {second}"
        offers.append(
            Try(
                f"The nurse … {second}",
                notice,
                {"view": STEP, "words_of": "blocks.0.mlp", "prompt": prompt},
            )
        )
    if "embed.weight" in parts_of(subject.lm.model):
        notice = (
            "The vector of a token that the text has gets a slope; that of another token has none, "
            "unless the same matrix also guesses tokens."
        )
        offers.append(Try("The embedding", notice, {"view": STEP, "part": "embed.weight"}))
    return offers
