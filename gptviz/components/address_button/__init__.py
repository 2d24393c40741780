"""A button that sends the page's address to the server when it is pressed.

Views write the choices made in them into the address. Streamlit does not send these: it goes on
sending the address as the server last wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from gptviz.components.kit import pack, register
from gptviz.components.kit.events import or_none, read_event, text_up_to

_mount = register(Path(__file__).parent)
LONGEST = 1_000  # characters of a value


def address_button(
    label: str, names: Sequence[str], *, key: str, on_press: Callable[[dict[str, str]], None]
) -> None:
    """A button with this `label`; `on_press` is called with the values that the address has for
    some of these names.
    """

    def tell_press(value: object) -> None:
        if (values := read_values(value, names)) is not None:
            on_press(values)

    _mount(key=key, data=pack({"label": label, "names": list(names)}), press=tell_press)


def read_values(value: object, names: Sequence[str]) -> dict[str, str] | None:
    """The values in an event from the browser for these names; None if it is not what this
    component sends.
    """
    fields = read_event(value, **dict.fromkeys(names, or_none(text_up_to(LONGEST))))
    if fields is None:
        return None
    return {name: value for name, value in fields.items() if value is not None}
