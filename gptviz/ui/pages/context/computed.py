"""The computations of the page Context, each once for all sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from gptviz.interp.explaining import context_use as interp
from gptviz.interp.explaining.context_use import ByWindow, How, LeftOut
from gptviz.labelled_array import Float64Array, LabelledArray
from gptviz.model.costs.effort import MOST, effort
from gptviz.ui.shell.subject import ModelKey, language_model
from gptviz.ui.widgets import jobs

# Leaving out each token takes as many passes as there are tokens: only the end of a longer text is measured, at least
# `FEWEST_READ` tokens of it.
MOST_READ, FEWEST_READ = 160, 32
# For a suggestion, at most this many tokens are left out.
MOST_TRIED = 16


@dataclass(frozen=True)
class MeasuredText:
    """The text that is measured.

    Attributes:
        ids: the tokens of the prompt that are read, and last the model's likeliest guess at the next one.
        labels: their visible forms.
        kept: how many tokens at the beginning belong to every text of the model, such as `<s>`: they are never left out.
        left_off: how many tokens of the prompt are not measured.
    """

    ids: tuple[int, ...]
    labels: tuple[str, ...]
    kept: int
    left_off: int


@st.cache_data(max_entries=16, show_spinner=False)
def most_read(key: ModelKey) -> int:
    return int(np.clip((MOST / effort(language_model(key).model, 1)) ** 0.5, FEWEST_READ, MOST_READ))


@st.cache_data(max_entries=32, show_spinner=False)
def with_guess(key: ModelKey, ids: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(interp.with_guess(language_model(key).model, ids))


@jobs.data("Reading the text without each token", max_entries=48)
def tokens_left_out(key: ModelKey, ids: tuple[int, ...], how: How, places: Sequence[int], kept: int) -> LeftOut:
    """See `gptviz.interp.explaining.context_use.left_out`."""
    return interp.left_out(language_model(key).model, ids, how, places, kept=kept)


@jobs.data("Reading the last tokens alone", max_entries=16)
def loss_by_window(key: ModelKey, ids: tuple[int, ...], kept: int) -> ByWindow:
    """See `gptviz.interp.explaining.context_use.by_window`."""
    return interp.by_window(language_model(key).model, ids, kept=kept)


@st.cache_data(max_entries=16, show_spinner=False)
def losses_of(key: ModelKey, ids: tuple[int, ...]) -> Float64Array:
    return interp.losses(language_model(key).model, ids)


# A model whose data are not on this machine has none; a damaged one has losses that are no numbers.
@st.cache_data(max_entries=16, show_spinner="Reading held-out data")
def loss_by_position(key: ModelKey) -> LabelledArray | None:
    lm = language_model(key)
    try:
        rows = [row.tolist() for row in lm.rows(most=interp.most_data(lm.model)) if len(row) > 1]
    except (ValueError, OSError, KeyError, TypeError):
        return None
    found = interp.by_position(lm.model, rows) if rows else None
    return found if found is not None and np.isfinite(found.values[1:]).all() else None
