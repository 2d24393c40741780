"""The table of all models on the Runs page; ticking a row adds its curve to the comparison."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from gptviz.figures.kit.format import duration
from gptviz.runs.experiments import PLANS
from gptviz.ui.views.entries import Entry
from gptviz.ui.widgets.figure import pixels

from .selection import choose

_TABLE, _ORDER = "table of models", "order of models"
# Where there is room the curves stand beside the table, which grows with the type of the page (kit/page.css) as they do; else
# below it, begun in sight: they change with every row that is ticked. Streamlit makes a table ten rows high at least: 24.9rem.
BESIDE, CURVES = "table-beside", "curves-beside"
# Pixels of a letter of a name, of what is around the name, and of all together at most, where the type has its usual size.
LETTER, PADDING, MOST_OF_NAME = 7.2, 24, 260
HEIGHT = 480  # pixels of the curves where the type has its usual size
STYLE = f"""<style>
[data-testid=stLayoutWrapper]:has(> .st-key-{BESIDE}) {{
  flex: 1 1 30rem !important; max-width: 54rem; height: clamp(25rem, 48vh, 35rem) !important;
}}
[data-testid=stLayoutWrapper]:has(> .st-key-{CURVES}) {{ flex: 1 1 24rem !important; }}
.st-key-{BESIDE} {{ height: 100% !important; }}
</style>"""


def table(entries: Mapping[str, Entry], chosen: Sequence[str]) -> None:
    """All models, a row each; ticked are those `chosen`, and ticking others changes the link."""
    order = _order(entries, chosen)

    def ticked() -> None:
        rows = st.session_state[_TABLE]["selection"]["rows"]
        names = [order[row] for row in rows if row < len(order) and entries[order[row]].has_curve]
        # Those chosen already keep their place, and with it their colour.
        choose([*(name for name in chosen if name in names), *(name for name in names if name not in chosen)])
        st.session_state[_ORDER] = st.query_params["chosen"], order

    st.session_state[_TABLE] = {"selection": {"rows": [order.index(name) for name in chosen], "columns": [], "cells": []}}
    st.dataframe(
        rows([entries[name] for name in order]),
        key=_TABLE,
        on_select=ticked,
        selection_mode="multi-row",
        hide_index=True,
        height="stretch",
        placeholder="",
        column_config=_columns(order),
        alt="All models, one per row, with state, losses, size, steps, time and data",
    )


def _columns(names: Sequence[str]) -> dict[str, Any]:
    """How each column is shown: that of the `names` is wide enough for the longest."""
    wide = pixels(min(MOST_OF_NAME, round(LETTER * max(map(len, names), default=0)) + PADDING))
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    about_best = "The lowest loss on held-out data since the first step, in nats per token (for a classifier, per text)."
    about_perplexity = "e to the power of the best loss: a choice among this many equally likely tokens would be as hard."
    about_accuracy = "How much of the held-out data it gets right: tokens of a task, or texts with labels."
    return {
        "model": text(pinned=True, width=wide),
        "state": text(),
        "best loss": number(format="%.4f", help=about_best),
        "perplexity": number(format="%.3g", help=about_perplexity),
        "published": text(
            help=(
                "What somebody published for this experiment; the number for the generator is from another text, with more "
                "characters."
            )
        ),
        "parameters": number(format="localized", help="Numbers that training sets."),
        "steps": number(format="localized", help="How many times its weights were changed."),
        "time": text(help="Spent on training steps."),
        "data": text(help="The text or the generated task it learned from."),
        "last loss": number(format="%.4f", help="The last loss on held-out data, in nats per token."),
        "accuracy": number(format="%.1f%%", help=about_accuracy),
    }


def _order(entries: Mapping[str, Entry], chosen: Sequence[str]) -> list[str]:
    """The models in the order of the table: those compared first, then those that train; ticking one moves none."""
    in_link = st.query_params.get("chosen")
    link, order = st.session_state.get(_ORDER, (None, []))
    if not order or link != in_link:
        places = {name: place for place, name in enumerate(entries)}
        others = sorted(set(entries) - set(chosen), key=lambda name: (not entries[name].is_active, places[name]))
        order = [*chosen, *others]
    order = [name for name in order if name in entries] + [name for name in entries if name not in order]
    st.session_state[_ORDER] = in_link, order
    return order


def rows(entries: Sequence[Entry]) -> pd.DataFrame:
    """The table of the models, numbers as numbers."""
    return pd.DataFrame(
        {
            "model": [entry.name for entry in entries],
            "state": [entry.state for entry in entries],
            "best loss": [entry.best for entry in entries],
            "perplexity": [_perplexity(entry) for entry in entries],
            "published": [_published(entry.plan) for entry in entries],
            "parameters": pd.array([entry.parameters for entry in entries], dtype="Int64"),
            "steps": pd.array([entry.steps for entry in entries], dtype="Int64"),
            "time": [duration(entry.seconds) for entry in entries],
            "data": [entry.data for entry in entries],
            "last loss": [entry.last for entry in entries],
            "accuracy": [math.nan if entry.accuracy is None else 100 * entry.accuracy for entry in entries],
        }
    )


def _perplexity(entry: Entry) -> float:
    """e to the best loss; NaN for a run that diverged, of which it would have hundreds of digits."""
    return math.nan if entry.diverged else math.exp(min(entry.best, 700))


def _published(plan: str | None) -> str:
    target = PLANS[plan].target if plan else None
    return str(target) if target else ""
