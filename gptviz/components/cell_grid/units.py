"""All heads and MLPs of a model as a grid: a click switches one off or on again; colours show the
loss without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from gptviz.components import cell_grid
from gptviz.interp.units.unit import Unit


@dataclass(frozen=True)
class Row:
    """A line of the grid."""

    name: str  #: the words before it
    #: the unit of the model in each column, or None if the line has none there
    units: tuple[Unit | None, ...]


def rows(units: Sequence[Unit]) -> tuple[Row, ...]:
    """The heads and MLPs of a model as lines, a line for each attention: its heads, then the MLP of
    its block.
    """
    lines: dict[tuple[bool, int | None, bool], list[Unit]] = {}
    mlps: dict[tuple[bool, int | None], Unit] = {}
    for unit in units:
        if unit.is_mlp:
            mlps[unit.in_encoder, unit.block] = unit
        else:
            lines.setdefault((unit.in_encoder, unit.block, unit.crosses), []).append(unit)
    return tuple(
        Row(
            _name(*place), (*heads, *((None if place[2] else mlps.get(place[:2]),) if mlps else ()))
        )
        for place, heads in lines.items()
    )


def _name(in_encoder: bool, block: int | None, crosses: bool) -> str:
    return f"{'encoder ' if in_encoder else ''}block {block}{' cross' if crosses else ''}"


@dataclass(frozen=True)
class UnitNotes:
    """The words around the cells of the grid."""

    of: str  #: identifies the grid: a click on an earlier grid is refused
    model: str  #: the name of the model
    prompt: str  #: the text that the loss is over, in words
    unit: str  #: the unit of the numbers
    code: str  #: the lines of gptviz that compute them
    settings: tuple[str, ...] = ()  #: the choices of the reader, a phrase each


def payload(
    lines: Sequence[Row],
    edits: Mapping[Unit, str],
    changes: Mapping[Unit, float],
    about: UnitNotes,
    example: str | None = None,
    title: Callable[[Unit], str] = attrgetter("title"),
) -> bytes:
    """The bytes that the browser gets of the grid `lines`, with the words `about` it. By unit,
    `title` gives its title, `edits` are those that the model has, and `changes` how much the loss
    rises without it; values that are not known yet, or NaN, are left out. The unit called `example`
    is framed though the model has no edit of it.
    """

    def cell(unit: Unit | None) -> cell_grid.Cell | None:
        if unit is None:
            return None
        return cell_grid.Cell(
            unit.name,
            title(unit),
            changes.get(unit),
            state=edits.get(unit),
            chosen=unit.name == example,
        )

    # The heads of the first line, and one more column if there are MLPs.
    heads = sum(unit is not None and unit.is_head for unit in lines[0].units)
    columns = [f"head {i}" for i in range(heads)] + ["MLP"] * (len(lines[0].units) > heads)
    limit = max((abs(change) for change in changes.values() if math.isfinite(change)), default=0.0)
    blue = "Blue: the loss rises without it; orange: it falls."
    words = cell_grid.GridAddress(
        about.of,
        title="The loss without each head and each MLP",
        label="Heads and MLPs: blocks downwards",
        says="without it the loss changes by",
        unit=about.unit,
        legend=blue
        if limit
        else "Colours, what the loss is without each, come when they are computed: below.",
        hint="A click, or Enter, switches a head or an MLP off on every page, or brings it back; "
        "the arrow keys walk.",
        file="switch_off",
        model=about.model,
        prompt=about.prompt,
        code=about.code,
        settings=about.settings,
        table=("unit", "edit", f"change of the loss without it ({about.unit})"),
    )
    return cell_grid.payload(
        [(line.name, [cell(unit) for unit in line.units]) for line in lines],
        columns,
        (-limit, limit),
        words,
    )


def unit_grid(packed: bytes, *, key: str, on_switch: Callable[[object], None]) -> None:
    """Show what `payload` packed; `on_switch` is called with the event of a cell that was clicked:
    see `read_click`.
    """
    cell_grid.cell_grid(packed, key=key, on_choose=on_switch)


def read_click(value: object, of: str, units: Sequence[Unit]) -> Unit | None:
    """The unit that an event is about; None as in `cell_grid.read_click`."""
    named = {unit.name: unit for unit in units}
    name = cell_grid.read_click(value, of, named)
    if name is None:
        return None
    return named[name]
