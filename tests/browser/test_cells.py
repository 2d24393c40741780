"""A click on a cell of a grid of heads chooses the head, in a real browser: plotly tells of clicks on points alone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.machinery import Visit

pytestmark = pytest.mark.browser

BLOCK, HEAD, BLOCKS, HEADS = 3, 1, 6, 6  # of `shakespeare`


@pytest.mark.full
@pytest.mark.parametrize(
    ("path", "key", "columns", "asks"),
    [
        ("attribution", "attribution-grid", HEADS + 1, "part=blocks.3.attention.head.1"),
        ("heads", "heads-grid", HEADS, "unit=blocks.3.attention.head.1"),
    ],
)
def test_a_click_on_a_cell_chooses_its_head(visit: Visit, path: str, key: str, columns: int, asks: str) -> None:
    page = visit.open(path, model="shakespeare")
    cells = page.locator(f".st-key-{key} .nsewdrag").first
    expect(cells).to_be_visible()
    visit.settle()
    box = cells.bounding_box()
    assert box is not None
    cells.click(position={"x": box["width"] * (HEAD + 0.5) / columns, "y": box["height"] * (BLOCK + 0.5) / BLOCKS})
    page.wait_for_url(re.compile(re.escape(asks)))
