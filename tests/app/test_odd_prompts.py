"""Every page that reads a prompt, with prompts that nobody has in mind: a message, and the page
stays.
"""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from gptviz.ui.menu import PAGES
from gptviz.ui.page import Page
from tests.app.conftest import OF_KIND
from tests.app.opening import drawn, opened
from tests.tiny import TinyModel

pytestmark = pytest.mark.usefixtures("one_of_each")
LONG = "x" * 600
# For each kind of model, the first words of what is said of a prompt. A classifier reads words, and
# is shown no length of a word.
EMPTY = (
    "The prompt is empty. Type at least one character above; until then the default prompt is "
    "shown."
)
SAID = {
    "": dict.fromkeys(OF_KIND, EMPTY),
    "a 🙂 שלום": dict.fromkeys(
        OF_KIND, "Not in the vocabulary\\: 🙂 \\(U\\+1F642 SLIGHTLY SMILING FACE\\)\\, ש"
    )
    | {"classifier": "The prompt has no word that this model can read"},
    LONG: {
        "decoder": "The prompt has 600 tokens; this model sees 8 at a time: it reads the last 8.",
        "classifier": "The model knows no word of this text",
        "encoder-decoder": "The prompt has 600 tokens; this model sees 23 at a time: it reads the "
        "first 23.",
    },
}


def alerts(at: AppTest) -> set[str]:
    return {str(alert.value) for alert in [*at.info, *at.warning, *at.error]}


@pytest.mark.parametrize(
    "page", [page for page in PAGES.values() if page.has_model], ids=lambda page: page.name
)
def test_an_odd_prompt_gets_a_message_and_the_page_stays(page: Page) -> None:
    kind = page.kinds[0]
    at = opened(page.path, model=OF_KIND[kind])
    if not [box for box in at.text_area if box.key == "prompt"]:
        assert not page.reads_prompt
        return
    usual = alerts(at)
    pictures = drawn(at, "number", "asked")
    for prompt, said in SAID.items():
        at.text_area(key="prompt").set_value(prompt).run()
        assert "?" in at.title[0].value, prompt
        if page.reads_prompt:
            assert [one for one in alerts(at) - usual if one.startswith(said[kind])], (
                prompt,
                alerts(at),
            )
        if (
            not prompt or said[kind].startswith("The prompt has no word")
        ) and page.group != "Your models":
            assert drawn(at, "number", "asked") == pictures, "those of the default prompt"


def test_a_prompt_that_a_tokenizer_fails_on_gets_a_message_and_the_page_stays(
    tiny_model: TinyModel,
) -> None:
    backend = Tokenizer(
        models.BPE(vocab={letter: number for number, letter in enumerate("ab H")}, merges=[])
    )
    # the library gives up on a long row of a's
    backend.pre_tokenizer = pre_tokenizers.Split(Regex("(a+)+b"), "isolated")
    folder = tiny_model("slow", text="ab H")
    (folder / "tokenizer.json").write_text(backend.to_str())
    long = "a" * 40
    for app in (
        opened("pages/attention.py", model="slow", prompt=long),
        opened("pages/patching.py", model="slow", corrupted=long),
    ):
        (error,) = app.error
        assert "The tokenizer of slow fails on" in error.value
        assert long in error.value
    assert not opened("pages/attention.py", model="slow", prompt="a b").error
