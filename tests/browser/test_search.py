"""The search: the key "/" opens it on every page, what is typed finds what is called so, and Enter
leads there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from gptviz.components.search import index, payload
from gptviz.ui.shell.around.search import Entry, entries
from tests.browser.axe import COLOURS, darken, findings
from tests.browser.contrast import faint
from tests.browser.machinery import HOSTILE, Server, visiting
from tests.browser.mounting import Mounted
from tests.browser.pictures import small

pytestmark = pytest.mark.browser

# Types each of many texts, and says what is found first.
FIRST = """(field, texts) => texts.map((text) => {
    field.value = text;
    field.dispatchEvent(new Event('input'));
    return field.getRootNode().querySelector('.hit strong')?.textContent;
})"""


def shown(mounted: Callable[..., Mounted], found: list[Entry], **look: object) -> Page:
    """A page with the search open."""
    page = mounted("search", payload(index(found), {"model": "bpe"}, {}).joined_bytes, **look).page
    page.keyboard.press("/")
    expect(page.get_by_role("textbox", name="Search")).to_be_focused()
    return page


def test_everything_is_found_first_by_its_own_name_and_nonsense_finds_nothing(
    mounted: Callable[..., Mounted], home: Path
) -> None:
    page = shown(mounted, list(entries()))
    # a page and a word may have the same, apart from their capitals
    names = [entry.name for entry in entries()]
    for asked in (names, [name.upper() for name in names]):
        found = page.get_by_role("textbox").evaluate(FIRST, asked)
        assert [name.lower() for name in found] == [name.lower() for name in names]
    page.get_by_role("textbox").fill("qzxv")
    expect(page.get_by_role("status")).to_have_text("Nothing is found for “qzxv”.")
    expect(page.locator(".hit")).to_have_count(0)


def test_hostile_names_are_text(mounted: Callable[..., Mounted]) -> None:
    page = shown(
        mounted,
        [Entry("Model", name, name, f"./?model={number}") for number, name in enumerate(HOSTILE)],
        width=390,
    )
    for name in HOSTILE:
        assert page.get_by_role("textbox").evaluate(FIRST, [name]) == [name]
    assert page.locator(".root").locator("img, script, a[href^='javascript']").count() == 0
    assert page.title() == "A view"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_key_is_typed_in_a_field_and_opens_the_search_elsewhere(
    mounted: Callable[..., Mounted],
) -> None:
    page = mounted("search", payload(index([]), {}, {}).joined_bytes).page
    page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<input aria-label=Text><input type=radio "
        "aria-label=Choice>')"
    )
    page.get_by_label("Text").focus()
    page.keyboard.press("/")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_label("Text")).to_have_value("/")
    page.get_by_label("Choice").focus()
    page.keyboard.press("/")
    page.keyboard.press("/")
    expect(page.get_by_role("textbox", name="Search")).to_have_value("/")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Choice")).to_be_focused()


def test_a_command_is_copied(mounted: Callable[..., Mounted]) -> None:
    page = shown(mounted, [Entry("Command", "python -m gptviz heads", "Score every head.")])
    page.keyboard.type("heads")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("Copied: python -m gptviz heads")
    assert page.evaluate("navigator.clipboard.readText()") == "python -m gptviz heads"


@pytest.mark.parametrize(
    ("dark", "width"), [(False, 1280), (True, 390)], ids=["light and wide", "dark and narrow"]
)
def test_what_is_found_is_large_and_clear_enough(
    mounted: Callable[..., Mounted], home: Path, dark: bool, width: int
) -> None:
    page = shown(mounted, entries(), dark=dark, width=width)
    page.keyboard.type("induction")
    expect(page.locator(".hit").first).to_be_visible()
    assert small(page) == []
    assert faint(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_keyboard_leads_from_a_page_to_what_is_found_and_keeps_the_readers_model(
    browser: Browser, server: Server
) -> None:
    with visiting(browser, server) as visit:
        page = visit.open("gradients", model="ladder-2")
        sent = len(visit.sent)
        page.keyboard.press("/")
        page.keyboard.type("induction")
        found = page.locator(".hit")
        kinds = set(found.locator(".kind").all_inner_texts())
        assert kinds == {"Page", "Lesson", "Word", "Model", "Head", "Command"}
        assert findings(page) == []
        assert len(visit.sent) == sent, "the browser finds by itself"
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        darken(visit)
        page.get_by_role("button", name="Search").click()
        page.keyboard.type("heads")
        assert findings(page, only=COLOURS) == []
        for key in ("ArrowDown", "ArrowDown", "ArrowUp"):
            page.keyboard.press(key)
        expect(found.first).to_be_focused()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("/heads"))
        assert "model=induction" in visit.drawn().url, "the second one is Heads on that model"
        page.go_back()
        visit.settle()
        page.keyboard.press("/")
        page.keyboard.type("embeddings")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("/embeddings"))
        expect(visit.drawn().get_by_role("combobox", name="Model")).to_have_value("ladder-2")
        assert "model=ladder-2" in page.url


def test_it_opens_where_a_model_is_damaged_and_where_a_lesson_is_folded_on_a_phone(
    browser: Browser, server: Server
) -> None:
    damaged = server.checkpoints / "damaged"
    damaged.mkdir(parents=True)
    (damaged / "config.json").write_text("{")
    with visiting(browser, server, width=390, height=844) as visit:
        page = visit.open("lens", model="damaged", lesson="01-tokens")
        page.locator(".st-key-lesson summary").click()
        page.keyboard.press("/")
        page.keyboard.type("damaged")
        expect(page.locator(".hit").first).to_contain_text("Its card says nothing about it.")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
