"""What was done of the lessons stays in the browser: a tick in the list, also after the page was
closed.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gptviz.components import page_helpers
from tests.browser.mounting import Mounted

pytestmark = pytest.mark.browser

LIST = """() => {
    const ticks = ['a', 'a-2', 'b'].map((name) => `<span class="lesson-tick done-${name}">${name}</span>`);
    document.body.insertAdjacentHTML('beforeend', `<style>.lesson-tick { display: none; }</style>${ticks.join('')}`);
}"""
TICKED = (
    "[...document.querySelectorAll('.lesson-tick')].filter((one) => "
    "one.checkVisibility()).map((one) => one.textContent)"
)


def test_what_is_done_is_ticked_and_stays_so_in_this_browser(
    mounted: Callable[..., Mounted],
) -> None:
    view = mounted("page_helpers", page_helpers.payload(), alone=True)
    page = view.page
    page.evaluate(LIST)
    assert page.evaluate(TICKED) == []
    view.show(page_helpers.payload(done="a"))
    assert page.evaluate(TICKED) == ["a"]
    view.show(page_helpers.payload(done="b"))
    view.show(page_helpers.payload())
    assert page.evaluate(TICKED) == ["a", "b"]
    assert page.evaluate("JSON.parse(localStorage.getItem('gptviz lessons done'))") == ["a", "b"]
