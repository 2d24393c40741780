"""A grid of coloured cells on a page, one of which is chosen by a click or by the keyboard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gptviz.components import cell_grid
from gptviz.components.cell_grid import Cell
from gptviz.components.kit import fingerprint

from .headings import heading


def show_cells(
    rows: Sequence[tuple[str, Sequence[Cell | None]]],
    columns: Sequence[str],
    ends: tuple[float, float],
    *,
    key: str,
    alt: str,
    choose: Callable[[str], object],
    **words: Any,
) -> None:
    """Show cells; a click on one calls `choose` with its name.

    Args:
        rows: as `columns` and `ends`, of `cell_grid.payload`.
        key: tells the grids of one page apart.
        alt: what is seen: the title of a picture, and what the grid is called aloud.
        words: `says`, `unit`, `legend`, `hint`, `code` and others of `cell_grid.About`.
    """
    names = [cell.name for _, cells in rows for cell in cells if cell is not None]
    of = fingerprint(key, names)
    file = key.replace(" ", "-")
    about = cell_grid.GridAddress(
        of, label=alt, file=file, **{"model": "", "prompt": "", **heading(alt), **words}
    )

    def choose_cell(value: object) -> None:
        if (name := cell_grid.read_click(value, of, names)) is not None:
            choose(name)

    cell_grid.cell_grid(
        cell_grid.payload(rows, columns, ends, about), key=key, on_choose=choose_cell
    )
