"""The attention explorer in a real browser: what is on screen equals the tensors, and the server is
not asked for it.

What leads from a payload to the screen is tested on a page of its own (`shown`), what takes the
server on the app (`visit`).
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

import gptviz
from gptviz.components import attention_explorer as explorer
from gptviz.components.attention_explorer import read_block, read_switch
from gptviz.components.kit import pack, unpack
from gptviz.figures.kit import theme
from gptviz.figures.kit.format import percent
from gptviz.runs import checkpoints
from gptviz.text import CharTokenizer
from gptviz.text.tokenizers.special_tokens import SpecialTokensTokenizer
from gptviz.ui.shell.subject.models import Subject, model_key
from gptviz.ui.views import attention as attention_view
from tests.browser.contrast import faint
from tests.browser.files import code, csv_rows
from tests.browser.machinery import FRAMES, HOSTILE, Server, Visit, box_of
from tests.browser.mounting import Mounted
from tests.browser.pictures import faults, saved, words
from tests.browser.pixels import check_pixels
from tests.tiny import scrambled, tiny

pytestmark = pytest.mark.browser

PROMPT = "the quick brown fox"  # in two columns
# as a text
LONG = "the quick brown fox jumps over the lazy dog and the dog does not mind it at all"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose home has models of every shape that the view distinguishes."""
    folder = tmp_path_factory.mktemp("heads")
    root = folder / "home" / "checkpoints"
    letters = CharTokenizer("".join(HOSTILE) + LONG)
    marked = SpecialTokensTokenizer(CharTokenizer("abcdefghijklmnopqrstuvwxyz "))
    small = {"vocab_size": letters.vocab_size, "context_length": 128, "d_model": 24}
    for name, changes in {
        "writer": {"positions": "learned"},
        "far": {"positions": "relative"},
        "open": {"mask": "full"},
        "capped": {
            "score_cap": 1.5,
            "score_scale": 0.7,
            "n_kv_head": 1,
            "window": 6,
            "window_pattern": "fw",
        },
        "many": {"n_layer": 12, "n_head": 12, "d_model": 96, "context_length": 256},
    }.items():
        checkpoints.save(name, scrambled(tiny(**small | changes)), letters, {}, root=root)
    pair = tiny(
        vocab_size=marked.vocab_size,
        padding=marked.padding,
        n_encoder_layer=2,
        d_model=24,
        context_length=40,
        n_layer=2,
    )
    checkpoints.save("pair", scrambled(pair), marked, {}, root=root)
    return folder


class Explorer:
    """What the Attention page gives the explorer of a model and a text, and the view that shows it.

    Attributes:
        view: the page it is mounted on.
        block: the block that travels where all are too many.
    """

    def __init__(
        self,
        mounted: Callable[..., Mounted],
        monkeypatch: pytest.MonkeyPatch,
        prompt: str,
        **choice: Any,
    ) -> None:
        self.monkeypatch = monkeypatch
        self.model = choice.pop("model", "writer")
        self.stack = choice.pop("stack", "decoder")
        self.prompt = prompt
        self.block = 0
        self.view = mounted("attention_explorer", self.payload(), **choice)
        self.page = self.view.page
        self.page.evaluate(FRAMES)

    def payload(self) -> bytes:
        """The bytes that the page sends."""
        lm = gptviz.load(self.model)
        is_pair = lm.model.config.kind == "encoder-decoder"
        ids = lm.source(self.prompt) if is_pair else lm.seen(lm.encode(self.prompt))
        key = model_key(self.model, "cpu")
        subject = Subject(
            key, lm, self.prompt, lm.tokenizer.encode(self.prompt), tuple(ids.tolist())
        )
        sent: list[bytes] = []
        with self.monkeypatch.context() as patch:
            patch.setattr(explorer, "attention_explorer", lambda packed, **_: sent.append(packed))
            patch.setattr(attention_view, "_pack_patterns", self.packed)
            read = attention_view.stack_read(subject, self.stack)
            attention_view.explore(
                subject, read, attention_view.code(subject, self.stack), {"block": 1, "head": 1}
            )
        [packed] = sent
        return packed

    def packed(
        self, key: Any, read: Any, header: str, _: int, words: tuple[range, ...] | None
    ) -> tuple[bytes, Any]:
        heads = attention_view.heads(key, read, self.block, words)
        return explorer.payload(heads, json.loads(header)), explorer.address(heads)

    def show(self, **header: Any) -> None:
        """The payload again, its header changed."""
        before, arrays = unpack(self.payload())
        self.view.show(pack({**before, **header}, **arrays))
        self.page.evaluate(FRAMES)


@pytest.fixture
def shown(
    mounted: Callable[..., Mounted], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Explorer]:
    """Shows a model's heads: `shown(model="far", block=1)`, what is no model, prompt or stack being
    in the page's address.
    """
    monkeypatch.setenv("GPTVIZ_HOME", str(folder / "home"))

    def show(prompt: str = PROMPT, **choice: Any) -> Explorer:
        return Explorer(mounted, monkeypatch, prompt, **choice)

    return show


@pytest.fixture(scope="module")
def server(server: Server, folder: Path) -> Server:
    """The server, with the same models in its home."""
    shutil.copytree(folder / "home" / "checkpoints", server.checkpoints, dirs_exist_ok=True)
    return server


def load(folder: Path, name: str) -> Any:
    return gptviz.load(folder / "home" / "checkpoints" / name)


def opened(visit: Visit, **query: object) -> Page:
    page = visit.open("attention", **{"model": "writer", "prompt": PROMPT} | query)
    page.locator(".head[aria-pressed=true]").first.wait_for()
    page.evaluate(FRAMES)
    return page


def chips(page: Page, side: str = "key") -> Locator:
    return page.locator(f".tokens .chip[data-side={side}], .tokens .chip[data-side=both]")


# A shade is opaque by 0.05 for nothing and by 0.65 for the end of the scale. The view rounds that
# to a thousandth, the browser to one of 255: a place on the scale differs from its number by this
# at most.
FAINTEST = 0.05
RANGE = 0.6
STEP = (0.0005 + 0.5 / 255) / RANGE + 1e-6


def weights(page: Page, side: str = "key") -> np.ndarray:
    """The place of each chip of a side on the scale [token], or of several heads [token, head], by
    the shades it is drawn in; NaN where it has none.
    """
    grounds = chips(page, side).evaluate_all(
        """chips => chips.map((chip) => {
            const stripes = (image) => image.match(/rgba?\\([^)]*\\)/g).filter((_, i) => i % 2);  // each begins and ends
            const { backgroundImage, backgroundColor } = getComputedStyle(chip);
            return backgroundImage === 'none' ? [backgroundColor] : stripes(backgroundImage);
        })"""
    )
    most = max(map(len, grounds))  # what is masked has one ground, however many heads are shown
    shares = np.array(
        [[share_of(shade) for shade in shades * (most // len(shades))] for shades in grounds]
    )
    return shares[:, 0] if most == 1 else shares


def share_of(shade: str) -> float:
    """The place on the scale that a shade stands for."""
    *_, opaque = [float(number) for number in re.fullmatch(r"rgba\((.*)\)", shade)[1].split(",")]
    return (round(255 * opaque) / 255 - FAINTEST) / RANGE if opaque else np.nan


def logarithmic(values: Any) -> np.ndarray:
    """The places of shares of the end on the scale of "Log colours", which begins at 0.1 %."""
    return 1 + np.log10(np.maximum(np.asarray(values), 0.001)) / 3


def attention(lm: Any, prompt: str, block: int, head: int, prefix: str = "blocks") -> np.ndarray:
    values = lm.trace(prompt, ["*"])[f"{prefix}.{block}.attention.pattern"][0, head].numpy().copy()
    if lm.model.config.mask == "causal" and prefix == "blocks":
        values[np.triu_indices(len(values), 1)] = np.nan
    return values


def choose(page: Page, block: int, head: int, **options: Any) -> None:
    page.locator(f".head[data-block='{block}'][data-head='{head}']").click(**options)
    page.evaluate(FRAMES)


def test_a_token_under_the_pointer_shows_its_row_by_shades_and_lines_and_as_key_its_column(
    shown: Callable[..., Explorer], folder: Path
) -> None:
    page = shown(block=1, head=2).page
    expected = attention(load(folder, "writer"), PROMPT, 1, 2)
    row = page.locator(".tokens").evaluate(
        "(tokens) => parseFloat(tokens.style.getPropertyValue('--row'))"
    )
    for i in (0, 7, 18):
        chips(page, "query").nth(i).hover()
        page.evaluate(FRAMES)
        np.testing.assert_allclose(weights(page, "key"), expected[i], rtol=0, atol=STEP)
        paths = page.locator(".lines path").evaluate_all(
            "(paths) => paths.map((path) => path.getAttribute('d'))"
        )
        ends = [
            [float(points[at]) / row for at in (1, -1)]
            for points in (re.findall(r"[\d.]+", path) for path in paths)
        ]
        assert ends == [
            pytest.approx([i + 0.5, key + 0.5]) for key in np.flatnonzero(expected[i] >= 0.01)
        ]
    assert page.locator(".column.key .share").all_inner_texts() == [
        percent(share) for share in expected[18]
    ]
    for j in (0, 9):
        chips(page, "key").nth(j).hover()
        page.evaluate(FRAMES)
        np.testing.assert_allclose(weights(page, "query"), expected[:, j], rtol=0, atol=STEP)


def quantities(lm: Any, prompt: str, block: int) -> dict[str, np.ndarray]:
    """What the explorer can show of a block, by the name of its button [head, query, key]: NaN
    where a query must not look.
    """
    trace = lm.trace(prompt)
    attention = lm.model.blocks[block].attention
    every = [
        trace[f"blocks.{b}.attention.pattern"][0].numpy().astype(np.float64)
        for b in range(block + 1)
    ]
    pattern = every[block]
    tokens = len(every[block][0])
    moved = np.empty((len(pattern), tokens))
    for head, values in enumerate(trace[f"blocks.{block}.attention.v"][0].numpy()):
        output = attention.output.weight.detach().numpy()[
            :, head * values.shape[1] : (head + 1) * values.shape[1]
        ]
        moved[head] = [np.linalg.norm(output @ value) for value in values]
    through = np.eye(tokens)
    for shares in every:
        through = (shares.mean(0) + np.eye(tokens)) / 2 @ through
    rest = pattern.copy()
    rest[..., 0] = np.nan
    with np.errstate(invalid="ignore"):
        rest /= np.nansum(rest, axis=-1, keepdims=True)
    hidden = np.where(np.triu(np.ones((tokens, tokens), bool), 1), np.nan, 0)
    shown = {
        "Pattern": pattern,
        "Without the first": rest,
        "Value-weighted": pattern * moved[:, None],
    }
    return {
        name: values + hidden
        for name, values in {**shown, "Rollout": np.stack([through] * len(pattern))}.items()
    }


QUANTITIES = {
    "Pattern": theme.PATTERN,
    "Without the first": theme.PATTERN,
    "Value-weighted": theme.VALUE,
    "Rollout": theme.PATTERN,
}


def press(page: Page, name: str) -> None:
    """Press a button of the bar, also of those that are folded under "More"."""
    button = page.get_by_role("button", name=name, exact=True)
    if not button.is_visible():
        # on a small screen the page has another "More"
        page.locator("button.tool", has_text="More").click()
    button.click()


@pytest.mark.parametrize("name", QUANTITIES)
def test_every_quantity_is_that_of_the_tensors(
    shown: Callable[..., Explorer], folder: Path, name: str
) -> None:
    page = shown(block=1, head=2, query=18).page
    values = quantities(load(folder, "writer"), PROMPT, 1)[name][2]
    press(page, name)
    page.evaluate(FRAMES)
    end = np.nanmax(values) if name == "Value-weighted" else 1
    np.testing.assert_allclose(weights(page) * end, values[18], atol=STEP * end)
    check_pixels(page.locator(".heat"), values / end, QUANTITIES[name])
    rows = csv_rows(page)
    assert len(rows) == np.isfinite(values).sum()
    for row in rows:
        assert row["key"] == PROMPT[int(row["key position"])].replace(" ", "␣")
        written = [
            float(number)
            for column, number in row.items()
            if column.startswith(("share", "length"))
        ]
        expected = values[int(row["query position"]), int(row["key position"])]
        assert written == [pytest.approx(expected, rel=1e-4, abs=1e-5)]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_pixel_of_the_thumbnails_and_of_a_mean_is_that_of_the_tensors(
    shown: Callable[..., Explorer], folder: Path, dark: bool
) -> None:
    page = shown(block=1, heads="mean", dark=dark).page
    lm = load(folder, "writer")
    for block in range(2):
        pattern = quantities(lm, PROMPT, block)["Pattern"]
        for head in range(3):
            canvas = page.locator(f".head[data-block='{block}'][data-head='{head}'] canvas")
            check_pixels(canvas, pattern[head], theme.PATTERN, dark=dark)
    check_pixels(page.locator(".heat"), pattern.mean(0), theme.PATTERN, dark=dark)
    press(page, "Log colours")
    page.evaluate(FRAMES)
    check_pixels(page.locator(".heat"), logarithmic(pattern.mean(0)), theme.PATTERN, dark=dark)


def test_on_the_heat_map_the_pointer_is_on_the_cell_drawn_there_whose_row_and_column_are_outlined(
    shown: Callable[..., Explorer],
) -> None:
    page = shown(model="pair", prompt="one two", stack="cross").page
    keys = chips(page, "key").count()
    queries = chips(page, "query").count()
    assert keys != queries, "a square would hide which is which"
    box = box_of(page.locator(".heat"))
    page.mouse.move(box["x"] + 1.5 * box["width"] / keys, box["y"] + 0.5 * box["height"] / queries)
    page.evaluate(FRAMES)
    expect(chips(page, "query").nth(0)).to_have_class(re.compile("of-query"))
    expect(chips(page, "key").nth(1)).to_have_class(re.compile("of-key"))
    outlines = [box_of(line) for line in page.locator(".marks rect").all()]
    row, column = [
        [one["x"] - box["x"], one["y"] - box["y"], one["width"], one["height"]] for one in outlines
    ]
    assert row == pytest.approx([0, 0, box["width"], box["height"] / queries], abs=2.5)
    assert column == pytest.approx(
        [box["width"] / keys, 0, box["width"] / keys, box["height"]], abs=2.5
    )


def test_over_flowing_text_arcs_lead_to_the_strongest_five_that_are_worth_a_line(
    shown: Callable[..., Explorer], folder: Path
) -> None:
    page = shown(prompt=LONG, block=1, head=2).page
    at = 60
    row = attention(load(folder, "writer"), LONG, 1, 2)[at]
    chips(page).nth(at).hover()
    page.evaluate(FRAMES)
    paths = page.locator(".lines path").evaluate_all(
        "(paths) => paths.map((path) => path.getAttribute('d'))"
    )
    ends = [[float(number) for number in re.findall(r"[\d.]+", path)[-2:]] for path in paths]
    middles = chips(page).evaluate_all(
        "(chips) => chips.map((one) => [one.offsetLeft + one.offsetWidth / 2, one.offsetTop])"
    )
    strongest = [
        key
        for key in np.argsort(-np.nan_to_num(row), kind="stable")[:5]
        if row[key] >= 0.05 and key != at
    ]
    assert strongest, "of a head that reads nothing much there would be no line to see"
    assert [x for x, _ in ends] == pytest.approx([middles[key][0] for key in strongest])


@pytest.mark.parametrize("model", ["writer", "far", "open", "capped"])
def test_the_arithmetic_of_a_cell_is_the_models(
    shown: Callable[..., Explorer], folder: Path, model: str
) -> None:
    page = shown(model=model, block=1, head=1, query=9, key=4).page
    lm = load(folder, model)
    trace = lm.trace(PROMPT)
    scores = trace["blocks.1.attention.scores"][0, 1, 9].double().numpy()
    visible = scores if model == "open" else scores[4:10] if model == "capped" else scores[:10]
    exps = np.exp(visible)
    at = exps.tolist().index(np.exp(scores[4]))

    def value(name: str) -> float:
        return float(
            page.locator(f".cell dd[data-name='{name}']").get_attribute("data-value") or "nan"
        )

    assert value("score") == pytest.approx(scores[4], abs=1e-5)
    assert value("exp(score)") == pytest.approx(exps[at], rel=1e-4)
    assert value("sum") == pytest.approx(exps.sum(), rel=1e-4)
    assert value("share") == pytest.approx(
        trace["blocks.1.attention.pattern"][0, 1, 9, 4].item(), abs=1e-6
    )
    expect(page.locator(".cell .check")).to_contain_text("the same")
    score, share, dot = evaluated(code(page), "[score, share, products.sum()]")
    assert (score, share) == (
        pytest.approx(value("score"), abs=1e-5),
        pytest.approx(value("share"), abs=1e-6),
    )
    expect(page.locator(".dimension")).to_contain_text(f"{dot:.3g}".replace("-", "−").rstrip("0"))
    if model == "capped":
        expect(page.locator(".cell dd[data-name='score']")).to_contain_text("× 0.700")
        expect(page.locator(".cell dd[data-name='score']")).to_contain_text("capped: 1.50 · tanh(")
        expect(page.locator(".cell .what")).to_contain_text(
            "Heads 0 to 2 share their keys and values"
        )
    page.locator(".cell summary").click()
    q = trace["blocks.1.attention.q"][0, 1].numpy()
    k = trace["blocks.1.attention.k"][0, 0 if model == "capped" else 1].numpy()
    expect(page.locator(".cell details tr")).to_have_count(1 + len(q[9]))
    for i, row in enumerate(page.locator(".cell details tr").all()[1:]):
        told = [float(text.replace("−", "-")) for text in row.locator("td").all_inner_texts()]
        assert told == pytest.approx(
            [i, q[9, i], k[4, i], q[9, i] * k[4, i], (q[9] * k[4])[: i + 1].sum()],
            rel=0.006,
            abs=1e-6,
        )


def test_hovering_and_choosing_send_nothing(shown: Callable[..., Explorer]) -> None:
    view = shown(prompt=LONG)
    page = view.page
    for i in range(50):
        chips(page).nth(i).dispatch_event("pointerover")
    for i in range(50):
        page.locator(".head").nth(i % 6).dispatch_event("click")
    for name in (
        "Value-weighted",
        "Rollout",
        "Pattern",
        "Who reads it",
        "All of the block",
        "One head",
        "Log colours",
    ):
        press(page, name)
    page.locator(".heat").click(position={"x": 4, "y": 100})
    expect(page.locator(".cell")).to_be_visible()
    page.evaluate(FRAMES)
    assert view.view.sent == []


def test_several_heads_show_side_by_side(shown: Callable[..., Explorer], folder: Path) -> None:
    page = shown(block=0, head=0, query=12).page
    choose(page, 1, 1, modifiers=["Shift"])
    choose(page, 1, 2)  # once compared, a click adds
    lm = load(folder, "writer")
    expected = np.stack([attention(lm, PROMPT, *at)[12] for at in ((0, 0), (1, 1), (1, 2))], axis=1)
    np.testing.assert_allclose(weights(page), expected, atol=STEP)
    page.wait_for_url(re.compile("heads=0.0"))
    colours = page.locator(".head.chosen").evaluate_all(
        "all => all.map(one => one.style.getPropertyValue('--mark'))"
    )
    assert len(set(colours)) == 3
    choose(page, 0, 0)
    expect(page.locator(".head.chosen")).to_have_count(2)
    press(page, "All of the block")
    page.evaluate(FRAMES)
    assert weights(page).shape == (19, 3)
    expect(page.locator(".head.chosen")).to_have_count(3)


def test_the_mean_of_a_block_is_that_of_its_heads_and_its_cell_opens_in_the_head_that_reads_most(
    shown: Callable[..., Explorer], folder: Path
) -> None:
    page = shown(block=1, query=12).page
    page.get_by_role("button", name="Mean", exact=True).click()
    page.evaluate(FRAMES)
    lm = load(folder, "writer")
    heads = np.stack([attention(lm, PROMPT, 1, head)[12] for head in range(3)])
    np.testing.assert_allclose(weights(page), heads.mean(0), atol=STEP)
    expect(page.locator(".right .title")).to_have_text("Block 1, mean of all heads")
    expect(page.locator(".head.chosen")).to_have_count(3)
    page.wait_for_url(re.compile("heads=mean"))
    np.testing.assert_allclose(evaluated(code(page), "shown[12]"), heads.mean(0), atol=1e-6)
    chips(page, "key").nth(4).click()
    most = int(heads[:, 4].argmax())
    expect(page.locator(".cell .what")).to_contain_text(
        f"in block 1, head {most}, which of all heads reads it most"
    )
    share = page.locator(".cell dd[data-name=share]").get_attribute("data-value")
    assert float(share or "nan") == pytest.approx(heads[most, 4], abs=1e-6)
    page.locator(".cell .shut").click()
    choose(page, 0, 2)
    expect(page.locator(".right .title")).to_have_text("Block 0, head 2")
    page.wait_for_url(re.compile("^(?!.*heads=)"))


@pytest.mark.full
def test_a_link_reopens_what_is_on_screen_and_looking_asks_nothing_of_the_server(
    visit: Visit, folder: Path
) -> None:
    page = opened(visit, prompt=LONG)
    before = len(visit.sent)
    choose(page, 1, 0)
    page.get_by_role("button", name="Who reads it").click()
    page.get_by_role("button", name="Value-weighted").click()
    press(page, "Log colours")
    page.get_by_label("Order of the heads").select_option("first")
    chips(page).nth(12).hover()
    chips(page).nth(30).click()
    page.wait_for_url(re.compile("key=30"))
    assert len(visit.sent) == before
    page.get_by_role("button", name="Share").click()
    expect(page.get_by_test_id("stPopoverBody").get_by_text(page.url, exact=True)).to_be_visible()
    with page.expect_download() as taken:
        page.get_by_role("button", name="As one file").click()
    assert "key=30" in Path(taken.value.path()).read_text("utf-8")
    page.keyboard.press("Escape")
    page.goto(page.url)
    visit.settle()
    expect(page.locator(".head.chosen")).to_have_attribute(
        "aria-label", re.compile("^block 1, head 0")
    )
    for name in ("Who reads it", "Value-weighted", "Log colours"):
        expect(page.get_by_role("button", name=name)).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_label("Order of the heads")).to_have_value("first")
    page.evaluate(FRAMES)
    lm = load(folder, "writer")
    moved = quantities(lm, LONG, 1)["Value-weighted"][0]
    np.testing.assert_allclose(
        weights(page), logarithmic(moved[:, 30] / np.nanmax(moved)), atol=STEP
    )


def test_a_link_to_a_cell_opens_its_arithmetic_and_a_new_text_keeps_head_and_cell(
    shown: Callable[..., Explorer],
) -> None:
    view = shown(block=0, head=1, query=5, key=3)
    page = view.page
    expect(page.locator(".cell")).to_contain_text("block 0, head 1")
    view.prompt = "the dog"
    view.show()
    expect(page.locator(".right .title")).to_have_text("Block 0, head 1")
    expect(page.locator(".cell .what")).to_contain_text("block 0, head 1")
    view.prompt = "dog"
    view.show()
    expect(page.locator(".cell")).to_be_hidden()
    expect(page.locator(".right .title")).to_have_text("Block 0, head 1")
    page.wait_for_url(re.compile("view.block=0&head=1$"))


def test_the_keyboard_walks_heads_tokens_and_cells(
    shown: Callable[..., Explorer], folder: Path
) -> None:
    page = shown(block=0, head=0).page
    page.locator(".head[data-block='0'][data-head='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.evaluate(FRAMES)
    expect(page.locator(".right .title")).to_have_text("Block 1, head 1")
    expected = attention(load(folder, "writer"), PROMPT, 1, 1)
    page.keyboard.press("Tab")
    chips(page, "query").nth(18).focus()
    for _ in range(4):
        page.keyboard.press("ArrowUp")
    page.evaluate(FRAMES)
    np.testing.assert_allclose(weights(page), expected[14], atol=STEP)
    page.keyboard.press("Enter")
    page.evaluate(FRAMES)
    page.keyboard.press("ArrowRight")
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    page.keyboard.press("Space")
    expect(page.locator(".cell")).to_be_visible()
    expect(page.locator(".cell .of-query + sub")).to_have_text("14")
    expect(page.locator(".cell .of-key + sub")).to_have_text("11")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".cell .of-key + sub")).to_have_text("10")
    page.keyboard.press("Escape")
    expect(page.locator(".cell")).to_be_hidden()
    page.locator(".frame").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.locator(".cell")).to_be_visible()


def test_a_tap_holds_a_token_and_a_second_tap_on_a_cell_opens_it(
    shown: Callable[..., Explorer], folder: Path
) -> None:
    page = shown(block=1, head=0, width=390, height=1600, alone=True).page
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setTouchEmulationEnabled", {"enabled": True})

    def tap(one: Locator, x: float, y: float) -> None:
        place = box_of(one)
        point = {"x": place["x"] + x, "y": place["y"] + y}
        session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [point]})
        session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        page.evaluate(FRAMES)

    chip = chips(page, "query").nth(10)
    tap(chip, 4, 4)
    expect(chip).to_have_attribute("aria-pressed", "true")
    np.testing.assert_allclose(
        weights(page), attention(load(folder, "writer"), PROMPT, 1, 0)[10], atol=STEP
    )
    tap(chip, 4, 4)
    expect(chip).not_to_have_attribute("aria-pressed", "true")
    for _ in range(2):
        expect(page.locator(".cell")).to_be_hidden()
        tap(page.locator(".heat"), 5, 100)
    expect(page.locator(".cell")).to_be_visible()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("prompt", [f" {PROMPT}", f"\n{LONG}"], ids=["columns", "text"])
def test_a_blank_token_can_be_read_on_the_strongest_tint(
    shown: Callable[..., Explorer], prompt: str, dark: bool
) -> None:
    # the first token reads itself alone: all of the weight
    page = shown(prompt=prompt, query=0, head="0", dark=dark).page
    assert weights(page)[0] == pytest.approx(1, abs=STEP)
    expect(page.locator(".masked")).not_to_have_count(0)
    assert faint(page) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_check_that_fails_can_be_read(shown: Callable[..., Explorer], dark: bool) -> None:
    page = shown(query=7, key=3, dark=dark).page
    page.locator(".cell summary").click()
    # as where the arithmetic differs
    page.locator(".check").evaluate("check => check.classList.add('wrong')")
    assert faint(page) == []


# Every word of the view that is seen, without what changes it.
SEEN = """() => {
    const root = [...document.querySelectorAll('*')].map((one) => one.shadowRoot?.querySelector('.root')).find((one) => one);
    const controls = '.order, .filter, .shut, .hint, details, [popover]';
    const walk = document.createTreeWalker(root.querySelector('.body'), NodeFilter.SHOW_TEXT);
    const texts = [];
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
        const one = node.parentElement;
        if (!node.data.trim()) continue;
        if (one.checkVisibility({ visibilityProperty: true }) && !one.closest(controls)) texts.push(node.data);
    }
    return texts;
}"""


@pytest.mark.parametrize(
    "choice",
    [
        {"query": 9},
        {"query": 9, "key": 4, "model": "far"},
        {"show": "rollout"},
        {"prompt": LONG, "heads": "all", "log": "True"},
        {
            "prompt": LONG,
            "sort": "previous",
            "show": "value",
            "width": 1920,
            "height": 1080,
            "dark": True,
        },
        {"prompt": "one two", "model": "pair", "stack": "cross"},
        {"query": 9, "width": 390, "height": 844},
    ],
    ids=["lines", "arithmetic", "rollout", "text", "dark", "cross", "phone"],
)
def test_a_picture_is_what_is_on_screen_under_a_heading(
    shown: Callable[..., Explorer], choice: dict[str, Any]
) -> None:
    page = shown(**choice).page
    sizes = "all => all.map((one) => [one.offsetWidth, one.offsetHeight, one.scrollTop])"
    before = page.evaluate(SEEN)
    places = page.locator(".body *").evaluate_all(sizes)
    drawn_as = saved(page)
    assert faults(page, drawn_as) == []
    said = "".join(words(drawn_as)).replace(" ", "")
    # Where not every token had room on an axis, the picture has more of them: its axes are looked
    # at below.
    missing = [
        text for text in before if "".join(text.split()) not in said and not re.search(r"\d$", text)
    ]
    assert missing == []
    assert f"Model:{choice.get('model', 'writer')}" in said
    assert f"“{choice.get('prompt', PROMPT)[:20]}".replace(" ", "") in said
    assert page.locator(".body *").evaluate_all(sizes) == places, "the view is as it was"


def test_a_picture_names_every_token_that_the_screen_has_no_room_for(
    shown: Callable[..., Explorer],
) -> None:
    page = shown(prompt=LONG).page
    named = len(LONG.replace(" ", "␣"))
    assert page.locator(".marks text").count() < named
    drawn_as = ElementTree.fromstring(saved(page))
    words_of_axes = [
        one
        for one in drawn_as.iter("{http://www.w3.org/2000/svg}text")
        if one.get("dominant-baseline") == "central"
    ]
    assert "".join(one.text or "" for one in words_of_axes).count(LONG.replace(" ", "␣")) == 2
    images = list(drawn_as.iter("{http://www.w3.org/2000/svg}image"))
    assert len(images) == 2 * 3 + 1, "all heads, and the one that is chosen"


@pytest.mark.parametrize(
    "choice", [{"prompt": LONG, "heads": "all", "sort": "first"}, {"model": "many", "prompt": LONG}]
)
@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_nothing_lies_on_the_map_and_nothing_sticks_out(
    shown: Callable[..., Explorer], choice: dict[str, Any], width: int
) -> None:
    page = shown(**choice, width=width, height=width * 9 // 16 if width > 800 else 844).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    map_of_head = box_of(page.locator(".right .frame"))
    legend = box_of(page.locator(".right .legend"))
    assert map_of_head["y"] + map_of_head["height"] <= legend["y"] + 0.5
    columns = [box_of(page.locator(part)) for part in (".left", ".middle", ".right")]
    assert all(box["width"] > 150 for box in columns)


@pytest.mark.parametrize(
    "prompt", ["abcdefghij" * 4, "the cab ate a long text "], ids=["one word", "columns"]
)
@pytest.mark.parametrize("type_size", [16, 24])
def test_no_token_lies_beyond_the_edge_of_its_text(
    shown: Callable[..., Explorer], prompt: str, type_size: int
) -> None:
    page = shown(prompt=prompt, width=1280).page
    page.add_style_tag(content=f"html {{ font-size: {type_size}px }}")
    page.set_viewport_size({"width": 760, "height": 720})
    page.evaluate(FRAMES)
    edge = box_of(page.locator(".tokens"))
    boxes = [box_of(chip) for chip in page.locator(".tokens .chip").all()]
    assert len(boxes) >= len(prompt)
    assert all(box["x"] + box["width"] <= edge["x"] + edge["width"] + 0.5 for box in boxes)


def test_the_axes_of_all_heads_have_their_names(shown: Callable[..., Explorer]) -> None:
    page = shown().page
    place = {
        name: box_of(page.locator(f".heads .axis:text-is('{name}')")) for name in ("block", "head")
    }
    first = box_of(page.locator(".head").first)
    last = box_of(page.locator(".head").last)
    assert place["block"]
    assert place["head"]
    assert place["head"]["y"] + place["head"]["height"] <= first["y"]
    assert place["block"]["x"] + place["block"]["width"] <= first["x"]
    assert (
        first["y"] <= place["block"]["y"] + place["block"]["height"] <= last["y"] + last["height"]
    )


def test_what_does_nothing_in_a_rollout_cannot_be_chosen_and_says_why(
    shown: Callable[..., Explorer],
) -> None:
    page = shown().page
    heads = page.locator("[role=group][aria-label^=Heads] button")
    expect(heads.first).to_be_enabled()
    usual = [one.get_attribute("title") for one in heads.all()]
    press(page, "Rollout")
    for button in heads.all():
        expect(button).to_be_disabled()
        assert "mean of all heads" in (button.get_attribute("title") or "")
    expect(page.locator(".head[aria-pressed=true]")).to_have_count(3)
    choose(page, 0, 2)
    expect(page.locator(".right .title")).to_have_text("Rollout up to block 0")
    page.get_by_role("button", name="Pattern").click()
    assert [one.get_attribute("title") for one in heads.all()] == usual


def test_the_first_row_is_one_line_and_more_unfolds_by_a_click_or_by_what_a_link_chooses(
    shown: Callable[..., Explorer],
) -> None:
    page = shown(width=1000).page  # as wide as the view is on a page of 1280 pixels
    more, rollout = (
        page.get_by_role("button", name=name, exact=True) for name in ("More", "Rollout")
    )
    tops = page.locator(".bar > .group:visible, .bar > .tool").evaluate_all(
        "all => all.map(one => one.offsetTop)"
    )
    assert len(tops) > 3
    assert len(set(tops)) == 1
    expect(rollout).to_be_hidden()
    more.click()
    expect(rollout).to_be_visible()
    more.click()
    expect(more).to_have_attribute("aria-expanded", "false")
    expect(rollout).to_be_hidden()
    for choice in ({"show": "rollout"}, {"heads": "all"}, {"heads": "0.0 1.1"}, {"log": "true"}):
        expect(shown(**choice).page.locator(".more [aria-pressed=true]")).to_be_visible()


@pytest.mark.parametrize(
    ("choice", "query"),
    [
        ({"block": 1, "head": 2}, 18),
        ({"block": 1, "head": 2, "show": "value"}, 18),
        ({"block": 1, "show": "rollout"}, 18),
        ({"model": "pair", "prompt": "one two", "stack": "cross"}, 1),
        ({"model": "pair", "prompt": "one two", "stack": "encoder"}, 1),
        ({"model": "pair", "prompt": "one two", "stack": "decoder"}, 7),
        ({"heads": "0.1 1.2"}, 18),
    ],
)
def test_the_code_computes_what_is_shown(
    shown: Callable[..., Explorer], choice: dict[str, Any], query: int
) -> None:
    page = shown(**choice, query=query).page
    shown = weights(page)
    computed = evaluated(code(page), "list(shown.values()) if isinstance(shown, dict) else [shown]")
    end = np.nanmax(computed) if choice.get("show") == "value" else 1
    np.testing.assert_allclose(computed[:, query].T.squeeze() / end, shown, atol=STEP)


def evaluated(lines: str, expression: str) -> np.ndarray:
    """The value of an expression after the lines of code; `tests/app/test_attention_page.py` runs
    it in a process of its own.
    """
    names: dict[str, Any] = {}
    exec(lines, names)
    return np.array(eval(expression, names), float)


def test_of_a_model_too_large_to_send_a_block_is_asked_for_when_it_is_looked_at(
    shown: Callable[..., Explorer], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explorer, "PRECISE_BYTES", 1_000)
    monkeypatch.setattr(explorer, "MOST_BYTES", 1_000)
    view = shown(model="many", prompt=LONG, block=0, head=1, log=True)
    page = view.page
    expected = load(folder, "many").trace(LONG, ["*.pattern"])
    chips(page).nth(60).click()
    page.evaluate(FRAMES)
    np.testing.assert_allclose(
        weights(page)[:61],
        logarithmic(expected["blocks.0.attention.pattern"][0, 1, 60, :61]),
        atol=2 * STEP,
    )
    expect(page.locator(".about")).to_contain_text("three digits")

    def check_mean(block: int) -> None:
        page.get_by_role("button", name="Mean", exact=True).click()
        page.evaluate(FRAMES)
        mean = expected[f"blocks.{block}.attention.pattern"][0].double().mean(0).numpy()
        hidden = np.triu(np.ones_like(mean, bool), 1)
        check_pixels(
            page.locator(".heat"), np.where(hidden, np.nan, logarithmic(mean)), theme.PATTERN
        )

    check_mean(0)
    assert view.view.sent == []
    choose(page, 2, 5)
    choose(page, 2, 6)
    choose(page, 2, 5)
    expect(page.locator(".readout")).to_contain_text("are being sent")
    [asked] = view.view.sent
    assert (asked.way, asked.name) == ("trigger", "block")
    view.block = read_block(asked.value, unpack(view.payload())[0]["of"], 12) or 0
    view.show()
    expect(page.locator(".readout")).not_to_contain_text("are being sent")
    np.testing.assert_allclose(
        weights(page)[:61],
        logarithmic(expected["blocks.2.attention.pattern"][0, 5, 60, :61]),
        atol=2 * STEP,
    )
    expect(page.locator(".right .title")).to_have_text("Block 2, head 5")
    check_mean(2)


def test_the_head_on_screen_is_switched_off_and_brought_back(
    shown: Callable[..., Explorer],
) -> None:
    view = shown(prompt="to be", block=1, head=2)
    button = view.page.get_by_role("button", name="Switch off head 2 of block 1")
    button.click()
    choose(view.page, 0, 1)
    view.page.get_by_role("button", name="Switch off head 1 of block 0").click()
    view.page.get_by_role("button", name="Mean", exact=True).click()
    view.page.get_by_role("button", name="Switch off the attention of block 0").click()
    of = unpack(view.payload())[0]["of"]
    asked = [read_switch(one.value, of, 2, 3) for one in view.view.sent if one.name == "switch"]
    assert asked == [(1, 2), (0, 1), (0, None)]
    view.show(edited={"0": "blocks.0.attention=uniform"}, of="the edited model")
    expect(
        view.page.get_by_role("button", name="Bring back the attention of block 0")
    ).to_be_visible()


def test_heads_are_sorted_sieved_and_called_by_what_they_do(
    shown: Callable[..., Explorer], folder: Path
) -> None:
    page = shown(sort="previous", heads="0.1 1.2", query=4).page
    for text in page.locator(".head .value").all_inner_texts():
        assert re.fullmatch(r"block \d head \d\s+[<\d. ]+ %", text), text
    assert page.locator(".readout .head-name").all_inner_texts() == [
        "block 0 head 1",
        "block 1 head 2",
    ]
    lm = load(folder, "writer")
    shares = {}
    for block in range(2):
        for head in range(3):
            values = attention(lm, PROMPT, block, head)
            shares[block, head] = np.mean([values[i, i - 1] for i in range(1, 19)])
    order = page.locator(".head").evaluate_all(
        "all => all.map(one => [Number(one.dataset.block), Number(one.dataset.head)])"
    )
    assert [tuple(at) for at in order] == sorted(shares, key=lambda at: -shares[at])
    least = int(100 * sorted(shares.values())[3])
    page.get_by_label("Hide heads below").fill(str(least))
    expect(page.locator(".head")).to_have_count(
        sum(bool(100 * share >= least) for share in shares.values())
    )
    page.wait_for_url(re.compile(f"least={least}"))


@pytest.mark.full
def test_twelve_by_twelve_heads_on_256_tokens_draw_once_for_every_choice(
    shown: Callable[..., Explorer],
) -> None:
    view = shown(model="many", prompt=(LONG * 4)[:256], block=0, head=0)
    page = view.page
    expect(page.locator(".head")).to_have_count(144)
    drawn_anew = page.evaluate(
        """async () => {
          const shadows = [...document.querySelectorAll('*')].map((one) => one.shadowRoot).filter(Boolean);
          const root = shadows.map((one) => one.querySelector('.root')).find((one) => one?.querySelector('.heads'));
          const over = () => new PointerEvent('pointerover', { bubbles: true, composed: true });
          const frame = () => new Promise((done) => requestAnimationFrame(done));
          const draws = async (acts) => {
            const before = Number(root.dataset.drawn);
            for (const act of acts) {
              act();
              await frame();
              await frame();
            }
            return Number(root.dataset.drawn) - before;
          };
          const chips = [...root.querySelectorAll('.tokens .chip')], heads = [...root.querySelectorAll('.head')];
          const hover = await draws(chips.slice(0, 20).map((chip) => () => chip.dispatchEvent(over())));
          const change = await draws(heads.slice(0, 20).map((head) => () => head.click()));
          return { hover, change };
        }"""
    )
    assert 18 <= drawn_anew["hover"] <= 20
    assert 18 <= drawn_anew["change"] <= 20
    assert view.view.sent == []
    expect(page.locator(".right .title")).to_have_text("Block 1, head 7")
