"""What a step of a lesson talks about comes into sight, on a page of its own with a clock that the
test moves.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gptviz.components import page_helpers
from tests.browser.mounting import Mounted

pytestmark = pytest.mark.browser

# A page as high as the window, 900 pixels of settings, and a chart below them.
PAGE = """() => {
    document.body.innerHTML += `<div data-testid=stApp data-test-script-state=running>
        <div data-testid=stMain style="height: 600px; overflow: auto; overflow-anchor: none">
        <div id=settings style="height: 900px"></div>
        <div data-testid=stPlotlyChart id=chart style="height: 400px"></div><div style="height: 5000px"></div></div></div>`;
}"""
SCROLLED = "document.querySelector('[data-testid=stMain]').scrollTop"
READY = "document.querySelector('[data-testid=stApp]').dataset.testScriptState = 'notRunning'"
EARLIER = """document.querySelector('#settings').insertAdjacentHTML('afterbegin',
    '<div id=first style="height: 400px"></div><div data-testid=stPlotlyChart style="height: 500px"></div>')"""
LOWER = "document.querySelector('#settings').style.height = '1000px'"
TYPED = "addEventListener('keydown', () => { window.isTyped = true; })"
SMALL = "document.querySelector('#first + *').style.height = '210px'"
GROWN = SMALL.replace("210", "500")
LOWEST = "document.querySelector('#first').style.height = '2000px'"


def test_the_first_large_view_comes_into_sight_however_late_it_is_there_until_somebody_scrolls(
    mounted: Callable[..., Mounted],
) -> None:
    view = mounted("page_helpers", page_helpers.payload(step=""), width=800, height=600, alone=True)
    page = view.page
    page.evaluate(PAGE)
    page.clock.install()
    view.show(page_helpers.payload(step="a"))

    def after(milliseconds: int) -> int:
        page.clock.run_for(milliseconds)
        scrolled: int = page.evaluate(SCROLLED)
        return scrolled

    assert after(60_000) == 0, "the page is not ready, and how long that takes is not known"
    page.evaluate(READY)
    assert after(1_000) == 900 - 600 / 2, "half of the window is for the view"
    page.evaluate(LOWER)
    assert after(1_000) == 1_000 - 600 / 2
    page.evaluate(EARLIER)
    assert after(1_000) == 400 - 600 / 2, "a chart that stands above it is the first one now"
    page.evaluate(SMALL)
    assert after(1_000) == 400 + 210 - 600, "all of a small view is seen"
    page.evaluate(GROWN)
    assert after(1_000) == 400 - 600 / 2, (
        "a view that grows where it stands takes its half of the window"
    )
    page.evaluate(TYPED)
    while not page.evaluate("window.isTyped"):  # a browser that is busy may lose a key
        page.keyboard.press("Home")
    page.evaluate(LOWEST)
    assert after(1_000) == 400 - 600 / 2, "who types is left alone"
    view.show(page_helpers.payload(step="b"))
    assert after(1_000) == 2_000 - 600 / 2, "of another step something else is in sight"
    after(70_000)
    page.evaluate(f"{SCROLLED} = 0")
    page.evaluate(LOWEST.replace("2000", "3000"))
    assert after(1_000) == 0, "a page that has stayed as it is for long is not moved any more"
