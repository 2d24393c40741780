"""A box that searches as one types, on every page: the key "/" and a button open it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from gptviz.components.kit import Packed, PayloadPart, pack, pack_in_parts, register

search = register(Path(__file__).parent)


def index(entries: Sequence[Sequence[str]]) -> PayloadPart:
    """What can be found, packed. Each of the `entries` has a kind, a name, a sentence about it, its
    address relative to any page (one without a query keeps the reader's state; empty for what has
    none, as a command), and further words that find it. Of two that fit equally well, the first is
    shown first.
    """
    return PayloadPart(pack({"entries": [list(entry) for entry in entries]}))


def payload(found: PayloadPart, state: Mapping[str, str], around: Mapping[str, str]) -> Packed:
    """The index, and what links bring along: `state` is the query of a link to a page that goes on
    with what the reader has chosen, `around` the part of it that stays when another model is
    opened.
    """
    return pack_in_parts({"state": dict(state), "around": dict(around)}, [found])
