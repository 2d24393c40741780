"""The map of a model: every step from tokens to guesses as a box on the residual stream, each of
which opens in place.

The browser decides which block and which box are open and which of its tensors is shown, and keeps
that in the address. It asks for the numbers of a tensor when its box is open. Python is told of
that, and of a guess that was chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gptviz.components.kit import register
from gptviz.components.kit.events import list_up_to, read_event, text_up_to
from gptviz.interp.reading.anatomy import Anatomy, Box, BoxTensor
from gptviz.labelled_array import Float32Array, Float64Array
from gptviz.settings.address_values import ON_OR_OFF, Values, one_of, whole_number

_mount = register(Path(__file__).parent)

# Cells of a tensor on a page, down and across; a tensor of at most MOST_WHOLE numbers is sent
# whole, a larger one page by page.
PAGE = 12
MOST_WHOLE = 500_000
# More tensors than any box has; `fit` checks which one is shown.
MOST_PIECES = 1_000
# The heads of a block that have a thumbnail, the thumbnails in all, and the tokens along a side of
# one.
MOST_HEADS = 24
MOST_THUMBNAILS = 1_024
SIDE = 32
# A cell of a thumbnail that the mask hides; shares are 0 … 250.
HIDDEN = 255
WHOLE_SHARE = 250


@dataclass(frozen=True)
class TensorPage:
    """A page of a tensor."""

    box: str  #: the path of its box
    piece: int  #: which of the box's tensors
    at: tuple[int, ...]  #: the first index shown along each axis


def model_map(
    payload: bytes,
    *,
    key: str,
    on_take: Callable[[object], None],
    on_look: Callable[[object], None],
    on_shut: Callable[[object], None],
) -> None:
    """Show the map that `payload` describes; events are checked with `read_guess` and `looked`,
    that of a closed box with nothing.
    """
    _mount(key=key, data=payload, take=on_take, look=on_look, shut=on_shut)


def address(drawn: Anatomy) -> dict[str, Values]:
    """The choices that the address may hold for the view."""
    config = drawn.config
    blocks = [
        *map(str, range(config.n_layer)),
        *(f"encoder.{block}" for block in range(config.n_encoder_layer)),
    ]
    return {
        "box": one_of([box.path for box in drawn.boxes]),
        "block": one_of(blocks),
        "tensor": whole_number(0, max(len(box.pieces) for box in drawn.boxes) - 1),
        "head": whole_number(0, config.n_head - 1),
        "sizes": ON_OR_OFF,
    }


def default_boxes(drawn: Anatomy, block: int | None = None) -> dict[str, Any]:
    """What is open before anybody chooses: this block; unless given, one in the middle, which has
    more to show than the first.
    """
    blocks = drawn.config.n_layer
    if block is None:
        block = min(2, blocks - 1)
    return {
        "block": str(block) if blocks else None,
        "tensor": 0,
        "head": 0,
        "sizes": False,
    }


def read_guess(value: object, text: str, guesses: int) -> int | None:
    """The guess that was clicked on the map with the mark `text`; None if it was on another map or
    is no such guess.
    """
    fields = read_event(value, text=text, guess=range(guesses))
    if fields is None:
        return None
    return fields["guess"]


def looked(value: object) -> TensorPage | None:
    """The slice of a tensor that a click asks for, or None. This model may not have it: see
    `fit`.
    """
    fields = read_event(
        value, box=text_up_to(200), piece=range(MOST_PIECES), at=list_up_to(3, range(2**31))
    )
    if fields is None:
        return None
    return TensorPage(fields["box"], fields["piece"], tuple(fields["at"]))


def fit(look: TensorPage, drawn: Anatomy) -> tuple[Box, BoxTensor, tuple[int, ...]] | None:
    """The box, the tensor and the first indices of a page, or None if this model does not have
    them.
    """
    box = drawn.box(look.box)
    if box is None or look.piece >= len(box.pieces):
        return None
    piece = box.pieces[look.piece]
    padded = (look.at + (0,) * len(piece.shape))[: len(piece.shape)]
    return (
        box,
        piece,
        tuple(
            min(max(index, 0), size - 1) for index, size in zip(padded, piece.shape, strict=True)
        ),
    )


def page(values: npt.NDArray[Any], at: tuple[int, ...]) -> tuple[Float32Array, bool]:
    """The numbers that are sent: all of `values` and True if they are few, else the page [rows,
    columns] that begins at `at` (of a vector [rows]) and False.
    """
    if values.size <= MOST_WHOLE:
        return values.astype(np.float32), True
    *lead, row, column = at if values.ndim > 1 else (*at, 0)
    cut = values[tuple(lead)] if values.ndim > 1 else values[:, None]
    shown = cut[row : row + PAGE, column : column + PAGE]
    return (shown if values.ndim > 1 else shown[:, 0]).astype(np.float32), False


def summary(values: npt.NDArray[Any]) -> Float64Array:
    """Smallest, largest, mean, and root of the mean square of all numbers."""
    flat = values.reshape(-1)
    # In double precision, but never all of a large matrix at once.
    parts = np.array_split(flat, -(-flat.size // MOST_WHOLE))
    mean = sum(part.sum(dtype=np.float64) for part in parts) / flat.size
    square = sum(np.square(part, dtype=np.float64).sum() for part in parts) / flat.size
    return np.array([flat.min(), flat.max(), mean, np.sqrt(square)], np.float64)


def pooling(tokens: int) -> int:
    """The number of tokens along an axis that a cell of a thumbnail stands for, with `tokens` in
    all.
    """
    return -(-tokens // SIDE)


def thumbnails(
    patterns: Float32Array,
    hidden: npt.NDArray[np.bool_] | None,
    whole: tuple[int, int] | None = None,
) -> npt.NDArray[np.uint8]:
    """The patterns of a block [head, query, key] in at most `SIDE` × `SIDE` cells, each with the
    largest value of those it stands for: 0 … 250, and 255 where the mask hides them all: `hidden`
    [query, key] is true.

    Args:
        patterns: of all queries, or of some whose first is at the start of a cell.
        hidden: of the same queries and keys.
        whole: the total numbers of queries and of keys; keys that `patterns` lacks are hidden. By
            default its own.
    """
    pools = tuple(map(pooling, whole or patterns.shape[-2:]))
    small = np.rint(
        np.nan_to_num(_pool_values(patterns, pools, np.maximum)).clip(0, 1) * WHOLE_SHARE
    ).astype(np.uint8)
    if hidden is not None:
        small[:, _pool_values(hidden, pools, np.logical_and)] = HIDDEN
    if whole is None:
        missing = 0
    else:
        missing = -(-whole[1] // pools[1]) - small.shape[-1]
    return np.pad(small, ((0, 0), (0, 0), (0, missing)), constant_values=HIDDEN)


def _pool_values(
    values: npt.NDArray[Any], pools: tuple[int, ...], together: np.ufunc
) -> npt.NDArray[Any]:
    """Values [..., query, key] with groups of `pools` queries and keys combined into one by
    `together`.
    """
    for axis, pool in zip((-2, -1), pools, strict=True):
        values = together.reduceat(values, np.arange(0, values.shape[axis], pool), axis)
    return values


def code_of_map(opened: str, drawn: Anatomy, tokens: int, source: int) -> str:
    """The lines of gptviz that list the boxes of a map."""
    sizes = f"tokens={tokens}" + (f", source={source}" if drawn.config.n_encoder_layer else "")
    return f"""import gptviz
from gptviz.interp.reading.anatomy import anatomy

lm = {opened}
boxes = anatomy(lm.model.config, {sizes}).boxes
parameters = [(box.path, box.parameters) for box in boxes]"""


def code_of(piece: BoxTensor, opened: str, traced: Callable[[str], str]) -> str:
    """The lines of gptviz that compute the numbers of a tensor; `traced` returns those that trace a
    value by its name.
    """
    if piece.kind == "activation":
        first = "" if piece.name.endswith("positions") else "[0]"
        return f"{traced(piece.name)}\nvalues = trace[{piece.name!r}]{first}  # {piece.shape}"
    get = "get_parameter" if piece.kind == "weight" else "get_buffer"
    if piece.rows is None:
        rows = ""
    else:
        rows = f"[{piece.rows[0]}:{piece.rows[1]}]"
    return (
        f"import gptviz\n\nlm = {opened}\nvalues = lm.model.{get}({piece.name!r}){rows}  # "
        f"{piece.shape}"
    )
