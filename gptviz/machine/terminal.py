"""Texts of models and users on a terminal, which executes some characters as commands instead of
showing them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any, TextIO

# Controls, marks that change the direction of writing or have no width, separators of lines: with
# them a text can hide itself or move the cursor. Exceptions are newline, tab, and the two that join
# letters and emoji into one sign.
_OBEYED = ("Cc", "Cf", "Zl", "Zp", "Cs")
_LEFT = frozenset("\n\t\u200c\u200d")


def escape_text(text: str) -> str:
    r"""The text with an escape (U+202E is `\u202e`) for each character that a terminal would
    execute instead of showing it.
    """
    if text.isascii() and text.isprintable():
        return text
    obeyed = {sign for sign in set(text) - _LEFT if unicodedata.category(sign) in _OBEYED}
    return "".join(
        sign.encode("unicode_escape").decode("ascii") if sign in obeyed else sign for sign in text
    )


class Terminal:
    """A stream to a terminal that escapes every text; otherwise it behaves as the stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text, escaped. Returns the number of its characters."""
        self._stream.write(escape_text(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write these texts one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
