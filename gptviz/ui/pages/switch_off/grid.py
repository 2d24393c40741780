"""What the model loses without each head and MLP, and what is switched off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from gptviz.components.cell_grid import units as unit_grid
from gptviz.components.kit import fingerprint
from gptviz.interp.changing.edit import MEAN, ZERO
from gptviz.interp.changing.edits import edit, edit_unit, kind_of_edit
from gptviz.interp.units.unit import Unit, heads_and_mlps
from gptviz.language_model import changing
from gptviz.model import Config
from gptviz.model.costs.effort import MUCH, effort
from gptviz.model.parts.positions import POSITIONS
from gptviz.ui.shell.subject import AskedAnalysis, ModelKey, Subject, ask, edits
from gptviz.ui.shell.subject.edits import EDITS
from gptviz.ui.shell.subject.unit_titles import said_title, titles_of
from gptviz.ui.views.contrasts import (
    answered_questions,
    chosen_question,
    loss_of_head,
    needed_head,
    when_it_appeared,
)
from gptviz.ui.views.guesses import added_by_parts
from gptviz.ui.views.loss_texts import (
    PROMPT,
    LossText,
    ask_guess,
    loss_of,
    rows,
    unit_of,
    without_each,
)
from gptviz.ui.widgets import Try, controls, escape_markdown
from gptviz.ui.widgets.details import csv_button, folded_part
from gptviz.ui.widgets.figure import pixels
from gptviz.ui.widgets.headings import settings
from gptviz.ui.widgets.tables import show_table

NUMBER = "a number"
WORDS = {
    "zero": "zero",
    "mean": "its mean over the reference text",
    "uniform": "a uniform pattern",
    "previous": "a pattern on the previous token",
    "from": "its pattern over the reference text",
    "shuffled": "another order",
    NUMBER: "a number",
}


def replaced_by() -> str:
    """The control for what a click puts in the place of a head or an MLP: "zero" or "mean"."""
    return controls.select(
        "Replace by",
        [ZERO, MEAN],
        key="by",
        default=ZERO,
        segmented=True,
        help="What takes the place of a head or an MLP that is switched off: zero; or its mean "
        "over the reference text, so that "
        "what it always adds, whatever the text, stays. The reference text is set in the list of "
        "edits, above.",
    )


def losses(subject: Subject, text: LossText, to: str) -> dict[Unit, float]:
    """The known losses without each head and MLP. If all of them take only a moment, they are
    computed now; else on request, with a bar that shows how far that is.

    Args:
        subject: the model; its edits are left out here.
        text: what the loss is over.
        to: "zero" or "mean".
    """
    key = subject.key.unedited
    units = {unit.name: unit for unit in heads_and_mlps(subject.lm.model.config)}
    tokens = sum(row.reading.ids.numel() for row in rows(key, text))
    begins = effort(subject.lm.model, tokens, len(units)) <= MUCH
    computing, say_how_far = ask_losses(subject, text, to).on_demand(begins=begins)
    about = (
        f"{len(units):,} forward passes over {tokens:,} tokens; they go on while you look at "
        "other pages."
    )
    say_how_far("Compute the loss without each", "Go on from the beginning", "losses", about)
    rises = (None if computing is None else computing.value) or {}
    before = loss_of(key, text)
    return {units[name]: before + rise for name, rise in rises.items()}


def ask_losses(subject: Subject, text: LossText, to: str) -> AskedAnalysis[dict[str, float]]:
    """How much the loss rises without each head and MLP; `to` as in `losses`."""
    n_units = len(heads_and_mlps(subject.lm.model.config))
    return ask(
        subject.key.unedited,
        changing.losses_without,
        f"The loss without each of {n_units:,} heads and MLPs",
        prompt=text.prompt,
        to=to,
        reference=edits.reference_text(subject.default) if to == MEAN else "",
    )


def units(config: Config) -> list[Unit]:
    """Every piece that is offered: embedding and positions, and in each block the attentions, their
    heads and the MLP.
    """
    offered: list[Unit] = [Unit("embed")]
    if POSITIONS[config.positions].acts_on != "nothing":
        offered.append(Unit("positions"))
        if config.n_encoder_layer:
            offered.append(Unit("positions", in_encoder=True))
    for unit in heads_and_mlps(config):
        if unit.whole not in offered[-1 - config.n_head :]:
            offered.append(unit.whole)
        if unit != unit.whole:
            offered.append(unit)
    return offered


def show(
    subject: Subject, text: LossText, to: str, changes: Mapping[Unit, float], example: str | None
) -> None:
    """The grid: a click replaces a unit as `to` says, or brings it back; `changes` says how much
    the loss rises without each. The unit `example` is framed.
    """
    lm = subject.lm
    units = heads_and_mlps(subject.lm.model.config)
    has = {made.unit: made.text for made in lm.changes}
    of = fingerprint(subject.key, text, to)

    def switch(value: object) -> None:
        unit = unit_grid.read_click(value, of, units)
        if unit is not None and unit in has:
            edits.take_away(has[unit])
        elif unit is not None:
            edits.set_to(edit_unit(unit, to).text)

    words = subject.prompt if text.which == PROMPT else "data held out"
    about = unit_grid.UnitNotes(
        of, subject.key.title, words, unit_of(lm), code(subject, text, to), tuple(settings())
    )
    lines = unit_grid.rows(units)
    packed = unit_grid.payload(lines, has, changes, about, example, titles_of(subject.key))
    unit_grid.unit_grid(packed, key="unit grid", on_switch=switch)


def code(subject: Subject, text: LossText, to: str) -> str:
    """The code that computes how much the loss rises without each head and MLP."""
    asked = ask_losses(subject, text, to)
    return asked.code("result  # {head or MLP: how much the loss rises}")


def table(subject: Subject, before: float, without: Mapping[Unit, float]) -> None:
    """Every head and MLP with the loss without it, to be sorted by a click on a heading and taken
    away as CSV.
    """
    unit = unit_of(subject.lm)
    title = titles_of(subject.key)
    frame = pd.DataFrame(
        [
            {
                "unit": one.name,
                "in words": title(one),
                f"loss without it ({unit})": value,
                f"change ({unit})": value - before,
            }
            for one, value in sorted(without.items(), key=lambda pair: -pair[1])
        ]
    )
    show_table(frame, hide_index=True, height=pixels(280))
    csv_button(frame, "losses_without", key="losses csv", help="All rows, with all digits.")


def example(
    subject: Subject, units: Sequence[Unit], without: Mapping[Unit, float]
) -> tuple[ModelKey, str]:
    """The model without one head, for a page on which nothing is switched off yet, and why this
    one, in words: the head that its guess needs most. If that takes long to find, the head that its
    loss needs most; if no loss is known either, the one that adds most to the guess, or else the
    first unit.

    Args:
        subject: the model, without edits, and the prompt.
        units: the heads and MLPs of the model.
        without: the loss without each of them, as far as it is known.
    """
    guesses = without_each(subject.key, subject.text)
    if guesses:
        likeliest = int(ask_guess(subject.key, subject.text).value.probabilities.argmax())
        head = min(guesses, key=lambda one: guesses[one][likeliest])
        why = "this guess needs it most"
    elif without:
        heads = {unit: value for unit, value in without.items() if unit.is_head} or without
        head = max(heads, key=heads.__getitem__)
        why = "the loss needs it most"
    else:
        added = added_by_parts(subject.key, subject.seen)
        adding = {unit: added[unit.name] for unit in units if unit.is_head and unit.name in added}
        head = max(adding, key=adding.__getitem__, default=units[0])
        why = "of the heads it adds most to this guess" if adding else "it is the first part"
    return replace(subject.key, edits=(head.name,)), why


def describe_edits(key: ModelKey, config: Config) -> str:
    """What the edits of a model change, for the beginning of a sentence, as Markdown."""
    if len(key.edits) > 1:
        return f"With these {len(key.edits)} edits"
    made = edit(key.edits[0], config)
    if made.to == ZERO:
        return f"Without {said_title(key, made.unit)}"
    return escape_markdown(made.title)


def form(key: ModelKey, config: Config) -> None:
    """The list: a piece of the model, what becomes of it, and a button that adds the edit."""
    offered = units(config)
    title = "More edits: patterns, positions, neurons, from a list"
    if (fold := folded_part(title, icon=":material/list:", key="more edits")) is None:
        return
    title_with_name = titles_of(key)
    with fold:
        part, number = st.columns([3, 1], vertical_alignment="bottom")
        with part:
            unit = st.selectbox(
                "Piece of the model",
                offered,
                format_func=lambda one: f"{title_with_name(one)} · {one.name}",
                key="edit unit",
                help="A head, a whole attention or MLP, the token embedding or the positions. Type "
                "to search.",
            )
        if unit.is_mlp:
            with number:
                neuron = _one_of("neuron", config.mlp_size)
            if neuron is not None:
                unit = Unit("mlp", unit.block, neuron, unit.in_encoder)
            elif config.experts:
                with number:
                    expert = _one_of("expert", config.experts)
                if expert is not None:
                    unit = Unit("expert", unit.block, expert, unit.in_encoder)
        to = _replacement_value(unit)
        text = unit.name if to == "zero" else f"{unit.name}={to}"
        st.button(
            "Add this edit",
            icon=":material/add:",
            key="add edit",
            on_click=edits.set_to,
            args=(text,),
            help="On every page; an edit of the same piece is replaced.",
        )
        st.caption(
            f"{escape_markdown(edit(text, config).title)}. Its name in links and on the command "
            "line: "
            f"`{text}`"
        )


def _one_of(what: str, count: int) -> int | None:
    """The control for one of the neurons or experts of an MLP, or None for the whole MLP."""
    hint = f"One {what} of this MLP; empty for the whole MLP."
    chosen = st.number_input(
        what.capitalize(), 0, count - 1, None, key=f"edit {what}", placeholder="all", help=hint
    )
    if chosen is None:
        return None
    return int(chosen)


def _replacement_value(unit: Unit) -> str:
    """The value that replaces the unit, as it stands after the = of an edit."""
    what, value = st.columns([3, 1], vertical_alignment="bottom")
    with what:
        to = st.selectbox(
            "Becomes",
            [*kind_of_edit(unit).becomes, *([NUMBER] if unit.is_neuron else [])],
            format_func=WORDS.__getitem__,
            key="edit becomes",
            help="What takes its place. Means and patterns of another text are taken from the "
            "reference text, which is set in "
            "the list of edits beside the model.",
        )
    if to != NUMBER:
        return to
    with value:
        return f"{st.number_input('Value', value=1.0, key='edit value', help='What the neuron is set to at every place.'):.6g}"


def tries(
    subject: Subject, text: LossText, before: float, without: Mapping[Unit, float]
) -> list[Try]:
    """The suggestions; `before` is the loss without edits, `without` that without each head and
    MLP, as far as it is known.
    """
    unit = unit_of(subject.lm)
    offers = try_known(subject)
    heads = {one: value for one, value in without.items() if one.is_head}
    if heads:
        most = max(heads, key=heads.__getitem__)
        notice = (
            f"Without {said_title(subject.key, most)} the loss {_moves(before, heads[most])} "
            f"{unit}; no other head "
            "leaves a higher loss."
        )
        offers.append(Try("The head that matters most", notice, query={EDITS: most.name}))
    config = subject.lm.model.config
    if config.n_layer and POSITIONS[config.positions].acts_on != "nothing":
        after = loss_of(replace(subject.key, edits=("positions",), edit_text=None), text)
        moves = _moves(before, after)
        worth = {
            "rises": "so much is order worth",
            "falls": "order is worth nothing",
            "stays": "order is worth nothing",
        }
        notice = (
            f"Without positions the loss {moves} {unit}: {worth[moves.split()[0]]} on this text."
        )
        offers.append(Try("No positions", notice, query={EDITS: "positions"}))
    return offers


def try_known(subject: Subject) -> list[Try]:
    """For a model of tasks with known answers: the head that an answer needs, what is lost without
    it, and when it appeared.
    """
    key = subject.key.unedited
    question = chosen_question(answered_questions(key), subject.prompt)
    head = None if question is None else needed_head(key, question)
    if question is None or head is None:
        return []
    without = Try(
        question.contrast.title,
        loss_of_head(key, question, head),
        {"prompt": question.prompt},
        {EDITS: head.head.name},
    )
    when = when_it_appeared(key, subject.prompt, lambda head: {EDITS: head.name})
    if when is None:
        return [without]
    return [without, when]


def _moves(before: float, after: float) -> str:
    if f"{before:.3f}" == f"{after:.3f}":
        return f"stays at {before:.3f}"
    return f"{'rises' if after > before else 'falls'} from {before:.3f} to {after:.3f}"
