"""What a page takes from its address: for each key, which values.

A page notes it while it runs (`gptviz.ui.widgets.addresses.takes`). Whoever opens a page by its state, without a reader who sees
what the page says of it, asks here what of it was asked for in vain: the command `export`, `gptviz.show`, the check of lessons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from .known_names import instead

# The key of the session's state where a page notes what it takes.
NOTED = "what the address may say"
SHOWN = 80  # characters of a value that a message quotes
MOST_LISTED = 40


@dataclass(frozen=True)
class Values:
    """The values of a key.

    Attributes:
        words: the values, in words.
        has: whether a text is one of them.
        names: the values, where they are names: the nearest one is offered for a misspelt one.
        why: why what was asked for is none of them, where that is known.
    """

    words: str
    has: Callable[[str], bool] = lambda _: True
    names: Collection[str] = ()
    why: str = ""

    def instead(self, asked: str) -> str:
        """The end of a sentence that says that `asked` is none of them."""
        if self.why:
            return f": {self.why}"
        return instead(asked, self.names) if 0 < len(self.names) <= MOST_LISTED else f"; it takes {self.words}"


def one_of(names: Collection[str]) -> Values:
    """One of these names."""
    return Values(f"{len(names):,} names", names.__contains__, names)


def whole(low: int, high: int) -> Values:
    """A whole number from `low` to `high`."""
    return Values(
        f"a whole number from {low} to {high:,}",
        lambda text: text.isascii() and text.isdecimal() and len(text) < 10 and low <= int(text) <= high,
    )


def real(low: float, high: float) -> Values:
    """A number from `low` to `high`."""
    return Values(f"a number from {low:g} to {high:g}", lambda text: low <= number(text) <= high)


def number(text: str) -> float:
    """The number that a text is, NaN if it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def refused(why: str) -> Values:
    """None that was asked for: `why` says the reason."""
    return Values("another value", lambda _: False, why=why)


ANY = Values("any text")
ON_OR_OFF = Values("true or false", lambda text: text.lower() in ("true", "false"), ("true", "false"))


def in_vain(page: str, query: Mapping[str, str], taken: Mapping[str, Values]) -> list[str]:
    """What of a query the page called `page` does not take, a sentence for each: keys it does not know, values it refuses.

    Args:
        page: its name.
        query: what its address says.
        taken: what it noted when it ran with this query.
    """
    said = []
    for key, value in query.items():
        if key not in taken:
            said.append(f"the page {page} takes no {key[:SHOWN]!r} here{instead(key, sorted(taken))}")
        elif not taken[key].has(value):
            said.append(f"the page {page} has no {key} = {value[:SHOWN]!r}{taken[key].instead(value)}")
    return said
