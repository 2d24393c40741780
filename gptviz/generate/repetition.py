"""Repetition: whether the end of a text repeats itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

# The end of a text is a loop if it is repeated at least this often and has at least this many
# tokens in all: less may be chance.
ROUNDS = 3
LEAST_TOKENS = 12


class Loop(NamedTuple):
    """The end of a text that repeats itself."""

    start: int  #: the index of its first token
    length: int  #: the number of tokens that are repeated


def loop_at_end(ids: Sequence[int]) -> Loop | None:
    """The shortest loop that the text ends in, or None if it ends in none."""
    for length in range(1, len(ids) // ROUNDS + 1):
        start = len(ids) - length
        while start > 0 and ids[start - 1] == ids[start - 1 + length]:
            start -= 1
        if len(ids) - start >= max(ROUNDS * length, LEAST_TOKENS):
            return Loop(start, length)
    return None
