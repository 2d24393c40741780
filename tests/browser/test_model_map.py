"""The map of the model in a real browser: its numbers are those of a pass, it answers by itself, and a link reopens it."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, WebSocketRoute, expect

import gptviz
from gptviz.interp.anatomy import anatomy
from gptviz.model import parameter_count
from gptviz.runs import checkpoints
from gptviz.text import CharTokenizer
from tests.browser.machinery import HOSTILE, ROOT, Server, Visit, check_on_a_phone, visiting
from tests.tiny import scrambled, tiny

pytestmark = pytest.mark.browser

PROMPT = "O Romeo, Romeo"
SHIPPED = sorted(folder.name for folder in checkpoints.BUNDLED.iterdir() if (folder / "config.json").is_file())


def box(page: Page, path: str) -> Locator:
    return page.locator(f'[data-box="{path}"]')


def panel(page: Page) -> Locator:
    return page.locator("section.panel")


def cells(page: Page) -> np.ndarray:
    """The numbers of the page of a tensor that is shown, NaN where a cell is blank."""
    expect(page.locator("table.cells")).to_be_visible()
    rows = page.evaluate(
        """() => {
            const inside = (e) => [e, ...(e.shadowRoot ? all(e.shadowRoot) : [])];
            const all = (root) => [...root.querySelectorAll('*')].flatMap(inside);
            const table = all(document).find((e) => e.matches('table.cells'));
            const number = (cell) => cell.textContent ? Number(cell.dataset.value) : null;
            return [...table.rows].slice(1).map((row) => [...row.querySelectorAll('td')].map(number));
        }"""
    )
    return np.array(rows, float)


def opened(visit: Visit, path: str, **query: object) -> Page:
    page = visit.open("", **{"prompt": PROMPT, **query, "box": path})
    expect(panel(page)).to_be_visible()
    return page


def idle(page: Page) -> None:
    page.wait_for_timeout(1_200)


def query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlparse(page.url).query)


def test_the_numbers_of_an_opened_box_are_those_of_the_pass(visit: Visit) -> None:
    trace = gptviz.load("shakespeare").trace(PROMPT)
    page = opened(visit, "blocks.2.attention.q", head=3)
    np.testing.assert_allclose(cells(page), trace["blocks.2.attention.q"][0, 3, :12, :12].numpy(), atol=1e-6)
    page.get_by_role("button", name="next columns").click()
    np.testing.assert_allclose(cells(page), trace["blocks.2.attention.q"][0, 3, :12, 12:24].numpy(), atol=1e-6)
    page.get_by_role("button", name="next rows").click()
    np.testing.assert_allclose(cells(page), trace["blocks.2.attention.q"][0, 3, 12:, 12:24].numpy(), atol=1e-6)
    page.get_by_role("combobox", name="head").select_option("5")
    np.testing.assert_allclose(cells(page), trace["blocks.2.attention.q"][0, 5, 12:, 12:24].numpy(), atol=1e-6)


def test_a_pattern_is_blank_where_the_mask_hides(visit: Visit) -> None:
    pattern = gptviz.load("shakespeare").trace(PROMPT)["blocks.4.attention.pattern"][0, 1, :12, :12].numpy().copy()
    pattern[np.triu_indices(12, 1)] = np.nan
    page = opened(visit, "blocks.4.attention.pattern", head=1)
    np.testing.assert_allclose(cells(page), pattern, atol=1e-6)
    expect(page.locator("p.facts")).to_contain_text("max1.00")


def test_weights_are_the_rows_of_the_matrix_that_the_box_uses(visit: Visit) -> None:
    page = opened(visit, "blocks.1.attention.k")
    panel(page).locator('[data-piece="1"]').click()
    weight = gptviz.load("shakespeare").model.get_parameter("blocks.1.attention.qkv.weight").detach()
    expect(page.locator('[data-piece="1"]')).to_have_attribute("aria-pressed", "true")
    expect(page.locator("table.cells th[scope=row]").first).to_contain_text("h0·0")
    np.testing.assert_allclose(cells(page), weight[192:204, :12].numpy(), atol=1e-6)
    assert query(page)["tensor"] == ["1"]


def test_what_is_open_is_in_the_address_and_a_link_reopens_it(visit: Visit) -> None:
    page = visit.open("", prompt=PROMPT)
    box(page, "blocks.2.mlp.neurons").click()
    expect(panel(page)).to_contain_text("max(0, up)²")
    expect(page.locator("table.cells")).to_be_visible()
    assert query(page) == {"prompt": [PROMPT], "box": ["blocks.2.mlp.neurons"]}
    before = cells(page)
    page.goto(page.url)
    visit.settle()
    expect(panel(page)).to_contain_text("blocks.2.mlp.neurons")
    np.testing.assert_array_equal(cells(page), before)
    # Another prompt, by way of the server, leaves it open.
    typed = page.get_by_role("textbox", name=re.compile("Prompt"))
    typed.fill("Juliet")
    typed.press("Control+Enter")
    page.wait_for_url(re.compile("prompt=Juliet"))
    visit.settle()
    expect(page.locator("table.cells th[scope=row]").first).to_contain_text("J")
    assert query(page)["box"] == ["blocks.2.mlp.neurons"]
    expected = gptviz.load("shakespeare").trace("Juliet")["blocks.2.mlp.neurons"][0, :12, :12].numpy()
    np.testing.assert_allclose(cells(page), expected, atol=1e-6)


@pytest.mark.parametrize("path", ["nothing", "blocks.99.attention.q", "<img src=x>", "blocks.0.attention", "__proto__"])
def test_a_box_that_the_model_lacks_is_not_opened(visit: Visit, path: str) -> None:
    page = visit.open("", prompt=PROMPT, box=path, tensor="x", head="-1", block="7e9")
    expect(box(page, "embed")).to_be_visible()
    expect(panel(page)).to_be_hidden()
    assert "box" not in query(page)


def test_opening_folding_and_hovering_do_not_wait_for_the_server(visit: Visit) -> None:
    page = opened(visit, "blocks.2.attention.q")
    cells(page)
    idle(page)
    before = len(visit.sent)
    for name in ("k", "v", "pattern", "q"):
        box(page, f"blocks.2.attention.{name}").hover()
    expect(page.locator(".status")).to_contain_text("q = ")
    page.get_by_role("button", name="Close").click()
    expect(panel(page)).to_be_hidden()
    box(page, "blocks.2.attention.q").click()  # its numbers are still here
    np.testing.assert_equal(cells(page).shape, (12, 12))
    page.get_by_role("button", name="Close").click()
    page.locator('[data-block="blocks.4"]').click()
    expect(box(page, "blocks.4.attention.q")).to_be_visible()
    expect(box(page, "blocks.2.attention.q")).to_have_count(0)
    idle(page)
    assert len(visit.sent) == before
    assert query(page)["block"] == ["4"]
    # What is not here yet is said at once, but for its numbers.
    box(page, "blocks.4.mlp.up").click()
    expect(panel(page)).to_contain_text("W_upᵀ")
    cells(page)
    assert len(visit.sent) > before


def test_the_keyboard_walks_along_the_stream_and_opens_boxes_and_blocks(visit: Visit) -> None:
    page = visit.open("", prompt=PROMPT)
    box(page, "embed").focus()
    path = """(function inside(e) {
        return e.shadowRoot ? inside(e.shadowRoot.activeElement) : e.dataset.path
    })(document.activeElement)"""
    walked = ["embed"]
    for _ in range(40):
        page.keyboard.press("ArrowRight")
        walked.append(page.evaluate(path))
        if walked[-1] == "logits":
            break
    inner = [one.path for one in anatomy(gptviz.load("shakespeare").model.config, 4).boxes if one.path.startswith("blocks.2.")]
    blocks = [[f"blocks.{i}"] if i != 2 else ["blocks.2", *inner] for i in range(6)]
    assert walked == ["embed", *(one for block in blocks for one in block), "final_norm", "logits"]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(path) == "guess 1"
    page.keyboard.press("Home")
    assert page.evaluate(path) == "ids"
    box(page, "blocks.2.attention.z").focus()
    page.keyboard.press("Enter")
    expect(panel(page)).to_contain_text("blocks.2.attention.z")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(path) == "blocks.3.attention.z"
    expect(panel(page)).to_contain_text("blocks.3.attention.z")
    cells(page)
    assert page.evaluate(path) == "blocks.3.attention.z", "the focus stays while numbers arrive"
    page.keyboard.press("Escape")
    expect(panel(page)).to_be_hidden()
    assert page.evaluate(path) == "blocks.3.attention.z"
    focusable = page.locator('.stage [tabindex="0"]')
    expect(focusable).to_have_count(1)


def test_a_guess_that_is_clicked_is_exactly_one_more_token(visit: Visit) -> None:
    lm = gptviz.load("shakespeare")
    page = visit.open("", prompt=PROMPT)
    ids = lm.encode(PROMPT).tolist()
    order = lm.model(lm.encode(PROMPT)[None])[0, -1].argsort(descending=True).tolist()
    page.locator('[data-guess="1"]').click()
    typed = page.get_by_role("textbox", name=re.compile("Prompt"))
    expect(typed).to_have_value(lm.tokenizer.decode([*ids, order[1]]))
    assert lm.encode(typed.input_value()).tolist() == [*ids, order[1]]
    expect(page.get_by_role("button", name=f"{len(ids) + 1} tokens")).to_be_visible()


def test_a_link_to_a_page_keeps_the_session_and_says_block_and_head(visit: Visit) -> None:
    page = opened(visit, "blocks.3.attention.pattern", head=2)
    page.evaluate("window.same = true")
    way = page.get_by_role("link", name="Pattern, block 3, head 2: see it on the page Attention")
    expect(way).to_be_visible()
    page.get_by_role("combobox", name="head").select_option("4")
    way = page.get_by_role("link", name="Pattern, block 3, head 4: see it on the page Attention")
    asked = parse_qs(urlparse(way.get_attribute("href") or "").query)
    assert asked == {"prompt": [PROMPT], "block": ["3"], "head": ["4"]}
    way.click()
    expect(page).to_have_title("Attention · gptviz")
    visit.settle()
    assert page.evaluate("window.same") is True, "the page was not loaded anew"
    assert query(page)["prompt"] == [PROMPT]
    assert query(page)["block"] == ["3"]


@pytest.mark.parametrize("name", SHIPPED)
def test_the_map_of_every_shipped_model_opens_all_its_boxes(visit: Visit, name: str) -> None:
    page = visit.open("", model=name)
    config = checkpoints.read_config(checkpoints.BUNDLED / name)
    drawn = anatomy(config, 4, 4)
    last = max(0, min(2, config.n_layer - 1))
    shown = [one.path for one in drawn.boxes if ".blocks." not in f".{one.path}" or one.path.startswith(f"blocks.{last}.")]
    for path in shown:
        expect(box(page, path), path).to_have_count(1)
    expect(page.locator(".status")).to_contain_text(f"{parameter_count(config):,} parameters")
    for path in dict.fromkeys((shown[1], shown[len(shown) // 2], shown[-1])):
        box(page, path).click()
        expect(panel(page)).to_contain_text(path)
        found = drawn.box(path)
        assert found is not None
        expect(panel(page).locator(".lines")).to_contain_text(found.lines.text.splitlines()[0].strip())
        if found.pieces:
            cells(page)


ODD = {
    "twelve": {"n_layer": 12, "n_head": 12, "d_model": 48},
    "forty": {"n_layer": 40, "residual": "norm-only", "positions": "relative"},
    "bare": {"residual": "none", "positions": "alibi", "qk_norm": True, "norm_gain": False},
    "thin": {"residual": "plain", "n_head": 1, "d_head": 6, "d_mlp": 0, "mask": "full", "final_norm": False},
    "turned": {"residual": "post-norm", "positions": "rotary", "n_head": 24, "d_head": 2, "norm": "rmsnorm"},
}


@pytest.mark.parametrize("name", ODD)
def test_other_architectures_are_drawn_within_the_page(visit: Visit, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("GPTVIZ_HOME", str(visit.server.log.parent / "home"))
    tokenizer = CharTokenizer.from_text(PROMPT)
    checkpoints.save(name, scrambled(tiny(vocab_size=tokenizer.vocab_size, context_length=16, **ODD[name])), tokenizer, {})
    config = checkpoints.read_config(checkpoints.find(name))
    page = visit.open("", model=name, prompt=PROMPT, block=1)
    for path in [one.path for one in anatomy(config, len(PROMPT)).boxes if one.path.startswith("blocks.1.")]:
        place = box(page, path).bounding_box()
        assert place is not None, path
        box(page, path).click(force=True)
        expect(panel(page)).to_contain_text(path)
    frame = page.locator(".frame")
    assert frame.evaluate("e => e.scrollWidth <= e.clientWidth + 1")
    page.get_by_role("button", name="Close").click()
    last = config.n_layer - 1
    page.locator(f'[data-block="blocks.{last}"]').click()
    expect(box(page, f"blocks.{last}.attention.q")).to_be_visible()
    assert 2 <= page.locator("[data-block]").count() <= 16


def test_an_encoder_decoder_has_two_rows_and_the_memory_reaches_every_block(visit: Visit) -> None:
    page = visit.open("", model="seq2seq", block="encoder.1")
    expect(box(page, "encoder.blocks.1.attention.q")).to_be_visible()
    above, below = box(page, "encoder.embed").bounding_box(), box(page, "embed").bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] + above["height"] < below["y"]
    page.locator('[data-block="blocks.1"]').click()
    box(page, "blocks.1.cross_attention.pattern").click()
    lm = gptviz.load("seq2seq")
    source = page.get_by_role("textbox", name=re.compile("Prompt")).input_value()
    expected = lm.trace(source)["blocks.1.cross_attention.pattern"][0, 0, :12, :12].numpy()
    np.testing.assert_allclose(cells(page), expected, atol=1e-6)


def test_the_files_and_the_code_give_what_is_shown(visit: Visit, tmp_path: Path) -> None:
    page = opened(visit, "blocks.2.attention.v", head=1)
    cells(page)

    def table(where: Locator) -> list[dict[str, str]]:
        where.get_by_role("button", name="Numbers").click()
        with page.expect_download() as download:
            page.get_by_role("button", name="Download CSV").click()
        download.value.save_as(tmp_path / "numbers.csv")
        page.get_by_role("dialog").get_by_role("button", name="Close").click()
        return list(csv.DictReader(io.StringIO((tmp_path / "numbers.csv").read_text())))

    def made(where: Locator, more: str) -> object:
        where.get_by_role("button", name="Code").click()
        lines = page.get_by_role("dialog").locator("pre").inner_text()
        page.get_by_role("dialog").get_by_role("button", name="Close").click()
        ran = subprocess.run([sys.executable, "-c", f"{lines}\n{more}"], cwd=ROOT, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    numbers = table(panel(page))
    values = np.array(made(panel(page), "import json; print(json.dumps(values.tolist()))"))
    assert values.shape == (6, 14, 32)
    np.testing.assert_allclose([float(row["v"]) for row in numbers], values.ravel(), atol=1e-6)
    assert numbers[33]["token"] == "␣"
    assert numbers[33]["token position"] == "1"

    foot = page.locator(".foot")
    boxes = table(foot)
    parameters = made(foot, "import json; print(json.dumps(parameters))")
    assert [[row["box"], int(row["parameters"])] for row in boxes] == parameters
    assert sum(int(row["parameters"]) for row in boxes) == parameter_count(gptviz.load("shakespeare").model.config)


def test_the_pictures_stand_alone(visit: Visit, tmp_path: Path) -> None:
    page = opened(visit, "blocks.2.attention.v")
    cells(page)
    for where in (page.locator(".foot"), panel(page)):
        for kind in ("SVG", "PNG"):
            with page.expect_download() as download:
                where.get_by_role("button", name=kind).click()
            file = tmp_path / f"map.{kind.lower()}"
            download.value.save_as(file)
            if kind == "SVG":
                drawn = file.read_text()
                assert "var(--" not in drawn
                assert "class=" not in drawn
                assert "shakespeare" in drawn
            else:
                assert file.read_bytes().startswith(b"\x89PNG")
                assert file.stat().st_size > 10_000


@pytest.mark.parametrize("prompt", HOSTILE)
def test_a_hostile_prompt_stays_text(visit: Visit, prompt: str) -> None:
    page = visit.open("", model="bpe", prompt=prompt, box="embed")
    cells(page)
    tokens = page.locator(".strip .chip").all_inner_texts()
    lm = gptviz.load("bpe")
    ids = lm.seen(lm.encode(prompt)).tolist()
    assert tokens == [lm.tokenizer.label(i) for i in ids]
    assert page.title() != "pwned"
    assert page.locator("img[src=x]").count() == 0
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 1_280


@pytest.mark.alone
def test_a_hundred_fast_interactions_leave_neither_errors_nor_memory(visit: Visit) -> None:
    page = opened(visit, "blocks.2.attention.q")
    expected = cells(page)

    def hundred() -> None:
        page.evaluate(
            """async () => {
                const inside = (e) => [e, ...(e.shadowRoot ? all(e.shadowRoot) : [])];
                const all = (root) => [...root.querySelectorAll('*')].flatMap(inside);
                const stage = all(document).find((e) => e.matches('.stage'));
                for (let i = 0; i < 50; i++) {
                    const boxes = [...stage.querySelectorAll('[data-box]')], blocks = [...stage.querySelectorAll('[data-block]')];
                    for (const one of [boxes[(7 * i) % boxes.length], blocks[(5 * i) % blocks.length]]) {
                        one.dispatchEvent(new PointerEvent('pointerover', { bubbles: true }));
                        one.dispatchEvent(new MouseEvent('click', { bubbles: true }));
                    }
                    await new Promise((done) => setTimeout(done, 5));
                }
            }"""
        )
        page.wait_for_timeout(2_000)
        visit.settle()
        if panel(page).is_visible():
            page.get_by_role("button", name="Close").click()
        page.locator('[data-block="blocks.2"]').click()
        box(page, "blocks.2.attention.q").click()
        np.testing.assert_allclose(cells(page), expected, atol=1e-6)
        visit.settle()

    hundred()
    before = visit.memory()
    hundred()
    after = visit.memory()
    assert after["nodes"] < before["nodes"] * 1.2 + 500
    assert after["listeners"] < before["listeners"] * 1.2 + 50
    assert after["heap"] < before["heap"] * 1.2 + 3e6


def test_while_training_is_played_the_map_shows_every_step(visit: Visit) -> None:
    page = visit.open("", model="generator", prompt=PROMPT, step=0, box="logits")
    first = cells(page)
    page.get_by_role("slider", name="Training step").press("End")
    visit.settle()
    expect(panel(page)).to_be_visible()
    page.wait_for_timeout(1_000)
    expected = gptviz.load("generator").trace(PROMPT)["logits"][0, :12, :12].numpy()
    np.testing.assert_allclose(cells(page), expected, atol=1e-5)
    assert np.abs(first - expected).max() > 1e-2
    assert query(page)["box"] == ["logits"]


# Of every text of the drawing: what it says, how large it is on the page, and by how much it sticks out of its box.
TEXTS = """() => {
    const inside = (e) => [e, ...(e.shadowRoot ? all(e.shadowRoot) : [])];
    const all = (root) => [...root.querySelectorAll('*')].flatMap(inside);
    const stage = all(document).find((e) => e.matches('.stage'));
    const zoom = Number(stage.style.zoom);
    return [...stage.querySelectorAll('text, .heading, .strip, .guess')].filter((e) => e.textContent.trim()).map((text) => {
        const own = text.getBoundingClientRect();
        const box = text.closest('.held')?.querySelector('rect.edge')?.getBoundingClientRect();
        const out = box ? Math.max(box.left - own.left, own.right - box.right, box.top - own.top, own.bottom - box.bottom) : 0;
        return [text.textContent, zoom * parseFloat(getComputedStyle(text).fontSize), out];
    });
}"""


@pytest.mark.parametrize("name", ["shakespeare", "generator", "classifier", "seq2seq", "induction", "ladder-2"])
def test_every_label_is_large_enough_to_read_and_stays_in_its_box(visit: Visit, name: str) -> None:
    page = visit.open("", model=name)
    expect(box(page, "embed")).to_be_visible()
    found = page.evaluate(TEXTS)
    assert len(found) > 15
    for text, size, out in found:
        assert size >= 9.9, text
        assert out <= 2, text


def test_the_bars_of_guesses_begin_and_end_together(visit: Visit) -> None:
    for model in ("bpe", "classifier"):
        page = visit.open("", model=model)
        expect(page.locator('[data-guess="0"]')).to_be_visible()
        places = [track.bounding_box() or {} for track in page.locator(".guess .track").all()]
        assert len(places) > 1
        assert len({(round(place["x"], 1), round(place["width"], 1)) for place in places}) == 1
        assert places[0]["width"] > 25


def test_a_question_that_was_lost_is_asked_again(visit: Visit) -> None:
    losing = False

    def pass_on(browser_side: WebSocketRoute) -> None:
        server_side = browser_side.connect_to_server()
        browser_side.on_message(lambda message: None if losing else server_side.send(message))

    visit.page.route_web_socket(re.compile("_stcore/stream"), pass_on)
    page = visit.open("", prompt=PROMPT)
    idle(page)
    losing = True
    box(page, "blocks.2.attention.q").click()
    expect(panel(page)).to_contain_text("Reading the numbers")
    idle(page)
    losing = False
    page.wait_for_timeout(5_000)  # as long as an answer is waited for
    page.get_by_role("button", name="Close").click()
    box(page, "blocks.2.attention.q").click()
    assert cells(page).shape == (12, 12)


def test_many_quick_clicks_on_a_guess_take_it_once_and_the_box_stays_open(visit: Visit) -> None:
    page = opened(visit, "blocks.2.attention.q")
    cells(page)
    idle(page)
    guess = page.locator('[data-guess="0"]')
    first = (guess.get_attribute("title") or "").removeprefix("Append ").removesuffix(" to the prompt")
    guess.evaluate("e => { for (let i = 0; i < 20; i++) e.click(); }")
    page.wait_for_url(lambda url: parse_qs(urlparse(url).query).get("prompt") != [PROMPT])
    idle(page)
    visit.settle()
    [text] = query(page)["prompt"]
    assert len(text) == len(PROMPT) + 1
    assert first in (text[-1], "space", "line break")
    expect(panel(page)).to_contain_text("blocks.2.attention.q")
    expected = gptviz.load("shakespeare").trace(text)["blocks.2.attention.q"][0, 0, :12, :12].numpy()
    np.testing.assert_allclose(cells(page), expected, atol=1e-6)


def test_on_a_phone_the_map_scrolls_within_its_frame(browser: Browser, server: Server) -> None:
    check_on_a_phone(browser, server, "", box="blocks.2.attention.q")
    check_on_a_phone(browser, server, "", model="seq2seq", box="memory")


def test_in_the_dark_the_map_is_drawn_on_the_dark(browser: Browser, server: Server) -> None:
    with visiting(browser, server, dark=True) as visit:
        page = opened(visit, "blocks.2.attention.pattern")
        fill = box(page, "blocks.2.attention.pattern").locator("rect").first.get_attribute("fill") or ""
        assert sum(map(int, re.findall(r"\d+", fill))) < 200
        cells(page)
