"""A click on a cell of a grid of heads, and Enter on it, chooses the head, in a real browser."""

from __future__ import annotations

import re

import pytest

from tests.browser.machinery import Visit

pytestmark = pytest.mark.browser


@pytest.mark.full
@pytest.mark.parametrize(("path", "asks"), [("attribution", "part="), ("heads", "unit=")])
def test_a_click_on_a_cell_and_enter_on_the_next_choose_their_heads(visit: Visit, path: str, asks: str) -> None:
    page = visit.open(path, model="shakespeare")
    page.locator(".cell[data-name='blocks.3.attention.head.1']").click()
    page.wait_for_url(re.compile(re.escape(f"{asks}blocks.3.attention.head.1")))
    visit.settle()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(re.escape(f"{asks}blocks.4.attention.head.1")))
    visit.settle()
    framed = page.locator(".cell[aria-pressed='true']")
    assert [cell.get_attribute("data-name") for cell in framed.all()] == ["blocks.4.attention.head.1"]
