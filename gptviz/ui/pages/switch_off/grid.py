"""The grid of heads and MLPs, and the table of what the loss is without each of them."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from gptviz.components.cell_grid import units as unit_grid
from gptviz.components.kit import fingerprint
from gptviz.interp.changing.ablation import loss_with_each
from gptviz.interp.changing.edits import MEAN, ZERO, UnitEdit, edit
from gptviz.interp.units.unit import Unit, heads_and_mlps
from gptviz.language_model import LanguageModel
from gptviz.machine.job import Results
from gptviz.model.costs.effort import MUCH, effort
from gptviz.ui.shell.subject import Subject, edits, language_model, load_call
from gptviz.ui.views import held_out
from gptviz.ui.views.loss_texts import PROMPT, LossText, rows, unit_of
from gptviz.ui.widgets import controls, jobs
from gptviz.ui.widgets.details import csv_button
from gptviz.ui.widgets.figure import pixels
from gptviz.ui.widgets.headings import settings


def replaced_by() -> str:
    """The control for what a click puts in the place of a head or an MLP: "zero" or "mean"."""
    return controls.select(
        "Replace by",
        [ZERO, MEAN],
        key="by",
        default=ZERO,
        segmented=True,
        help="What takes the place of a head or an MLP that is switched off: zero; or its mean over the reference text, so that "
        "what it always adds, whatever the text, stays. The reference text is set in the list of edits, above.",
    )


def losses(subject: Subject, text: LossText, to: str, reference: str) -> dict[Unit, float]:
    """The loss without each head and MLP, as far as it is known. Where all take no longer than a moment, they are computed now;
    else once they are asked for, with a bar that shows how far that is.

    Args:
        subject: the model; its edits are left out here.
        text: what the loss is over.
        to: "zero" or "mean".
        reference: what means are over.
    """
    key = subject.key.unedited
    name = ("losses without", key, text, to, reference if to == MEAN else "")
    units = heads_and_mlps(subject.lm.model.config)
    tokens = sum(row.reading.ids.numel() for row in rows(key, text))

    def compute(results: Results) -> None:
        lm = language_model(key)
        read = lm.readings(reference) if to == MEAN else ()
        each = loss_with_each(lm.model, rows(key, text), [UnitEdit(unit, to) for unit in units], read)
        ready: dict[Unit, float] = {}
        for done, (one, value) in enumerate(each, 1):
            ready[one.unit] = value
            if done == len(units) or units[done].block != one.unit.block:
                # A block at a time, so that the page is not drawn again for every head.
                results[one.unit.layer], ready = ready, {}

    title = f"The loss without each of {len(units):,} heads and MLPs"
    found, say_how_far = jobs.on_demand(name, title, compute, begins=effort(subject.lm.model, tokens, len(units)) <= MUCH)
    about = f"{len(units):,} forward passes over {tokens:,} tokens; they go on while you look at other pages."
    say_how_far("Compute the loss without each", "Go on from the beginning", "losses", about)
    return {} if found is None else {unit: value for part in found.results.values() for unit, value in part.items()}


def show(subject: Subject, text: LossText, to: str, changes: Mapping[Unit, float]) -> None:
    """The grid: a click replaces a unit as `to` says, or brings it back; `changes` says how much the loss rises without each."""
    lm, units = subject.lm, heads_and_mlps(subject.lm.model.config)
    has = {one.unit: one.text for one in (edit(text, lm.model.config) for text in lm.edits)}
    of = fingerprint(subject.key, text, to)

    def switch(value: object) -> None:
        unit = unit_grid.clicked(value, of, units)
        if unit is not None and unit in has:
            edits.take_away(has[unit])
        elif unit is not None:
            edits.set_to(UnitEdit(unit, to).text)

    about = unit_grid.About(of, subject.key.title, _words(subject, text), unit_of(lm), code(subject, text, to), tuple(settings()))
    unit_grid.unit_grid(unit_grid.payload(unit_grid.rows(units), has, changes, about), key="unit grid", on_switch=switch)


def _words(subject: Subject, text: LossText) -> str:
    return subject.prompt if text.which == PROMPT else "data held out"


def table(lm: LanguageModel, before: float, without: Mapping[Unit, float]) -> None:
    """Every head and MLP with the loss without it, to be sorted by a click on a heading and taken away as CSV."""
    unit = unit_of(lm)
    frame = pd.DataFrame(
        [
            {"unit": one.name, "in words": one.title, f"loss without it ({unit})": value, f"change ({unit})": value - before}
            for one, value in sorted(without.items(), key=lambda pair: -pair[1])
        ]
    )
    st.dataframe(frame, hide_index=True, height=pixels(280))
    csv_button(frame, "losses_without", key="losses csv", help="All rows, with all digits.")


def code(subject: Subject, text: LossText, to: str) -> str:
    """The code that computes the loss without each head and MLP."""
    opened = load_call(subject.lm.original)
    given = _given(subject, text)
    reference = f", lm.readings({edits.reference_text(subject.default)!r})" if to == MEAN else ""
    return f"""import gptviz
import torch
from gptviz.interp.changing.ablation import Rows, loss, loss_with_each
from gptviz.interp.changing.edits import Inputs, UnitEdit
from gptviz.interp.units.unit import heads_and_mlps

lm = {opened}
{given}
before = loss(lm.model, rows)
edits = [UnitEdit(unit, {to!r}) for unit in heads_and_mlps(lm.model.config)]
changes = {{one.unit.name: value - before for one, value in loss_with_each(lm.model, rows, edits{reference})}}"""


def _given(subject: Subject, text: LossText) -> str:
    if text.which != PROMPT:
        return held_out.code_of_tested(subject.key.unedited)
    ((reading, targets),) = rows(subject.key.unedited, text)
    and_source = "" if reading.source is None else f", torch.tensor({reading.source.tolist()})"
    return f"""ids = torch.tensor({reading.ids.tolist()})
rows = [Rows(Inputs(ids{and_source}), torch.tensor({targets.tolist()}))]"""
