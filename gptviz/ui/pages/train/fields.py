"""A control for each field of an architecture or a recipe; its label, help and limits come from the field itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import streamlit as st

from gptviz.fields import FieldInfo
from gptviz.ui.widgets import controls

# The largest numbers the page offers, where the field itself allows more: enough for a laptop, and beyond what any lesson needs.
# The command line takes all that the field allows.
LARGEST: dict[str, float] = {
    "n_layer": 48,
    "n_encoder_layer": 48,
    "n_head": 64,
    "d_model": 4_096,
    "context_length": 4_096,
    "d_head": 1_024,
    "d_mlp": 16_384,
    "steps": 1_000_000,
    "batch_size": 4_096,
    "evaluations": 1_000,
    "seed": 10**9,
    "minutes": 10_000,
    "learning_rate": 1_000,
    "final_rate": 10,
    "weight_decay": 100,
    "clip": 1_000,
}
# A control of Streamlit includes its limits. Where a field excludes one, its control ends this far from it.
ABOVE, BELOW = 1e-7, 1e-4
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
    if info.kind == "text":
        return st.text_input(label, value, key=key, help=info.help, bind="query-params")
    low, high = limits(info)
    if info.kind == "whole":
        return st.number_input(label, _as(int, low), _as(int, high), value, 1, key=key, help=info.help, bind="query-params")
    if value is None:
        return st.number_input(label, _as(float, low), _as(float, high), None, key=key, help=info.help, bind="query-params")
    least, most, value, form = _as(float, low), _as(float, high), float(value), "%.6g"
    return st.number_input(label, least, most, value, _notch(value), form, key=key, help=info.help, bind="query-params")


def limits(info: FieldInfo) -> tuple[float | None, float | None]:
    """The least and the largest number that the control of a field takes; None where there is no limit."""
    low, high = info.low, LARGEST.get(info.name, info.high)
    if info.name in ZERO:
        low = 0
    elif info.name == "n_encoder_layer":  # only a model with an encoder has this control
        low = 1
    elif low is not None and info.low_excluded:
        low += ABOVE
    if high is not None and high == info.high and info.high_excluded:
        high -= BELOW
    return low, high


def _as(kind: type[Number], value: float | None) -> Number | None:
    return None if value is None else kind(value)


def _notch(value: float) -> float:
    """By how much the buttons of a control change its number: about a tenth of it."""
    return float(f"{value / 10:.0e}") if value else 0.1
