"""From page to page in a real browser: each page opens on a model it is about, and the menu keeps
the model.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from gptviz.runs import checkpoints
from gptviz.text import CharTokenizer, WordTokenizer
from gptviz.text.tokenizers.special_tokens import SpecialTokensTokenizer
from tests.browser.machinery import Visit, serve, visiting
from tests.tiny import scrambled, tiny

pytestmark = pytest.mark.browser


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a server whose home has a classifier and an encoder–decoder called as those
    that ship.
    """
    words = WordTokenizer(["good", "bad", "film"])
    letters = SpecialTokensTokenizer(CharTokenizer("the third of march 1977"))
    sizes = {
        "vocab_size": words.vocab_size,
        "padding": words.padding,
        "mask": "full",
        "head": "mean",
        "n_label": 2,
    }
    models = {
        "classifier": (tiny(**sizes), words),
        "seq2seq": (
            tiny(
                vocab_size=letters.vocab_size,
                padding=letters.padding,
                n_encoder_layer=1,
                context_length=32,
            ),
            letters,
        ),
    }
    for name, (config, tokenizer) in models.items():
        checkpoints.save(
            name, scrambled(config), tokenizer, {}, root=tmp_path / "home" / "checkpoints"
        )
    return tmp_path


def shows(page: Page, address: str, model: str) -> None:
    """Whether the page at `address` stands, and shows `model`."""
    query = "" if model == "shakespeare" else rf"\?(.*&)?model={model}(&|$)"
    expect(page).to_have_url(re.compile(rf"/{address}{query or '$'}"))
    expect(
        page.get_by_test_id("stMain").get_by_role("combobox", name="Model", exact=False).first
    ).to_have_value(model)


@pytest.mark.full
def test_the_model_goes_along_and_pages_open_on_a_model_they_are_about(
    browser: Browser, folder: Path
) -> None:
    with serve(folder) as server, visiting(browser, server) as visit:
        page = visit.open("attention")

        def menu(title: str) -> None:
            page.get_by_test_id("stSidebar").get_by_role("link", name=title, exact=True).click()
            page.mouse.move(900, 20)  # a link's hint would cover the next
            visit.settle()

        shows(page, "attention", "sentences")
        menu("Classify")
        shows(page, "classify", "classifier")
        menu("Attention")
        shows(page, "attention", "classifier")
        menu("Generate")
        shows(page, "generate", "classifier")
        expect(page.get_by_text("classifier is a classifier")).to_be_visible()
        page.get_by_role("button", name="Stay here with bpe").click()
        shows(page, "generate", "bpe")
        menu("Translate")
        shows(page, "translate", "seq2seq")
        menu("Next token")
        page.get_by_role("link", name="Open it on the page Translate").click()
        shows(page, "translate", "seq2seq")
        page.reload()
        visit.settle()
        shows(page, "translate", "seq2seq")


def test_a_model_chosen_instead_of_the_pages_own_stays_after_a_reload_and_goes_along(
    visit: Visit,
) -> None:
    page = visit.open("attention")
    model = page.get_by_test_id("stMain").get_by_role("combobox", name="Model", exact=False).first
    expect(model).to_have_value("sentences")
    model.fill("shakespeare")
    model.press("Enter")
    visit.settle()
    page.reload()
    visit.settle()
    expect(model).to_have_value("shakespeare")
    for title in ("Embeddings", "Generate"):
        page.get_by_test_id("stSidebar").get_by_role("link", name=title, exact=True).click()
        visit.settle()
        expect(page).to_have_url(re.compile(title.lower()))
        expect(model).to_have_value("shakespeare")
