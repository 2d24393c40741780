"""What axe-core, a checker of the rules of WCAG 2, finds on what a page shows, also behind its
folds and buttons.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Locator, Page, expect

from tests.browser.machinery import Visit


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
        "Streamlit draws code, and gives the box no stop of the Tab key. Chromium and Firefox "
        "stop at a box that scrolls by "
        "themselves, and the button that copies all of the code is a stop everywhere.",
    ),
    Excused(
        "scrollable-region-focusable",
        ".stage .run > .text",
        "The tokens in a box of the generation tree are items of the tree, which is one stop of "
        "the Tab key: the arrow keys walk "
        "them and bring each into sight. A stop for every box would make the way through the tree "
        "long.",
    ),
    Excused(
        "color-contrast",
        "[data-testid=stWidgetLabel]:has(~ [aria-disabled=true]) *",
        "The label of a choice that cannot be made now is faint like the choice itself: WCAG "
        "allows that. Streamlit does not tie "
        "the two together, so the checker does not know.",
    ),
)
# Every finding that shuts somebody out or makes it hard for them, with the element and how to mend
# it. Headings that leave out a level are one: whoever listens to a page goes from heading to
# heading.
SERIOUS = """async ([part, excused, only]) => {
    const { violations } = await axe.run(part, { resultTypes: ['violations'], elementRef: true, ...only });
    const counts = (id, element) => !excused.some(([rule, selector]) => rule === id && element.matches(selector));
    return violations.flatMap(({ id, nodes }) => nodes
        .filter(({ impact }) => id === 'heading-order' || ['serious', 'critical'].includes(impact))
        .filter(({ element }) => counts(id, element))
        .map(({ impact, target, html, failureSummary }) =>
            [`${id} (${impact}): ${target.flat(2).join(' ')}`, html.slice(0, 300), failureSummary].join('\\n')));
}"""
# Opens all that is folded; how much that was.
UNFOLD = """() => {
    const folded = document.querySelectorAll('details:not([open]) > summary');
    for (const one of folded) one.click();
    return folded.length;
}"""
POPOVER = "[data-testid=stPopoverBody]"
# What can differ between light and dark.
COLOURS = ("color-contrast",)


def findings(page: Page, part: str = ":root", only: Sequence[str] = ()) -> list[str]:
    """The serious and critical findings on what a part of the page shows now: of all rules, or
    `only` of those named.
    """
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    return page.evaluate(
        SERIOUS,
        [
            part,
            [[one.rule, one.selector] for one in EXCUSED],
            {"runOnly": list(only)} if only else {},
        ],
    )


def darken(visit: Visit) -> None:
    """Let the reader's system ask for dark pages."""
    visit.page.emulate_media(color_scheme="dark")
    visit.page.wait_for_function(
        "getComputedStyle(document.querySelector('[data-testid=stApp]')).colorScheme === 'dark'"
    )
    visit.drawn()


def everywhere(
    visit: Visit, left_out: re.Pattern[str] | None = None, only: Sequence[str] = ()
) -> list[str]:
    """The findings on a page with all its folds open, and on its popovers, which the keyboard opens
    and shuts.

    `left_out` is in the names of those that stay shut.
    """
    while visit.page.evaluate(UNFOLD):
        visit.settle()
    found = findings(visit.settle(), only=only)
    buttons = visit.page.get_by_test_id("stPopoverButton").filter(
        has_not_text=left_out, visible=True
    )
    for which in range(buttons.count()):
        found += _in_popover(visit, buttons.nth(which), only)
    return found


def _in_popover(visit: Visit, button: Locator, only: Sequence[str]) -> list[str]:
    if button.is_disabled():
        return []
    page = visit.page
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator(POPOVER)).to_be_focused()
    found = findings(visit.settle(), POPOVER, only)
    page.keyboard.press("Escape")
    expect(page.locator(POPOVER)).to_have_count(0)
    expect(button).to_be_focused()
    visit.settle()
    return found
