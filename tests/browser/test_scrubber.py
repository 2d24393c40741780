"""The scrubber in a real browser: it plays, it stops, the keyboard moves it, and links keep the
step.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from gptviz.runs import checkpoints
from gptviz.text import CharTokenizer
from gptviz.ui.shell.frame import DEFAULT_PROMPT
from gptviz.ui.widgets import playing
from tests.browser.machinery import Server, Visit, box_of, serve, visiting
from tests.tiny import scrambled, tiny

pytestmark = pytest.mark.browser

STEPS = (0, 1, 2, 6, 8, 16, 32)
PATHS = ("", "generate", "attention", "next_token", "positions", "embeddings")


@pytest.fixture(scope="module")
def server(server: Server) -> Server:
    """The server, with a model with snapshots in its home."""
    tokenizer = CharTokenizer(DEFAULT_PROMPT)
    config = tiny(vocab_size=tokenizer.vocab_size, context_length=64, n_head=6, positions="rotary")
    kept = checkpoints.save(
        "grown",
        scrambled(config, STEPS[-1]),
        tokenizer,
        {"steps": STEPS[-1]},
        root=server.checkpoints,
    )
    for step in STEPS:
        checkpoints.write_weights(checkpoints.snapshot_path(kept, step), scrambled(config, step))
    return server


def shown(page: Page) -> Locator:
    """The step above the slider's thumb."""
    return page.locator(".st-key-step [data-testid=stSliderThumbValue]")


@pytest.mark.full
@pytest.mark.parametrize("path", PATHS)
def test_it_plays_from_the_start_to_the_end_and_stops(visit: Visit, path: str) -> None:
    page = visit.open(path, model="grown")
    expect(shown(page)).to_have_text("last")
    page.evaluate(
        """() => {
            window.seen = [];
            const look = () => {
                const step = document.querySelector('.st-key-step [data-testid=stSliderThumbValue]')?.innerText.trim();
                if (step && step !== window.seen.at(-1)) window.seen.push(step);
            };
            new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true });
        }"""
    )
    page.locator(".st-key-scrubber-play button").first.click()
    expect(shown(page)).not_to_have_text("last")
    expect(shown(page)).to_have_text("last")
    expect(page.locator(".st-key-scrubber-play button").first).to_be_visible()
    # Where the machine is busy, the browser need not draw every step; those that it draws come in
    # their order.
    seen = page.evaluate("window.seen")
    order = [*map(str, STEPS), "last"]
    played = seen[1:] if seen[0] == "last" else seen
    assert played == sorted(set(played), key=order.index)
    assert len(played) > 1
    visit.settle()


# Clicks what is at a point: the button that plays, and as soon as it is there, the one that has
# taken its place.
STOP = """async ([x, y]) => {
    const at = (name) => document.elementFromPoint(x, y)?.closest(`.st-key-scrubber-${name} button`);
    at('play').click();
    while (!at('pause')) await new Promise(requestAnimationFrame);
    at('pause').click();
}"""


@pytest.mark.full
def test_it_stops_when_pressed_again_and_stays_there(visit: Visit) -> None:
    page = visit.open("embeddings", model="grown", step=0)
    box = box_of(page.locator(".st-key-scrubber-play button").first)
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.evaluate(STOP, [*middle])
    expect(page.locator(".st-key-scrubber-play button").first).to_be_visible()
    visit.settle()
    stopped = shown(page).inner_text()
    assert stopped != "last"
    page.wait_for_timeout(6_000 * playing.PACE)  # time for some more steps, if it played
    assert shown(page).inner_text() == stopped


@pytest.mark.full
def test_the_bar_keeps_its_size_whatever_the_step(visit: Visit) -> None:
    page = visit.open("embeddings", model="grown", step=0)
    box = page.get_by_test_id("stPlotlyChart").first
    expect(box).to_be_visible()
    before = box_of(box)
    slider = page.locator(".st-key-step").get_by_role("slider")
    for _ in range(2):
        slider.press("ArrowRight")
        visit.settle()
    visit.drawn()
    assert box_of(page.get_by_test_id("stPlotlyChart").first) == before


SCRIPT = """
import streamlit as st
from gptviz.ui.widgets import controls
from gptviz.ui.widgets import Try, try_this
heads = {"many": 6, "few": 3}[controls.select("Model", ["many", "few"], key="model", help="")]
head = controls.whole_number("Head", 0, heads, key="head", help="", default=0)
st.text(f"head {head} of {heads}")
try_this([Try("Try", "", {"model": "few", "head": 1})])
"""


def test_what_a_button_sets_holds_over_the_link_where_the_limits_change_with_it(
    browser: Browser, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    with serve(tmp_path, script) as running, visiting(browser, running) as visit:
        page = visit.open("", head=2)
        expect(page.get_by_text("head 2 of 6")).to_be_visible()
        page.get_by_role("button", name="Try").click()
        expect(page.get_by_text("head 1 of 3")).to_be_visible()
        expect(page).to_have_url(re.compile("head=1"))
