"""The map of a model: every step from tokens to guesses as a box on the residual stream, each of which opens in place.

Which block and which box are open, and which tensor of it is shown, the browser decides by itself, and keeps in the address. It
asks for the numbers of a tensor once its box is open. Python hears of that, and of a guess that is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st

from gptviz.address_values import Values, one_of, whole
from gptviz.components.kit import event, register
from gptviz.interp.anatomy import Anatomy, Box, Piece

_mount = register(Path(__file__).parent)

# Cells of a tensor on a page, down and across; a tensor of so many numbers travels whole, of a larger one the page alone.
PAGE = 12
MOST_WHOLE = 500_000
# The heads of a block that have a thumbnail, the thumbnails in all, and the tokens along a side of one.
MOST_HEADS, MOST_THUMBNAILS, SIDE = 24, 1_024, 32
# A cell of a thumbnail that the mask hides; shares are 0 … 250.
HIDDEN, WHOLE_SHARE = 255, 250


@dataclass(frozen=True)
class Look:
    """A page of a tensor.

    Attributes:
        box: the path of its box.
        piece: which of the box's tensors.
        at: the first index shown along each axis.
    """

    box: str
    piece: int
    at: tuple[int, ...]


def model_map(
    payload: bytes,
    *,
    key: str,
    on_take: Callable[[object], None],
    on_look: Callable[[object], None],
    on_shut: Callable[[object], None],
) -> None:
    """Show the map that `payload` describes; what the browser sends is to be judged by `taken` and `looked`. That a box was
    closed (`on_shut`) carries nothing to judge.
    """

    def answer(name: str, act: Callable[[object], None]) -> Callable[[], None]:
        return lambda: act(st.session_state[key].get(name))

    _mount(
        key=key,
        data=payload,
        on_take_change=answer("take", on_take),
        on_look_change=answer("look", on_look),
        on_shut_change=answer("shut", on_shut),
    )


def address(drawn: Anatomy) -> dict[str, Values]:
    """What the address may say of the view: `KEYS` in opened.js."""
    config = drawn.config
    blocks = [*map(str, range(config.n_layer)), *(f"encoder.{block}" for block in range(config.n_encoder_layer))]
    return {
        "box": one_of([box.path for box in drawn.boxes]),
        "block": one_of(blocks),
        "tensor": whole(0, max(len(box.pieces) for box in drawn.boxes) - 1),
        "head": whole(0, config.n_head - 1),
    }


def taken(value: object, text: str, guesses: int) -> int | None:
    """Which guess was clicked on the map of this `text` (its mark); None if it was on another, or is none of the `guesses`."""
    fields = event(value) or {}
    index = fields.get("guess")
    if fields.get("text") != text or type(index) is not int or not 0 <= index < guesses:
        return None
    return index


def looked(value: object) -> Look | None:
    """The page of a tensor that was asked for, None if that is not what an event says. It may be of another model: see `fit`."""
    fields = event(value) or {}
    box, piece, at = fields.get("box"), fields.get("piece"), fields.get("at")
    if not isinstance(box, str) or len(box) > 200 or type(piece) is not int or piece < 0 or not isinstance(at, list):
        return None
    if len(at) > 3 or not all(type(index) is int for index in at):
        return None
    return Look(box, piece, tuple(at))


def fit(look: Look, drawn: Anatomy) -> tuple[Box, Piece, tuple[int, ...]] | None:
    """The box, the tensor and the first indices that are asked for, where this model has them; None where it does not."""
    box = drawn.box(look.box)
    if box is None or look.piece >= len(box.pieces):
        return None
    piece = box.pieces[look.piece]
    padded = (look.at + (0,) * len(piece.shape))[: len(piece.shape)]
    return box, piece, tuple(min(max(index, 0), size - 1) for index, size in zip(padded, piece.shape, strict=True))


def page(values: npt.NDArray[Any], at: tuple[int, ...]) -> tuple[npt.NDArray[np.float32], bool]:
    """The numbers that travel: all of `values` and True where they are few, else the page [rows, columns] that begins at `at`
    (of a vector [rows]).
    """
    if values.size <= MOST_WHOLE:
        return values.astype(np.float32), True
    *lead, row, column = at if values.ndim > 1 else (*at, 0)
    cut = values[tuple(lead)] if values.ndim > 1 else values[:, None]
    shown = cut[row : row + PAGE, column : column + PAGE]
    return (shown if values.ndim > 1 else shown[:, 0]).astype(np.float32), False


def summary(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Smallest, largest, mean, and root of the mean square of all numbers."""
    flat = values.reshape(-1)
    # In double precision, but never all of a large matrix at once.
    parts = np.array_split(flat, -(-flat.size // MOST_WHOLE))
    mean = sum(part.sum(dtype=np.float64) for part in parts) / flat.size
    square = sum(np.square(part, dtype=np.float64).sum() for part in parts) / flat.size
    return np.array([flat.min(), flat.max(), mean, np.sqrt(square)], np.float64)


def pooling(tokens: int) -> int:
    """How many tokens a cell of a thumbnail stands for along an axis, where there are so many."""
    return -(-tokens // SIDE)


def thumbnails(
    patterns: npt.NDArray[np.float32], hidden: npt.NDArray[np.bool_] | None, whole: tuple[int, int] | None = None
) -> npt.NDArray[np.uint8]:
    """The patterns of a block [head, query, key] in at most `SIDE` × `SIDE` cells, each the largest of those it stands for:
    0 … 250, and 255 where the mask hides them all: where `hidden` [query, key] is true.

    Args:
        patterns: of all queries, or of some that begin where a cell does.
        hidden: of the same queries and keys.
        whole: how many queries and keys there are together; keys that `patterns` lacks are hidden. By default those it has.
    """
    pools = tuple(map(pooling, whole or patterns.shape[-2:]))
    small = np.rint(np.nan_to_num(_pooled(patterns, pools, np.maximum)).clip(0, 1) * WHOLE_SHARE).astype(np.uint8)
    if hidden is not None:
        small[:, _pooled(hidden, pools, np.logical_and)] = HIDDEN
    beside = 0 if whole is None else -(-whole[1] // pools[1]) - small.shape[-1]
    return np.pad(small, ((0, 0), (0, 0), (0, beside)), constant_values=HIDDEN)


def _pooled(values: npt.NDArray[Any], pools: tuple[int, ...], together: np.ufunc) -> npt.NDArray[Any]:
    """Values [..., query, key], so many queries and so many keys `together`."""
    for axis, pool in zip((-2, -1), pools, strict=True):
        values = together.reduceat(values, np.arange(0, values.shape[axis], pool), axis)
    return values


def code_of_map(opened: str, drawn: Anatomy, tokens: int, source: int) -> str:
    """The lines of gptviz that list the boxes of a map."""
    sizes = f"tokens={tokens}" + (f", source={source}" if drawn.config.n_encoder_layer else "")
    return f"""import gptviz
from gptviz.interp.anatomy import anatomy

lm = {opened}
boxes = anatomy(lm.model.config, {sizes}).boxes
parameters = [(box.path, box.parameters) for box in boxes]"""


def code_of(piece: Piece, opened: str, traced: Callable[[str], str]) -> str:
    """The lines of gptviz that give the numbers of a piece; `traced` gives those that trace a value by its name."""
    if piece.kind == "activation":
        first = "" if piece.name.endswith("positions") else "[0]"
        return f"{traced(piece.name)}\nvalues = trace[{piece.name!r}]{first}  # {piece.shape}"
    get = "get_parameter" if piece.kind == "weight" else "get_buffer"
    rows = "" if piece.rows is None else f"[{piece.rows[0]}:{piece.rows[1]}]"
    return f"import gptviz\n\nlm = {opened}\nvalues = lm.model.{get}({piece.name!r}){rows}  # {piece.shape}"
