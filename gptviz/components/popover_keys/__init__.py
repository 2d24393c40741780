"""The order of the Tab key when a popover of the page is open."""

from __future__ import annotations

from pathlib import Path

from gptviz.components.kit import pack, register

_mount = register(Path(__file__).parent)


def popover_keys(*, key: str) -> None:
    """Let the Tab key lead from the button of an open popover into it, and from its end to what follows the button."""
    _mount(key=key, data=pack({}))
