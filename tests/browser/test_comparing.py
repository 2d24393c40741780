"""The Runs page in a real browser: what is ticked by a pointer, and the same by keys."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from gptviz.runs import checkpoints
from gptviz.text import CharTokenizer
from tests.browser.keyboard import tab_to, to_start
from tests.browser.machinery import box_of, serve, visiting
from tests.tiny import scrambled, tiny

pytestmark = pytest.mark.browser

ROW = 35  # pixels


@pytest.mark.full
def test_rows_are_ticked_by_a_pointer_and_by_keys(browser: Browser, tmp_path: Path) -> None:
    tokenizer = CharTokenizer("abc")
    root = tmp_path / "home" / "checkpoints"
    for name in ("first", "second"):
        losses = [{"step": step, "validation": 4 - step / 10} for step in range(0, 20, 5)]
        model = scrambled(tiny(vocab_size=tokenizer.vocab_size))
        checkpoints.save(name, model, tokenizer, {"losses": losses}, root=root)
    with serve(tmp_path) as server, visiting(browser, server) as visit:
        page = visit.open("runs", chosen="first", model="second")
        names = page.locator(".legendtext")
        expect(names).to_have_text(["first"])
        page.get_by_role("heading", name="The curves").scroll_into_view_if_needed()
        page.get_by_test_id("stDataFrame").first.scroll_into_view_if_needed()
        place = box_of(page.get_by_test_id("stDataFrame").first)
        chart = box_of(page.get_by_role("figure", name=re.compile("Validation loss")))
        assert chart["y"] + 150 <= 720, "what a tick changes is in sight"
        page.mouse.click(place["x"] + 16, place["y"] + 2.5 * ROW)
        expect(names).to_have_text(["first", "second"])
        expect(page).to_have_url(re.compile("chosen=first%2Csecond"))
        page.mouse.click(place["x"] + 16, place["y"] + 1.5 * ROW)
        expect(names).to_have_text(["second"])
        # The same by keys alone.
        to_start(page)
        tab_to(page, "input Models compared")
        page.keyboard.type("fir")
        page.keyboard.press("Enter")
        expect(names).to_have_text(["second", "first"])
        page.keyboard.press("Backspace")
        expect(names).to_have_text(["second"])
