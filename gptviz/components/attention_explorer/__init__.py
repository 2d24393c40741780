"""Which token reads which: every head at a glance, the tokens that each token attends to, and the
arithmetic of one cell.

Hovering and choosing happen in the browser, which keeps the choice in the page's address. Python is
told only if the reader looks at a block whose numbers did not fit into the payload.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gptviz.components.kit import pack, register
from gptviz.components.kit.events import or_none, read_event
from gptviz.labelled_array import Float32Array
from gptviz.settings.address_values import (
    ON_OR_OFF,
    Values,
    declare_values,
    one_of,
    pairs,
    whole_number,
)

_mount = register(Path(__file__).parent)

# Up to the first of these limits, in bytes, numbers are sent with all their digits, above it in
# half precision (three digits). Above the second limit only the numbers of one block are sent.
PRECISE_BYTES = 8 * 2**20
MOST_BYTES = 32 * 2**20


@dataclass(frozen=True)
class Heads:
    """All heads of a stack over one text."""

    #: for each block the shares [n_head, query, key]. All numbers except `thumbnails` and `facts`
    #: are only of the blocks that are sent: see `blocks_sent`.
    patterns: Sequence[Float32Array]
    #: where a query must not look at a key, to be broadcast to [query, key]; None if every query
    #: may look at every key
    blocked: npt.NDArray[np.bool_] | None
    q: Float32Array  #: the queries [n_block, n_head, query, d_head]
    k: Float32Array  #: the keys [n_block, n_head, key, d_head]
    #: the length of the vector that each key moves [n_block, n_head, key]; None for words, which
    #: have no value of their own, and no query and key: d_head is then 0
    moved: Float32Array | None
    #: the term that positions add to the scores [n_block, n_head, query, key], None if they add
    #: nothing
    position: Float32Array | None
    #: attention multiplied through the blocks [n_block, query, key], None if that has no meaning
    rollout: Float32Array | None
    #: every head of all blocks, pooled [n_block, n_head, down, across]; NaN is blank
    thumbnails: Float32Array
    #: averages that describe each head, by name: [n_block, n_head]
    facts: Mapping[str, Float32Array]
    scale: float  #: the factor of the product of a query and a key
    cap: float | None = None  #: capped scores s are cap · tanh(s / cap); None for no cap
    #: how many neighbouring heads share their keys and values; 1 if each has its own
    sharing: int = 1
    #: for each block, where its own mask hides a key from a query, as `blocked_everywhere`; empty
    #: if it is
    #: `blocked` in all blocks
    hidden: Sequence[npt.NDArray[np.bool_] | None] = ()
    first: int = 0  #: the number of the first block that is sent
    #: thumbnails of the rows without the first token; None if that has no meaning
    without_first: Float32Array | None = None
    #: for each block of the model the number of keys in a query's window, None for no window; empty
    #: without windows
    windows: Sequence[int | None] = ()
    #: what the norm behind attention multiplies the vector by [n_block, query], None where there is
    #: no such norm
    scaled: Float32Array | None = None

    @property
    def size(self) -> BlockSize:
        """How many numbers a block has."""
        squares = (1 if self.position is None else 2) * len(self.patterns[0]) + (
            self.rollout is not None
        )
        n_head, queries, keys = self.patterns[0].shape
        return BlockSize(
            n_head, queries, keys, self.q.shape[-1], squares, is_causal(self.blocked, queries, keys)
        )


def is_causal(blocked: npt.NDArray[np.bool_] | None, queries: int, keys: int) -> bool:
    """Whether exactly the keys after a query are masked: then only the half below the diagonal is
    sent.
    """
    return (
        blocked is not None
        and queries == keys
        and np.array_equal(blocked, np.triu(np.ones((keys, keys), bool), 1))
    )


@dataclass(frozen=True)
class BlockSize:
    """How many numbers a block has."""

    n_head: int  #: heads
    queries: int  #: tokens that look
    keys: int  #: tokens that can be looked at
    d_head: int  #: numbers of a query or a key
    squares: int  #: how many numbers each pair of a query and a key has
    triangle: bool  #: whether only keys up to the query are sent

    @property
    def cells(self) -> int:
        """The pairs of a query and a key that are sent."""
        if self.triangle:
            return self.queries * (self.queries + 1) // 2
        return self.queries * self.keys

    @property
    def numbers(self) -> int:
        """The numbers that are sent of a block."""
        return self.squares * self.cells + self.n_head * (self.queries + self.keys) * self.d_head


def blocks_sent(size: BlockSize, n_block: int, block: int) -> range:
    """The blocks whose numbers are sent: all of them, or only `block` if all are too many."""
    if 2 * n_block * size.numbers <= MOST_BYTES:
        return range(n_block)
    return range(block, block + 1)


def payload(heads: Heads, header: Mapping[str, Any]) -> bytes:
    """The bytes that the browser gets: `header`, and the numbers of the blocks that `heads` has.
    Its `start` is what the view shows before anybody chooses: `block` and `head` (or the nearest
    there are), and other names of its part of the address.

    The header has these keys besides the given ones: `first` and `count`, the blocks whose numbers
    are sent; `triangle`, whether only the cells on and below the diagonal are sent, row after row;
    `half`, whether numbers have only three digits.
    """
    size = heads.size
    count = len(heads.patterns)
    half = 4 * count * size.numbers > PRECISE_BYTES
    kind = np.float16 if half else np.float32
    hidden = heads.hidden or [None] * count
    corner = np.tril_indices(size.queries) if size.triangle else ()

    def square(
        values: Float32Array, hides: npt.NDArray[np.bool_] | None = None
    ) -> npt.NDArray[Any]:
        """Values [query, key] as they are sent: a row of numbers."""
        seen = _blank(values, hides)
        return (seen[corner] if size.triangle else _blank(seen, heads.blocked).reshape(-1)).astype(
            kind
        )

    def squares(
        values: Sequence[Float32Array] | Float32Array, hides: Sequence[npt.NDArray[np.bool_] | None]
    ) -> npt.NDArray[Any]:
        """Head by head, written straight into the array that is sent: for a long text it is
        large.
        """
        flat = np.empty((count, len(values[0]), size.cells), kind)
        for block, heads_of in enumerate(values):
            for head, one in enumerate(heads_of):
                flat[block, head] = square(one, hides[block])
        return flat

    arrays = {
        "pattern": squares(heads.patterns, hidden),
        "q": heads.q.astype(kind),
        "k": heads.k.astype(kind),
        "thumbnails": heads.thumbnails,
        **{f"fact {name}": values for name, values in heads.facts.items()},
    }
    if heads.moved is not None:
        arrays["moved"] = heads.moved
    if heads.position is not None:
        arrays["position"] = squares(heads.position, [None] * count)
    if heads.rollout is not None:  # through several blocks it reaches farther than the mask of one
        rolled = _blank(
            heads.rollout, None if heads.blocked is None else heads.blocked & (heads.rollout == 0)
        )
        arrays["rollout"] = (
            rolled[:, *corner] if size.triangle else rolled.reshape(count, -1)
        ).astype(kind)
    if heads.scaled is not None:
        arrays["scaled"] = heads.scaled
    if heads.without_first is not None:
        arrays["without first"] = heads.without_first
    n_block = len(heads.thumbnails)
    half_is = {"triangle": size.triangle, "half": half}
    sizes = {
        "n_block": n_block,
        "n_head": size.n_head,
        "first": heads.first,
        "count": count,
        **half_is,
    }
    start = {"block": 0, "head": 0, **header.get("start", {})}
    nearest = {
        "block": min(start["block"], len(heads.thumbnails) - 1),
        "head": min(start["head"], size.n_head - 1),
    }
    header = {**header, "declared": declare_values(address(heads), {**_USUAL, **start, **nearest})}
    arithmetic = {
        "scale": heads.scale,
        "cap": heads.cap,
        "sharing": heads.sharing,
        "windows": list(heads.windows),
    }
    return pack({**header, **sizes, **arithmetic, "facts": list(heads.facts)}, **arrays)


# The quantities that the view can show, each with the numbers that it needs besides the patterns.
_SHOWS = {"pattern": "", "rest": "without_first", "value": "moved", "rollout": "rollout"}
# Which heads of the chosen block are shown if no heads are named.
_WAYS = ("one", "mean", "all")
_USUAL = {"heads": "one", "show": "pattern", "direction": "out", "log": False}


def address(heads: Heads) -> dict[str, Values]:
    """The choices that the address may hold for the view."""
    n_block = len(heads.thumbnails)
    size = heads.size
    compared = f"{', '.join(_WAYS)}, or heads as block.head with spaces between"
    return {
        "block": whole_number(0, n_block - 1),
        "head": whole_number(0, size.n_head - 1),
        "heads": pairs(n_block, size.n_head, compared, most=n_block * size.n_head, names=_WAYS),
        "show": one_of(
            [
                name
                for name, needs in _SHOWS.items()
                if not needs or getattr(heads, needs) is not None
            ]
        ),
        "direction": one_of(("out", "in")),
        "query": whole_number(0, size.queries - 1),
        "key": whole_number(0, size.keys - 1),
        "sort": one_of(list(heads.facts)),
        "least": whole_number(0, 9_999),
        "log": ON_OR_OFF,
    }


def _blank(values: Float32Array, blocked: npt.NDArray[np.bool_] | None) -> Float32Array:
    if blocked is None:
        return values
    return np.where(blocked, np.float32(np.nan), values)


def attention_explorer(
    packed: bytes,
    *,
    key: str,
    on_block: Callable[[object], None],
    on_switch: Callable[[object], None],
) -> None:
    """Show what `payload` packed. `on_block` gets the event that asks for the numbers of another
    block (see `read_block`), `on_switch` the one that asks for the model without a head, or with it
    again (see `read_switch`).
    """
    _mount(key=key, data=packed, block=on_block, switch=on_switch)


def read_switch(
    value: object, shown: str, n_block: int, n_head: int
) -> tuple[int, int | None] | None:
    """The block and the head that an event asks to switch off or bring back, {"block": number,
    "head": number or null, "of": `shown`}; null is all heads. None as in `read_block`.
    """
    fields = read_event(value, of=shown, block=range(n_block), head=or_none(range(n_head)))
    if fields is None:
        return None
    return (fields["block"], fields["head"])


def read_block(value: object, shown: str, n_block: int) -> int | None:
    """The block that an event asks for, {"block": number, "of": `shown`}; None if it is stale or
    not what this view sends.
    """
    fields = read_event(value, of=shown, block=range(n_block))
    if fields is None:
        return None
    return fields["block"]
