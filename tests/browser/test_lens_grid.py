"""The grid of the logit lens in a browser: its cells against the lens, its keyboard, its words and
its pictures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from gptviz.components.kit.command import ViewCommand
from gptviz.components.lens_grid import payload
from gptviz.figures.kit import theme
from gptviz.interp.reading.lens import Lens, lens
from tests.browser.files import csv_rows
from tests.browser.machinery import FRAMES, Visit, box_of
from tests.browser.mounting import Mounted
from tests.browser.pictures import saved, words
from tests.browser.pixels import check_pixels, colours, screenshot
from tests.tiny import scrambled, some_ids, tiny
from tests.waiting import wait_until

pytestmark = pytest.mark.browser

VOCAB = 40
Mount = Callable[..., Mounted]


def seen_of(tokens: int = 6, n_layer: int = 2) -> Lens:
    model = scrambled(tiny(vocab_size=VOCAB, context_length=300, n_layer=n_layer))
    return lens(model, some_ids(tokens, batch=1, vocab=VOCAB)[0].tolist())


def packed(seen: Lens, label: Callable[[int], str] = "t{}".format, **changes: Any) -> bytes:
    usual = {"of": "text", "model": "a model", "vocab_size": VOCAB, "code": "seen = …"}
    return payload(seen, label, **usual | changes)


def cell_at(page: Page, seen: Lens, layer: int, index: int) -> dict[str, float]:
    """Where a cell lies on the heatmap."""
    box = box_of(page.locator(".heat"))
    across = box["width"] / len(seen.positions)
    down = box["height"] / len(seen.layers)
    return {"x": (index + 0.5) * across, "y": (layer + 0.5) * down}


def test_under_the_pointer_stand_the_numbers_of_the_cell_and_a_click_opens_it(
    mounted: Mount,
) -> None:
    seen = seen_of()
    view = mounted("lens_grid", packed(seen))
    page = view.page
    heat = view.page.locator(".frame")
    layer = 3
    index = 2
    place = cell_at(page, seen, layer, index)
    box = box_of(page.locator(".heat"))
    heat_box = box_of(heat)
    at = {"x": box["x"] - heat_box["x"] + place["x"], "y": box["y"] - heat_box["y"] + place["y"]}
    heat.hover(position=at)
    expect(page.locator(".where")).to_contain_text("After the attention of block 1")
    expect(page.locator(".where")).to_contain_text("(position 2)")
    assert page.locator(".guesses .chip").all_text_contents() == [
        f"t{i}" for i in seen.top[layer, index]
    ]
    shown = [
        float(text.split(" ")[0]) / 100
        for text in page.locator(".guesses .number").all_text_contents()
        if "<" not in text
    ]
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
    page.keyboard.press("End")
    expect(page.locator(".where")).to_contain_text(f"(position {len(seen.positions) - 1})")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    assert view.sent[-1].value == {"layer": 3, "index": 0, "of": "text"}
    page.keyboard.press("Escape")
    expect(page.locator(".where")).to_contain_text("opened below")


def test_a_link_reopens_the_cell_and_the_colours_and_another_text_begins_at_its_end(
    mounted: Mount,
) -> None:
    seen = seen_of()
    view = mounted(
        "lens_grid", packed(seen), layer="blocks.0.mlp", position=1, colour="rank", words="true"
    )
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
    seen = seen_of()
    command = ViewCommand({"layer": "embed", "position": 0, "colour": "entropy"}, 5)
    view = mounted("lens_grid", packed(seen))
    view.show(packed(seen, command=command))
    expect(view.page.locator(".where")).to_contain_text("After the embedding")
    assert view.sent[-1].value == {"layer": 0, "index": 0, "of": "text"}
    expect(view.page.get_by_label("What the colours show")).to_have_value("entropy")
    view.show(packed(seen, command=ViewCommand({"back": 5}, 6)))
    expect(view.page.locator(".where")).to_contain_text("After the MLP of block 1")
    expect(view.page.get_by_label("What the colours show")).to_have_value("probability")


def test_every_pixel_has_the_colour_of_its_cell_and_the_file_has_all_numbers(
    mounted: Mount,
) -> None:
    seen = seen_of()
    view = mounted("lens_grid", packed(seen))
    page = view.page
    check_pixels(page.locator(".heat"), seen.probability[..., 0], theme.OUTPUT)
    page.get_by_label("What the colours show").select_option("entropy")
    check_pixels(page.locator(".heat"), 1 - seen.entropy / np.log(VOCAB), theme.OUTPUT)
    page.get_by_label("What the colours show").select_option("rank")
    known = np.where(seen.rank > 0, seen.rank, np.nan)
    check_pixels(page.locator(".heat"), 1 - np.log(known) / np.log(VOCAB), theme.OUTPUT)
    rows = csv_rows(page)
    assert len(rows) == seen.entropy.size
    np.testing.assert_allclose(
        [float(row["entropy in nats"]) for row in rows], seen.entropy.ravel(), rtol=1e-6
    )
    np.testing.assert_allclose(
        [float(row["probability"]) for row in rows], seen.probability[..., 0].ravel(), rtol=1e-6
    )
    ranked = [row for row in rows if row["its rank"]]
    assert [int(row["its rank"]) for row in ranked] == seen.rank[:, :-1].ravel().tolist()


@pytest.mark.parametrize("width", [390, 1280, 3840])
def test_sixty_one_rows_of_256_tokens_are_seen_at_a_glance(mounted: Mount, width: int) -> None:
    seen = seen_of(256, 30)
    view = mounted("lens_grid", packed(seen), width=width, height=900)
    page = view.page
    expect(page.locator(".where")).to_be_visible()
    box = box_of(page.locator(".heat"))
    assert box["x"] + box["width"] <= width
    unit = page.evaluate("parseFloat(getComputedStyle(document.documentElement).fontSize)")
    assert box["height"] <= 33 * unit
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Large cells").click()
    expect(page.locator(".marks text", has_text="really next")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_of_many_rows_with_words_the_last_one_and_the_tokens_stay_in_sight(mounted: Mount) -> None:
    seen = seen_of(14, 30)
    view = mounted(
        "lens_grid", packed(seen), width=900, height=900, layer="blocks.20.mlp", position=3
    )
    page = view.page
    box = view.page.locator(".box")
    last = [f"t{token}" for token in seen.top[-1, :, 0]]
    inside = "(one) => one.getBoundingClientRect().toJSON()"
    for way in (None, 0, 10_000):  # as the link opens it, at the beginning and at the end
        if way is not None:
            box.evaluate("(box, way) => { box.scrollTop = way; }", way)
        else:
            assert box.evaluate("(box) => box.scrollTop") > 0, (
                "the cell that the link asks for is in sight"
            )
        around, head, foot = (
            page.locator(one).evaluate(inside) for one in (".box", ".head", ".foot")
        )
        assert head["top"] == pytest.approx(around["top"], abs=1)
        assert foot["bottom"] == pytest.approx(around["bottom"], abs=1)
        assert page.locator(".foot text").all_text_contents()[-14:] == last
    box.evaluate("(box) => { box.scrollTop = 0; }")
    places = page.locator(".foot rect").evaluate_all(
        "all => all.map((one) => one.getBoundingClientRect().toJSON())"
    )
    page.mouse.click(places[5]["x"] + 5, places[5]["y"] + 5)
    assert view.sent[-1].value == {"layer": 60, "index": 5, "of": "text"}
    page.mouse.click(places[5]["x"] + 5, places[5]["y"] - 20)
    assert 20 < view.sent[-1].value["layer"] < 60
    cells = ElementTree.fromstring(saved(page)).findall(f".//{SVG}text")
    assert len([one for one in cells if (one.text or "").startswith("t")]) >= seen.entropy.size, (
        "the picture has all rows"
    )


SVG = "{http://www.w3.org/2000/svg}"
# Writes words into the cells in place of the view's own, an element each: [word, ink] by row and
# column.
WRITE = """(frame, cells) => {
    frame.querySelector('.words').remove();
    const marks = frame.querySelector('.marks'), { left, top, width, height } = frame.querySelector('.heat').style;
    const across = parseFloat(width) / cells[0].length, down = parseFloat(height) / cells.length;
    const look = { 'font-size': marks.querySelector('text').getAttribute('font-size'), 'font-family': 'monospace',
        'dominant-baseline': 'central', 'text-anchor': 'middle' };
    cells.forEach((row, i) => row.forEach(([word, ink], j) => {
        const text = document.createElementNS('http://www.w3.org/2000/svg', 'text');
        const place = { x: parseFloat(left) + (j + 0.5) * across, y: parseFloat(top) + (i + 0.5) * down, fill: ink };
        for (const [name, value] of Object.entries({ ...look, ...place })) text.setAttribute(name, value);
        text.textContent = word;
        marks.prepend(text);
    }));
}"""


@pytest.mark.parametrize(("colour", "dark"), [("probability", False), ("rank", True)])
@pytest.mark.parametrize("key", ["Home", "End"], ids=["begin", "scrolled to the end"])
def test_every_cell_shows_its_likeliest_token_in_an_ink_that_can_be_read(
    mounted: Mount, key: str, colour: str, dark: bool
) -> None:
    seen = seen_of(60, 3)
    page = mounted(
        "lens_grid", packed(seen), words="true", colour=colour, width=800, dark=dark
    ).page
    page.locator(".frame").focus()
    page.keyboard.press(key)
    page.locator(".frame").blur()
    heat = box_of(page.locator(".heat"))
    box = box_of(page.locator(".box"))
    left = max(heat["x"], box["x"])
    right = min(heat["x"] + heat["width"], box["x"] + box["width"])
    part = {"x": left, "y": heat["y"], "width": right - left, "height": heat["height"]}
    shown = screenshot(page, part)
    ranked = 1 - np.log(np.where(seen.rank > 0, seen.rank, np.nan)) / np.log(VOCAB)
    places = seen.probability[..., 0] if colour == "probability" else ranked
    grounds = colours(places, theme.OUTPUT, dark=dark) / 255
    inks = [
        [theme.DARK.text if np.isnan(one).any() else theme.ink(one) for one in row]
        for row in grounds
    ]
    cells = [
        [(f"t{seen.top[i, j, 0]}", ink) for j, ink in enumerate(row)] for i, row in enumerate(inks)
    ]
    page.locator(".frame").evaluate(WRITE, cells)
    expected = screenshot(page, part)
    page.locator(".marks text").evaluate_all("all => all.forEach((one) => one.remove())")
    wordless = screenshot(page, part)
    assert np.abs(shown - expected).mean() < 0.1 * np.abs(wordless - expected).mean()


def test_in_the_picture_every_cell_has_its_likeliest_token_in_its_middle(mounted: Mount) -> None:
    seen = seen_of(60, 3)
    page = mounted("lens_grid", packed(seen), words="true", width=800).page
    drawn = saved(page)
    assert {"Model: a model · coloured by probability", "embedding", "MLP 1"} <= set(words(drawn))
    drawing = ElementTree.fromstring(drawn)
    cells = drawing.find(f".//{SVG}image")
    assert cells is not None
    x, y, width, height = (
        float(cells.get(name) or "nan") for name in ("x", "y", "width", "height")
    )
    found: dict[tuple[int, int], str | None] = {}
    for text in drawing.iter(f"{SVG}text"):
        column = (float(text.get("x") or "nan") - x) / width * len(seen.positions) - 0.5
        row = (float(text.get("y") or "nan") - y) / height * len(seen.layers) - 0.5
        if (
            text.get("font-family") == "monospace"
            and -0.1 < row < len(seen.layers) - 0.9
            and column > -0.1
        ):
            assert [row, column] == pytest.approx([round(row), round(column)], abs=1e-3)
            found[round(row), round(column)] = text.text
    assert found == {at: f"t{token}" for at, token in np.ndenumerate(seen.top[..., 0])}
    assert page.locator(".marks text").count() < seen.entropy.size, (
        "they are gone from the page again"
    )


def test_the_words_in_the_cells_are_as_sharp_as_the_screen_also_one_that_the_window_comes_to(
    mounted: Mount,
) -> None:
    page = mounted("lens_grid", packed(seen_of()), words="true", alone=True).page
    sharpness = "words => words.width / words.offsetWidth"
    # the view has the same size on either screen
    page.add_style_tag(content="body { width: 700px }")
    wait_until(lambda: page.locator(".box").evaluate("box => box.clientWidth") == 700)
    assert page.locator(".words").evaluate(sharpness) == 1
    other = {"width": 1281, "height": 720, "deviceScaleFactor": 2, "mobile": False}
    page.context.new_cdp_session(page).send("Emulation.setDeviceMetricsOverride", other)
    page.wait_for_function("devicePixelRatio === 2")
    wait_until(
        lambda: (
            page.evaluate("() => new Promise(requestAnimationFrame)")
            and page.locator(".words").evaluate(sharpness) == 2
        )
    )


@pytest.mark.parametrize("at_once", [True, False])
def test_no_name_is_cut_where_a_reader_spaces_letters_wider(mounted: Mount, at_once: bool) -> None:
    """WCAG 1.4.12: letters 0.12 and words 0.16 of the size of type further apart, before the view
    is drawn or after it.
    """
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


def test_words_follow_the_cells_whatever_the_width_of_the_page(mounted: Mount) -> None:
    """Rounding puts the right edge of the last column beyond it at some widths, and a column that
    is not there has no word.
    """
    page = mounted("lens_grid", packed(seen_of(14))).page
    for width in range(331, 930, 37):
        page.set_viewport_size({"width": width, "height": 600})
        page.evaluate(FRAMES)
        cells = box_of(page.locator(".heat"))
        drawn = page.locator("canvas.words").bounding_box()
        if drawn is not None:  # narrow cells have no words
            assert abs(drawn["x"] + drawn["width"] - cells["x"] - cells["width"]) < 2, width
