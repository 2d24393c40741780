"""A button that tells the server what the page's address says at the moment it is pressed.

Views write what was chosen in them into the address by themselves. Streamlit does not send it: it goes on sending the address as
the server wrote it last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import streamlit as st

from gptviz.components.kit import event, pack, register

_mount = register(Path(__file__).parent)
LONGEST = 1_000  # characters of a value


def address_button(label: str, names: Sequence[str], *, key: str, on_press: Callable[[dict[str, str]], None]) -> None:
    """A button called `label`; `on_press` is called with what the address says for these names, where it says something."""

    def pressed() -> None:
        if (said := told(st.session_state[key].get("press"), names)) is not None:
            on_press(said)

    _mount(key=key, data=pack({"label": label, "names": list(names)}), on_press_change=pressed)


def told(value: object, names: Sequence[str]) -> dict[str, str] | None:
    """What an event from the browser says for these names; None if it is not what this component sends."""
    fields = event(value)
    if fields is None or not all(isinstance(said, str) and len(said) <= LONGEST for said in fields.values()):
        return None
    return {name: fields[name] for name in names if name in fields}
