"""The Translate page in a real browser: a token clicked, a head walked to, an output typed, a wide beam, a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import torch
from playwright.sync_api import Browser, Page, expect

from gptviz.figures.kit.format import percent
from gptviz.interp.trace import run
from gptviz.model import Transformer
from gptviz.runs import checkpoints
from gptviz.text import CharTokenizer, SpecialTokensTokenizer
from tests.browser.machinery import Server, Visit, check_on_a_phone, serve, visiting
from tests.browser.test_attention_explorer import STEP, weights
from tests.tiny import scrambled, tiny

pytestmark = pytest.mark.browser
SOURCE = "may the 3rd"
MARKS = SpecialTokensTokenizer(CharTokenizer("may the 3rd of june 1977-0456<>"))
OUTPUT = re.compile("Output$")


def made(seed: int, end_bias: float) -> Transformer:
    """A small encoder–decoder that is the likelier to end the larger `end_bias` is, and that never writes the other marks."""
    sizes = {"vocab_size": MARKS.vocab_size, "context_length": 16, "padding": MARKS.padding}
    model = scrambled(tiny(**sizes, n_encoder_layer=1, unembed_bias=True, positions="sinusoidal"), seed)
    with torch.no_grad():
        model.head.unembed.bias[MARKS.end] += end_bias
        model.head.unembed.bias[[MARKS.start, MARKS.padding]] -= 1e4
    return model


@pytest.fixture(scope="module")
def translating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with an untrained encoder–decoder, scribe, whose answers fill its positions but end at its first snapshot."""
    folder = tmp_path_factory.mktemp("translating")
    kept = checkpoints.save("scribe", made(0, -1e4), MARKS, {"steps": 9}, root=folder / "home" / "checkpoints")
    for step, end_bias in ((0, 1e4), (4, -1e4), (9, -1e4)):
        checkpoints.write_weights(checkpoints.snapshot_path(kept, step), made(step, end_bias))
    with serve(folder) as running:
        yield running


@pytest.fixture
def seen(browser: Browser, translating: Server) -> Iterator[Visit]:
    with visiting(browser, translating) as begun:
        yield begun


def explorer(page: Page) -> Page:
    """The page, once the explorer has drawn."""
    page.locator(".head[aria-pressed=true]").first.wait_for()
    page.locator(".tokens .chip").first.wait_for()
    return page


def test_the_tokens_and_the_heatmap_are_seen_without_scrolling(seen: Visit) -> None:
    page = explorer(seen.open("translate", model="scribe", prompt=SOURCE, output="june 3"))
    for part in (".tokens", ".frame", ".heads"):
        box = page.locator(part).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 720


def test_the_page_opens_on_the_mean_of_the_last_block_and_says_what_it_hides(seen: Visit) -> None:
    page = explorer(seen.open("translate", model="scribe", prompt=SOURCE, output="june 3"))
    expect(page.locator(".right .title")).to_have_text("Block 1, mean of all heads")
    expect(page.locator(".about")).to_contain_text("What the mean hides")
    source = torch.tensor([MARKS.source_ids(SOURCE)])
    decoded = torch.tensor([[MARKS.start, *MARKS.encode("june 3").ids]])
    patterns = run(made(0, -1e4), decoded, source=source)["blocks.1.cross_attention.pattern"][0]
    page.locator(".tokens .chip[data-side=query]").nth(2).hover()
    seen.drawn()
    assert weights(page) == pytest.approx(patterns[:, 2].mean(0).numpy(), abs=STEP)


@pytest.mark.full
def test_a_choice_stays_in_the_link_and_sends_nothing(seen: Visit) -> None:
    page = explorer(seen.open("translate", model="scribe", prompt=SOURCE, output="june 3"))
    seen.drawn()
    before = len(seen.sent)
    page.locator(".head[data-block='0'][data-head='1']").click()
    page.locator(".tokens .chip[data-side=query]").nth(2).click()
    page.wait_for_url(re.compile("query=2"))
    assert "heads=one" in page.url
    assert len(seen.sent) == before
    page.goto(page.url)
    seen.settle()
    explorer(page)
    expect(page.locator(".right .title")).to_have_text("Block 0, head 1")
    expect(page.locator(".tokens .chip[data-side=query]").nth(2)).to_have_attribute("aria-pressed", "true")


@pytest.mark.full
def test_try_this_commands_the_view_also_from_another_one(seen: Visit) -> None:
    page = seen.open("translate", model="scribe", prompt=SOURCE, view="Beam search")
    page.get_by_role("button", name="Every head").click()
    explorer(page)
    expect(page.get_by_role("button", name="All of the block")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="The sharpest head").click()
    expect(page.get_by_role("button", name="One head")).to_have_attribute("aria-pressed", "true")
    seen.settle()


def test_the_self_attention_of_a_stack_is_a_click_away(seen: Visit) -> None:
    page = explorer(seen.open("translate", model="scribe", prompt=SOURCE))
    page.get_by_role("link", name="What the output reads in itself").click()
    page.wait_for_url(re.compile("attention.*stack=decoder"))
    seen.settle()
    explorer(page)
    expect(page.locator(".right .title")).to_contain_text("Block")
    expect(page.locator(".tokens .chip").first).to_contain_text("start")


def test_a_typed_output_shows_what_the_model_would_have_written(seen: Visit) -> None:
    page = seen.open("translate", model="scribe", prompt=SOURCE, view="Next token")
    chips = page.locator(".st-key-output-strip button.chip")
    expect(chips).to_have_count(16)
    expect(page.get_by_text("does not end by itself")).to_be_visible()
    box = page.get_by_role("textbox", name=OUTPUT)
    box.fill("june 3")
    box.press("Enter")
    page.wait_for_url(re.compile("output=june"))
    expect(chips).to_have_count(7)
    seen.settle()
    chips.nth(4).click()
    page.wait_for_url(re.compile("position=4"))
    expect(chips.nth(4)).to_have_class(re.compile("selected"))
    seen.settle()


def test_every_token_that_may_stand_at_a_place_is_listed_with_its_probability(seen: Visit) -> None:
    page = seen.open("translate", model="scribe", prompt=SOURCE, output="june 3", view="Next token", position=2)
    rows = page.locator(".st-key-ledger .token-row")
    expect(rows.first).to_be_visible()
    source = torch.tensor([MARKS.source_ids(SOURCE)])
    decoded = torch.tensor([[MARKS.start, *MARKS.encode("june 3").ids]])
    with torch.inference_mode():
        expected = made(0, -1e4)(decoded, source)[0, 2].double().softmax(-1)
    for row, token in zip(rows.all(), expected.argsort(descending=True, stable=True)[:5].tolist(), strict=False):
        expect(row).to_have_attribute("data-token", str(token))
        expect(row.locator(".before .number")).to_have_text(percent(expected[token].item()))
    expect(page.locator(".st-key-ledger .facts")).to_contain_text("Written here: n")
    expect(page.locator(".st-key-ledger .draw")).to_be_hidden()


@pytest.mark.full
def test_a_wider_beam_keeps_more_answers(seen: Visit) -> None:
    page = seen.open("translate", model="scribe", prompt=SOURCE, view="Beam search", width=2)
    tree = page.get_by_test_id("stPlotlyChart")
    expect(tree).to_contain_text("cut")
    count = tree.locator("path.point").count()
    page.get_by_role("button", name="A wide beam").click()
    page.wait_for_url(re.compile("width=5"))
    expect(tree.locator("path.point")).not_to_have_count(count)
    seen.drawn()
    assert tree.locator("path.point").count() > count


@pytest.mark.full
def test_the_view_stays_where_it_is_while_training_is_walked_through(seen: Visit) -> None:
    page = seen.open("translate", model="scribe", prompt=SOURCE, step=0)
    view = explorer(page).locator(".body")
    before = view.bounding_box()
    expect(page.get_by_text("does not end by itself")).to_have_count(0)
    for step in (4, 9):
        page.locator(".st-key-step").get_by_role("slider").press("ArrowRight")
        page.wait_for_url(re.compile(f"step={step}"))
        seen.settle()
        expect(page.get_by_text("does not end by itself")).to_be_visible()
        assert view.bounding_box() == before


@pytest.mark.full
def test_hostile_source_and_output_stay_text(seen: Visit) -> None:
    hostile = "<img src=x onerror=\"document.title='pwned'\"> **bold** $x$"
    for view in ("Cross-attention", "Next token", "Beam search"):
        page = seen.open("translate", model="scribe", prompt=hostile, output=hostile, view=view)
        seen.drawn()
        assert page.title() != "pwned"
        assert page.locator("img[src=x]").count() == 0
        expect(page.get_by_text("Not in the vocabulary").first).to_be_visible()


@pytest.mark.full
@pytest.mark.parametrize("view", ["Cross-attention", "Next token", "Beam search"])
def test_nothing_sticks_out_on_a_phone(browser: Browser, translating: Server, view: str) -> None:
    check_on_a_phone(browser, translating, "translate", model="scribe", prompt=SOURCE, view=view)


def test_another_kind_of_model_is_sent_on_and_this_one_can_be_had_instead(seen: Visit) -> None:
    page = seen.open("translate", model="shakespeare")
    expect(page.get_by_text("This page is about a model that reads one text and writes another")).to_be_visible()
    page.get_by_role("button", name=re.compile("Stay here")).click()
    page.wait_for_url(re.compile("translate(?!.*shakespeare)"))
    seen.settle()
    expect(page.locator(".heat")).to_be_visible()
