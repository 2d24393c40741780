"""The page Over training in a browser: a click on a point of a chart opens its step, and pages open there."""

from __future__ import annotations

from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import expect

from gptviz.runs import checkpoints
from tests.browser.machinery import Visit

pytestmark = pytest.mark.browser

STEPS = list(checkpoints.snapshots(checkpoints.find("induction")))


def test_a_click_on_a_point_opens_its_step_and_from_there_a_page(standing: Visit) -> None:
    page = standing.go("over_training", model="induction", measures="loss", log_steps="false")
    standing.drawn()
    page.locator(".js-plotly-plot .point").last.click(force=True)
    standing.drawn()
    expect(page.get_by_text(f"At step {STEPS[-1]:,}")).to_be_visible()
    page.get_by_test_id("stMain").get_by_role("link", name="Switch off").click()
    standing.settle()
    address = urlparse(page.url)
    assert address.path.endswith("/switch_off")
    assert parse_qs(address.query)["step"] == [str(STEPS[-1])]
