"""Errors in words."""

from __future__ import annotations

import re

# How Python, Windows and programs in Rust write the number of an error of the system.
_NUMBER = re.compile(r"\[(?:Errno|WinError) -?[0-9]+\] | \(os error [0-9]+\)")


def reason_of(error: object) -> str:
    """The message of an error without the number that the system gives it."""
    return _NUMBER.sub("", str(error))
