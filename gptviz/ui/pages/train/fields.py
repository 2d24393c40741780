"""A control for each field of an architecture or a recipe; what it is called, does and allows stands with the field itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import streamlit as st

from gptviz.fields import FieldInfo
from gptviz.ui.widgets import controls

# What a page offers where the field itself allows more: enough for a laptop. The command line takes all of it.
PAGE_LIMITS: dict[str, tuple[float, float]] = {
    "n_layer": (0, 48),
    "n_encoder_layer": (1, 48),
    "n_head": (1, 64),
    "d_model": (1, 4_096),
    "context_length": (1, 4_096),
    "d_head": (0, 1_024),
    "d_mlp": (0, 16_384),
    "dropout": (0.0, 0.99),
    "steps": (1, 1_000_000),
    "batch_size": (1, 4_096),
    "evaluations": (1, 1_000),
    "seed": (0, 10**9),
    "minutes": (0.0, 10_000.0),
    "learning_rate": (1e-7, 1_000.0),
    "warmup": (0.0, 0.99),
    "beta1": (0.0, 0.9999),
    "beta2": (0.0, 0.9999),
    "final_rate": (0.0, 10.0),
    "weight_decay": (0.0, 100.0),
    "clip": (0.0, 1_000.0),
}
# What 0 means in the control of a field that may also be left out.
ZERO = {"d_head": "0: width ÷ heads", "minutes": "0: steps"}
HEAD_WITHOUT_LABELS = "unembed"
Number = TypeVar("Number", int, float)


def key_of(field: str) -> str:
    """The key of a field's control, which is also its name in the link."""
    return f"run_{field}"


def field_controls(infos: Mapping[str, FieldInfo], values: Mapping[str, Any], in_sight: Sequence[str]) -> dict[str, Any]:
    """A control for each field that has a value: those `in_sight` in two columns, the others folded under "More".

    Args:
        infos: what there is to say about each field, by name and in order.
        values: what the controls begin with; a field without a value gets no control.
        in_sight: names of fields.
    """
    chosen = {}
    for left, right in zip(in_sight[::2], [*in_sight[1::2], None], strict=False):
        columns = st.columns(2, vertical_alignment="bottom")
        for column, name in zip(columns, (left, right), strict=True):
            if name is not None:
                with column:
                    chosen[name] = _control(infos[name], values[name])
    with st.expander("More", icon=":material/more_horiz:"):
        for name, info in infos.items():
            if name in values and name not in in_sight:
                chosen[name] = _control(info, values[name])
    return chosen


def _control(info: FieldInfo, value: Any) -> Any:
    """The control of one field, beginning with `value`; what was chosen in it."""
    key, label = key_of(info.name), f"{info.label} ({ZERO[info.name]})" if info.name in ZERO else info.label
    if info.kind == "switch":
        return st.toggle(label, value, key=key, help=info.help, bind="query-params")
    if info.kind == "choice":
        choices = [choice for choice in info.choices if choice != HEAD_WITHOUT_LABELS]
        return controls.select(label, choices, key=key, default=value, help=info.full_help)
    low, high = PAGE_LIMITS.get(info.name, (info.low, info.high))
    if info.kind == "whole":
        return st.number_input(label, _as(int, low), _as(int, high), value, 1, key=key, help=info.help, bind="query-params")
    least, most, value, form = _as(float, low), _as(float, high), float(value), "%.6g"
    return st.number_input(label, least, most, value, _notch(value), form, key=key, help=info.help, bind="query-params")


def _as(kind: type[Number], value: float | None) -> Number | None:
    return None if value is None else kind(value)


def _notch(value: float) -> float:
    """By how much the buttons of a control change its number: about a tenth of it."""
    return float(f"{value / 10:.0e}") if value else 0.1
