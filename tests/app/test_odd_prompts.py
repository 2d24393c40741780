"""Every page that reads a prompt, with prompts that nobody has in mind: a message, and the page stays."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from gptviz.ui.page import Page
from gptviz.ui.pages import PAGES
from tests.app.opening import ROOT, opened
from tests.tiny import TinyModel
from tests.waiting import PATIENCE

PROMPTS = ("", "🙂 שלום עולם", "x" * 600)


def alerts(app: AppTest) -> set[str]:
    return {str(alert.value) for alert in [*app.info, *app.warning, *app.error]}


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_an_odd_prompt_gets_a_message_and_the_page_stays(page: Page) -> None:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=PATIENCE)
    if page.name != "home":
        app.switch_page(page.path)
    usual = alerts(app.run())
    if not [box for box in app.text_area if box.key == "prompt"]:
        assert not page.reads_prompt
        return
    for prompt in PROMPTS:
        app.text_area(key="prompt").set_value(prompt).run()
        assert "?" in app.title[0].value, prompt
        if page.reads_prompt:
            assert alerts(app) - usual, prompt


def test_a_prompt_that_a_tokenizer_fails_on_gets_a_message_and_the_page_stays(tiny_model: TinyModel) -> None:
    backend = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate("ab H")}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex("(a+)+b"), "isolated")  # the library gives up on a long row of a's
    folder = tiny_model("slow", text="ab H")
    (folder / "tokenizer.json").write_text(backend.to_str())
    long = "a" * 40
    for app in (
        opened("pages/attention.py", model="slow", prompt=long),
        opened("pages/patching.py", model="slow", corrupted=long),
    ):
        assert not app.exception
        (error,) = app.error
        assert "The tokenizer of slow fails on" in error.value
        assert long in error.value
    assert not opened("pages/attention.py", model="slow", prompt="a b").error
