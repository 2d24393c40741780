"""Byte-level vocabularies by the way they cut a text, against the rules written as a loop."""

from __future__ import annotations

import json
import unicodedata
from functools import cache, partial

import pytest

from gptviz.text import BPETokenizer, python_reference
from gptviz.text.tokenizers.byte_pairs import CUTS, byte_pairs
from tests.text.byte_level import PATTERNS, Rules

TEXTS = [
    "They'll SAY it's what WE'VE done, I'M sure",
    "  leading,   inner    runs  \n\n\t of \r\n white space   ",
    "12345 3.14159 1,000,000 ٣٤٥ ½ ²x7 in 2024",
    "👍🏽 flag 🇫🇷 日本語 中文 e\u0301 é",
    "def f(x):\n    return x ** 2  # ½\n\n\n",
    "camelCase HTTPServer snake_case path/to//file\n/",
    "<|im_start|>user\nHi<|im_end|> <think>",
    "import whole",
]
SPECIAL = ["<|im_start|>", "<|im_end|>", "<think>"]


@cache
def vocabulary() -> tuple[list[str], list[str]]:
    """Tokens and merges of a small byte-level vocabulary, and one token that no merges lead to."""
    corpus = python_reference().text[:60_000] + " 2024" * 500  # so that digits are merged too
    model = json.loads(BPETokenizer.learn(corpus, 700).to_json())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return [*tokens, "Ġwhole", *SPECIAL], [" ".join(merge) for merge in model["merges"]]


def rules(name: str) -> Rules:
    tokens, merges = vocabulary()
    normal = partial(unicodedata.normalize, "NFC") if name == "qwen2" else str
    return Rules(tokens, merges, SPECIAL, name, normal, CUTS[name].whole_tokens)


@pytest.mark.parametrize("name", PATTERNS)
def test_a_text_is_cut_and_merged_as_the_rules_say(name: str) -> None:
    tokens, merges = vocabulary()
    special = [tokens.index("<|im_start|>"), tokens.index("<|im_end|>")]
    mine = byte_pairs(tokens, merges, special, [tokens.index("<think>")], CUTS[name])
    for text in [*TEXTS, python_reference().text[80_000:82_000]]:
        wanted = rules(name).encode(text)
        assert mine.encode(text).ids == wanted, text
        assert mine.encode_ids(text).tolist() == wanted
        assert mine.decode(wanted) == (
            unicodedata.normalize("NFC", text) if name == "qwen2" else text
        )


def test_the_ways_to_cut_differ() -> None:
    assert len({str([rules(name).encode(text) for text in TEXTS]) for name in PATTERNS}) == len(
        PATTERNS
    )


def test_special_tokens_are_shown_by_their_names() -> None:
    tokens, merges = vocabulary()
    special = [tokens.index("<|im_start|>"), tokens.index("<|im_end|>")]
    mine = byte_pairs(tokens, merges, special, [], CUTS["smollm"])
    assert mine.label(mine.encode("<|im_start|>user").ids[0]) == "<|im_start|>"


@pytest.mark.parametrize(
    ("tokens", "merges", "words"),
    [
        (["a", "a"], [], "the same text"),
        (["a", "b"], ["a"], "not made of two"),
        (["a", "b"], ["a b"], "cannot be opened"),
    ],
)
def test_an_impossible_vocabulary_is_refused_in_a_line(
    tokens: list[str], merges: list[str], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        byte_pairs(tokens, merges, [], [], CUTS["gpt-2"])
