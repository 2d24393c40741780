"""Passages of English prose and verse to read for models whose own data is not here: all of it is
in the public domain.
"""

from pathlib import Path


def passages() -> str:
    """The beginnings of three novels, a speech and a sonnet, each followed by who wrote it and when
    (1609 to 1865).
    """
    return Path(__file__).with_name("passages.txt").read_text(encoding="utf-8")
