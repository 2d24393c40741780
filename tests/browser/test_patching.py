"""The page Patching in a browser: a click on a cell, which is exact at once."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from gptviz.text.datasets.sentences import contrasts
from tests.browser.machinery import PATIENCE, Visit


@pytest.mark.full
def test_a_click_explains_a_cell_which_is_exact_and_so_it_is_after_a_reload(visit: Visit) -> None:
    one = contrasts()[0]
    page = visit.open("patching", model="sentences", prompt=one.clean, corrupted=one.corrupted)
    cells = page.locator(".js-plotly-plot").nth(3).locator(".nsewdrag").first  # three blocks of four heads: what they hand on
    box = cells.bounding_box()
    assert box is not None
    at = {"x": box["width"] * 2.5 / 4, "y": box["height"] * 1.5 / 3}
    cells.hover(position=at)
    cells.click(position=at)
    explained = page.get_by_text(re.compile(r"The output of head 2 of block 1: restores \d+ % of the answer"))
    expect(explained).to_be_visible(timeout=1_000 * PATIENCE)
    assert "cell=attention.z%2F1%2F2" in page.url
    page.reload()
    visit.settle()
    expect(page.get_by_text("All heatmaps are exact")).to_be_visible(timeout=1_000 * PATIENCE)
    expect(explained).to_be_visible(timeout=1_000 * PATIENCE)
