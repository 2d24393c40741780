"""From page to page in a real browser: each page opens on a model it is about, and the menu keeps the model."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.machinery import Visit

pytestmark = pytest.mark.browser


def test_a_model_chosen_instead_of_the_pages_own_stays_after_a_reload_and_goes_along(visit: Visit) -> None:
    page = visit.open("attention")
    model = page.get_by_test_id("stMain").get_by_role("combobox", name="Model", exact=False).first
    expect(model).to_have_value("sentences")
    model.fill("shakespeare")
    model.press("Enter")
    visit.settle()
    page.reload()
    visit.settle()
    expect(model).to_have_value("shakespeare")
    for title in ("Embeddings", "Generate"):
        page.get_by_test_id("stSidebar").get_by_role("link", name=title, exact=True).click()
        visit.settle()
        expect(page).to_have_url(re.compile(title.lower()))
        expect(model).to_have_value("shakespeare")
