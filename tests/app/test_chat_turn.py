"""The button that makes a prompt the turn of a chat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gptviz.runs import checkpoints
from gptviz.text import BPETokenizer
from gptviz.text.tokenizers.byte_pairs import CUTS, byte_pairs
from tests.app.opening import opened, page_at, views
from tests.tiny import byte_letters, scrambled, tiny

CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
TURN = "<|im_start|>user\nHow now?<|im_end|>\n<|im_start|>assistant\n"


page = page_at("pages/next_token.py", model="chats")


def test_the_prompt_becomes_a_turn_with_its_special_tokens_and_back(chats: Any) -> None:
    chats(CHATML)
    at = page(prompt="How now?")
    at.button(key="as a chat turn").click().run()
    assert at.text_area(key="prompt").value == TURN
    assert TURN in at.query_params["prompt"]
    chips = b"".join(view.proto.bytes for view in views(at))
    assert [chips.count(b'["<|im_%s|>", ' % name) for name in (b"start", b"end")] == [2, 1], (
        "each is a chip of its own"
    )
    # a link that somebody sends leads to the same
    assert page(prompt=TURN).button(key="as plain text")
    at.button(key="as plain text").click().run()
    assert at.text_area(key="prompt").value == "How now?"


def test_the_token_that_is_put_before_a_text_is_the_first_chip(home: Path) -> None:
    plain = BPETokenizer.learn("How now, my love?", 256)
    tokenizer = byte_pairs([*byte_letters(plain), "<s>"], [], [256], [], CUTS["gpt-2"]).with_frame(
        [256]
    )
    checkpoints.save("starts", scrambled(tiny(vocab_size=257, context_length=64)), tokenizer, {})
    at = opened("pages/next_token.py", model="starts", prompt="How")
    chips = b"".join(view.proto.bytes for view in views(at))
    assert b'[["<s>", ' in chips


def test_a_model_without_a_template_has_no_such_button(chats: Any) -> None:
    at = opened("pages/next_token.py", model="shakespeare")
    assert not [button for button in at.button if button.key in ("as a chat turn", "as plain text")]


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ raise_exception('no **turns** here') }}", r"no \*\*turns\*\* here"),
        ("the same for all", "leaves the message out"),
    ],
)
def test_a_template_that_gives_no_turn_is_one_line_and_the_page_stays(
    chats: Any, template: str, words: str
) -> None:
    chats(template)
    at = page(prompt="How now?")
    (line,) = [caption.value for caption in at.caption if "hat template" in caption.value]
    assert words.replace("\\", "") in line.replace("\\", "")
    assert not [button for button in at.button if button.key == "as a chat turn"]
