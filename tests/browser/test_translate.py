"""The Translate page in a real browser: what is in sight, and an output that is typed."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from gptviz.runs import checkpoints
from tests.app.test_translate_page import SOURCE, TOKENIZER, made
from tests.browser.machinery import Server, Visit, box_of

pytestmark = pytest.mark.browser
OUTPUT = re.compile("Output$")


@pytest.fixture(scope="module")
def server(server: Server) -> Server:
    """The server, with an untrained encoder–decoder, scribe, whose answers fill its positions but
    end at its first snapshot.
    """
    kept = checkpoints.save(
        "scribe", made(0, -1e4), TOKENIZER, {"steps": 9}, root=server.checkpoints
    )
    for step, end_bias in ((0, 1e4), (4, -1e4), (9, -1e4)):
        checkpoints.write_weights(checkpoints.snapshot_path(kept, step), made(step, end_bias))
    return server


def explorer(page: Page) -> Page:
    """The page, once the explorer has drawn."""
    page.locator(".head[aria-pressed=true]").first.wait_for()
    page.locator(".tokens .chip").first.wait_for()
    return page


def test_the_tokens_and_the_heatmap_are_seen_without_scrolling_and_what_the_mean_hides_is_said(
    standing: Visit,
) -> None:
    page = explorer(standing.go("translate", model="scribe", prompt=SOURCE, output="june 3"))
    expect(page.locator(".right .title")).to_have_text("Block 1, mean of all heads")
    expect(page.locator(".about")).to_contain_text("What the mean hides")
    for part in (".tokens", ".frame", ".heads"):
        box = box_of(page.locator(part))
        assert box["y"] + box["height"] <= 720


def test_a_typed_output_shows_what_the_model_would_have_written(standing: Visit) -> None:
    page = standing.go("translate", model="scribe", prompt=SOURCE, view="Next token")
    chips = page.locator(".st-key-output-strip button.chip")
    expect(chips).to_have_count(16)
    expect(page.get_by_text("does not end by itself")).to_be_visible()
    box = page.get_by_role("textbox", name=OUTPUT)
    box.fill("june 3")
    box.press("Enter")
    page.wait_for_url(re.compile("output=june"))
    expect(chips).to_have_count(7)
    standing.settle()
    chips.nth(4).click()
    page.wait_for_url(re.compile("position=4"))
    expect(chips.nth(4)).to_have_class(re.compile("selected"))
    standing.settle()


@pytest.mark.full
def test_the_view_stays_where_it_is_while_training_is_walked_through(standing: Visit) -> None:
    page = standing.go("translate", model="scribe", prompt=SOURCE, step=0)
    view = explorer(page).locator(".body")
    before = box_of(view)
    expect(page.get_by_text("does not end by itself")).to_have_count(0)
    for step in (4, 9):
        page.locator(".st-key-step").get_by_role("slider").press("ArrowRight")
        page.wait_for_url(re.compile(f"step={step}"))
        standing.settle()
        expect(page.get_by_text("does not end by itself")).to_be_visible()
        assert box_of(view) == before
