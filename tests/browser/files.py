"""The numbers and the code that the buttons below a view give."""

from __future__ import annotations

import csv
from pathlib import Path

from playwright.sync_api import Locator, Page


def csv_rows(page: Page, where: Locator | None = None) -> list[dict[str, str]]:
    """The rows of the file that "Numbers" offers, by the names of their columns; `where` are the buttons, by default the only
    ones of the page.
    """
    (where or page).get_by_role("button", name="Numbers", exact=True).click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download CSV").click()
    page.keyboard.press("Escape")
    with Path(waiting.value.path()).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def code(page: Page, where: Locator | None = None) -> str:
    """The lines of Python that "Code" shows; `where` as in `csv_rows`."""
    (where or page).get_by_role("button", name="Code", exact=True).click()
    lines = page.get_by_role("dialog").locator("pre").inner_text()
    page.keyboard.press("Escape")
    return lines
