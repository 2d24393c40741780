"""The map of the model in a real browser: its numbers are those of a pass, it answers by itself,
and a link reopens it.

What leads from a payload to the screen is tested on a page of its own (`shown`), what takes the
server on the app (`visit`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

import gptviz
from gptviz.components.model_map import TensorPage, looked
from gptviz.figures.kit import theme
from gptviz.interp.reading.anatomy import anatomy
from gptviz.model import parameter_count
from gptviz.runs import checkpoints
from gptviz.text import CharTokenizer
from gptviz.ui.pages.home.glance import glance
from gptviz.ui.shell.subject.models import model_key
from gptviz.ui.views import encoder_decoder, model_map
from gptviz.ui.views.read import PromptRead
from tests.browser.contrast import faint
from tests.browser.files import code, csv_rows
from tests.browser.keyboard import check_tools, press, tab_to, to_start
from tests.browser.machinery import FRAMES, Visit, box_of
from tests.browser.mounting import Mounted
from tests.browser.pictures import faults, saved, words
from tests.browser.pixels import check_pixels
from tests.examples import quick
from tests.tiny import scrambled, tiny

pytestmark = pytest.mark.browser

PROMPT = "O Romeo, Romeo"
FOCUSED = """(function inside(e) {
    return e.shadowRoot ? inside(e.shadowRoot.activeElement) : e.dataset.path
})(document.activeElement)"""
SHIPPED = sorted(
    folder.name for folder in checkpoints.BUNDLED.iterdir() if (folder / "config.json").is_file()
)


class Map:
    """What Home gives the map of a model and a prompt, and the view that shows it.

    Attributes:
        view: the page it is mounted on.
        look: what the view has asked for last.
    """

    def __init__(
        self, mounted: Callable[..., Mounted], model: str, prompt: str, **choice: Any
    ) -> None:
        self.model = model
        self.prompt = prompt
        self.look: TensorPage | None = None
        self.view = mounted("model_map", self.payload(), **choice)
        self.page = self.view.page
        # the page stands still when a click is aimed
        self.page.emulate_media(reduced_motion="reduce")
        self.answered = 0
        self.answer()

    def payload(self) -> bytes:
        """The bytes that Home sends."""
        lm = gptviz.load(self.model)
        key = model_key(self.model, "cpu")
        is_pair = lm.model.config.kind == "encoder-decoder"
        ids = tuple(
            (lm.source(self.prompt) if is_pair else lm.seen(lm.encode(self.prompt))).tolist()
        )
        read = PromptRead(ids)
        if is_pair:
            read = PromptRead(encoder_decoder.decoder_ids(key, ids), ids)
        seen = glance(key, ids)
        return model_map.payload(
            key,
            read,
            self.prompt,
            seen.tokens,
            seen.guesses,
            bool(seen.guess_ids),
            seen.shape,
            self.look,
        )

    def answer(self) -> None:
        """Do what Home does when the view asks for numbers: send them."""
        self.page.evaluate(FRAMES)
        while self.answered < len(
            questions := [message.value for message in self.view.sent if message.name == "look"]
        ):
            self.answered = len(questions)
            self.look = looked(questions[-1])
            self.view.show(self.payload())
            self.page.evaluate(FRAMES)

    def show(self, prompt: str) -> None:
        """The map of another prompt."""
        self.prompt = prompt
        self.view.show(self.payload())
        self.answer()

    def click(self, one: Locator | str) -> None:
        """Click on a box, by its path, or on something else, and let Home answer."""
        (box(self.page, one) if isinstance(one, str) else one).click()
        self.answer()

    def press(self, key: str) -> str:
        """Press a key; the path of what has the focus then."""
        self.page.keyboard.press(key)
        return self.page.evaluate(FOCUSED)


@pytest.fixture
def shown(mounted: Callable[..., Mounted], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Map]:
    """Shows a map: `shown("blocks.2.attention.q", model="bpe", head=3)`, what is no model or prompt
    being in the address. Whatever the guess needs, block 2 is open at first where there is one.
    """
    monkeypatch.setattr(model_map, "block_for_guess", lambda *_: None)

    def show(
        path: str | None = None, model: str = "shakespeare", prompt: str = PROMPT, **choice: Any
    ) -> Map:
        return Map(mounted, model, prompt, **choice | ({} if path is None else {"box": path}))

    return show


def box(page: Page, path: str) -> Locator:
    return page.locator(f'[data-box="{path}"]')


def panel(page: Page) -> Locator:
    return page.locator("section.panel")


def cells(page: Page) -> np.ndarray:
    """The numbers of the page of a tensor that is shown, NaN where a cell is blank."""
    rows = page.locator("table.cells").evaluate(
        """(table) => {
            const number = (cell) => cell.textContent ? Number(cell.dataset.value) : null;
            return [...table.rows].slice(1).map((row) => [...row.querySelectorAll('td')].map(number));
        }"""
    )
    return np.array(rows, float)


def opened(visit: Visit, path: str, **query: object) -> Page:
    page = visit.go("", **{"prompt": PROMPT, **query, "box": path})
    expect(panel(page)).to_be_visible()
    return page


def query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlparse(page.url).query)


def test_the_numbers_of_an_opened_box_are_those_of_the_pass(shown: Callable[..., Map]) -> None:
    q = gptviz.load("shakespeare").trace(PROMPT)["blocks.2.attention.q"][0].numpy()
    view = shown("blocks.2.attention.q", head=3)
    page = view.page
    np.testing.assert_allclose(cells(page), q[3, :12, :12], atol=1e-6)
    line = page.locator("p.facts")
    facts = dict(
        zip(
            line.locator("span").all_inner_texts(),
            line.locator("strong").all_inner_texts(),
            strict=True,
        )
    )
    for name, value in {
        "min": q.min(),
        "max": q.max(),
        "mean": q.mean(),
        "√ mean square": np.sqrt(np.square(q).mean()),
    }.items():
        assert float(facts[name].replace("−", "-")) == pytest.approx(value, rel=0.006), name
    view.click(page.get_by_role("button", name="next columns"))
    np.testing.assert_allclose(cells(page), q[3, :12, 12:24], atol=1e-6)
    view.click(page.get_by_role("button", name="next rows"))
    np.testing.assert_allclose(cells(page), q[3, 12:, 12:24], atol=1e-6)
    page.get_by_role("combobox", name="head").select_option("5")
    np.testing.assert_allclose(cells(page), q[5, 12:, 12:24], atol=1e-6)


def test_a_head_that_is_clicked_on_is_shown_the_first_one_too(shown: Callable[..., Map]) -> None:
    view = shown("blocks.2.attention.pattern", head=3)
    pattern = gptviz.load("shakespeare").trace(PROMPT)["blocks.2.attention.pattern"][0].numpy()
    for head in (5, 0):
        view.click(box(view.page, "blocks.2.attention.pattern").locator(f'[data-head="{head}"]'))
        np.testing.assert_allclose(
            np.nan_to_num(cells(view.page)), pattern[head, :12, :12], atol=1e-6
        )


def test_a_pattern_is_blank_where_the_mask_hides(shown: Callable[..., Map]) -> None:
    pattern = (
        gptviz.load("shakespeare")
        .trace(PROMPT)["blocks.4.attention.pattern"][0, 1, :12, :12]
        .numpy()
        .copy()
    )
    pattern[np.triu_indices(12, 1)] = np.nan
    page = shown("blocks.4.attention.pattern", head=1).page
    np.testing.assert_allclose(cells(page), pattern, atol=1e-6)
    expect(page.locator("p.facts")).to_contain_text("max1.00")


def test_weights_are_the_rows_of_the_matrix_that_the_box_uses(shown: Callable[..., Map]) -> None:
    view = shown("blocks.1.attention.k")
    page = view.page
    view.click(panel(page).locator('[data-piece="1"]'))
    weight = (
        gptviz.load("shakespeare").model.get_parameter("blocks.1.attention.qkv.weight").detach()
    )
    expect(page.locator('[data-piece="1"]')).to_have_attribute("aria-pressed", "true")
    expect(page.locator("table.cells th[scope=row]").first).to_contain_text("h0·0")
    expect(page.locator("table.cells caption")).to_have_text("Numbers of W_K")
    np.testing.assert_allclose(cells(page), weight[192:204, :12].numpy(), atol=1e-6)
    page.wait_for_url(re.compile("tensor=1"))


def test_opening_folding_and_hovering_do_not_wait_for_the_server(shown: Callable[..., Map]) -> None:
    view = shown("blocks.2.attention.q")
    page = view.page
    for name in ("k", "v", "pattern", "q"):
        box(page, f"blocks.2.attention.{name}").hover()
    expect(page.locator(".status")).to_contain_text("q = ")
    page.get_by_role("button", name="Close").click()
    expect(panel(page)).to_be_hidden()
    box(page, "blocks.2.attention.q").click()  # its numbers are still here
    page.wait_for_url(re.compile("box=blocks.2.attention.q"))
    assert cells(page).shape == (12, 12)
    page.get_by_role("button", name="Close").click()
    # The server only hears what is open, for the link to its page.
    opened_again = {"box": "blocks.2.attention.q", "piece": 0, "at": [0, 0, 0]}
    said = [(message.name, message.value) for message in view.view.sent[-3:]]
    assert [name for name, _ in said] == ["shut", "look", "shut"]
    assert said[1][1] == opened_again
    before = len(view.view.sent)
    page.locator('[data-block="blocks.4"]').click()
    expect(box(page, "blocks.4.attention.q")).to_be_visible()
    expect(box(page, "blocks.2.attention.q")).to_have_count(0)
    page.wait_for_url(re.compile("block=4"))
    assert len(view.view.sent) == before
    # What is not here yet is said at once, but for its numbers.
    box(page, "blocks.4.mlp.up").click()
    expect(panel(page)).to_contain_text("W_upᵀ")
    expect(panel(page)).to_contain_text("Reading the numbers")
    assert view.view.sent[before:] == [
        ("trigger", "look", {"box": "blocks.4.mlp.up", "piece": 0, "at": [0, 0]})
    ]
    view.answer()
    cells(page)


def test_by_the_keyboard_alone_boxes_blocks_and_tensors_are_opened_and_guesses_taken(
    shown: Callable[..., Map],
) -> None:
    view = shown()
    page = view.page
    tab_to(page, '"path":')
    assert [view.press(key) for key in ("Home", "ArrowRight")] == ["ids", "embed"]
    walked = ["embed"]
    while walked[-1] != "logits" and len(walked) < 40:
        walked.append(view.press("ArrowRight"))
    inner = [
        one.path
        for one in anatomy(gptviz.load("shakespeare").model.config, 4).boxes
        if one.path.startswith("blocks.2.")
    ]
    blocks = [[f"blocks.{i}"] if i != 2 else ["blocks.2", *inner] for i in range(6)]
    assert walked == ["embed", *(one for block in blocks for one in block), "final_norm", "logits"]
    assert [view.press(key) for key in ("ArrowRight", "ArrowDown", "Home", "End")] == [
        "guess 0",
        "guess 1",
        "ids",
        "guess 7",
    ]
    view.press("Enter")
    assert view.view.sent[-1].name == "take"
    assert view.view.sent[-1].value["guess"] == 7
    # A box is opened, and the same box of the next block, and shut.
    walk_to(view, "ArrowLeft", "blocks.2.attention.z")
    view.press("Enter")
    expect(panel(page)).to_contain_text("blocks.2.attention.z")
    assert view.press("ArrowDown") == "blocks.3.attention.z"
    expect(panel(page)).to_contain_text("blocks.3.attention.z")
    view.answer()
    cells(page)
    assert page.evaluate(FOCUSED) == "blocks.3.attention.z", "the focus stays while numbers arrive"
    assert view.press("Escape") == "blocks.3.attention.z"
    expect(panel(page)).to_be_hidden()
    expect(page.locator('.stage [tabindex="0"]')).to_have_count(1)
    # A block that is folded is opened, and then has its boxes in the walk.
    walk_to(view, "ArrowRight", "blocks.4")
    view.press("Enter")
    expect(page.locator('[data-block="blocks.4"]')).to_have_attribute("aria-expanded", "true")
    expect(page.locator('[data-block="blocks.3"]')).to_have_attribute("aria-expanded", "false")
    walk_to(view, "ArrowRight", "blocks.4.attention.q")
    view.press("Space")
    view.answer()
    # Of an open box: its tensors, another head, other rows, and the way out.
    for piece in ('"piece":"1"', '"piece":"0"'):
        to_start(page)
        tab_to(page, piece)
        press(page, "Enter")
        view.answer()
        assert page.locator(f"[data-piece='{piece[-2]}']:focus").count() == 1, (
            "the focus stays where it was"
        )
    tab_to(page, "select head")
    press(page, "ArrowDown")
    view.answer()
    tab_to(page, "button next rows")
    press(page, "Enter")
    view.answer()
    q = gptviz.load("shakespeare").trace(PROMPT)["blocks.4.attention.q"]
    np.testing.assert_allclose(cells(page), q[0, 1, 12:, :12].numpy(), atol=1e-6)
    for region in ("Numbers of q", "button More: Numbers, Code, PNG, SVG, Full screen", "Source"):
        tab_to(page, region)
    check_tools(page)  # those of the map
    tab_to(page, "button Close")
    press(page, "Enter")
    expect(panel(page)).to_be_hidden()
    assert page.evaluate(FOCUSED) == "blocks.4.attention.q"


def walk_to(view: Map, key: str, path: str) -> None:
    """Press an arrow key until what has this path has the focus."""
    for _ in range(40):
        if view.press(key) == path:
            return
    raise AssertionError(f"{key} does not lead to {path}")


def test_a_guess_that_is_clicked_often_is_taken_once_until_the_text_changes(
    shown: Callable[..., Map],
) -> None:
    view = shown()
    for count, prompt in enumerate((PROMPT, "Juliet"), 1):
        view.show(prompt)
        view.page.locator('[data-guess="1"]').evaluate(
            "e => { for (let i = 0; i < 20; i++) e.click(); }"
        )
        taken = [message.value["guess"] for message in view.view.sent if message.name == "take"]
        assert taken == [1] * count


def test_the_box_that_was_clicked_stays_in_sight_while_what_it_opens_comes_into_sight(
    shown: Callable[..., Map],
) -> None:
    view = shown(width=900, height=720)
    for path, kept in (("blocks.2.mlp.up", "blocks.2.attention.q"), ("embed", "embed")):
        view.click(path)
        expect(box(view.page, kept)).to_be_in_viewport()
        expect(panel(view.page)).to_be_in_viewport()
        expect(box(view.page, path)).to_be_in_viewport()
        view.page.get_by_role("button", name="Close").click()
        view.page.evaluate("document.scrollingElement.scrollTo(0, 0)")


@pytest.mark.parametrize("model", ["shakespeare", "seq2seq"])
def test_on_a_phone_the_guesses_are_in_sight_without_scrolling_sideways(
    shown: Callable[..., Map], model: str
) -> None:
    view = shown(model=model, width=390, height=844, prompt="the end")
    page = view.page
    guess = (
        page.locator('[data-guess="0"]')
        if model == "shakespeare"
        else page.locator(".ahead .chip").first
    )
    expect(guess).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
    if model == "shakespeare":
        guess.click()
        assert [message.value["guess"] for message in view.view.sent if message.name == "take"] == [
            0
        ]
        # the phone is turned, or a window grows
        page.set_viewport_size({"width": 1280, "height": 720})
        expect(page.locator(".stage [data-guess]")).to_have_count(8)
        expect(page.locator(".ahead")).to_be_empty()


@pytest.mark.parametrize("name", quick(SHIPPED, "shakespeare", "seq2seq", "classifier"))
def test_the_map_of_every_shipped_model_opens_all_its_boxes(
    shown: Callable[..., Map], name: str
) -> None:
    view = shown(model=name, prompt="the end")
    page = view.page
    config = checkpoints.read_config(checkpoints.BUNDLED / name)
    drawn = anatomy(config, 4, 4)
    last = max(0, min(2, config.n_layer - 1))
    shown = [
        one.path
        for one in drawn.boxes
        if ".blocks." not in f".{one.path}" or one.path.startswith(f"blocks.{last}.")
    ]
    for path in shown:  # type: ignore[attr-defined]
        expect(box(page, path), path).to_have_count(1)
    expect(page.locator(".status")).to_contain_text(f"{parameter_count(config):,} parameters")
    for path in dict.fromkeys((shown[1], shown[len(shown) // 2], shown[-1])):
        view.click(path)
        expect(panel(page)).to_contain_text(path)
        found = drawn.box(path)
        assert found is not None
        expect(panel(page).locator(".lines")).to_contain_text(
            found.lines.text.splitlines()[0].strip()
        )
        if found.pieces:
            cells(page)


ODD = {
    "twelve": {"n_layer": 12, "n_head": 12, "d_model": 48},
    "forty": {"n_layer": 40, "residual": "norm-only", "positions": "relative"},
    "bare": {"residual": "none", "positions": "alibi", "qk_norm": True, "norm_gain": False},
    "thin": {
        "residual": "plain",
        "n_head": 1,
        "d_head": 6,
        "d_mlp": 0,
        "mask": "full",
        "final_norm": False,
    },
    "llama": {
        "n_head": 4,
        "d_model": 32,
        "n_kv_head": 2,
        "mlp": "gated",
        "norm": "rmsnorm",
        "positions": "rotary",
    },
    "neox": {"residual": "parallel", "positions": "rotary", "rotary_fraction": 0.5, "n_layer": 4},
    "gptj": {"residual": "parallel-one-norm", "positions": "rotary", "mlp": "gated"},
    "gemma": {
        "residual": "double-norm",
        "n_kv_head": 1,
        "mlp": "gated",
        "qk_norm": "separate",
        "positions": "rotary",
    }
    | {
        "norm": "rmsnorm",
        "window": 5,
        "window_pattern": "wwf",
        "window_rotary_base": 50.0,
        "embed_scale": 5.0,
        "n_layer": 6,
    },
    "olmo": {"residual": "branch-norm", "qk_norm": "whole", "positions": "rotary", "mlp": "gated"},
    "bloom": {
        "positions": "alibi",
        "embed_norm": True,
        "d_head": 4,
        "mlp": "gated",
        "qk_norm": "shared",
    },
    "bert": {
        "residual": "post-norm",
        "embed_norm": True,
        "mask": "full",
        "final_norm": False,
        "head": "first",
        "n_label": 3,
    },
    "mixture": {
        "mlp": "experts",
        "n_expert": 4,
        "d_shared": 8,
        "norm": "rmsnorm",
        "positions": "rotary",
    },
    "mixture-beside": {"mlp": "experts", "n_expert": 3, "residual": "parallel-one-norm"},
    "turned": {
        "residual": "post-norm",
        "positions": "rotary",
        "n_head": 24,
        "d_head": 2,
        "norm": "rmsnorm",
    },
}


@pytest.mark.parametrize("name", quick(ODD, "forty", "gemma", "bert"))
def test_other_architectures_are_drawn_within_the_page(
    shown: Callable[..., Map], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("GPTVIZ_HOME", str(tmp_path))
    tokenizer = CharTokenizer(PROMPT)
    checkpoints.save(
        name,
        scrambled(tiny(vocab_size=tokenizer.vocab_size, context_length=16, **ODD[name])),
        tokenizer,
        {},
    )
    config = checkpoints.read_config(checkpoints.find(name))
    view = shown(model=name, block=1)
    page = view.page
    for width in (390, 1_280):
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate(FRAMES)
        assert page.locator(".drawing").evaluate(COLLISIONS) == []
        for text, size, out in page.locator(".stage").evaluate(TEXTS):
            assert size >= 11.99, text
            assert out <= 2, text
    page.set_viewport_size({"width": 1_280, "height": 720})
    page.evaluate(FRAMES)
    for path in [
        one.path for one in anatomy(config, len(PROMPT)).boxes if one.path.startswith("blocks.1.")
    ]:
        box(page, path).click(force=True)
        expect(panel(page)).to_contain_text(path)
    frame = page.locator(".frame")
    assert frame.evaluate("e => e.scrollWidth <= e.clientWidth + 1")
    page.get_by_role("button", name="Close").click()
    last = config.n_layer - 1
    page.locator(f'[data-block="blocks.{last}"]').click()
    expect(box(page, f"blocks.{last}.attention.q")).to_be_visible()
    assert 2 <= page.locator("[data-block]").count() <= 16


def test_a_block_that_is_not_drawn_is_reached_by_its_number(
    shown: Callable[..., Map], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPTVIZ_HOME", str(tmp_path))
    tokenizer = CharTokenizer(PROMPT)
    windows = {
        "window": 3,
        "window_pattern": "wf",
        "vocab_size": tokenizer.vocab_size,
        "context_length": 16,
    }
    checkpoints.save("deep", scrambled(tiny(n_layer=30, **windows)), tokenizer, {})
    view = shown(model="deep")
    page = view.page
    assert page.locator('[data-block="blocks.17"]').count() == 0
    number = page.get_by_role("spinbutton", name="Go to block")
    number.fill("17")
    number.press("Enter")
    expect(page.locator('[data-block="blocks.17"]')).to_have_attribute("aria-expanded", "true")
    page.wait_for_url(re.compile(r"[?&]block=17(&|$)"))
    expect(number).to_be_focused()
    number.fill("99")
    number.press("Enter")
    expect(page.locator('[data-block="blocks.29"]')).to_have_attribute("aria-expanded", "true")
    expect(number).to_have_value("29")
    config = checkpoints.read_config(checkpoints.find("deep"))
    for block in (28, 29):
        one = page.locator(f'[data-block="blocks.{block}"]')
        has = config.has_window(block)
        assert ("window of 3 tokens" in (one.get_attribute("aria-label") or "")) == has
        assert (one.locator(".edge").get_attribute("stroke-dasharray") is not None) == has
    assert shown().page.get_by_role("spinbutton", name="Go to block").count() == 0, (
        "all six blocks can be clicked"
    )


def test_an_encoder_decoder_has_two_rows_and_the_memory_reaches_every_block(
    shown: Callable[..., Map],
) -> None:
    source = "abc"
    view = shown(model="seq2seq", prompt=source, block="encoder.1")
    page = view.page
    expect(box(page, "encoder.blocks.1.attention.q")).to_be_visible()
    above = box_of(box(page, "encoder.embed"))
    below = box_of(box(page, "embed"))
    assert above["y"] + above["height"] < below["y"]
    page.locator('[data-block="blocks.1"]').click()
    view.click("blocks.1.cross_attention.pattern")
    lm = gptviz.load("seq2seq")
    expected = lm.trace(source)["blocks.1.cross_attention.pattern"][0, 0, :12, :12].numpy()
    np.testing.assert_allclose(cells(page), expected, atol=1e-6)


def test_the_files_and_the_code_give_what_is_shown(shown: Callable[..., Map]) -> None:
    page = shown("blocks.2.attention.v", head=1).page
    cells(page)

    def made(where: Locator, name: str) -> Any:
        names: dict[str, Any] = {}
        exec(code(page, where), names)
        return names[name]

    numbers = csv_rows(page, panel(page))
    values = np.asarray(made(panel(page), "values"))
    assert values.shape == (6, 14, 32)
    np.testing.assert_allclose([float(row["v"]) for row in numbers], values.ravel(), atol=1e-6)
    assert numbers[33]["token"] == "␣"
    assert numbers[33]["token position"] == "1"

    foot = page.locator(".foot")
    boxes = csv_rows(page, foot)
    parameters = made(foot, "parameters")
    assert [[row["box"], int(row["parameters"])] for row in boxes] == [
        list(row) for row in parameters
    ]
    assert sum(int(row["parameters"]) for row in boxes) == parameter_count(
        gptviz.load("shakespeare").model.config
    )


@pytest.mark.parametrize(
    ("path", "width"),
    [("blocks.2.attention.v", 390), ("blocks.2.attention.pattern", 1280), ("final_norm", 1280)],
)
def test_the_picture_of_a_tensor_has_every_cell_in_its_colour_under_a_heading(
    shown: Callable[..., Map], path: str, width: int
) -> None:
    page = shown(path, width=width).page
    cells(page)
    drawn = saved(page, panel(page))
    assert faults(page, drawn) == []
    said = words(drawn)
    assert said[0].startswith(path)
    assert any("Model: shakespeare" in text for text in said)
    assert any(PROMPT[:10] in text for text in said)
    written = page.locator("table.cells td").all_inner_texts()
    numbers = [text for text in written if text]
    assert [text for text in said if text in numbers][: len(numbers)] == numbers
    colours = page.locator("table.cells td").evaluate_all(
        "all => all.map((one) => getComputedStyle(one).backgroundColor)"
    )
    filled = [
        one.get("fill") for one in ElementTree.fromstring(drawn).iter() if one.tag.endswith("rect")
    ]
    expected = [colour for colour, text in zip(colours, written, strict=True) if text]
    assert [colour for colour in filled if colour in expected] == expected


# What can be read on the map: its words, and how long each bar of a guess is on the page.
ON_THE_MAP = """(stage) => {
    const seen = (one, box) => one.bottom > box.top + 2 && one.top < box.bottom - 2;
    const texts = [...stage.querySelectorAll('*')].filter((one) => [...one.childNodes].some((node) => node.nodeType === 3)
        && one.checkVisibility({ visibilityProperty: true }) && !one.closest('.aloud')
        && (!one.closest('.strip') || seen(one.getBoundingClientRect(), one.closest('.strip').getBoundingClientRect())));
    return texts.map((one) => one.textContent.trim()).filter((text) => text);
}"""


@pytest.mark.parametrize("name", ["shakespeare", "classifier", "seq2seq", "ladder-2"])
def test_the_picture_of_the_map_has_all_its_words_and_bars_under_a_heading(
    shown: Callable[..., Map], name: str
) -> None:
    page = shown(model=name, prompt="the end").page
    before = page.locator(".stage").evaluate(ON_THE_MAP)
    zoom = page.locator(".stage").evaluate("stage => stage.style.zoom")
    drawn = saved(page, page.locator(".foot"))
    assert page.locator(".stage").evaluate("stage => stage.style.zoom") == zoom
    assert faults(page, drawn) == []
    said = "".join("".join(words(drawn)).split())
    assert [text for text in before if "".join(text.split()) not in said] == []
    assert f"Model:{name}" in said
    assert "Prompt:“theend" in said
    red = {"fill": "rgb(204, 51, 17)", "fill-opacity": "1"}  # of the bars of guesses
    wide = [
        float(one.get("width", 0))
        for one in ElementTree.fromstring(drawn).iter()
        if red.items() <= one.attrib.items()
    ]
    bars = page.locator(".guess .fill").evaluate_all(
        "all => all.map((one) => one.getBoundingClientRect().width)"
    )
    wide = [one for one in wide if one > 0.2]
    bars = [bar / float(zoom) for bar in bars if bar > 0.2 * float(zoom)]
    assert len(wide) == len(bars) or len(wide) > 3, "the list of guesses may scroll"
    assert wide == pytest.approx(bars[: len(wide)], abs=0.1)


def test_another_step_of_training_is_shown_in_the_box_that_is_open(standing: Visit) -> None:
    page = standing.go("", model="generator", prompt=PROMPT, step=0, box="logits")
    first = cells(page)
    page.get_by_role("slider", name="Training step").press("End")
    standing.settle()
    expect(panel(page)).to_be_visible()
    expected = gptviz.load("generator").trace(PROMPT)["logits"][0, :12, :12].numpy()
    expect(page.locator("table.cells td").first).to_have_attribute(
        "data-value", re.compile("^" + re.escape(f"{expected[0, 0]:.6f}"[:5]))
    )
    np.testing.assert_allclose(cells(page), expected, atol=1e-5)
    assert np.abs(first - expected).max() > 1e-2
    assert query(page)["box"] == ["logits"]


# Of every text of the drawing: what it says, how large it is on the page, and by how much it sticks
# out of its box.
TEXTS = """(stage) => {
    const zoom = Number(stage.style.zoom);
    return [...stage.querySelectorAll('text, .heading, .strip, .guess')].filter((e) => e.textContent.trim()).map((text) => {
        const own = text.getBoundingClientRect();
        const box = text.closest('.held')?.querySelector('rect.edge')?.getBoundingClientRect();
        const out = box ? Math.max(box.left - own.left, own.right - box.right, box.top - own.top, own.bottom - box.bottom) : 0;
        return [text.textContent, zoom * parseFloat(getComputedStyle(text).fontSize), out];
    });
}"""


# Of the drawing, pairs of texts or boxes that lie on each other, and texts that lie on a box they
# do not belong to or stick out.
COLLISIONS = """(drawing) => {
    const at = (e) => e.getBoundingClientRect(), frame = at(drawing);
    const name = (e) => e.textContent || e.closest('.held').dataset.path;
    const meet = (a, b, high) => Math.min(at(a).right, at(b).right) - Math.max(at(a).left, at(b).left) > 1 &&
        Math.min(at(a).bottom, at(b).bottom) - Math.max(at(a).top, at(b).top) > high;
    const texts = [...drawing.querySelectorAll('text')].filter((e) => e.textContent.trim());
    const boxes = [...drawing.querySelectorAll('rect.edge')];
    const named = (a, some) => some.map((b) => [name(a), name(b)]);
    const pairs = (some, high) =>
        some.flatMap((a, i) => named(a, some.slice(i + 1).filter((b) => meet(a, b, high))));
    const isStranger = (a, b) => b.closest('.held') !== a.closest('.held');
    const strangers = texts.flatMap((a) => named(a, boxes.filter((b) => isStranger(a, b) && meet(a, b, 3))));
    const cut = texts.filter((e) => at(e).left < frame.left - 1 || at(e).right > frame.right + 1).map((e) => [name(e), 'cut']);
    return [...pairs(texts, 3), ...pairs(boxes, 1), ...strangers, ...cut];
}"""


@pytest.mark.parametrize("width", [390, 820])
def test_every_label_is_large_enough_to_read_and_has_its_place_to_itself(
    shown: Callable[..., Map], width: int
) -> None:
    for name in ("shakespeare", "generator", "classifier", "seq2seq", "induction", "ladder-2"):
        page = shown(model=name, prompt="the end", width=width).page
        expect(box(page, "embed")).to_be_visible()
        found = page.locator(".stage").evaluate(TEXTS)
        assert len(found) > 15
        for text, size, out in found:
            assert size >= 11.99, (name, text)
            assert out <= 2, (name, text)
        assert page.locator(".drawing").evaluate(COLLISIONS) == [], name


def test_the_bars_of_guesses_begin_and_end_together(shown: Callable[..., Map]) -> None:
    for model in ("bpe", "classifier"):
        page = shown(model=model, prompt="the end").page
        expect(page.locator('[data-guess="0"]')).to_be_visible()
        places = [box_of(track) for track in page.locator(".guess .track").all()]
        assert len(places) > 1
        assert len({(round(place["x"], 1), round(place["width"], 1)) for place in places}) == 1
        assert places[0]["width"] > 25


def test_a_guess_that_is_clicked_is_exactly_one_more_token_and_the_box_stays_open(
    standing: Visit,
) -> None:
    lm = gptviz.load("shakespeare")
    page = opened(standing, "blocks.2.attention.q")
    cells(page)
    standing.settle()
    ids = lm.encode(PROMPT).tolist()
    order = lm.model(lm.encode(PROMPT)[None])[0, -1].argsort(descending=True).tolist()
    page.locator('[data-guess="1"]').evaluate("e => { for (let i = 0; i < 20; i++) e.click(); }")
    text = lm.tokenizer.decode([*ids, order[1]])
    typed = page.get_by_role("textbox", name=re.compile("Prompt"))
    expect(typed).to_have_value(text)
    standing.settle()
    expect(typed).to_have_value(text)
    assert lm.encode(text).tolist() == [*ids, order[1]]
    expect(page.get_by_role("button", name=f"{len(ids) + 1} tokens")).to_be_visible()
    expect(panel(page)).to_contain_text("blocks.2.attention.q")
    expected = lm.trace(text)["blocks.2.attention.q"][0, 0, :12, :12].numpy()
    np.testing.assert_allclose(cells(page), expected, atol=1e-6)


def test_nothing_fades_where_the_reader_wants_no_motion(shown: Callable[..., Map]) -> None:
    page = shown().page
    fading = """() => [...document.querySelectorAll('*')].flatMap((one) => [...(one.shadowRoot?.querySelectorAll('*') ?? [])])
        .filter((one) => getComputedStyle(one).transitionDuration !== '0s').length"""
    assert page.evaluate(fading) == 0
    page.emulate_media(reduced_motion="no-preference")
    assert page.evaluate(fading) > 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_text_of_a_pattern_can_be_read(shown: Callable[..., Map], dark: bool) -> None:
    page = shown("blocks.2.attention.pattern", dark=dark).page
    cells(page)
    assert faint(page) == []


def test_every_pixel_of_a_thumbnail_has_the_colour_of_its_share(shown: Callable[..., Map]) -> None:
    page = shown(block=1).page
    patterns = (
        gptviz.load("shakespeare").trace(PROMPT)["blocks.1.attention.pattern"][0].numpy().copy()
    )
    patterns[:, ~np.tri(len(PROMPT), dtype=bool)] = np.nan
    check_pixels(
        page.locator("canvas[data-of='blocks.1.attention.pattern']").nth(2),
        patterns[2],
        theme.PATTERN,
    )
    check_pixels(
        page.locator("canvas.thumbnail:not([data-of])").nth(1), patterns.mean(0), theme.PATTERN
    )
