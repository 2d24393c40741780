"""The keyboard alone: which places of a page the Tab key stops at, and what the other keys reach from there."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.pictures import keep_drawing

# What has the focus, also within a view: its tag, what it is called, and what tells it apart; "" for the page itself.
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
ARROWS = ("ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp", "Home", "End")
# What the browser itself answers keys for.
OWN_KEYS = ("input ", "select ", "textarea ", "dialog ")


def to_start(page: Page) -> None:
    """Leave everything: the next Tab leads to the first stop of the page, where a browser would go on from what had the focus."""
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
    """The buttons below a view are reached and pressed; what they open is read and shut, and the focus comes back."""
    to_start(page)
    tab_to(page, "button Numbers ")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Numbers")).to_be_visible()
    tab_to(page, "button Download CSV")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert "button Code" in press(page, "Tab"), "the focus is where it was"
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Code")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    check_pictures(page)


def check_pictures(page: Page) -> None:
    """The buttons for the picture of a view are the next that the Tab key leads to, and pressed they give a file."""
    keep_drawing(page)
    for name in ("PNG", "SVG"):
        tab_to(page, f"button {name} ")
        with page.expect_download() as download:
            page.keyboard.press("Enter")
        assert download.value.suggested_filename.endswith(f".{name.lower()}")


def unreached(page: Page) -> set[str]:
    """What a pointer can use and the keyboard does not reach: neither with Tab nor with the arrow keys from where Tab stops."""
    usable, reached = set(page.evaluate(USABLE)), set()
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
