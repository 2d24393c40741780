"""A grid of cells: a colour and a number in each, a click or a key chooses one. All heads of a
model, parts of a sum, patches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gptviz.components.kit import pack, register
from gptviz.components.kit.events import read_event

_mount = register(Path(__file__).parent)


@dataclass(frozen=True)
class Cell:
    """A cell of the grid."""

    name: str  #: what an event calls it
    title: str  #: what it is, in words
    value: float | None = None  #: the number that colours it; None or NaN where it is not known
    text: str = ""  #: the number as it stands in the cell; empty for the value with its sign
    #: what becomes of it, such as an edit, which stands in the cell and frames it; None where
    #: nothing does
    state: str | None = None
    chosen: bool = False  #: whether it is framed


@dataclass(frozen=True)
class GridAddress:
    """The words around the cells of a grid."""

    of: str  #: identifies the grid: a click on an earlier grid is refused
    title: str  #: what is seen, for pictures
    label: str  #: what the grid is, for those who cannot see it
    says: str  #: what a value is, before it: "without it the loss changes by"
    unit: str  #: the unit of the values
    legend: str  #: what the colours mean
    hint: str  #: what a click does
    file: str  #: the name of the files of numbers and pictures
    model: str  #: the name of the model
    prompt: str  #: the text that the values are of
    code: str  #: the lines of gptviz that compute them
    settings: tuple[str, ...] = ()  #: the choices of the reader, a phrase each
    #: the columns of the table of all numbers: what a cell is called, its state (empty where cells
    #: have none), its value
    table: tuple[str, str, str] = ("cell", "", "value")


def payload(
    rows: Sequence[tuple[str, Sequence[Cell | None]]],
    columns: Sequence[str],
    ends: tuple[float, float],
    about: GridAddress,
) -> bytes:
    """The bytes that the browser gets: for each of the `rows` its name and its cells, None where it
    has no cell, below the names of the `columns`, and the words `about` them. `ends` are the values
    at the ends of the scale, which is of two colours where the first is below 0; both are 0 for no
    colours.
    """

    def pack_cell(cell: Cell | None) -> dict[str, Any] | None:
        if cell is None:
            return None
        return {
            **vars(cell),
            "value": cell.value if cell.value is not None and math.isfinite(cell.value) else None,
        }

    lines = [{"name": name, "cells": [pack_cell(cell) for cell in cells]} for name, cells in rows]
    return pack({**vars(about), "heads": list(columns), "rows": lines, "ends": ends})


def cell_grid(packed: bytes, *, key: str, on_choose: Callable[[object], None]) -> None:
    """Show what `payload` packed; `on_choose` gets the event of a cell that was clicked (see
    `read_click`).
    """
    _mount(key=key, data=packed, choose=on_choose)


def read_click(value: object, of: str, names: Collection[str]) -> str | None:
    """The name of the cell of an event, {"name": name, "of": `of`}; None if it is stale or not what
    this view sends.
    """
    fields = read_event(value, of=of, name=names)
    if fields is None:
        return None
    return fields["name"]
