"""The keys of a speaker: steps of a lesson, and a spot of light, on a page of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gptviz.components import page_helpers
from tests.browser.machinery import Visit
from tests.browser.mounting import Mounted

pytestmark = pytest.mark.browser

LINKS = """() => {
    document.body.insertAdjacentHTML('beforeend',
        '<input><div class=lesson-ways><a rel=prev href=#before>1</a><a rel=next href=#after>2</a></div>');
}"""
# Where the middle of the spot is, in pixels; null while it is off.
SPOT = """() => {
    const spot = [...document.body.children].find((one) => one.style.pointerEvents === 'none');
    if (spot.style.display === 'none') return null;
    const { x, y, width, height } = spot.getBoundingClientRect();
    return [x + width / 2, y + height / 2];
}"""


def test_keys_alone_lead_through_a_lesson_and_move_the_spot(
    mounted: Callable[..., Mounted],
) -> None:
    page = mounted("page_helpers", page_helpers.payload(presents=True)).page
    page.evaluate(LINKS)
    page.keyboard.press("PageDown")
    page.wait_for_url("**#after")
    page.keyboard.press("PageUp")
    page.wait_for_url("**#before")
    assert page.evaluate(SPOT) is None
    page.keyboard.press("l")
    across, down = page.evaluate(SPOT)
    assert [across, down] == pytest.approx([640, 360], abs=1), (
        "it begins in the middle of the window"
    )
    for key in ("ArrowRight", "ArrowRight", "ArrowUp"):
        page.keyboard.press(key)
    moved = page.evaluate(SPOT)
    assert moved[0] > across + 40
    assert moved[1] < down
    for _ in range(100):
        page.keyboard.press("ArrowLeft")
    assert page.evaluate(SPOT)[0] == pytest.approx(0, abs=1), "it stays in the window"
    page.keyboard.press("Escape")
    assert page.evaluate(SPOT) is None
    page.keyboard.press("Tab")
    page.keyboard.type("l")
    assert page.locator("input").input_value() == "l"
    assert page.evaluate(SPOT) is None, "what is typed is no key of the speaker"


# What scrolls within the page, and shows a bar for it.
BARS = """() => [...document.querySelectorAll('*')]
    .flatMap((one) => [one, ...(one.shadowRoot?.querySelectorAll('*') ?? [])])
    .filter((one) => one.checkVisibility() && one.scrollHeight > one.clientHeight + 1 && one.clientHeight > 20
        && one.dataset.testid !== 'stMain')
    .filter((one) => ((look) => /auto|scroll/.test(look.overflowY) && look.scrollbarWidth !== 'none')(getComputedStyle(one)))
    .map((one) => one.className)"""


@pytest.mark.parametrize(
    "pages",
    [("next_token", "runs"), pytest.param(("generate", "attention"), marks=pytest.mark.full)],
)
def test_a_page_in_front_of_a_class_has_no_scroll_bar_but_its_own(
    standing: Visit, pages: tuple[str, str]
) -> None:
    standing.go("next_token")
    assert standing.drawn().evaluate(BARS), "what is found here is found there too"
    for page in pages:
        standing.go(page, present="1")
        assert standing.drawn().evaluate(BARS) == []


def test_view_only_shows_no_control_of_the_page_and_none_of_its_views(standing: Visit) -> None:
    of_views = ".root > .bar, .order, .tools > .tool, .drawing > .tool, select"
    of_page = (
        ".st-key-side-b, [data-testid=stWidgetLabel], input, textarea, .st-key-suggestions, "
        ".st-key-step, [data-testid=stExpander], .st-key-next-step, [data-testid=stButton], "
        "[data-testid=stPopover]:not(.st-key-page-tools *)"
    )
    controls = f":is([data-testid=stMain] :is({of_views}, {of_page}))"
    seen = standing.go("attention").locator(controls).locator("visible=true")
    assert seen.count() > 4
    for page in ("attention", "compare", "next_token", "circuit"):
        standing.go(page, present="view")
        standing.drawn()
        assert seen.count() == 0
