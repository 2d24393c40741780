"""The bound on what a tokenizer makes of one character, beside what the library makes of it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

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
    steps = [
        {"type": "Replace", "pattern": {"String": found}, "content": content}
        for found, content in replacing
        if found
    ]
    grown = normalizers.Sequence(
        [normalizers.Replace(found, content) for found, content in replacing if found]
    ).normalize_str(text)
    assert len(grown) <= growth(steps) * len(text)


# the second becomes 18 letters in NFKD, and 4 of them are the first
LAM = "\u0644"
ALL_LETTERS = "\ufdfa"
CHINESE = "\u4e2d"
SPACED = normalizers.BertNormalizer(
    clean_text=False, handle_chinese_chars=True, strip_accents=False, lowercase=False
)
AGAIN_AND_AGAIN = {
    "forms": ([normalizers.NFKD(), normalizers.Replace(LAM, ALL_LETTERS)], ALL_LETTERS),
    "spaces_around": ([SPACED, normalizers.Replace(" ", CHINESE)], CHINESE),
    "spaces_alone": ([SPACED], CHINESE),
    "any_place": ([normalizers.Replace(Regex(""), "a")], "a"),
}


@pytest.mark.parametrize("rules", AGAIN_AND_AGAIN)
def test_rules_that_give_each_other_work_grow_no_more_than_the_bound_and_are_rejected_in_the_end(
    rules: str,
) -> None:
    steps, text = AGAIN_AND_AGAIN[rules]
    bounds = []
    for times in (1, 2, 4):
        made = normalizers.Sequence(steps * times)
        bounds.append(growth(fields_of(normalizer=made)["normalizer"]["normalizers"]))
        first_form = 18 if rules == "forms" else 1
        assert len(made.normalize_str(text)) <= bounds[-1] * first_form * (len(text) + 1)
    assert bounds[0] < bounds[1] < bounds[2]
    with pytest.raises(ValueError, match="the normalizer of this tokenizer can make"):
        BPETokenizer.from_fields(fields_of(normalizer=normalizers.Sequence(steps * 30)))


@pytest.mark.parametrize(
    "written", [decoders.BPEDecoder(suffix=""), decoders.CTC("-", "", cleanup=False)]
)
def test_decoders_that_write_a_space_beside_every_character_grow_no_more_than_the_bound(
    written: Any,
) -> None:
    for times in (1, 3, 6):
        fields = fields_of(decoder=decoders.Sequence([written] * times))
        text = BPETokenizer.from_fields(fields).decode([0] * 4)
        assert len(text) <= 2**times * 8
    with pytest.raises(ValueError, match="the decoder of this tokenizer can make"):
        BPETokenizer.from_fields(fields_of(decoder=decoders.Sequence([written] * 30)))


@pytest.mark.parametrize("times", [2, 5, 10])
def test_the_bound_of_one_letter_replaced_again_and_again_is_exact(times: int) -> None:
    assert (
        growth([{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * times}] * 3)
        == times**3
    )


BOMBS = {
    "normalizer": normalizers.Sequence([normalizers.Replace("a", "a" * 10)] * 12),
    "nested": normalizers.Sequence(
        [
            normalizers.Sequence(
                [normalizers.Replace("a", "b" * 20), normalizers.Replace("b", "a" * 20)]
            )
        ]
    ),
    "by_small_letters": normalizers.Sequence(
        [normalizers.Replace("a", "A" * 20), normalizers.Lowercase()] * 2
    ),
    "pre_tokenizer": pre_tokenizers.Sequence([pre_tokenizers.ByteLevel(use_regex=False)] * 12),
    "decoder": decoders.Sequence([decoders.Replace("a", "a" * 10)] * 12),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_tokenizer_that_would_fill_the_memory_is_rejected_before_it_reads_a_text(
    bomb: str,
) -> None:
    stage = bomb if bomb in ("pre_tokenizer", "decoder") else "normalizer"
    with pytest.raises(
        ValueError, match=rf"the {stage} of this tokenizer can make [\d,]+ characters of one"
    ):
        BPETokenizer.from_fields(fields_of(**{stage: BOMBS[bomb]}))


def test_a_map_of_sentencepiece_with_a_long_replacement_and_a_long_prefix_are_rejected() -> None:
    charsmap = base64.b64encode(
        (0).to_bytes(4, "little") + b"b" * (MOST_GROWTH + 1) + b"\0"
    ).decode()
    fields = fields_of() | {"normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap}}
    with pytest.raises(ValueError, match="the normalizer of this tokenizer"):
        check_growth(fields)
    for put_in in (
        normalizers.Prepend("a" * 2_000),
        normalizers.Sequence([normalizers.Prepend("aa")] * 200),
    ):
        with pytest.raises(
            ValueError, match=r"the normalizer of this tokenizer can make [\d,]+ characters of one"
        ):
            BPETokenizer.from_fields(fields_of(normalizer=put_in))
    changed = fields_of()
    changed["model"]["end_of_word_suffix"] = "a" * 2_000
    with pytest.raises(
        ValueError, match="the model of this tokenizer can make 2,001 characters of one"
    ):
        BPETokenizer.from_fields(changed)


def test_what_tokenizers_in_use_do_is_accepted() -> None:
    albert = [
        normalizers.Replace("``", '"'),
        normalizers.Replace("''", '"'),
        normalizers.NFKD(),
        normalizers.StripAccents(),
    ]
    steps = normalizers.Sequence(
        [*albert, normalizers.Lowercase(), normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    written = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    check_growth(
        fields_of(normalizer=steps, pre_tokenizer=pre_tokenizers.ByteLevel(), decoder=written)
    )
