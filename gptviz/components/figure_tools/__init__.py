"""The buttons for the picture of a plotly figure, below the figure, the same as those of views made
by hand.

It also tells Python the size of type of the page, which grows with the window (kit/page.css):
figures are drawn to match it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gptviz.components.kit import pack, register
from gptviz.components.kit.events import number_between, read_event

_mount = register(Path(__file__).parent)

# How large a page may be drawn, as a multiple of its usual size.
LARGEST = 2.5


def payload(known: float, heading: Mapping[str, Any], *, name: str, sharp: bool) -> bytes:
    """The bytes that the browser gets. `known` is the size that the figure has now, 1 being the
    usual one; `heading`, for pictures, has `title`, `model`, `prompt`, and `settings`, a list of
    phrases; `name` is that of the files. A figure that is all lines and words is `sharp`, and can
    be an SVG; one in 3-D, or with very many points, is made of pixels.
    """
    return pack({"known": known, "heading": dict(heading), "name": name, "sharp": sharp})


def figure_tools(data: bytes, *, key: str, on_size: Callable[[float], None]) -> None:
    """Show the tools of the figure that stands in the same container; `on_size` gets the new
    size.
    """

    def answer(value: object) -> None:
        if (size := read_size(value)) is not None:
            on_size(size)

    _mount(key=key, data=data, size=answer)


def read_size(value: object) -> float | None:
    """The size in an event from the browser, {"size": number}; None if it is not what this view
    sends.
    """
    fields = read_event(value, size=number_between(1, LARGEST))
    if fields is None:
        return None
    return float(fields["size"])
