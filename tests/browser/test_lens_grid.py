"""The grid of the logit lens in a browser: its cells against the lens, its keyboard, hostile text, and its pictures."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from gptviz.components.kit.command import Command
from gptviz.components.lens_grid import payload
from gptviz.interp.lens import Lens, lens
from tests.browser.contrast import faint
from tests.browser.machinery import HOSTILE, Visit
from tests.browser.mounting import Mounted
from tests.browser.pictures import faults, saved, small, words
from tests.tiny import scrambled, some_ids, tiny
from tests.waiting import wait_until

pytestmark = pytest.mark.browser

VOCAB = 40
Mount = Callable[..., Mounted]


def seen_of(tokens: int = 6, n_layer: int = 2) -> Lens:
    model = scrambled(tiny(vocab_size=VOCAB, context_length=300, n_layer=n_layer))
    return lens(model, some_ids(tokens, batch=1, vocab=VOCAB)[0].tolist())


def label(token: int) -> str:
    return HOSTILE[token][:60] if token < len(HOSTILE) else f"t{token}"


def packed(seen: Lens, **changes: Any) -> bytes:
    usual = {"of": "text", "model": "a model", "vocab_size": VOCAB, "code": "seen = …"}
    return payload(seen, label, **usual | changes)


def cell_at(page: Page, seen: Lens, layer: int, index: int) -> dict[str, float]:
    """Where a cell lies on the heatmap."""
    box = page.locator(".heat").bounding_box()
    assert box is not None
    across, down = box["width"] / len(seen.positions), box["height"] / len(seen.layers)
    return {"x": (index + 0.5) * across, "y": (layer + 0.5) * down}


def test_under_the_pointer_stand_the_numbers_of_the_cell_and_a_click_opens_it(mounted: Mount) -> None:
    seen = seen_of()
    view = mounted("lens_grid", packed(seen))
    page, heat = view.page, view.page.locator(".frame")
    layer, index = 3, 2
    place = cell_at(page, seen, layer, index)
    box, heat_box = page.locator(".heat").bounding_box(), heat.bounding_box()
    assert box is not None
    assert heat_box is not None
    at = {"x": box["x"] - heat_box["x"] + place["x"], "y": box["y"] - heat_box["y"] + place["y"]}
    heat.hover(position=at)
    expect(page.locator(".where")).to_contain_text("After the attention of block 1")
    expect(page.locator(".where")).to_contain_text("(position 2)")
    assert page.locator(".guesses .chip").all_text_contents() == [label(i) for i in seen.top[layer, index].tolist()]
    shown = [float(text.split(" ")[0]) / 100 for text in page.locator(".guesses .number").all_text_contents() if "<" not in text]
    np.testing.assert_allclose(shown, seen.probability[layer, index][: len(shown)], rtol=5e-3)
    heat.click(position=at)
    assert view.sent[-1][1:] == ("open", {"layer": layer, "index": index, "of": "text"})
    expect(page.locator(".where")).to_contain_text("opened below")
    page.wait_for_url("**layer=blocks.1.attention**")
    assert "position=2" in page.url


def test_the_keyboard_walks_and_opens_and_says_where_it_is(mounted: Mount) -> None:
    seen = seen_of()
    view = mounted("lens_grid", packed(seen))
    page = view.page
    page.locator(".frame").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".where")).to_contain_text("After the attention of block 1")
    expect(page.locator(".where")).to_contain_text("(position 4)")
    expect(page.locator(".aloud").first).to_contain_text("position 4")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    assert view.sent[-1].value == {"layer": 3, "index": 0, "of": "text"}
    page.keyboard.press("Escape")
    expect(page.locator(".where")).to_contain_text("opened below")


def test_a_link_reopens_the_cell_and_the_colours_and_another_text_begins_at_its_end(mounted: Mount) -> None:
    seen = seen_of()
    view = mounted("lens_grid", packed(seen), layer="blocks.0.mlp", position=1, colour="rank", words="true")
    page = view.page
    expect(page.locator(".where")).to_contain_text("After the MLP of block 0")
    expect(page.get_by_label("What the colours show")).to_have_value("rank")
    expect(page.get_by_role("button", name="Large cells")).to_have_attribute("aria-pressed", "true")
    view.show(packed(seen))  # the same text again, as at another step of training
    expect(page.locator(".where")).to_contain_text("After the MLP of block 0")
    view.show(packed(seen_of(4), of="another"))
    expect(page.locator(".where")).to_contain_text("After the MLP of block 1")
    expect(page.locator(".where")).to_contain_text("(position 3)")


def test_a_command_is_obeyed_once_and_taken_back(mounted: Mount) -> None:
    seen, command = seen_of(), Command({"layer": "embed", "position": 0, "colour": "entropy"}, 5)
    view = mounted("lens_grid", packed(seen))
    view.show(packed(seen, command=command))
    expect(view.page.locator(".where")).to_contain_text("After the embedding")
    assert view.sent[-1].value == {"layer": 0, "index": 0, "of": "text"}
    expect(view.page.get_by_label("What the colours show")).to_have_value("entropy")
    view.show(packed(seen, command=Command({"back": 5}, 6)))
    expect(view.page.locator(".where")).to_contain_text("After the MLP of block 1")
    expect(view.page.get_by_label("What the colours show")).to_have_value("probability")


PIXELS = """() => {
    const canvas = [...document.querySelectorAll('*')].flatMap((one) => one.shadowRoot ?? [])
        .map((root) => root.querySelector('.heat')).find((one) => one);
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return { width: canvas.width, height: canvas.height, reds: [...data].filter((_, i) => i % 4 === 1) };
}"""


def test_every_cell_has_a_colour_in_the_order_of_its_number_and_the_file_has_all_numbers(mounted: Mount) -> None:
    seen = seen_of()
    view = mounted("lens_grid", packed(seen))
    page = view.page
    pixels = page.evaluate(PIXELS)
    assert (pixels["height"], pixels["width"]) == seen.entropy.shape
    order = np.argsort(-seen.probability[..., 0].ravel())
    greens = np.array(pixels["reds"])[order]  # the likelier, the less green is left of the light ground
    assert (np.diff(greens.astype(int)) >= 0).all()
    page.get_by_role("button", name="Numbers").click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download CSV").click()
    text = Path(waiting.value.path()).read_bytes().decode("utf-8")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert len(rows) == seen.entropy.size
    np.testing.assert_allclose([float(row["entropy in nats"]) for row in rows], seen.entropy.ravel(), rtol=1e-6)
    np.testing.assert_allclose([float(row["probability"]) for row in rows], seen.probability[..., 0].ravel(), rtol=1e-6)
    known = [row for row in rows if row["its rank"]]
    assert [int(row["its rank"]) for row in known] == seen.rank[:, :-1].ravel().tolist()


@pytest.mark.parametrize("dark", [False, True])
def test_texts_are_large_and_clear_enough_and_the_picture_is_whole(mounted: Mount, dark: bool) -> None:
    view = mounted("lens_grid", packed(seen_of()), dark=dark)
    page = view.page
    expect(page.locator(".where")).to_be_visible()
    assert small(page) == []
    assert faint(page) == []
    drawn = saved(page)
    assert faults(page, drawn) == []
    assert {"Model: a model · coloured by probability", "embedding", "MLP 1"} <= set(words(drawn))


def test_hostile_tokens_stay_text(mounted: Mount) -> None:
    model = scrambled(tiny(vocab_size=len(HOSTILE), context_length=8))
    seen = lens(model, list(range(len(HOSTILE))), top=len(HOSTILE))
    view = mounted("lens_grid", packed(seen, vocab_size=len(HOSTILE)), words="true")
    expect(view.page.locator(".guesses .chip")).to_have_count(len(HOSTILE))
    assert view.page.title() == "A view"
    assert view.page.locator(".root img, .root script").count() == 0


@pytest.mark.parametrize("width", [390, 1280, 3840])
def test_sixty_one_rows_of_256_tokens_are_seen_at_a_glance(mounted: Mount, width: int) -> None:
    seen = seen_of(256, 30)
    view = mounted("lens_grid", packed(seen), width=width, height=900)
    page = view.page
    expect(page.locator(".where")).to_be_visible()
    box = page.locator(".heat").bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= width
    unit = page.evaluate("parseFloat(getComputedStyle(document.documentElement).fontSize)")
    assert box["height"] <= 33 * unit
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Large cells").click()
    expect(page.locator(".marks text", has_text="really next")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("at_once", [True, False])
def test_no_name_is_cut_where_a_reader_spaces_letters_wider(mounted: Mount, at_once: bool) -> None:
    """WCAG 1.4.12: letters 0.12 and words 0.16 of the size of type further apart, before the view is drawn or after it."""
    page = mounted("lens_grid", packed(seen_of(n_layer=12))).page
    usual = page.locator(".heat").evaluate("heat => heat.offsetLeft")
    page.add_style_tag(content="body { letter-spacing: 0.12em; word-spacing: 0.16em }")
    if at_once:
        page.get_by_role("button", name="Large cells").click()
    wait_until(lambda: page.locator(".heat").evaluate("heat => heat.offsetLeft") > usual)
    cut = """frame => [...frame.querySelectorAll('.marks text')]
        .filter((one) => one.getBoundingClientRect().left < frame.getBoundingClientRect().left).length"""
    assert page.locator(".frame").evaluate(cut) == 0


@pytest.mark.full
def test_a_click_in_the_app_opens_the_cell_below_and_a_reload_keeps_it(visit: Visit) -> None:
    page = visit.open("lens", prompt="To be")
    expect(page.get_by_text("After the MLP of block 5, at position 4")).to_be_visible()
    page.locator(".frame").focus()
    for key in ("ArrowUp", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_text("After the attention of block 5, at position 3").last).to_be_visible()
    page.wait_for_url("**layer=blocks.5.attention**")
    page.reload()
    visit.settle()
    expect(page.get_by_text("After the attention of block 5, at position 3").last).to_be_visible()
    expect(page.locator(".where")).to_contain_text("After the attention of block 5")
    page.get_by_role("button", name="Right and wrong").click()
    expect(page.get_by_label("What the colours show")).to_have_value("rank")
    page.get_by_role("button", name="Back to before").click()
    expect(page.get_by_label("What the colours show")).to_have_value("probability")
