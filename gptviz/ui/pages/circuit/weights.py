"""The view Weights of a task: the few weights that keep what the model answers, as lines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.figures.explaining.weights import weight_graph
from gptviz.figures.kit.format import brief, format_count, format_signed, percent
from gptviz.interp.explaining.weight_circuit import (
    End,
    Weight,
    WeightCheck,
    WeightCircuit,
    by_effect,
    ends,
)
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.language_model import LanguageModel, weight_circuits
from gptviz.model.costs.effort import effort
from gptviz.settings.address_values import one_of
from gptviz.ui.records.circuit import GUESS, VIEWS, WEIGHTS
from gptviz.ui.shell.close import NOTHING, PageResult
from gptviz.ui.shell.subject import Subject, ask
from gptviz.ui.views.guesses import logits_after
from gptviz.ui.widgets import (
    Try,
    addresses,
    controls,
    escape_markdown,
    say_answer,
    show_figure,
    theme,
)
from gptviz.ui.widgets.tables import show_table

# Of the address: the place whose weights are listed.
PLACE = "place"
SHARES = (0.5, 0.95)
# A search takes about so many passes over the questions.
PASSES = 2_000
QUESTIONS = 64
# How many lines are drawn at most, and how many unless somebody asks for more.
MOST_DRAWN = 200
DRAWN = 60


def choose_view(subject: Subject) -> str:
    """The control for the view, of a model whose task has questions; else the guess."""
    if not weight_circuits.weight_tasks(subject.lm):
        return controls.linked_choice("view", str, GUESS, values=one_of([GUESS]))
    hint = (
        "The parts behind one guess; or the single weights behind the answers to all questions of "
        "a task."
    )
    return controls.select(
        "View", VIEWS, key="view", help=hint, segmented=True, label_visibility="collapsed"
    )


def show(subject: Subject) -> tuple[list[Try], PageResult]:
    """The whole view: the controls, the weights, those of one place, and the check."""
    parts = weight_circuits.weight_tasks(subject.lm)
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        part = controls.select(
            "Task",
            parts,
            key="part",
            help="The questions that the weights are found with: sentences as in training.",
            default=_part_of(subject),
            follows=True,
        )
        share = controls.decimal_number(
            "Share kept",
            *SHARES,
            key="kept",
            help="How much of the difference between the logits of the right and the wrong answer "
            "the weights have to keep, on average.",
            default=0.9,
            step=0.05,
        )
    asked = ask(
        subject.key, weight_circuits.weight_circuit, "Finding the weights", part=part, share=share
    )
    work = PASSES * effort(subject.lm.model, len(subject.seen), QUESTIONS)
    with row:
        most = controls.whole_number(
            "Lines",
            10,
            MOST_DRAWN,
            key="lines",
            help="At most so many weights are drawn: those without which most of the difference "
            "goes.",
            default=DRAWN,
        )
    circuit = asked.follow_value("Find the weights", work)
    if circuit is None:
        return [], NOTHING
    _say(subject, circuit, part)
    here = _on_text(subject, circuit)
    _draw(subject, here, most)
    _list_place(subject, circuit)
    _check(subject, circuit, part)
    code = asked.code("result.weights  # the weights, from the tokens to the logits")
    return _tries(subject), PageResult(lambda: number_weights(subject.lm, circuit), code, WEIGHTS)


def _part_of(subject: Subject) -> str | None:
    """The task whose example is on screen."""
    task = subject.lm.task
    of = () if task is None else task.contrasts()
    return next((one.part for one in of if subject.prompt in (one.clean, one.corrupted)), None)


def _say(subject: Subject, circuit: WeightCircuit, part: str) -> None:
    found = format_count(len(circuit.weights), "weight")
    say_answer(
        f"{found} of {circuit.of:,} answer the questions about {escape_markdown(part)}.",
        f"With all others at what they pass on average, {percent(circuit.share)} of the difference "
        f"between right and wrong is left ({brief(circuit.kept)} of {brief(circuit.whole)}); "
        f"{percent(circuit.right)} of the answers are right, and the loss is {brief(circuit.loss)} "
        f"nats (the whole model's: {brief(circuit.whole_loss)}).",
    )


def _on_text(subject: Subject, circuit: WeightCircuit) -> list[tuple[Weight, End, End]]:
    """The weights that the text on screen uses: of its tokens, its places, and the logits of these
    tokens and of the two likeliest answers.
    """
    logits = logits_after(subject.key, subject.seen, len(subject.seen) - 1)
    answers = {*np.argsort(-logits, kind="stable")[:2].tolist(), *subject.seen}
    known = {
        "token": set(subject.seen),
        "position": set(range(len(subject.seen))),
        "logit": answers,
    }
    of = [(weight, *ends(weight, subject.lm.model.config)) for weight in circuit.weights]
    return [
        (weight, source, target)
        for weight, source, target in of
        if source.index in known.get(source.kind, {source.index})
        and target.index in known.get(target.kind, {target.index})
    ]


def _name(subject: Subject, end: End) -> str:
    """A place in the picture, in few letters."""
    label = subject.lm.tokenizer.label
    if end.kind in ("token", "logit"):
        return label(end.index)
    if end.head is None:
        return f"{end.kind} {end.index}"
    return f"head {end.head} {end.kind}{end.index}"


def _draw(subject: Subject, used: list[tuple[Weight, End, End]], most: int) -> None:
    """The picture of those weights that the text on screen uses which matter most."""
    if not used:
        st.info("The text on screen uses none of these weights.")
        return
    here = sorted(used, key=lambda one: -one[0].effect)[:most]
    places = sorted(
        {end for _, source, target in here for end in (source, target)},
        key=lambda end: (end.stage, end.kind, end.head or 0, end.index),
    )
    number = {place: i for i, place in enumerate(places)}
    values = np.full((len(places), len(places)), np.nan)
    for weight, source, target in here:
        values[number[source], number[target]] = weight.value
    names = tuple(_name(subject, place) for place in places)
    array = LabelledArray(values, (Axis("from", names), Axis("to", names)), "weight")
    show_figure(
        weight_graph(array, [place.stage for place in places], theme()),
        key="weights of a task",
        alt=f"{len(here)} weights, from the tokens to the logits.",
        choose=lambda at: addresses.write(PLACE, places[at[0]].name),
    )
    drawn = format_count(len(here), "weight")
    st.caption(
        f"The {drawn} that matter most of the {len(used):,} that this text uses, from its tokens "
        "on "
        "the left to the logits on the right. Blue lines are weights above 0, orange ones below; "
        "the "
        "wider, the larger. s is a number of the stream, and goes on in a dotted line; h is a head "
        "with "
        "its query, key or value, n a neuron. Choose a point to see what it reads and writes."
    )


def _list_place(subject: Subject, circuit: WeightCircuit) -> None:
    """What one place reads, its row, and what it writes, its column."""
    of = [(weight, *ends(weight, subject.lm.model.config)) for weight in circuit.weights]
    both = [end for _, source, target in of for end in (source, target)]
    names = {end.name: _name(subject, end) for end in both}
    usual = max(of, key=lambda one: one[0].effect)[1].name
    chosen = controls.linked_choice(PLACE, str, usual, values=one_of(list(names)))
    title = chosen if names[chosen] == chosen else f"{names[chosen]} ({chosen})"
    st.markdown(f"**{escape_markdown(title)}**")
    reads, writes = st.columns(2)
    rows = [
        (weight, source, target)
        for weight, source, target in of
        if chosen in (source.name, target.name)
    ]
    for column, title in ((reads, "It reads"), (writes, "It writes")):
        table = [
            {
                title: _name(subject, source if title == "It reads" else target),
                "weight": format_signed(weight.value),
                "without it": format_signed(-100 * weight.effect) + " %",
            }
            for weight, source, target in rows
            if chosen == (target if title == "It reads" else source).name
        ]
        if table:
            with column:
                show_table(pd.DataFrame(table), hide_index=True)


def _check(subject: Subject, circuit: WeightCircuit, part: str) -> None:
    """A button for the check, and what it says."""
    checked = ask(
        subject.key, weight_circuits.check_weights, "Checking", circuit=circuit, part=part
    )
    going, say_how_far = checked.on_demand(begins=False)
    if going is not None and going.value is not None:
        found = going.value
        st.markdown(
            f"Of sentences that they were not found with, these weights alone answer "
            f"{percent(found.right)}. The whole model without them keeps "
            f"**{percent(max(0.0, found.without_circuit))}** of the difference; without as many "
            "other "
            f"weights, drawn at random, {percent(max(0.0, found.without_others))}."
        )
        _list_each(subject, circuit, found)
    say_how_far("Check these weights", "Check them again", "check weights")


def _list_each(subject: Subject, circuit: WeightCircuit, found: WeightCheck) -> None:
    """What the whole model answers without each of the weights alone."""
    one = by_effect(circuit.weights)[: len(found.right_without_each)]
    some = replace(circuit, weights=tuple(one))
    rows = [
        {
            "without this weight alone": f"{source} → {target}",
            "answers that are right": percent(right),
        }
        for (source, target), right in zip(
            weight_circuits.name_weights(subject.lm, some), found.right_without_each, strict=True
        )
    ]
    show_table(pd.DataFrame(rows), hide_index=True)
    if found.right_without_others:
        others = format_count(len(found.right_without_others), "weight")
        st.caption(
            f"Without any one of {others} outside of the circuit, drawn at random, at least "
            f"{percent(min(found.right_without_others))} of the answers are right. Half of them "
            "are "
            "right by chance."
        )


def number_weights(lm: LanguageModel, circuit: WeightCircuit) -> LabelledArray:
    """All weights, and what goes without each: [weight, number]."""
    labels = tuple(f"{one} → {other}" for one, other in weight_circuits.name_weights(lm, circuit))
    values: Any = np.array([(weight.value, weight.effect) for weight in circuit.weights])
    return LabelledArray(
        values, (Axis("weight", labels), Axis("number", ("weight", "share lost"))), "number"
    )


def _tries(subject: Subject) -> list[Try]:
    """A text of each task."""
    task = subject.lm.task
    return [
        Try(one.title, one.about, {"prompt": one.clean, "part": one.part})
        for one in (() if task is None else task.contrasts())
        if one.clean != subject.prompt
    ]
