"""Sends the address that the page has in the browser to the server when the component appears.

Views write the choices made in them into the address, and Streamlit does not send these.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gptviz.components.kit import pack, register
from gptviz.components.kit.events import read, text_up_to

_mount = register(Path(__file__).parent)
LONGEST = 20_000  # characters of a query


def page_address(known: str, *, key: str, on_tell: Callable[[str], None]) -> None:
    """Call `on_tell` with the query of the page's address if it differs from `known`."""

    def answer(value: object) -> None:
        if (query := told(value)) is not None:
            on_tell(query)

    _mount(key=key, data=pack({"known": known}), query=answer)


def told(value: object) -> str | None:
    """The query that an event from the browser tells; None if it is not what this component sends."""
    fields = read(value, query=text_up_to(LONGEST))
    return None if fields is None else fields["query"]
