"""The grid of heads and MLPs in a browser: colours, clicks, the keyboard and the picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from gptviz.components.cell_grid.units import UnitNotes, payload, read_click, rows
from gptviz.interp.units.unit import Unit, heads_and_mlps
from tests.browser.files import tool
from tests.browser.machinery import serve, visiting
from tests.browser.mounting import Mounted
from tests.tiny import tiny

pytestmark = pytest.mark.browser

UNITS = heads_and_mlps(tiny(n_encoder_layer=1, n_layer=1))


def packed(edits: dict[Unit, str] | None = None, of: str = "x") -> bytes:
    changes = {unit: (-1) ** i * i / 10 for i, unit in enumerate(UNITS[:-1])}
    return payload(
        rows(UNITS),
        edits or {},
        changes,
        UnitNotes(of, "<b>model</b>", "a prompt", "nats per token", "some code"),
    )


def test_a_click_and_the_keyboard_switch_and_the_cells_say_what_they_are(
    mounted: Callable[..., Mounted],
) -> None:
    view = mounted("cell_grid", packed())
    page = view.page
    first = page.get_by_role(
        "button", name="head 0 of block 0 of the encoder; without it the loss changes by +0"
    )
    first.click()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    sent: list[Any] = [
        read_click(one.value, "x", UNITS) for one in view.sent if one.name == "choose"
    ]
    assert sent == [
        Unit("attention", 0, 0, True),
        Unit("attention", 0, 1, True),
        Unit("cross_attention", 0, 1),
    ]
    expect(page.locator("[data-name='blocks.0.cross_attention.head.1']")).to_be_focused()


def test_what_is_edited_is_pressed_and_says_so_without_colour(
    mounted: Callable[..., Mounted],
) -> None:
    edits = {UNITS[1]: UNITS[1].name, UNITS[3]: f"{UNITS[3].name}=mean"}
    page = mounted("cell_grid", packed(edits)).page
    pressed = page.locator(".cell[aria-pressed=true]")
    assert pressed.all_inner_texts() == ["off", "mean"]
    expect(page.locator(".legend")).to_contain_text("the loss rises without it")
    tool(page, "Numbers").click()
    expect(page.get_by_role("dialog")).to_contain_text(f"{UNITS[3].name}=mean")
    assert page.locator("b", has_text="model").count() == 0


@pytest.mark.full
def test_a_click_edits_every_page_and_one_click_takes_all_edits_away(
    browser: Browser, tmp_path: Path
) -> None:
    with serve(tmp_path) as server, visiting(browser, server) as visit:
        page = visit.open("switch_off?model=reversal")
        page.get_by_role("button", name="head 1 of block 0;").click()
        expect(page.get_by_role("button", name="1 edit")).to_be_visible()
        expect(page.locator(".cell[aria-pressed=true]")).to_have_count(1)
        assert "edits=blocks.0.attention.head.1" in page.url
        page.get_by_role("link", name="Attention", exact=True).first.click()
        expect(page.get_by_role("heading", name="What does each head look at?")).to_be_visible()
        expect(page.get_by_role("button", name="1 edit")).to_be_visible()
        page.get_by_role("button", name="Switch off head").click()
        expect(page.get_by_role("button", name="2 edits")).to_be_visible()
        page.get_by_role("button", name="Take all away").click()
        expect(page.get_by_role("button", name="2 edits")).to_have_count(0)
        assert "edits" not in page.url
