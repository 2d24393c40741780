"""Byte-level vocabularies by the way they cut a text, against the rules written as a loop."""

from __future__ import annotations

import json
import unicodedata
from functools import cache
from itertools import pairwise

import pytest
import regex

from gptviz.text import BPETokenizer, python_reference
from gptviz.text.tokenizers.byte_pairs import CUTS, byte_pairs

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
# The patterns as the model makers published them in their tokenizer.json (Llama 3, Qwen 2, Mistral Nemo), and GPT-2's.
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PATTERNS = {"gpt-2": GPT2, "smollm": GPT2, "llama-bpe": LLAMA3, "qwen2": QWEN2, "tekken": TEKKEN}
SPECIAL = ["<|im_start|>", "<|im_end|>", "<think>"]


@cache
def vocabulary() -> tuple[list[str], list[str]]:
    """Tokens and merges of a small byte-level vocabulary, and one token that no merges lead to."""
    corpus = python_reference().text[:60_000] + " 2024" * 500  # so that digits are merged too
    model = json.loads(BPETokenizer.learn(corpus, 700).to_json())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return [*tokens, "Ġwhole", *SPECIAL], [" ".join(merge) for merge in model["merges"]]


def letters() -> dict[int, str]:
    """GPT-2's alphabet of bytes."""
    printable = [byte for byte in range(256) if chr(byte).isprintable() and chr(byte) != " "]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + place) for place, byte in enumerate(others)}


def as_a_loop(text: str, name: str) -> list[int]:
    tokens, merges = vocabulary()
    ids, ranks, alphabet = {t: i for i, t in enumerate(tokens)}, {m: i for i, m in enumerate(merges)}, letters()
    found = []
    for part in regex.split("(" + "|".join(map(regex.escape, SPECIAL)) + ")", text):
        if part in SPECIAL:
            found.append(ids[part])
            continue
        if name == "qwen2":
            part = unicodedata.normalize("NFC", part)
        runs = regex.split(r"(\p{N})", part) if name == "smollm" else [part]
        for word in (word for run in runs for word in regex.findall(PATTERNS[name], run)):
            symbols = [alphabet[byte] for byte in word.encode()]
            if CUTS[name].whole_tokens and "".join(symbols) in ids:
                symbols = ["".join(symbols)]
            while pairs := [(ranks[f"{a} {b}"], at) for at, (a, b) in enumerate(pairwise(symbols)) if f"{a} {b}" in ranks]:
                _, at = min(pairs)
                symbols[at : at + 2] = ["".join(symbols[at : at + 2])]
            found += [ids[symbol] for symbol in symbols]
    return found


@pytest.mark.parametrize("name", PATTERNS)
def test_a_text_is_cut_and_merged_as_the_rules_say(name: str) -> None:
    tokens, merges = vocabulary()
    special = [tokens.index("<|im_start|>"), tokens.index("<|im_end|>")]
    mine = byte_pairs(tokens, merges, special, [tokens.index("<think>")], CUTS[name])
    for text in [*TEXTS, python_reference().text[80_000:82_000]]:
        wanted = as_a_loop(text, name)
        assert mine.encode(text).ids == wanted, text
        assert mine.encode_ids(text).tolist() == wanted
        assert mine.decode(wanted) == (unicodedata.normalize("NFC", text) if name == "qwen2" else text)


def test_the_ways_to_cut_differ() -> None:
    assert len({str([as_a_loop(text, name) for text in TEXTS]) for name in PATTERNS}) == len(PATTERNS)


def test_special_tokens_are_shown_by_their_names() -> None:
    tokens, merges = vocabulary()
    special = [tokens.index("<|im_start|>"), tokens.index("<|im_end|>")]
    mine = byte_pairs(tokens, merges, special, [], CUTS["smollm"])
    assert mine.label(mine.encode("<|im_start|>user").ids[0]) == "<|im_start|>"


@pytest.mark.parametrize(
    ("tokens", "merges", "words"),
    [(["a", "a"], [], "the same text"), (["a", "b"], ["a"], "not made of two"), (["a", "b"], ["a b"], "cannot be opened")],
)
def test_an_impossible_vocabulary_is_refused_in_a_line(tokens: list[str], merges: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        byte_pairs(tokens, merges, [], [], CUTS["gpt-2"])
