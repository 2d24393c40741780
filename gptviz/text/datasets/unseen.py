"""Short scenes in the manner of Shakespeare's plays, written for gptviz: no model was trained on
them.
"""

from __future__ import annotations

import string
from pathlib import Path

# All characters of Tiny Shakespeare, in the order of their numbers in a model that was trained on
# it. The scenes have no others.
CHARACTERS = "\n !$&',-.3:;?" + string.ascii_uppercase + string.ascii_lowercase
GUESSED = 10
_SCENES = (
    Path(__file__)
    .with_name("unseen.txt")
    .read_text(encoding="ascii")
    .removesuffix("\n")
    .split("\n%\n")
)
PASSAGES = len(_SCENES)


def passage(number: int) -> tuple[str, str]:
    """What there is to read of the scene of this number, from 0, and its last `GUESSED` characters;
    a ValueError without it.
    """
    if not 0 <= number < PASSAGES:
        raise ValueError(f"there is no text {number}: they are numbered from 0 to {PASSAGES - 1}")
    return _SCENES[number][:-GUESSED], _SCENES[number][-GUESSED:]
