"""The Classify page in a real browser: a review typed, a mistake taken apart, a file labelled."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from gptviz.data.classification import LabelledSource
from gptviz.runs import checkpoints
from gptviz.text import opinions
from tests.browser.machinery import Server, Visit, box_of
from tests.tiny import scrambled, tiny

pytestmark = [pytest.mark.browser, pytest.mark.full]
PROMPT = re.compile("Prompt")


@pytest.fixture(scope="module")
def server(server: Server) -> Server:
    """The server, with an untrained classifier of opinions, judge, whose held-out texts are to be
    had.
    """
    source = LabelledSource(opinions(), 0.9)
    tokenizer = source.tokenizer("words", 200)
    sizes = {
        "head": "mean",
        "n_label": 2,
        "mask": "full",
        "final_norm": False,
        "context_length": 16,
    }
    card = {"labels": list(source.labelled.names), "source": source.to_dict()}
    model = scrambled(source.fit_config(tiny(**sizes), tokenizer))
    checkpoints.save("judge", model, tokenizer, card, root=server.checkpoints)
    return server


def test_the_bars_are_seen_without_scrolling(visit: Visit) -> None:
    page = visit.open(
        "classify", model="judge", prompt="the acting was never dull and the ending was good"
    )
    chart = page.get_by_test_id("stPlotlyChart").nth(1)
    expect(chart.locator(".bars .point")).to_have_count(1 + 10)
    bottom = box_of(chart)
    assert bottom["y"] + bottom["height"] <= 720


def test_a_mistake_that_is_chosen_is_read_above(visit: Visit) -> None:
    page = visit.open("classify", model="judge", view="Held-out texts", prompt="film")
    table = page.get_by_test_id("stDataFrame")
    visit.drawn()
    table.click(position={"x": 16, "y": 53})  # the first row's box
    page.wait_for_url(re.compile(r"prompt=the\+"))
    visit.settle()
    assert " was " in page.get_by_role("textbox", name=PROMPT).input_value()
    expect(page.get_by_test_id("stPlotlyChart").nth(1).get_by_text("positive")).to_be_visible()
