"""The tools of a speaker in front of a class: keys that lead from step to step, and a spot that follows the pointer."""

from __future__ import annotations

from pathlib import Path

from gptviz.components.kit import pack, register

_mount = register(Path(__file__).parent)


def presenter(*, key: str) -> None:
    """Listen to the speaker's keys: Page Down and Page Up lead to the next step of a lesson and back, L is the spot."""
    _mount(key=key, data=pack({}))
