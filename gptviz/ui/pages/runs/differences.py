"""The settings in which the models compared on the Runs page differ."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from gptviz.model import Config
from gptviz.settings.fields import field_infos
from gptviz.train.recipe import Recipe
from gptviz.ui.views.entries import Entry
from gptviz.ui.widgets.details import folded


def differences(entries: Sequence[Entry]) -> pd.DataFrame:
    """The settings in which the models differ, a row each; a setting that a model's card lacks counts as no difference."""
    names = dict.fromkeys(name for entry in entries for name in entry.settings)
    helps = {info.name: info.help for info in (*field_infos(Config).values(), *field_infos(Recipe).values())}
    helps["data"] = "What it learned from."
    rows = []
    for name in names:
        values = [entry.settings.get(name) for entry in entries]
        if len({repr(value) for value in values if value is not None}) > 1:
            rows.append([name, *map(_in_words, values), helps.get(name, "")])
    return pd.DataFrame(rows, columns=["setting", *(entry.name for entry in entries), "what it does"])


def _in_words(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,g}" if isinstance(value, int | float) else str(value)[:80]


def table_of_differences(entries: Sequence[Entry]) -> None:
    """The differences as a table, where more than one model is compared."""
    if len(entries) < 2:
        return
    table = differences(entries)
    if table.empty:
        st.caption("Nothing that is written down differs between them.")
        return
    title = f"Settings that differ: {len(table)}"
    if fold := folded(title, icon=":material/difference:", key="differing settings"):
        fold.dataframe(table, hide_index=True, height="content", key="differences", alt="The settings in which the models differ")
