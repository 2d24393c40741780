"""The keyboard alone: which places of a page the Tab key stops at, and what the other keys reach
from there.
"""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.pictures import keep_drawing

# What has the focus, also within a view: its tag, what it is called, and what tells it apart; ""
# for the page itself.
NAMED = """(element) => {
    if (!element || element === document.body) return '';
    const name = element.getAttribute('aria-label') ?? (element.labels?.[0] ?? element).textContent.trim().slice(0, 40);
    return `${element.tagName.toLowerCase()} ${name} ${JSON.stringify(element.dataset)}`;
}"""
FOCUSED = f"""() => {{
    let at = document.activeElement;
    while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
    return ({NAMED})(at);
}}"""
# Everything in sight that a pointer can use.
USABLE = f"""() => {{
    const all = (root) => [...root.querySelectorAll('*')].flatMap((one) => [one, ...(one.shadowRoot ? all(one.shadowRoot) : [])]);
    const usable = 'button:enabled, input:enabled, select:enabled, textarea:enabled, a[href], summary';
    return all(document).filter((one) => one.matches(usable) && one.checkVisibility()).map({NAMED});
}}"""
# How the name of the button of every menu begins.
MENU = "button More: "
# What the browser itself answers keys for.
OWN_KEYS = ("input ", "select ", "textarea ", "dialog ")


def to_start(page: Page) -> None:
    """Leave everything: the next Tab leads to the first stop of the page, where a browser would go
    on from what had the focus.
    """
    page.evaluate("() => { document.body.tabIndex = -1; document.body.focus(); }")


def stops(page: Page) -> list[str]:
    """What the Tab key stops at, from the beginning of the page to its end."""
    to_start(page)
    found: list[str] = []
    while (at := press(page, "Tab")) and at not in found:
        found.append(at)
    return found


def press(page: Page, key: str) -> str:
    """Press a key; what has the focus then."""
    page.keyboard.press(key)
    return page.evaluate(FOCUSED)


def tab_to(page: Page, name: str) -> str:
    """Press Tab, from where the focus is, until it is on something whose name has `name` in it."""
    for _ in range(200):
        if name in (at := press(page, "Tab")):
            return at
    raise AssertionError(f"the Tab key does not lead to {name}")


def check_tools(page: Page) -> None:
    """The menu below a view is reached, opened and walked; what its items open is read and shut,
    and the focus comes back.
    """
    to_start(page)
    tab_to(page, MENU)
    press(page, "Enter")
    assert MENU in press(page, "Escape"), "the menu is shut, and the focus is where it was"
    for name, at in (("Numbers", "button Download CSV"), ("Code", "button Copy")):
        choose(page, name)
        expect(page.get_by_role("dialog", name=name)).to_be_visible()
        tab_to(page, at)
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert MENU in page.evaluate(FOCUSED), "the focus is where it was"
    check_pictures(page)


def choose(page: Page, name: str) -> None:
    """Open the first menu of the page and press one of its items."""
    to_start(page)
    tab_to(page, MENU)
    walked = [press(page, "Enter")]
    while f"button {name} " not in walked[-1]:
        walked.append(press(page, "ArrowDown"))
        assert walked[-1] not in walked[:-1], f"the arrow keys do not lead to {name}"
    page.keyboard.press("Enter")


def check_pictures(page: Page) -> None:
    """The pictures of a view are files that the keyboard asks for."""
    keep_drawing(page)
    for name in ("PNG", "SVG"):
        with page.expect_download() as download:
            choose(page, name)
        assert download.value.suggested_filename.endswith(f".{name.lower()}")


def unreached(page: Page) -> set[str]:
    """What a pointer can use and the keyboard does not reach: neither with Tab nor with the arrow
    keys from where Tab stops.
    """
    usable = set(page.evaluate(USABLE))
    reached = set()
    assert usable, "there is nothing to use"
    for number in range(len(stops(page))):
        to_start(page)
        for _ in range(number):
            page.keyboard.press("Tab")
        at = press(page, "Tab")
        reached.add(at)
        if at.startswith(OWN_KEYS):
            continue
        reached |= _walked(page, at, usable)
    return usable - reached


def _walked(page: Page, start: str, usable: set[str]) -> set[str]:
    """What the arrow keys reach: row by row down from the start, each row to its ends, and back."""
    reached = {start}
    for down in ("ArrowDown", "ArrowUp"):
        for _ in range(len(usable)):
            for along in ("ArrowRight", "ArrowLeft"):
                reached |= _along(page, along, len(usable))
            before = page.evaluate(FOCUSED)
            if (at := press(page, down)) == before:
                break
            reached.add(at)
    return reached


def _along(page: Page, key: str, most: int) -> set[str]:
    """What one key reaches, pressed until nothing changes."""
    reached: set[str] = set()
    before = page.evaluate(FOCUSED)
    for _ in range(most):
        if (at := press(page, key)) == before:
            break
        reached.add(at)
        before = at
    return reached
