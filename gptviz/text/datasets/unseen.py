"""The end of Tiny Shakespeare, which ships: short passages that no shipped model was trained on."""

from __future__ import annotations

import string
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from .corpora import TINY_SHAKESPEARE_SHA256

# All characters of Tiny Shakespeare, in the order of their numbers in a model that was trained on it.
CHARACTERS = "\n !$&',-.3:;?" + string.ascii_uppercase + string.ascii_lowercase
# The file has the last characters of the text. A passage has some to read, and then some to guess. No passage has a character of
# another one, so that none gives away what another one asks for.
WHOLE, BEFORE, GUESSED, PASSAGES, APART = 1_115_394, 256, 10, 100, 270


def passage(number: int) -> tuple[str, str]:
    """The `BEFORE` characters to read in the passage of this number, from 0, and the `GUESSED` characters that come next.

    Raises:
        ValueError: there is no such passage.
    """
    if not 0 <= number < PASSAGES:
        raise ValueError(f"there is no passage {number}: they are numbered from 0 to {PASSAGES - 1}")
    text = _text()[number * APART :]
    return text[:BEFORE], text[BEFORE : BEFORE + GUESSED]


def unseen_by(source: Mapping[str, Any] | None) -> bool:
    """Whether a model with this `source` on its card was trained on Tiny Shakespeare, but not on the end of it."""
    content = source or {}
    fraction = content.get("fraction")
    is_it = content.get("sha256") == TINY_SHAKESPEARE_SHA256
    return is_it and isinstance(fraction, float) and int(fraction * WHOLE) <= WHOLE - len(_text())


@cache
def _text() -> str:
    return Path(__file__).with_name("unseen.txt").read_bytes().decode("ascii")
