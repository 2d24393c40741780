"""Which models the Runs page compares: the names in the link, else a comparison worth seeing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote, unquote

import streamlit as st

from gptviz.settings.address_values import Values
from gptviz.ui.views.entries import MOST_COMPARED, Entry, default_comparison
from gptviz.ui.widgets import addresses, controls

LONGEST = 2_000  # characters of all names in the link: far more models than a chart compares
_BY_NAME = "models compared"
NONE = "-"  # what the link says where nothing is chosen; no model can have this name


def chosen(entries: Mapping[str, Entry], *, quiet: bool = False) -> list[Entry]:
    """The models compared, in the order they were chosen; the link's `chosen` has their names with commas between.

    The control is not bound to the link as others are: the table knows rows, the link has names. A message says which
    models of the link are missing, unless `quiet`.
    """
    in_link = st.query_params.get("chosen")
    addresses.takes("chosen", Values("names of models with commas between", lambda asked: not _missing(entries, _names(asked))))
    if in_link is None:
        return [entries[name] for name in default_comparison(entries)]
    names = _names(in_link)
    missing = _missing(entries, names)
    with_curve = [name for name in names if name not in missing and name != NONE]
    if missing and not quiet:
        why = "has no curve yet" if missing[0] in entries else "is not available here"
        controls.warn_of_link("the model", missing[0], f", which {why}")
    if len(with_curve) > MOST_COMPARED and not quiet:
        st.info(f"{len(with_curve)} models are chosen; the curves of the first {MOST_COMPARED} are shown.")
    return [entries[name] for name in with_curve[:MOST_COMPARED]]


def _names(in_link: str) -> list[str]:
    return list(dict.fromkeys(map(unquote, in_link[:LONGEST].split(","))))


def _missing(entries: Mapping[str, Entry], names: Sequence[str]) -> list[str]:
    """Those of the names that have no curve to show."""
    return [name for name in names if name != NONE and not (name in entries and entries[name].has_curve)]


def choose(names: Sequence[str]) -> None:
    """Put the models compared into the link."""
    addresses.write("chosen", names_in_link(names))


def by_name(entries: Mapping[str, Entry], compared: Sequence[str]) -> None:
    """The same choice by names: the keyboard and a screen reader do not reach the ticks of the table, which is a picture."""
    st.session_state[_BY_NAME] = list(compared)

    def take() -> None:
        choose(st.session_state[_BY_NAME])

    st.multiselect(
        "Models compared",
        [name for name in entries if entries[name].has_curve],
        key=_BY_NAME,
        on_change=take,
        max_selections=MOST_COMPARED,
        filter_mode="contains",
        select_all=False,  # Enter takes the first row of the list: that is a model, not all that match
        placeholder="Type a name",
        help="What the ticks in the table say: type a part of a name and press Enter; Backspace takes the last one away.",
    )


def names_in_link(names: Sequence[str]) -> str:
    # A folder that somebody copied here may have a comma in its name.
    quoted = [quote(name, safe="") for name in names]
    while len(joined := ",".join(quoted)) > LONGEST:
        quoted.pop()
    return joined or NONE
