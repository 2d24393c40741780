"""What units are called on pages: their titles, each with the name that the reader gave the unit,
or that the link gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

import streamlit as st

from gptviz.interp.units.unit import Unit
from gptviz.runs import checkpoints
from gptviz.runs.notes import Note, NotesError, clean_name, read_notes
from gptviz.ui.widgets import addresses, escape_markdown

from .models import ModelKey

# The key of the address with the reader's name of the unit on screen: "MODEL UNIT NAME".
CALLED = "called"
# Key of the session's state: the names that links gave, by model and unit.
_LINKED = "names in links"


def value_of(key: ModelKey, unit: str, name: str) -> str:
    """The value for the address that says what a unit, given by its name, is called."""
    return f"{key.name} {unit} {name}"


def linked_name(key: ModelKey, unit: str) -> str:
    """What a link of this session calls a unit, given by its name; empty where none does."""
    linked: dict[tuple[str, str], str] = st.session_state.setdefault(_LINKED, {})
    asked = st.query_params.get(CALLED, "")
    begins = value_of(key, unit, "")
    if asked.startswith(begins):
        with suppress(NotesError):
            linked[key.name, unit] = clean_name(asked.removeprefix(begins))
    return linked.get((key.name, unit), "")


def forget_linked_name(key: ModelKey, unit: str) -> None:
    """Let no link of this session call a unit, given by its name, anything."""
    st.session_state.get(_LINKED, {}).pop((key.name, unit), None)
    if st.query_params.get(CALLED, "").startswith(value_of(key, unit, "")):
        addresses.write(CALLED, None)


def kept_notes(key: ModelKey) -> Mapping[str, Note]:
    """What is kept here on the units of a model, by their names; none where it cannot be read,
    which the page of a unit says.
    """
    with suppress(NotesError, checkpoints.CheckpointError):
        return read_notes(checkpoints.find(key.name))
    return {}


def names_of(key: ModelKey) -> Callable[[str], str]:
    """A function from units of a model, given by their names, to what the reader calls them; empty
    where that is nothing.
    """
    kept = kept_notes(key)
    return lambda unit: kept.get(unit, Note()).name or linked_name(key, unit)


def name_with(key: ModelKey) -> Callable[[str, str], str]:
    """A function that adds to a title of a unit of this model, given by its name, what the reader
    calls it, as text: "head 3 of block 1 (“copies names”)".
    """
    own_name = names_of(key)

    def add_name(unit: str, title: str) -> str:
        name = own_name(unit)
        return f"{title} (“{name}”)" if name else title

    return add_name


def titles_of(key: ModelKey) -> Callable[[Unit], str]:
    """A function from the units of a model to their titles, as text."""
    add_name = name_with(key)
    return lambda unit: add_name(unit.name, unit.title)


def title_of(key: ModelKey, unit: Unit) -> str:
    """The title of a unit of a model, as text."""
    return titles_of(key)(unit)


def said_title(key: ModelKey, unit: Unit) -> str:
    """The same for a sentence, as Markdown."""
    return escape_markdown(title_of(key, unit))
