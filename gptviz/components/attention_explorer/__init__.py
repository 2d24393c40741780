"""Who reads whom: every head at a glance, the tokens with what each attends to, and the arithmetic of one cell.

Hovering and choosing happen in the browser, which holds the choice in the page's address. Python is told only one thing: that
the reader looks at a block whose numbers did not fit into what was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st

from gptviz.components.kit import event, pack, register

_mount = register(Path(__file__).parent)

Numbers = npt.NDArray[np.float32]

# Up to the first of these limits (in bytes) numbers are sent with all their digits, above it in half precision (three digits);
# above the second limit only the numbers of one block are sent.
PRECISE_BYTES = 8 * 2**20
MOST_BYTES = 32 * 2**20


@dataclass(frozen=True)
class Heads:
    """All heads of a stack over one text.

    Attributes:
        patterns: for each block the shares [n_head, query, key].
        blocked: where a query must not look at a key, to be broadcast to [query, key]; None where all may look at all.
        q: the queries [n_block, n_head, query, d_head].
        k: the keys [n_block, n_head, key, d_head].
        moved: the length of what each key moves [n_block, n_head, key].
        position: what positions add to the scores [n_block, n_head, query, key], None for nothing.
        rollout: attention multiplied through the blocks [n_block, query, key], None where that means nothing.
        thumbnails: every head, pooled [n_block, n_head, down, across]; NaN is blank.
        facts: what each head does on average, by name: [n_block, n_head].
        scale: what the product of a query and a key is multiplied by.
        cap: where scores s are capped, they are cap · tanh(s / cap).
        sharing: how many neighbouring heads share their keys and values; 1 where each has its own.
        hidden: for each block, where its own mask hides a key from a query, as `blocked`; empty where it is `blocked` in all.
    """

    patterns: Sequence[Numbers]
    blocked: npt.NDArray[np.bool_] | None
    q: Numbers
    k: Numbers
    moved: Numbers
    position: Numbers | None
    rollout: Numbers | None
    thumbnails: Numbers
    facts: Mapping[str, Numbers]
    scale: float
    cap: float | None = None
    sharing: int = 1
    hidden: Sequence[npt.NDArray[np.bool_] | None] = ()

    @property
    def is_causal(self) -> bool:
        """Whether exactly the keys after a query are masked: then the half below the diagonal is all there is."""
        _, queries, keys = self.patterns[0].shape
        return (
            self.blocked is not None and queries == keys and bool((self.blocked == np.triu(np.ones((keys, keys), bool), 1)).all())
        )


def payload(heads: Heads, header: Mapping[str, Any], block: int = 0) -> bytes:
    """What the browser gets: `header`, and the numbers of all blocks, or of `block` alone where all are too many.

    The header has these keys besides the given ones: `first` and `count`, the blocks whose numbers are sent; `triangle`, whether
    squares have only what is on and below their diagonal, row after row; `half`, whether numbers have only three digits.
    """
    n_block, (n_head, queries, keys) = len(heads.patterns), heads.patterns[0].shape
    triangle = heads.is_causal
    cells = queries * (queries + 1) // 2 if triangle else queries * keys
    squares = n_head * (1 if heads.position is None else 2) + (heads.rollout is not None)
    per_block = squares * cells + n_head * (queries + keys) * heads.q.shape[-1]
    first, count = (0, n_block) if 2 * n_block * per_block <= MOST_BYTES else (block, 1)
    half = 4 * count * per_block > PRECISE_BYTES
    some = slice(first, first + count)
    kind = np.float16 if half else np.float32
    hidden = heads.hidden or [None] * n_block

    def square(values: Numbers) -> npt.NDArray[Any]:
        """Values [..., query, key] as they are sent: one row of numbers for each square."""
        flat = (
            values[..., *np.tril_indices(queries)] if triangle else _blank(values, heads.blocked).reshape(*values.shape[:-2], -1)
        )
        return flat.astype(kind)

    arrays = {
        "pattern": np.stack([square(_blank(heads.patterns[block], hidden[block])) for block in range(first, first + count)]),
        "q": heads.q[some].astype(kind),
        "k": heads.k[some].astype(kind),
        "moved": heads.moved[some],
        "thumbnails": heads.thumbnails,
        **{f"fact {name}": values for name, values in heads.facts.items()},
    }
    if heads.position is not None:
        arrays["position"] = square(heads.position[some])
    if heads.rollout is not None:
        arrays["rollout"] = square(heads.rollout[some])
    sizes = {"n_block": n_block, "n_head": n_head, "first": first, "count": count, "triangle": triangle, "half": half}
    arithmetic = {"scale": heads.scale, "cap": heads.cap, "sharing": heads.sharing}
    return pack({**header, **sizes, **arithmetic, "facts": list(heads.facts)}, **arrays)


def _blank(values: Numbers, blocked: npt.NDArray[np.bool_] | None) -> Numbers:
    return values if blocked is None else np.where(blocked, np.float32(np.nan), values)


def attention_explorer(packed: bytes, *, key: str, on_block: Callable[[object], None]) -> None:
    """Show what `payload` packed.

    Args:
        key: tells the views of one page apart.
        on_block: called with the event that asks for the numbers of another block: see `wanted`.
    """
    _mount(key=key, data=packed, on_block_change=lambda: on_block(st.session_state[key].get("block")))


def wanted(value: object, shown: str, n_block: int) -> int | None:
    """The block that an event asks for, {"block": number, "of": `shown`}; None if it is about another text than the one
    shown, or is not what this view sends.
    """
    fields = event(value)
    if fields is None or fields.get("of") != shown:
        return None
    block = fields.get("block")
    return block if type(block) is int and 0 <= block < n_block else None
