"""A control for each field of an architecture or a recipe; its label, help and limits come from the field itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

import streamlit as st

from gptviz.settings.address_values import ANY, ON_OR_OFF, real
from gptviz.settings.fields import FieldInfo
from gptviz.ui.widgets import addresses, controls
from gptviz.ui.widgets.details import folded

# The largest numbers the page offers, where the field itself allows more: enough for a laptop, and beyond what any lesson needs.
# The command line takes all that the field allows.
LARGEST: dict[str, float] = {
    "n_layer": 48,
    "n_encoder_layer": 48,
    "n_head": 64,
    "n_kv_head": 64,
    "window": 4_096,
    "d_model": 4_096,
    "context_length": 4_096,
    "d_head": 1_024,
    "d_mlp": 16_384,
    "steps": 1_000_000,
    "batch_size": 4_096,
    "evaluations": 1_000,
    "seed": 10**9,
    "lora_rank": 1_024,
    "minutes": 10_000,
    "learning_rate": 1_000,
    "final_rate": 10,
    "weight_decay": 100,
    "clip": 1_000,
}
# A control of Streamlit includes its limits. Where a field excludes one, its control ends this far from it.
ABOVE, BELOW = 1e-7, 1e-4
# The meaning of 0 in the control of a field that may also be left out.
ZERO = {"d_head": "0: width ÷ heads", "minutes": "0: steps"}
HEAD_WITHOUT_LABELS = "unembed"
# Where the buttons of a control begin to count if its field has no value of its own.
BEGIN = {"norm_eps": 1e-5, "score_scale": 1.0, "score_cap": 50.0, "logit_cap": 30.0, "window_rotary_base": 10_000.0}
NO_GROUP = "More"
Number = TypeVar("Number", int, float)


def key_of(field: str) -> str:
    """The key of a field's control, which is also its name in the link."""
    return f"run_{field}"


def field_controls(infos: Mapping[str, FieldInfo], values: Mapping[str, Any], in_sight: Sequence[str]) -> dict[str, Any]:
    """A control for each field that has a value: those `in_sight` in two columns, the others folded under their groups,
    which cost a browser nothing until they are opened, or the address sets one of theirs.

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
    others = [info for name, info in infos.items() if name in values and name not in in_sight]
    for group in dict.fromkeys(info.group or NO_GROUP for info in others):
        inside = [info for info in others if (info.group or NO_GROUP) == group]
        icon = ":material/more_horiz:" if group == NO_GROUP else None
        is_asked = any(key_of(info.name) in st.query_params for info in inside)
        fold = folded(group, icon=icon, key=f"fields {inside[0].name}", is_needed=is_asked)
        with fold or nullcontext():
            for info in inside:
                value, has_effect = values[info.name], _has_effect(info, infos, chosen)
                chosen[info.name] = _usual(info, value) if fold is None else _control(info, value, disabled=not has_effect)
    return chosen


def _has_effect(info: FieldInfo, infos: Mapping[str, FieldInfo], chosen: Mapping[str, Any]) -> bool:
    """Whether the field changes anything, given what was chosen for the fields before it."""
    return info.has_effect(chosen) and (info.needs is None or _has_effect(infos[info.needs[0]], infos, chosen))


def _usual(info: FieldInfo, value: Any) -> Any:
    """What the control of a field gives while nobody has changed it."""
    return _as(float, value) if info.kind == "number" else value


def _control(info: FieldInfo, value: Any, *, disabled: bool = False) -> Any:
    """The control of one field, beginning with `value`; what was chosen in it."""
    key, label = key_of(info.name), f"{info.label} ({ZERO[info.name]})" if info.name in ZERO else info.label
    if info.kind == "switch":
        addresses.takes(key, ON_OR_OFF)
        return st.toggle(label, value, key=key, help=info.help, bind="query-params", disabled=disabled)
    if info.kind == "choice":
        choices = [choice for choice in info.choices if choice != HEAD_WITHOUT_LABELS]
        return controls.select(label, choices, key=key, default=value, help=info.full_help, disabled=disabled)
    if info.kind == "text":
        addresses.takes(key, ANY)
        return st.text_input(label, value, key=key, help=info.help, bind="query-params", disabled=disabled)
    common: dict[str, Any] = {"key": key, "help": info.help, "bind": "query-params", "disabled": disabled}
    if info.optional:
        common["placeholder"] = "as usual"
    low, high = limits(info)
    addresses.takes(key, real(-math.inf if low is None else low, math.inf if high is None else high))
    if info.kind == "whole":
        return st.number_input(label, _as(int, low), _as(int, high), value, 1, **common)
    step = _notch(BEGIN.get(info.name, 0.0) if value is None else float(value))
    return st.number_input(label, _as(float, low), _as(float, high), _as(float, value), step, "%.6g", **common)


def limits(info: FieldInfo) -> tuple[float | None, float | None]:
    """The least and the largest number that the control of a field takes, or None if there is no limit."""
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
