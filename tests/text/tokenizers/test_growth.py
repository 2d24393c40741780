"""The bound on what a tokenizer makes of one character, beside what the library makes of it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from gptviz.text import BPETokenizer
from gptviz.text.tokenizers.growth import MOST_GROWTH, check_growth, growth

LETTERS = st.text("abc", max_size=4)
REPLACING = st.tuples(LETTERS, LETTERS)


def fields_of(**stages: Any) -> dict[str, Any]:
    """The content of a tokenizer.json of one letter with these stages."""
    tokenizer = Tokenizer(models.BPE(vocab={"a": 0}, merges=[]))
    for name, stage in stages.items():
        setattr(tokenizer, name, stage)
    return dict(json.loads(tokenizer.to_str()))


@given(st.lists(REPLACING, max_size=4), st.text("abc", min_size=1, max_size=6))
def test_no_text_grows_more_than_the_bound(replacing: list[tuple[str, str]], text: str) -> None:
    steps = [{"type": "Replace", "pattern": {"String": found}, "content": content} for found, content in replacing if found]
    grown = normalizers.Sequence([normalizers.Replace(found, content) for found, content in replacing if found]).normalize_str(
        text
    )
    assert len(grown) <= growth(steps) * len(text)


@pytest.mark.parametrize("times", [2, 5, 10])
def test_the_bound_of_one_letter_replaced_again_and_again_is_exact(times: int) -> None:
    assert growth([{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * times}] * 3) == times**3


BOMBS = {
    "normalizer": normalizers.Sequence([normalizers.Replace("a", "a" * 10)] * 12),
    "nested": normalizers.Sequence(
        [normalizers.Sequence([normalizers.Replace("a", "b" * 20), normalizers.Replace("b", "a" * 20)])]
    ),
    "by_small_letters": normalizers.Sequence([normalizers.Replace("a", "A" * 20), normalizers.Lowercase()] * 2),
    "pre_tokenizer": pre_tokenizers.Sequence([pre_tokenizers.ByteLevel(use_regex=False)] * 12),
    "decoder": decoders.Sequence([decoders.Replace("a", "a" * 10)] * 12),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_tokenizer_that_would_fill_the_memory_is_rejected_before_it_reads_a_text(bomb: str) -> None:
    stage = bomb if bomb in ("pre_tokenizer", "decoder") else "normalizer"
    with pytest.raises(ValueError, match=rf"the {stage} of this tokenizer can make [\d,]+ characters of one"):
        BPETokenizer.from_fields(fields_of(**{stage: BOMBS[bomb]}))


def test_a_map_of_sentencepiece_with_a_long_replacement_and_a_long_prefix_are_rejected() -> None:
    charsmap = base64.b64encode((0).to_bytes(4, "little") + b"b" * (MOST_GROWTH + 1) + b"\0").decode()
    fields = fields_of() | {"normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap}}
    with pytest.raises(ValueError, match="the normalizer of this tokenizer"):
        check_growth(fields)
    for changed in (fields_of(normalizer=normalizers.Prepend("a" * 2_000)), fields_of()):
        if changed["normalizer"] is None:
            changed["model"]["end_of_word_suffix"] = "a" * 2_000
        with pytest.raises(ValueError, match="2,000 characters; at most 1,000 are accepted"):
            BPETokenizer.from_fields(changed)


def test_what_tokenizers_in_use_do_is_accepted() -> None:
    albert = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents()]
    steps = normalizers.Sequence([*albert, normalizers.Lowercase(), normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    written = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    check_growth(fields_of(normalizer=steps, pre_tokenizer=pre_tokenizers.ByteLevel(), decoder=written))
