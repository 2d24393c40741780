"""The logit lens as a grid: the model's guess after every layer (rows) at every position of a text
(columns).

Hovering, moving with the keyboard and the choice of colours happen in the browser, which keeps the
choices in the page's address. Python is told only which cell was opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gptviz.components.kit import pack, register
from gptviz.components.kit.command import NO_COMMAND, ViewCommand
from gptviz.components.kit.events import read_event
from gptviz.interp.reading.lens import Lens
from gptviz.settings.address_values import ON_OR_OFF, Values, declare_values, one_of, whole_number

_mount = register(Path(__file__).parent)

# The quantities that cells can be coloured by: as in cells.js.
COLOURS = ("probability", "final", "entropy", "rank")


@dataclass(frozen=True)
class LensCell:
    """A cell of the grid."""

    layer: int  #: the index of its layer
    index: int  #: its place among the positions shown


def payload(
    seen: Lens,
    label: Callable[[int], str],
    *,
    of: str,
    model: str,
    vocab_size: int,
    code: str,
    spaced: bool = False,
    colour: str = COLOURS[0],
    command: ViewCommand = NO_COMMAND,
) -> bytes:
    """The bytes that the browser gets.

    Args:
        label: the visible form of a token.
        of: identifies the text and the model: a chosen cell stays chosen while this stays the same.
        model: the name of the model, for pictures.
        vocab_size: the size of its vocabulary.
        code: the lines of gptviz that compute the same.
        spaced: whether tokens stand apart in a text.
        colour: the quantity that cells are coloured by at first.
        command: the choices (`layer`, `position`, `colour`, `words`) that the view is asked to
            show.

    Raises:
        ValueError: the probabilities are not numbers, as in a damaged model.
    """
    if not np.isfinite(seen.probability).all():
        raise ValueError(
            "the model's logits are not numbers: its weights or edits are so large that they "
            "overflow"
        )
    tokens, places = np.unique(seen.top, return_inverse=True)
    header: dict[str, Any] = {
        "of": of,
        "model": model,
        "layers": [
            {"name": one.name, "title": one.title, "short": one.short} for one in seen.layers
        ],
        "first": seen.positions.start,
        "tokens": [label(i) for i in seen.ids],
        "true": [label(i) if i >= 0 else None for i in seen.true.tolist()],
        "names": [label(i) for i in tokens.tolist()],
        "vocabSize": vocab_size,
        "spaced": spaced,
        "code": code,
        "declared": declare_values(
            address([one.name for one in seen.layers], seen.positions),
            {
                "layer": seen.layers[-1].name,
                "position": seen.positions[-1],
                "colour": colour,
                "words": False,
            },
        ),
        "asked": dict(command.asked) if command.number else None,
        "number": command.number,
    }
    return pack(
        header,
        top=places.reshape(seen.top.shape).astype(np.int32),
        probability=seen.probability,
        entropy=seen.entropy,
        rank=seen.rank.astype(np.int32),
        really=seen.true_probability,
        final=seen.final_probability,
    )


def address(names: Sequence[str], positions: range) -> dict[str, Values]:
    """The choices that the address may hold for the view, by the names of its layers and its
    positions.
    """
    return {
        "layer": one_of(names),
        "position": whole_number(positions[0], positions[-1]),
        "colour": one_of(COLOURS),
        "words": ON_OR_OFF,
    }


def lens_grid(packed: bytes, *, key: str, on_open: Callable[[object], None]) -> None:
    """Show what `payload` packed; `on_open` gets the event of a cell that was opened (see
    `read_click`).
    """
    _mount(key=key, data=packed, open=on_open)


def read_click(value: object, of: str, n_layer: int, n_position: int) -> LensCell | None:
    """The cell that an event opens, {"layer": index, "index": index, "of": `of`}; None if stale or
    not what this view sends.
    """
    fields = read_event(value, of=of, layer=range(n_layer), index=range(n_position))
    if fields is None:
        return None
    return LensCell(fields["layer"], fields["index"])


def read_address(
    layer: str | None, position: str | None, names: Sequence[str], positions: range
) -> LensCell | None:
    """The cell that an address asks for by the name of its layer and its position, or None if there
    is no such cell.
    """
    values = address(names, positions)
    if (
        layer is None
        or position is None
        or not values["layer"].has(layer)
        or not values["position"].has(position)
    ):
        return None
    return LensCell(list(names).index(layer), positions.index(int(position)))
