"""The message about a name that does not exist: the one that may have been meant, and those that
there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

# How alike two names must be, from 0 to 1, so that one is offered for the other.
ALIKE = 0.8
LONGEST = 100  # letters of a name that are compared


def name_known(asked: str, known: Iterable[str]) -> str:
    """The end of a sentence that begins with "there is no … of this name": the names that can be
    used instead of `asked`.

    >>> "no model named 'shakespear'" + instead("shakespear", ["addition", "shakespeare"])
    "no model named 'shakespear': did you mean 'shakespeare'? There are addition, shakespeare"
    """
    names = list(known)
    close = get_close_matches(asked[:LONGEST], names, 1, ALIKE)
    return (
        f"{f': did you mean {close[0]!r}? There are' if close else '; there are'} "
        f"{', '.join(names) or 'none'}"
    )
