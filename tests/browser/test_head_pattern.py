"""The pattern of one head in a browser: colours, what a cell says, the keyboard and the numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from gptviz.components.head_pattern import payload
from gptviz.figures.kit.theme import PATTERN
from gptviz.labelled_array import Axis, LabelledArray
from tests.browser.files import tool
from tests.browser.machinery import box_of
from tests.browser.mounting import Mounted
from tests.browser.pixels import check_pixels

pytestmark = pytest.mark.browser

SHARES = np.array([[1, np.nan, np.nan], [0.25, 0.75, np.nan], [0.1245, 0.0005, 0.875]], np.float32)


def packed(values: np.ndarray[Any, Any] = SHARES) -> bytes:
    rows, columns = values.shape
    axes = (
        Axis("query (reads)", tuple("abcdef"[:rows])),
        Axis("key (is read)", tuple("abcdef"[:columns])),
    )
    return payload(
        LabelledArray(values, axes, "share"),
        {"title": "The pattern of a head"},
        "some code",
        "Head 1",
    )


def point_at(page: Page, row: int, column: int) -> None:
    box = box_of(page.locator(".heat"))
    page.mouse.move(
        box["x"] + (column + 0.5) * box["width"] / 3, box["y"] + (row + 0.5) * box["height"] / 3
    )


def test_a_cell_has_the_colour_of_its_share_and_what_may_not_be_read_is_blank(
    mounted: Callable[..., Mounted],
) -> None:
    check_pixels(mounted("head_pattern", packed()).page.locator(".heat"), SHARES, PATTERN)


def test_under_the_pointer_a_cell_says_its_share(mounted: Callable[..., Mounted]) -> None:
    page = mounted("head_pattern", packed()).page
    readout = page.locator(".row .note")
    point_at(page, 1, 0)
    expect(readout).to_have_text("“b” (1) reads “a” (0): 25.0 %")
    point_at(page, 2, 1)
    expect(readout).to_have_text("“c” (2) reads “b” (1): < 0.1 %")
    point_at(page, 0, 2)
    expect(readout).to_have_text("Point at a cell, or walk with the arrow keys, to read its share.")


def test_arrow_keys_walk_the_cells_that_may_be_read(mounted: Callable[..., Mounted]) -> None:
    page = mounted("head_pattern", packed()).page
    said = page.locator(".root > .aloud")
    page.locator(".frame").focus()
    for key in ("End", "ArrowUp"):  # above the last cell of the last row nothing may be read
        page.keyboard.press(key)
        expect(said).to_have_text("“c” (2) reads “c” (2): 87.5 %")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowUp")
    expect(said).to_have_text("“b” (1) reads “b” (1): 75.0 %")


def test_another_pattern_keeps_the_cell_that_is_looked_at(mounted: Callable[..., Mounted]) -> None:
    view = mounted("head_pattern", packed())
    point_at(view.page, 1, 0)
    expect(view.page.locator(".row .note")).to_contain_text("25.0 %")
    view.show(packed(np.array([[1, np.nan], [0.5, 0.5]], np.float32)))
    expect(view.page.locator(".row .note")).to_have_text("“b” (1) reads “a” (0): 50.0 %")
    tool(view.page, "Numbers").click()
    assert view.page.get_by_role("dialog").locator("tbody tr").count() == 3
