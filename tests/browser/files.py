"""The numbers and the code that the menu below a view gives."""

from __future__ import annotations

import csv
from pathlib import Path

from playwright.sync_api import Locator, Page

# The button that opens the menu of a view or a figure.
MENU = "[aria-haspopup=menu]"


def tool(page: Page, name: str, where: Locator | None = None) -> Locator:
    """An item of the menu behind "⋯", which is opened; `where` is around the menu, by default the
    only one of the page.
    """
    (where or page).locator(MENU).click()
    return page.get_by_role("menuitem", name=name, exact=True)


def csv_rows(page: Page, where: Locator | None = None) -> list[dict[str, str]]:
    """The rows of the file that "Numbers" offers, by the names of their columns; `where` as in
    `tool`.
    """
    tool(page, "Numbers", where).click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download CSV").click()
    page.keyboard.press("Escape")
    with Path(waiting.value.path()).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def code(page: Page, where: Locator | None = None) -> str:
    """The lines of Python that "Code" shows; `where` as in `tool`."""
    tool(page, "Code", where).click()
    lines = page.get_by_role("dialog").locator("pre").inner_text()
    page.keyboard.press("Escape")
    return lines
