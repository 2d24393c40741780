"""The steps of the browser's Back button: one for each action of the visitor."""

from __future__ import annotations

from pathlib import Path

from gptviz.components.kit import pack, register

_mount = register(Path(__file__).parent)


def history_steps(*, key: str) -> None:
    """Let a click make one step in the browser's history, however often the server writes the address for it."""
    _mount(key=key, data=pack({}))
