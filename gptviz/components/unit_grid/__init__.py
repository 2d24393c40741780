"""All heads and MLPs of a model as a grid: a click switches one off or on again; colours show the loss without it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gptviz.components.kit import pack, register
from gptviz.components.kit.events import read
from gptviz.interp.units.unit import Unit

_mount = register(Path(__file__).parent)


@dataclass(frozen=True)
class Row:
    """A line of the grid.

    Attributes:
        name: the words before it.
        units: the unit of the model in each column, or None if the line has none there.
    """

    name: str
    units: tuple[Unit | None, ...]


def rows(units: Sequence[Unit]) -> tuple[Row, ...]:
    """The heads and MLPs of a model as lines, a line for each attention: its heads, then the MLP of its block."""
    lines: dict[tuple[bool, int | None, bool], list[Unit]] = {}
    mlps: dict[tuple[bool, int | None], Unit] = {}
    for unit in units:
        if unit.part == "mlp":
            mlps[unit.in_encoder, unit.block] = unit
        else:
            lines.setdefault((unit.in_encoder, unit.block, unit.part == "cross_attention"), []).append(unit)
    return tuple(
        Row(_name(*place), (*heads, *((None if place[2] else mlps.get(place[:2]),) if mlps else ())))
        for place, heads in lines.items()
    )


def _name(in_encoder: bool, block: int | None, crosses: bool) -> str:
    return f"{'encoder ' if in_encoder else ''}block {block}{' cross' if crosses else ''}"


@dataclass(frozen=True)
class About:
    """The words around the cells of the grid.

    Attributes:
        of: identifies the grid: a click on an earlier grid is refused.
        model: the name of the model.
        prompt: the text that the loss is over, in words.
        unit: the unit of the numbers.
        code: the lines of gptviz that compute them.
        settings: the choices of the reader, a phrase each.
    """

    of: str
    model: str
    prompt: str
    unit: str
    code: str
    settings: tuple[str, ...] = ()


def payload(lines: Sequence[Row], edits: Mapping[Unit, str], changes: Mapping[Unit, float], about: About) -> bytes:
    """The bytes that the browser gets.

    Args:
        lines: the grid.
        edits: by unit, the edit that the model has.
        changes: by unit, how much the loss rises without it; values that are not known yet, or NaN, are left out.
        about: the words around the grid.
    """

    def cell(unit: Unit | None) -> dict[str, object] | None:
        if unit is None:
            return None
        change = changes.get(unit)
        known = change is not None and math.isfinite(change)
        return {"unit": unit.name, "title": unit.title, "edit": edits.get(unit), "change": change if known else None}

    # The heads of the first line, and one more column if there are MLPs.
    heads = sum(unit is not None and unit.is_head for unit in lines[0].units)
    columns = [f"head {i}" for i in range(heads)] + ["MLP"] * (len(lines[0].units) > heads)
    header = {
        "of": about.of,
        "model": about.model,
        "prompt": about.prompt,
        "measured": about.unit,
        "code": about.code,
        "settings": list(about.settings),
        "columns": columns,
        "rows": [{"name": line.name, "cells": [cell(unit) for unit in line.units]} for line in lines],
    }
    return pack(header)


def unit_grid(packed: bytes, *, key: str, on_switch: Callable[[object], None]) -> None:
    """Show what `payload` packed.

    Args:
        packed: the payload.
        key: tells the views of one page apart.
        on_switch: called with the event of a cell that was clicked: see `clicked`.
    """
    _mount(key=key, data=packed, switch=on_switch)


def clicked(value: object, of: str, units: Sequence[Unit]) -> Unit | None:
    """The unit that an event is about, {"unit": name, "of": `of`}; None if it is about another grid than the one shown, or is not
    what this view sends.
    """
    named = {unit.name: unit for unit in units}
    fields = read(value, of=of, unit=named)
    return None if fields is None else named[fields["unit"]]
