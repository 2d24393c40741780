"""The lines of a text."""

from __future__ import annotations


def lines_of(text: str) -> list[str]:
    """The lines that are not blank. A line ends where it does in a file that is read as text: a
    line feed, a carriage return, or both. Other characters that Unicode calls separators stand
    within a line.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [line for line in lines if line.strip()]
