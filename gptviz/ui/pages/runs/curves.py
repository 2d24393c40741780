"""All models side by side: which are compared, their curves, and how they differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.figures.kit.format import duration, format_small, percent
from gptviz.figures.training import curves
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.model import Config
from gptviz.runs.experiments import GROUPS, PLANS
from gptviz.settings.address_values import Values
from gptviz.settings.fields import field_infos
from gptviz.train.recipe import Recipe
from gptviz.ui.views.entries import MOST_COMPARED, Entry, default_comparison
from gptviz.ui.views.learning_curves import accuracy_of, loss_unit, with_unit
from gptviz.ui.widgets import Try, addresses, controls, in_quotes, show_figure, theme
from gptviz.ui.widgets.details import folded_part
from gptviz.ui.widgets.figure import pixels
from gptviz.ui.widgets.tables import show_table

LONGEST = 2_000  # characters of all names in the link: far more models than a chart compares
_BY_NAME = "models compared"
NONE = "-"  # what the link says where nothing is chosen; no model can have this name
_TABLE = "table of models"
_ORDER = "order of models"
# Where there is room the curves stand beside the table, which grows with the type of the page
# (kit/page.css) as they do; else below it, begun in sight: they change with every row that is
# ticked. Streamlit makes a table ten rows high at least: 24.9rem.
BESIDE = "table-beside"
CURVES = "curves-beside"
# Pixels of a letter of a name, of what is around the name, and of all together at most, where the
# type has its usual size.
LETTER = 7.2
PADDING = 24
MOST_OF_NAME = 260
HEIGHT = 480  # pixels of the curves where the type has its usual size
STYLE = f"""<style media="screen">
[data-testid=stLayoutWrapper]:has(> .st-key-{BESIDE}) {{
  flex: 1 1 30rem !important; max-width: 54rem; height: clamp(25rem, 48vh, 35rem) !important;
}}
[data-testid=stLayoutWrapper]:has(> .st-key-{CURVES}) {{ flex: 1 1 24rem !important; }}
.st-key-{BESIDE} {{ height: 100% !important; }}
</style>"""
LEAST = 220  # pixels of a chart


def chosen_entries(entries: Mapping[str, Entry], *, quiet: bool = False) -> list[Entry]:
    """The models compared, in the order they were chosen; the link's `chosen` has their names with
    commas between.

    The control is not bound to the link as others are: the table knows rows, the link has names. A
    message says which models of the link are missing, unless `quiet`.
    """
    in_link = st.query_params.get("chosen")
    addresses.accept_values(
        "chosen",
        Values(
            "names of models with commas between",
            lambda asked: not _missing_names(entries, _names(asked)),
        ),
    )
    if in_link is None:
        return [entries[name] for name in default_comparison(entries)]
    names = _names(in_link)
    missing = _missing_names(entries, names)
    with_curve = [name for name in names if name not in missing and name != NONE]
    if missing and not quiet:
        if missing[0] in entries:
            why = "has no curve yet"
        else:
            why = "is not available here"
        controls.warn_of_link("the model", missing[0], f", which {why}")
    if len(with_curve) > MOST_COMPARED and not quiet:
        st.info(
            f"{len(with_curve)} models are chosen; the curves of the first {MOST_COMPARED} are "
            "shown."
        )
    return [entries[name] for name in with_curve[:MOST_COMPARED]]


def _missing_names(entries: Mapping[str, Entry], names: Sequence[str]) -> list[str]:
    """Those of the names that have no curve to show."""
    return [
        name for name in names if name != NONE and not (name in entries and entries[name].has_curve)
    ]


def _names(in_link: str) -> list[str]:
    return list(dict.fromkeys(map(unquote, in_link[:LONGEST].split(","))))


def table(entries: Mapping[str, Entry], chosen: Sequence[str]) -> None:
    """All models, a row each; ticked are those `chosen`, and ticking others changes the link."""
    # The models in the order of the table: those compared first, then those that train; ticking one
    # moves none.
    in_link = st.query_params.get("chosen")
    link, order = st.session_state.get(_ORDER, (None, []))
    if not order or link != in_link:
        places = {name: place for place, name in enumerate(entries)}
        others = sorted(
            set(entries) - set(chosen), key=lambda name: (not entries[name].is_active, places[name])
        )
        order = [*chosen, *others]
    order = [name for name in order if name in entries] + [
        name for name in entries if name not in order
    ]
    st.session_state[_ORDER] = in_link, order

    def tick_row() -> None:
        rows = st.session_state[_TABLE]["selection"]["rows"]
        names = [order[row] for row in rows if row < len(order) and entries[order[row]].has_curve]
        # Those chosen already keep their place, and with it their colour.
        choose(
            [
                *(name for name in chosen if name in names),
                *(name for name in names if name not in chosen),
            ]
        )
        st.session_state[_ORDER] = st.query_params["chosen"], order

    st.session_state[_TABLE] = {
        "selection": {"rows": [order.index(name) for name in chosen], "columns": [], "cells": []}
    }
    show_table(
        rows([entries[name] for name in order]),
        key=_TABLE,
        on_select=tick_row,
        selection_mode="multi-row",
        hide_index=True,
        height="stretch",
        placeholder="",
        column_config=_columns(order),
        alt="All models, one per row, with state, losses, size, steps, time and data",
    )


def rows(entries: Sequence[Entry]) -> pd.DataFrame:
    """The table of the models, numbers as numbers."""
    return pd.DataFrame(
        {
            "model": [entry.name for entry in entries],
            "state": [entry.state for entry in entries],
            "best loss": [entry.best_loss for entry in entries],
            "perplexity": [
                (math.nan if entry.diverged else math.exp(min(entry.best_loss, 700)))
                for entry in entries
            ],
            "published": [
                str(PLANS[entry.plan].target or "") if entry.plan else "" for entry in entries
            ],
            "parameters": pd.array([entry.parameters for entry in entries], dtype="Int64"),
            "steps": pd.array([entry.steps for entry in entries], dtype="Int64"),
            "time": [duration(entry.seconds) for entry in entries],
            "data": [entry.data for entry in entries],
            "last loss": [entry.last_loss for entry in entries],
            "accuracy": [
                math.nan if entry.accuracy is None else 100 * entry.accuracy for entry in entries
            ],
        }
    )


def choose(names: Sequence[str]) -> None:
    """Put the models compared into the link."""
    addresses.write("chosen", names_in_link(names))


def names_in_link(names: Sequence[str]) -> str:
    # A folder that somebody copied here may have a comma in its name.
    quoted = [quote(name, safe="") for name in names]
    while len(joined := ",".join(quoted)) > LONGEST:
        quoted.pop()
    return joined or NONE


def _columns(names: Sequence[str]) -> dict[str, Any]:
    """How each column is shown: that of the `names` is wide enough for the longest."""
    wide = pixels(min(MOST_OF_NAME, round(LETTER * max(map(len, names), default=0)) + PADDING))
    number = st.column_config.NumberColumn
    text = st.column_config.TextColumn
    about_best = (
        "The lowest loss on held-out data since the first step, in nats per token (for a "
        "classifier, per text)."
    )
    about_perplexity = (
        "e to the power of the best loss: a choice among this many equally likely tokens would be "
        "as hard."
    )
    about_accuracy = (
        "How much of the held-out data it gets right: tokens of a task, or texts with labels."
    )
    return {
        "model": text(pinned=True, width=wide),
        "state": text(),
        "best loss": number(format="%.4f", help=about_best),
        "perplexity": number(format="%.3g", help=about_perplexity),
        "published": text(
            help=(
                "What somebody published for this experiment; the number for the generator is "
                "from another text, with more "
                "characters."
            )
        ),
        "parameters": number(format="localized", help="Numbers that training sets."),
        "steps": number(format="localized", help="How many times its weights were changed."),
        "time": text(help="Spent on training steps."),
        "data": text(help="The text or the generated task it learned from."),
        "last loss": number(
            format="%.4f", help="The last loss on held-out data, in nats per token."
        ),
        "accuracy": number(format="%.1f%%", help=about_accuracy),
    }


def choose_axes() -> tuple[bool, bool, bool]:
    """The controls `log_steps`, `log_loss` and `training`: what the chart shows."""
    hint = "Each doubling of the steps takes the same room; step 0 has none."
    log_steps = controls.switch("Log steps", key="log_steps", help=hint)
    log_loss = controls.switch(
        "Log loss", key="log_loss", help="Each halving of the loss takes the same room."
    )
    hint = "The loss of every batch that was trained on, pale, beside the loss on held-out data."
    return log_steps, log_loss, controls.switch("Training loss", key="training", help=hint)


def chart(
    entries: Sequence[Entry], *, log_steps: bool, log_loss: bool, training: bool, height: int
) -> None:
    """The curves of some models in one chart, how much they get right in another, and a line on how
    to read them.
    """
    known = [entry.curve for entry in entries if entry.curve is not None]
    right = [
        accuracy
        for entry in entries
        if not entry.problem and (accuracy := accuracy_of(entry.folder)) is not None
    ]
    below = max(LEAST, int(0.4 * height)) if right else 0
    height = max(LEAST, height - below)
    figure = curves.losses(
        known, theme(), log_steps=log_steps, log_loss=log_loss, training=training, height=height
    )
    counted_in = loss_unit(entry.folder for entry in entries)
    figure = with_unit(figure, counted_in)
    ends = "; ".join(f"{entry.name} ends at {entry.last_loss:.4f}" for entry in entries)
    show_figure(
        figure,
        key="curves",
        alt=f"Validation loss over the steps of training: {ends} {counted_in}.",
    )
    if right:
        ends = "; ".join(
            f"{accuracy.name}: {percent(accuracy.validation[-1])} {accuracy.what}"
            for accuracy in right
        )
        figure = curves.accuracies(right, theme(), log_steps=log_steps, height=below)
        show_figure(
            figure,
            key="accuracies",
            alt=f"How much is right over the steps of training; at the end {ends}.",
        )
        st.caption(
            curves.ACCURACY_LEGEND
            if any(len(one.training) for one in right)
            else "The second chart shows how much is right."
        )
    if training:
        said = curves.LEGEND
    else:
        said = "The loss on held-out data, with a marker for each evaluation."
    ended = [entry for entry in entries if math.isfinite(entry.last_loss)]
    if len(ended) > 1:
        low, high = (best(ended, key=lambda entry: entry.last_loss) for best in (min, max))
        said += (
            f" {in_quotes(low.name)} ends lowest, at {format_small(low.last_loss, 3)} "
            f"{counted_in}, and "
            f"{in_quotes(high.name)} highest, at "
            f"{format_small(high.last_loss, 3)}."
        )
    st.caption(said)


def by_name(entries: Mapping[str, Entry], compared: Sequence[str]) -> None:
    """The same choice by names: the keyboard and a screen reader do not reach the ticks of the
    table, which is a picture.
    """
    st.session_state[_BY_NAME] = list(compared)

    st.multiselect(
        "Models compared",
        [name for name in entries if entries[name].has_curve],
        key=_BY_NAME,
        on_change=lambda: choose(st.session_state[_BY_NAME]),
        max_selections=MOST_COMPARED,
        filter_mode="contains",
        # Enter takes the first row of the list: that is a model, not all that match
        select_all=False,
        placeholder="Type a name",
        help="What the ticks in the table say: type a part of a name and press Enter; Backspace "
        "takes the last one away.",
    )


def table_of_differences(entries: Sequence[Entry]) -> None:
    """The differences as a table, where more than one model is compared."""
    if len(entries) < 2:
        return
    table = differences(entries)
    if table.empty:
        st.caption("Nothing that is written down differs between them.")
        return
    title = f"Settings that differ: {len(table)}"
    if fold := folded_part(title, icon=":material/difference:", key="differing settings"):
        with fold:
            show_table(
                table,
                hide_index=True,
                height="content",
                key="differences",
                alt="The settings in which the models differ",
            )


def differences(entries: Sequence[Entry]) -> pd.DataFrame:
    """The settings in which the models differ, a row each; a setting that a model's card lacks
    counts as no difference.
    """
    names = dict.fromkeys(name for entry in entries for name in entry.settings)
    helps = {
        info.name: info.help
        for info in (*field_infos(Config).values(), *field_infos(Recipe).values())
    }
    helps["data"] = "What it learned from."
    rows = []
    for name in names:
        values = [entry.settings.get(name) for entry in entries]
        if len({repr(value) for value in values if value is not None}) > 1:
            rows.append([name, *map(_in_words, values), helps.get(name, "")])
    return pd.DataFrame(
        rows, columns=["setting", *(entry.name for entry in entries), "what it does"]
    )


def _in_words(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        if value:
            return "yes"
        return "no"
    if isinstance(value, int | float):
        return f"{value:,g}"
    return str(value)[:80]


def tries(entries: Mapping[str, Entry]) -> list[Try]:
    """Each comparison worth seeing of which two models are here."""
    offers = []
    for group in GROUPS:
        here = [name for name in group.plans if name in entries and entries[name].has_curve]
        if group.notice and len(here) > 1:
            offers.append(Try(group.title, group.notice, query={"chosen": names_in_link(here)}))
    return offers


def validation_losses(entries: Sequence[Entry]) -> LabelledArray:
    """The validation losses [model, step]; NaN where a model was not evaluated."""
    known = [entry.curve for entry in entries if entry.curve is not None]
    steps = sorted({step for curve in known for step in curve.validation_steps.tolist()})
    values = np.full((len(known), len(steps)), np.nan)
    for row, curve in enumerate(known):
        values[row, np.searchsorted(steps, curve.validation_steps)] = curve.validation
    axes = (
        Axis("model", tuple(curve.name for curve in known)),
        Axis("step", tuple(f"{step:.0f}" for step in steps)),
    )
    return LabelledArray(
        values, axes, f"validation loss in {loss_unit(entry.folder for entry in entries)}"
    )


def code(names: Sequence[str]) -> str:
    """The lines of `gptviz` that read the same losses."""
    return f"""from gptviz.runs import checkpoints
from gptviz.runs.log import read_log

for name in {list(names)!r}:
    log = read_log(checkpoints.find(name) / "log.jsonl")
    print(name, [(line.step, line.loss) for line in log if line.kind == "evaluation"])"""
