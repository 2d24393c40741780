"""The values that a page takes from its address, for each key.

A page notes them while it runs (`gptviz.ui.widgets.addresses.accept_values`). Code that opens a
page by its
state, without a reader who sees the page's warnings, asks here which values the page rejects: the
command `export`, `gptviz.show`, the check of lessons.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from .known_names import name_known

# The key of the session's state where a page notes the values that it takes.
NOTED = "what the address may say"
SHOWN = 80  # characters of a value that a message quotes
MOST_LISTED = 40
# A number as a person, a link or a script writes it.
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
_PAIR = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")
_AT = re.compile(r"([A-Za-z0-9_.]+)@([0-9]{1,6})")
_GROUP = re.compile(r"([^:;]{1,24}):(.+)", re.DOTALL)


@dataclass(frozen=True)
class Values:
    """The values of a key."""

    words: str  #: the values, in words
    has: Callable[[str], bool] = lambda _: True  #: whether a text is one of them
    #: the values, if they are names: the nearest one is offered for a misspelt one
    names: Collection[str] = ()
    why: str = ""  #: the reason why a requested value is none of them, if it is known
    #: the same values, as a script reads them (components/kit/values.js); empty if they are the
    #: `names`
    rule: Mapping[str, Any] = field(default_factory=dict)

    def name_values(self, asked: str) -> str:
        """The end of a sentence that says that `asked` is none of them."""
        if self.why:
            return f": {self.why}"
        if 0 < len(self.names) <= MOST_LISTED:
            return name_known(asked, self.names)
        return f"; it takes {self.words}"


def one_of(names: Collection[str]) -> Values:
    """One of these names."""
    return Values(f"{len(names):,} names", names.__contains__, names)


def whole_number(low: int, high: int) -> Values:
    """A whole number from `low` to `high`."""
    return Values(
        f"a whole number from {low} to {high:,}",
        lambda text: (
            text.isascii() and text.isdecimal() and len(text) < 10 and low <= int(text) <= high
        ),
        rule={"whole": [low, high]},
    )


def real_number(low: float, high: float) -> Values:
    """A number from `low` to `high`."""
    return Values(
        f"a number from {low:g} to {high:g}",
        lambda text: low <= number(text) <= high,
        rule={"real": [low, high]},
    )


def number(text: str) -> float:
    """The number that a text is, NaN if it is none."""
    if _NUMBER.fullmatch(text):
        return float(text)
    return math.nan


def pairs(first: int, second: int, words: str, *, most: int, names: Collection[str] = ()) -> Values:
    """One of these names, or at most `most` pairs of whole numbers with spaces between, as "1.2
    0.3"; `words` are the values.

    The numbers of a pair are below `first` and below `second`.
    """

    def are_pairs(text: str) -> bool:
        pairs = [_PAIR.fullmatch(pair) for pair in text.split(" ")]
        return len(pairs) <= most and all(
            pair and int(pair[1]) < first and int(pair[2]) < second for pair in pairs
        )

    rule = {"names": list(names), "pairs": [first, second, most]}
    return Values(words, lambda text: text in names or are_pairs(text), rule=rule)


def _are_at(texts: Collection[str], names: Collection[str], below: int, most: int) -> bool:
    """Whether these are at most `most` different names at places, as "embed@3", of these names and
    at places below `below`.
    """
    places = map(_AT.fullmatch, texts)
    are_known = all(place and place[1] in names and int(place[2]) < below for place in places)
    return are_known and len(texts) == len(set(texts)) <= most


def at_places(names: Collection[str], below: int, words: str, *, most: int) -> Values:
    """At most `most` different names at places, which are whole numbers below `below`, with spaces
    between, as "embed@3 blocks.0.mlp@4"; `words` are the values.
    """
    rule = {"at": {"names": list(names), "below": below, "most": most}}
    return Values(words, lambda text: _are_at(text.split(" "), names, below, most), rule=rule)


def groups(names: Collection[str], below: int, words: str, *, most: int) -> Values:
    """Groups of names at places, each with a name of up to 24 characters, as "first:embed@3
    embed@4;second:blocks.0.mlp@4". Arguments as of `at_places`; all groups together have at most
    `most` members, which are all different.
    """

    def are_groups(text: str) -> bool:
        groups = [_GROUP.fullmatch(group) for group in text.split(";")]
        members = [member for group in groups if group for member in group[2].split(" ")]
        return None not in groups and _are_at(members, names, below, most)

    return Values(
        words, are_groups, rule={"groups": {"names": list(names), "below": below, "most": most}}
    )


def no_value(why: str) -> Values:
    """No value at all, for the reason `why`."""
    return Values("another value", lambda _: False, why=why)


ANY = Values("any text")
ON_OR_OFF = Values(
    "true or false",
    lambda text: text.lower() in ("true", "false"),
    ("true", "false"),
    rule={"switch": True},
)


def declare_values(values: Mapping[str, Values], usual: Mapping[str, Any]) -> dict[str, Any]:
    """The values of each key as a view's script reads them, and the one that is chosen before
    anybody chooses, if any is.
    """
    rules = {
        key: dict(of_key.rule) or {"names": list(of_key.names)} for key, of_key in values.items()
    }
    return {key: {**rule, "usual": usual.get(key)} for key, rule in rules.items()}


def reject_keys(page: str, query: Mapping[str, str], taken: Mapping[str, Values]) -> dict[str, str]:
    """A sentence for each key of a query that the page called `page` does not take: it does not
    know it, or refuses its value.

    The query has the keys and values of its address; `taken` are the values that it noted when it
    ran with this query.
    """
    refused = {}
    for key, value in query.items():
        if key not in taken:
            refused[key] = (
                f"the page {page} takes no {key[:SHOWN]!r} here{name_known(key, sorted(taken))}"
            )
        elif not taken[key].has(value):
            refused[key] = (
                f"the page {page} has no {key} = {value[:SHOWN]!r}{taken[key].name_values(value)}"
            )
    return refused
