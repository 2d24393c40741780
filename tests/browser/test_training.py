"""Training in a real browser: begun with a click, watched, reloaded, finished, and opened on
another page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from gptviz.runs.status import read_status, request_stop
from tests.browser.axe import findings
from tests.browser.machinery import Server, Visit, visiting
from tests.waiting import wait_until

pytestmark = pytest.mark.browser

# As small as possible, and computed in a given way: to find out which way is fastest takes longer
# than this training.
AT_ONCE = {"run_precision": "float32", "run_compile": "no"}
TINY = {"plan": "reversal", "run_n_layer": 1, "run_d_model": 16, "run_batch_size": 8, **AT_ONCE}
# milliseconds until Python and torch are loaded and some steps are taken, on a busy machine
ENOUGH = 240_000


@pytest.fixture(autouse=True)
def _nothing_trains_on(server: Server) -> Iterator[None]:
    """Runs outlive the server, on purpose: whatever a failing test leaves behind is stopped."""
    yield

    def nothing_trains() -> bool:
        states = {folder: read_status(folder).state for folder in server.checkpoints.glob("[!.]*")}
        for folder, state in states.items():
            if state == "running":
                request_stop(folder, "stop")
        # One that waits begins soon, and forgets then what was asked of it before.
        return not {"running", "waiting"} & set(states.values())

    wait_until(nothing_trains)


def begin(visit: Visit, name: str, **query: object) -> Page:
    page = visit.open("train", **TINY | query)
    box = page.get_by_role("textbox", name="Save as")
    box.fill(name)
    box.press("Enter")
    visit.settle()
    page.get_by_role("button", name="Train", exact=True).click()
    try:
        expect(page.get_by_role("combobox", name=re.compile("Model watched"))).to_have_value(
            name, timeout=ENOUGH
        )
    except AssertionError as error:
        said = [box.inner_text() for box in page.get_by_role("alert").all()]
        typed = page.get_by_role("textbox", name="Save as").input_value()
        raise AssertionError(
            f"{name} is not watched at {page.url}; the name typed is {typed!r}; alerts: {said}"
        ) from error
    return page


def bar(page: Page) -> str:
    return page.get_by_test_id("stProgress").inner_text()


@pytest.mark.full
def test_a_run_is_begun_with_a_click_seen_to_move_reloaded_and_opened_elsewhere(
    visit: Visit,
) -> None:
    page = begin(visit, "mirror", run_steps=1_500)
    page.wait_for_url(re.compile("run=mirror"), timeout=ENOUGH)
    step = page.get_by_test_id("stProgress").get_by_text(
        re.compile(r"Step [\d,]+ of 1,500 · .+ left")
    )
    expect(step).to_be_visible(timeout=ENOUGH)
    first = step.inner_text()
    expect(step).not_to_have_text(first, timeout=ENOUGH)
    chart = page.locator(".st-key-live .js-plotly-plot")
    # While a run of the script is under way, Streamlit may keep what an earlier one drew beside
    # what this one draws.
    expect(chart).to_have_count(1, timeout=ENOUGH)
    expect(chart.first).to_be_visible(timeout=ENOUGH)
    points = "document.querySelector('.st-key-live .js-plotly-plot')?.calcdata?.[0].length ?? 0"
    before = page.evaluate(points)
    page.wait_for_function(f"{points} > {before}", timeout=ENOUGH)
    for _ in range(5):  # what the next run of the script is about to replace is faint for a moment
        if not (found := findings(page)):
            break
    assert not found

    page.reload()
    expect(page.get_by_role("combobox", name=re.compile("Model watched"))).to_have_value("mirror")
    expect(chart.first).to_be_visible(timeout=ENOUGH)

    expect(page.get_by_test_id("stProgress")).to_contain_text(
        "Finished: 1,500 steps", timeout=2 * ENOUGH
    )
    expect(page.get_by_role("button", name="Pause")).to_have_count(0)
    page.get_by_role("button", name="Open in").click()
    page.get_by_test_id("stPopoverBody").get_by_role("link", name="Attention").click()
    expect(page).to_have_title("Attention · gptviz")
    visit.settle()
    expect(page.get_by_role("combobox", name=re.compile("^Model"))).to_have_value("mirror")
    # the attention explorer stands
    expect(page.locator(".head[aria-pressed=true]")).to_be_visible()


@pytest.mark.full
def test_a_second_browser_sees_the_run_queues_behind_it_and_a_chart_that_grows_is_never_taken_away(
    browser: Browser, server: Server, visit: Visit
) -> None:
    page = begin(visit, "long", run_steps=1_000_000)
    expect(page.get_by_test_id("stProgress")).to_contain_text(re.compile("Step"), timeout=ENOUGH)
    with visiting(browser, server) as other:
        second = other.open("train")
        expect(second.get_by_role("combobox", name=re.compile("Model watched"))).to_have_value(
            "long"
        )
        begin(other, "patient", run_steps=20)
        expect(second.get_by_test_id("stProgress")).to_contain_text(
            "second in line: long is in training"
        )

        page.evaluate(
            """() => {
                window.gone = 0;
                new MutationObserver(changes => changes.forEach(change => change.removedNodes.forEach(node => {
                    if (node.matches?.('.js-plotly-plot') || node.querySelector?.('.js-plotly-plot')) window.gone += 1;
                }))).observe(document.querySelector('.st-key-live'), {childList: true, subtree: true});
            }"""
        )
        for _ in range(4):
            now = bar(page)
            page.wait_for_function(
                "now => document.querySelector('[data-testid=stProgress]').innerText !== now",
                arg=now,
                timeout=ENOUGH,
            )
        assert page.evaluate("window.gone") == 0

        # It trains on while its page is not looked at.
        page.get_by_test_id("stSidebar").get_by_role("link", name="Attention", exact=True).click()
        expect(page).to_have_title("Attention · gptviz")
        visit.settle()
        page.get_by_test_id("stSidebar").get_by_role("link", name="Train", exact=True).click()
        expect(page.get_by_role("combobox", name=re.compile("Model watched"))).to_have_value("long")
        page.get_by_role("button", name="Pause", exact=True).click()
        expect(page.get_by_test_id("stProgress")).to_contain_text("Paused", timeout=ENOUGH)
        expect(second.get_by_test_id("stProgress")).to_contain_text(
            "Finished: 20 steps", timeout=ENOUGH
        )
