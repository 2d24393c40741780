"""A click or a key on a page of the app does what it says, and what it opens is there after a
reload.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import expect

from gptviz.runs import checkpoints
from gptviz.text.datasets.sentences import contrasts
from gptviz.text.datasets.unseen import passage
from tests.browser.machinery import PATIENCE, Visit, box_of

pytestmark = pytest.mark.browser


@pytest.mark.full
@pytest.mark.parametrize(("path", "asks"), [("attribution", "part="), ("heads", "unit=")])
def test_a_click_on_a_cell_and_enter_on_the_next_choose_their_heads(
    visit: Visit, path: str, asks: str
) -> None:
    page = visit.open(path, model="shakespeare")
    page.locator(".cell[data-name='blocks.3.attention.head.1']").click()
    page.wait_for_url(re.compile(re.escape(f"{asks}blocks.3.attention.head.1")))
    visit.settle()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(re.escape(f"{asks}blocks.4.attention.head.1")))
    visit.settle()
    framed = page.locator(".cell[aria-pressed='true']")
    assert [cell.get_attribute("data-name") for cell in framed.all()] == [
        "blocks.4.attention.head.1"
    ]


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


@pytest.mark.full
def test_a_click_explains_a_cell_which_is_exact_and_so_it_is_after_a_reload(visit: Visit) -> None:
    one = contrasts()[0]
    page = visit.open("patching", model="sentences", prompt=one.clean, corrupted=one.corrupted)
    # three blocks of four heads: what they hand on
    cells = page.locator(".js-plotly-plot").nth(3).locator(".nsewdrag").first
    box = box_of(cells)
    at = {"x": box["width"] * 2.5 / 4, "y": box["height"] * 1.5 / 3}
    cells.hover(position=at)
    cells.click(position=at)
    explained = page.get_by_text(
        re.compile(r"The output of head 2 of block 1 brings \d+ % of the answer")
    )
    expect(explained).to_be_visible(timeout=1_000 * PATIENCE)
    assert "cell=attention.z%2F1%2F2" in page.url
    page.reload()
    visit.settle()
    expect(page.get_by_text("All heatmaps are exact")).to_be_visible(timeout=1_000 * PATIENCE)
    expect(explained).to_be_visible(timeout=1_000 * PATIENCE)


def test_a_character_and_enter_are_a_guess_and_the_next_one_can_be_typed_at_once(
    standing: Visit,
) -> None:
    moves = "z" + passage(0)[1][:3]
    page = standing.go("next_token", guess="True")
    page.get_by_role("textbox", name="Your guess").focus()
    for move in moves:
        page.keyboard.type(move)
        page.keyboard.press("Enter")
        standing.drawn()
        expect(page.get_by_role("textbox", name="Your guess")).to_be_focused()
        expect(page.get_by_role("textbox", name="Your guess")).to_have_value("")
    assert parse_qs(urlparse(page.url).query)["guesses"] == [moves]
    expect(page.get_by_text("You needed one guess")).to_be_visible()
