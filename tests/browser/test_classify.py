"""The Classify page in a real browser: a review typed, a mistake taken apart, a file labelled."""

from __future__ import annotations

import csv
import re

import pytest
from playwright.sync_api import expect

from gptviz.data.classification import LabelledSource
from gptviz.runs import checkpoints
from gptviz.text import opinions
from tests.browser.machinery import Server, Visit
from tests.tiny import scrambled, tiny

pytestmark = [pytest.mark.browser, pytest.mark.full]
PROMPT = re.compile("Prompt")


@pytest.fixture(scope="module")
def server(server: Server) -> Server:
    """The server, with an untrained classifier of opinions, judge, whose held-out texts are to be had."""
    source = LabelledSource(opinions(), 0.9)
    tokenizer = source.tokenizer("words", 200)
    sizes = {"head": "mean", "n_label": 2, "mask": "full", "final_norm": False, "context_length": 16}
    card = {"labels": list(source.labelled.names), "source": source.to_dict()}
    model = scrambled(source.fitted(tiny(**sizes), tokenizer))
    checkpoints.save("judge", model, tokenizer, card, root=server.checkpoints)
    return server


def test_the_bars_are_seen_without_scrolling(visit: Visit) -> None:
    page = visit.open("classify", model="judge", prompt="the acting was never dull and the ending was good")
    chart = page.get_by_test_id("stPlotlyChart").nth(1)
    expect(chart.locator(".bars .point")).to_have_count(1 + 10)
    bottom = chart.bounding_box()
    assert bottom is not None
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


# `make test` holds the table and the file to the model without a browser: tests/app/test_classify_page.py and test_tables.py.
def test_a_file_is_labelled_and_its_labels_come_back_as_csv(visit: Visit) -> None:
    page = visit.open("classify", model="judge", view="A file of yours", prompt="film")
    content = 'id,text\n1,"the plot was dull"\n2,"<b>good</b>, never bad"\n'
    page.locator("input[type=file]").set_input_files({"name": "mine.csv", "mimeType": "text/csv", "buffer": content.encode()})
    expect(page.get_by_text("mine.csv: 2 texts")).to_be_visible()
    visit.settle()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download the labels as CSV").click()
    with open(waiting.value.path(), newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert [row["text"] for row in rows] == ["the plot was dull", "<b>good</b>, never bad"]
    for row in rows:
        shares = {name: float(row[f"probability of {name}"]) for name in ("negative", "positive")}
        assert sum(shares.values()) == pytest.approx(100)
        assert row["label"] == max(shares, key=shares.__getitem__)
