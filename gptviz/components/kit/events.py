"""Read the events that a view sends. They come from outside: only events whose fields all have
possible values are accepted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

# The values that a field may have: a `range` of whole numbers; some names or numbers; one text or
# number; or what passes a test.
Possible = range | Collection[Any] | str | int | Callable[[Any], bool]


def read_event(value: object, **possible: Possible) -> dict[str, Any] | None:
    """The fields of an event, by the `value` that a trigger carried; None if it is not a dictionary
    (or the JSON of one) in which each field has one of its `possible` values. A field that is
    absent counts as None.
    """
    try:
        event = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return None
    if not isinstance(event, dict):
        return None
    fields = {name: event.get(name) for name in possible}
    if all(_is_possible(fields[name], each) for name, each in possible.items()):
        return fields
    return None


def _is_possible(value: object, possible: Possible) -> bool:
    if callable(possible):
        return possible(value)
    # Types are compared, since true and 1.0 are equal to 1 in Python, and a text would be compared
    # with each number of a range.
    if type(value) not in ((int,) if isinstance(possible, range) else (int, str)):
        return False
    if isinstance(possible, str | int):
        return value == possible
    return value in possible


def or_none(possible: Possible) -> Callable[[object], bool]:
    """A possible value, or None, which an absent field counts as."""
    return lambda value: value is None or _is_possible(value, possible)


def text_up_to(longest: int) -> Callable[[object], bool]:
    """A text of at most `longest` characters."""
    return lambda value: isinstance(value, str) and len(value) <= longest


def list_up_to(longest: int, possible: Possible) -> Callable[[object], bool]:
    """A list of at most `longest` possible values."""
    return lambda value: (
        isinstance(value, list)
        and len(value) <= longest
        and all(_is_possible(one, possible) for one in value)
    )


def number_between(low: float, high: float) -> Callable[[object], bool]:
    """A number from `low` to `high`, whole or not."""
    return lambda value: type(value) in (int, float) and low <= value <= high  # type: ignore[operator]
