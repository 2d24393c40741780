"""Controls whose value lives in the URL, so that a link reopens what is on screen; a value a link made up is named."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import streamlit as st


def _forget_impossible(key: str, possible: Callable[[Any], bool]) -> None:
    """Drop a remembered value that the control no longer offers (another model has fewer heads, say)."""
    if key in st.session_state and not possible(st.session_state[key]):
        del st.session_state[key]


def _warn(key: str, possible: bool, instead: str, notices: Any = st) -> None:
    asked = st.query_params.get(key)
    if asked is not None and not possible and key not in st.session_state:
        notices.warning(
            f"The link asks for {key} = “{asked[:80]}”, which is not to be had here; showing {instead}.",
            icon=":material/link_off:",
        )


def _number(key: str) -> float:
    """The number the link asks for, NaN if it asks for none."""
    try:
        return float(st.query_params.get(key, "nan"))
    except ValueError:
        return math.nan


def select(
    label: str,
    options: Sequence[str],
    *,
    key: str,
    help: str,
    default: str | None = None,
    format_func: Callable[[str], str] = str,
    label_visibility: Literal["visible", "hidden", "collapsed"] = "visible",
    segmented: bool = False,
    notices: Any = st,
) -> str:
    """One of `options`, kept in the URL as `key`. `segmented` shows all of them side by side; `notices` takes warnings."""
    first = default if default is not None and default in options else options[0]
    shown = [format_func(option) for option in options]
    _forget_impossible(key, lambda value: value in options)
    _warn(key, st.query_params.get(key) in shown, f"“{format_func(first)}”", notices)
    common: dict[str, Any] = {
        "key": key,
        "help": help,
        "bind": "query-params",
        "format_func": format_func,
        "label_visibility": label_visibility,
    }
    chosen: Any
    if segmented:
        chosen = st.segmented_control(label, options, default=first, required=True, **common)
    else:
        chosen = st.selectbox(label, options, index=list(options).index(first), **common)
    return str(chosen)


def whole(label: str, low: int, high: int, *, key: str, help: str, default: int) -> int:
    """A whole number from `low` to `high`, kept in the URL as `key`; no control where there is nothing to choose."""
    if low == high:
        return low
    default = min(max(default, low), high)
    _forget_impossible(key, lambda value: isinstance(value, int) and low <= value <= high)
    _warn(key, _number(key) in range(low, high + 1), str(default))
    return st.slider(label, low, high, default, key=key, help=help, bind="query-params")


def real(label: str, low: float, high: float, *, key: str, help: str, default: float, step: float) -> float:
    """A number from `low` to `high`, kept in the URL as `key`."""
    _forget_impossible(key, lambda value: isinstance(value, int | float) and low <= value <= high)
    _warn(key, low <= _number(key) <= high, f"{default:g}")
    return st.slider(label, low, high, default, step, key=key, help=help, bind="query-params")


def switch(label: str, *, key: str, help: str, default: bool = False) -> bool:
    """On or off, kept in the URL as `key`."""
    return st.toggle(label, default, key=key, help=help, bind="query-params")


def try_this(label: str, notice: str, **state: Any) -> None:
    """A button that sets the page to something striking (`state`: control key → value) and says what to notice."""

    def apply() -> None:
        for key, value in state.items():
            st.session_state[key] = value

    st.button(label, on_click=apply, key=f"try {label}", help=notice)
