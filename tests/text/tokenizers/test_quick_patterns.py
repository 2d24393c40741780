"""Patterns that are called quick are: they read the texts that are worst for them in a second."""

from __future__ import annotations

import pytest
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from gptviz.text.tokenizers.byte_pairs import CUTS
from gptviz.text.tokenizers.quick_patterns import is_quick
from gptviz.text.tokenizers.reading_outside import ReadingOutside

SHORT = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
CASED = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
# As published: of GPT-2, nanochat, GPT-4o, BLOOM, CLIP, DeepSeek 3, Qwen 3.5, Falcon, T5, and our
# own.
IN_USE = [
    *{cut.pattern for cut in CUTS.values() if cut.pattern},
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| "
    r"?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    rf"{CASED}*[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]+{SHORT}?|{CASED}+[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]*{SHORT}?|"
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r" ?[^(\s|[.,!?…。，、।۔،])]+",
    r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
    rf"{SHORT}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| "
    rf"?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "[一-龥぀-ゟ゠-ヿ]+",
    "[0-9][0-9][0-9]",
    r"\s{2,}|[\n\r\t]",
    r"\A | \z",
]
LENGTH = 100_000
WORST = [
    " ",
    "\n",
    "a",
    "A",
    "Ab",
    " \n",
    "\n ",
    "\u4e00",
    "!",
    "1",
    "'",
    "\u0301",
    "\t\r\n",
    "a ",
    "👍",
    "\ufdfa",
    "([",
]


@pytest.mark.parametrize("pattern", IN_USE)
def test_patterns_in_use_are_quick(pattern: str) -> None:
    assert is_quick(pattern)


@pytest.mark.full
@pytest.mark.parametrize("pattern", IN_USE)
def test_quick_patterns_read_the_worst_texts_in_seconds(pattern: str) -> None:
    tokenizer = Tokenizer(models.BPE({"a": 0}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    outside = ReadingOutside(tokenizer.to_str(), "this test")
    for part in WORST:
        # A slow one takes more time than it gets.
        assert len(outside.encode_batch_fast([f"x{(part * LENGTH)[:LENGTH]}x"])) == 1


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            r"(a+)\1+$",
            "(a|a)*b",
            "a+b",
            r"\s*[\r\n]+",
            r"\s*[\r\n]|\s|\s+(?!\S)",
            "a*a*b",
            "a?a?a?aaa",
            " +$",
            "^ +| +$",
            " +▁",
        ),
        *(
            "[[a]+]+",
            "(?:a+)+$",
            "a{1000}",
            "a{2,}b",
            r"(?<n>a)\g<n>",
            "",
            "|",
            "a||b",
            "[a&&b]+",
            "a+?b",
            "(?=a+b)",
            r"\X+",
        ),
        *(
            "a+a+",
            r"\s+(?!\S)+",
            "a{1,99}{1,99}",
            "a++b",
            r"\K",
            r"a\1",
            "(" * 2_000,
            "a" * 2_001,
            "[" * 2_000,
            "a?" * 1_000,
        ),
    ],
)
def test_what_may_be_slow_is_not_called_quick(pattern: str) -> None:
    assert not is_quick(pattern)
