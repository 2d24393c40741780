"""The Back and Forward buttons of the browser, and a reload: the page that was there, as its
address says.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlparse

import pytest
from playwright.sync_api import Page, expect

from tests.browser.machinery import Visit


def through_menu(visit: Visit, title: str) -> None:
    visit.page.get_by_test_id("stSidebar").get_by_role("link", name=title, exact=True).click()
    expect(visit.page).to_have_title(f"{title} · gptviz")
    visit.settle()


def address(page: Page) -> tuple[str, frozenset[tuple[str, str]]]:
    """The page and what its address says, in any order."""
    url = urlparse(page.url)
    return url.path, frozenset(parse_qsl(url.query))


def shown(page: Page) -> tuple[str, str, str, str]:
    """What the page is, and the model, the step of its training and the prompt that it shows."""
    model = page.get_by_role("combobox", name=re.compile(r"^Model\b"))
    step = page.get_by_role("slider", name="Training step")
    prompt = page.get_by_role("textbox", name=re.compile("^Prompt"))
    return (
        page.title(),
        model.input_value(),
        step.get_attribute("aria-valuetext") or "",
        prompt.input_value(),
    )


@pytest.mark.full
def test_a_click_is_one_step_of_the_history_and_a_step_back_shows_the_page_before(
    visit: Visit,
) -> None:
    page = visit.open("", model="generator", prompt="O Romeo")
    length = page.evaluate("history.length")
    stops = [(address(page), shown(page))]
    through_menu(visit, "Attention")
    head = page.locator(".head").nth(1)
    head.click()
    expect(head).to_have_attribute("aria-pressed", "true")
    page.get_by_role("slider", name="Training step").press("ArrowLeft")
    expect(page).to_have_url(re.compile(r"step=.*head=|head=.*step="))
    visit.settle()
    stops.append((address(page), shown(page)))
    assert page.evaluate("history.length") == length + 1, "a head and a slider make no step"
    through_menu(visit, "Circuit")
    stops.append((address(page), shown(page)))
    box = page.get_by_role("textbox", name=re.compile("^Prompt"))
    box.fill("O Juliet")
    box.press("Control+Enter")
    expect(page).to_have_url(re.compile("Juliet"))
    visit.settle()
    stops.append((address(page), shown(page)))
    assert page.evaluate("history.length") == length + 3, "a page and a prompt make one step each"

    def check(at: int) -> None:
        expect(page).to_have_title(stops[at][1][0])
        visit.settle()
        assert (address(page), shown(page)) == stops[at]
        if at == 1:
            expect(head).to_have_attribute("aria-pressed", "true")

    for at in (2, 1, 0):
        page.go_back()
        check(at)
    for at in (1, 2, 3):
        page.go_forward()
        check(at)
    assert page.evaluate("history.length") == length + 3
