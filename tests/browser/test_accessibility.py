"""What axe-core, a checker of the rules of WCAG 2, says of every page, light and dark, the views made by hand included."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, Page

from gptviz.components.token_strip import Token, payload
from tests.browser.machinery import PAGES, Server, quick, visiting
from tests.browser.mounting import Mounted

pytestmark = pytest.mark.browser


class Excused(NamedTuple):
    """A finding that is none.

    Attributes:
        rule: of axe-core, by its name.
        selector: of the elements that it is about.
        why: what makes up for it, or why the app cannot mend it.
    """

    rule: str
    selector: str
    why: str


EXCUSED = (
    Excused(
        "scrollable-region-focusable",
        "[data-testid=stCode] pre",
        "Streamlit draws code, and gives the box no stop of the Tab key. Chromium and Firefox stop at a box that scrolls by "
        "themselves, and the button that copies all of the code is a stop everywhere.",
    ),
    Excused(
        "scrollable-region-focusable",
        ".stage .run > .text",
        "The tokens in a box of the generation tree are items of the tree, which is one stop of the Tab key: the arrow keys walk "
        "them and bring each into sight. A stop for every box would make the way through the tree long.",
    ),
)
# Every finding that shuts somebody out or makes it hard for them, with the element and how to mend it.
SERIOUS = """async (excused) => {
    const { violations } = await axe.run(document, { resultTypes: ['violations'], elementRef: true });
    const counts = (id, element) => !excused.some(([rule, selector]) => rule === id && element.matches(selector));
    return violations.flatMap(({ id, nodes }) => nodes
        .filter(({ impact, element }) => ['serious', 'critical'].includes(impact) && counts(id, element))
        .map(({ impact, target, html, failureSummary }) =>
            [`${id} (${impact}): ${target.flat(2).join(' ')}`, html.slice(0, 300), failureSummary].join('\\n')));
}"""


def findings(page: Page) -> list[str]:
    """The serious and critical findings on what the page shows now."""
    page.evaluate(AXE_SCRIPT)
    return page.evaluate(SERIOUS, [[one.rule, one.selector] for one in EXCUSED])


@pytest.mark.parametrize("dark", [False, pytest.param(True, marks=pytest.mark.full)], ids=["light", "dark"])
@pytest.mark.parametrize("path", quick(PAGES, "next_token"))
def test_no_page_has_a_serious_finding(browser: Browser, server: Server, path: str, dark: bool) -> None:
    with visiting(browser, server, dark=dark) as visit:
        visit.open(path)
        found = findings(visit.drawn())
        assert not found, "\n\n".join(found)


def test_a_fault_in_a_view_is_found(mounted: Callable[..., Mounted]) -> None:
    usual = {"generation": 1, "colour": "#CC3311", "selected": None, "picks": True, "label": "Tokens", "legend": "probability"}
    page = mounted("token_strip", payload([Token("a", 0.5)], usual | {"height": None, "bars": False, "spaced": False})).page
    page.evaluate("document.documentElement.lang = 'en'")
    assert not findings(page)
    page.locator(".chip").evaluate("chip => { chip.setAttribute('aria-label', ''); chip.textContent = ''; }")
    assert [one.split(" ")[0] for one in findings(page)] == ["button-name"]
