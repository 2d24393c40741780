"""The page Over training in a browser: a click on a point of a chart opens its step, and pages open there."""

from __future__ import annotations

from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Browser, expect

from gptviz.runs import checkpoints
from tests.browser.machinery import Server, visiting

pytestmark = pytest.mark.browser

STEPS = list(checkpoints.snapshots(checkpoints.find("induction")))


def test_a_click_on_a_point_opens_its_step_and_from_there_a_page(browser: Browser, server: Server) -> None:
    with visiting(browser, server) as visit:
        page = visit.open("over_training", model="induction", measures="loss", log_steps="false")
        visit.drawn()
        page.locator(".js-plotly-plot .point").last.click(force=True)
        visit.drawn()
        expect(page.get_by_text(f"At step {STEPS[-1]:,}")).to_be_visible()
        page.get_by_test_id("stMain").get_by_role("link", name="Switch off").click()
        visit.settle()
        address = urlparse(page.url)
        assert address.path.endswith("/switch_off")
        assert parse_qs(address.query)["step"] == [str(STEPS[-1])]
        assert not visit.wrong()
