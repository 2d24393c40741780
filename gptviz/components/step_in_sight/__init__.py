"""When a step of a lesson opens, the page scrolls to the view that it is about."""

from __future__ import annotations

from pathlib import Path

from gptviz.components.kit import pack, register

_mount = register(Path(__file__).parent)


def step_in_sight(step: str, *, key: str) -> None:
    """Scroll the page if its first large view lies below the window. A visitor who scrolls or types is left alone.

    Args:
        step: the name of the step; with another one the page scrolls again.
    """
    _mount(key=key, data=pack({"step": step}))
