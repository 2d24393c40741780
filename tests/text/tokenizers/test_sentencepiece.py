"""SentencePiece's models, against the `sentencepiece` library itself."""

from __future__ import annotations

import random
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from gptviz.text import BPETokenizer, from_json, python_reference
from gptviz.text.tokenizers.sentencepiece import PieceKind, Pieces, from_pieces, from_sentencepiece
from tests.text.sentencepieces import GEMMA, LLAMA, trained

TEXTS = [
    "The quick brown fox, it's 5 o'clock.",
    "def f(x):\n    return x ** 2  # ½\n\n\n\tif x:",
    "12345 3.14159 1,000,000 ٣٤٥ ½ ²",
    "👍🏽 family 👩‍👩‍👧 flag 🇫🇷",
    "日本語のテキスト 中文 한국어 हिन्दी",
    "  two  spaces   three    four ",
    "\n\nlines\r\n\n",
    "\x00\x01\x1f\x7f\x85\u200b\ufeff",
    "▁ the sign itself ▁▁",
    "e\u0301 é",
    "<0x0A> <unk",
    " ",
    "     ",
    "a",
]


def mixed(count: int) -> list[str]:
    draw = random.Random(1)
    corpus = python_reference().text
    letters = "abcdefgh  \n\t.,'0123eéΩ日👍\x00\x1b▁<_()"
    odd = ["".join(draw.choices(letters, k=draw.randint(1, 60))) for _ in range(count)]
    starts = [draw.randrange(len(corpus) - 300) for _ in range(count)]
    return odd + [corpus[start : start + draw.randint(1, 300)] for start in starts]


@pytest.mark.parametrize(
    "settings", [LLAMA, GEMMA, {"model_type": "bpe"}], ids=["llama", "gemma", "nfkc"]
)
def test_the_ids_are_those_of_the_library_and_lead_back(settings: dict[str, Any]) -> None:
    content = trained(**settings)
    theirs = sentencepiece.SentencePieceProcessor(model_proto=content)
    mine = from_sentencepiece(content, start=False)
    assert mine.vocab_size == theirs.vocab_size()
    for text in [*TEXTS, *mixed(300)]:
        wanted = theirs.encode(text)
        assert mine.encode(text).ids == wanted, text
        assert mine.encode_ids(text).tolist() == wanted
        assert mine.decode(wanted) == theirs.decode(wanted)
        if settings.get("normalization_rule_name") == "identity":
            assert mine.decode(wanted) == text.replace("▁", " ")


def test_markers_of_the_user_change_no_plain_text_and_are_single_tokens() -> None:
    content = trained(**LLAMA, user_defined_symbols=["[REF]", "<user>"])
    theirs = sentencepiece.SentencePieceProcessor(model_proto=content)
    mine = from_sentencepiece(content, start=False)
    for text in [*TEXTS, *mixed(50)]:
        assert mine.encode(text).ids == theirs.encode(text), text
    assert mine.encode("a[REF]").ids == theirs.encode("a[REF]")


@pytest.mark.full
@pytest.mark.skipif(find_spec("mistral_common") is None, reason="mistral-common is not installed")
def test_the_vocabularies_that_mistral_published_give_their_ids() -> None:
    spec = find_spec("mistral_common")
    assert spec.origin is not None
    files = sorted((Path(spec.origin).parent / "data").glob("*.model.v*"))
    assert len(files) >= 3
    for file in files:
        content = file.read_bytes()
        theirs = sentencepiece.SentencePieceProcessor(model_proto=content)
        mine = from_sentencepiece(content, start=False)
        for text in [*TEXTS, *mixed(500)]:
            assert mine.encode(text).ids == theirs.encode(text), text


def test_a_unigram_vocabulary_is_cut_as_the_library_cuts_it() -> None:
    content = trained(model_type="unigram", normalization_rule_name="nmt_nfkc")
    theirs = sentencepiece.SentencePieceProcessor(model_proto=content)
    mine = from_sentencepiece(content, start=False)
    for text in TEXTS[:8]:
        assert mine.encode(text).ids == theirs.encode(text), text


def test_a_continuation_keeps_the_space_that_a_text_of_its_own_loses() -> None:
    mine = from_sentencepiece(trained(**LLAMA), start=False)
    ids = mine.encode("the value").ids
    assert (mine.decode(ids), mine.continuation(ids)) == ("the value", " the value")


def test_the_start_token_stands_once_before_a_text_and_survives_json() -> None:
    plain = from_sentencepiece(trained(**LLAMA), start=False)
    both = from_json(from_sentencepiece(trained(**LLAMA), start=True, end=True).to_json())
    for text in ("the value", "", "  a"):
        ids = [1, *plain.encode(text).ids, 2]
        assert both.encode(text).ids == ids
        assert both.encode_ids(text).tolist() == ids
        # "<s>the value</s>", as a chat template writes it
        assert both.encode(both.decode(ids)).ids == ids
    assert both.label(both.encode("the").ids[0]) == "<s>"


def test_what_is_unknown_is_reported_at_its_place_after_the_start_token() -> None:
    content = trained(**{**LLAMA, "byte_fallback": False})
    (unknown,) = from_sentencepiece(content, start=True).encode("a€").unknown
    assert (unknown.character, unknown.instead) == ("€", "<unk>")
    assert from_sentencepiece(content, start=True).encode("a€").ids[unknown.position] == 0


@cache
def good() -> bytes:
    return trained(**LLAMA)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "0 pieces"),
        (b"\xff" * 100, "no model of SentencePiece"),
        (b"\n\0" * 4_000_001, "more than 1,000,000 pieces"),
        (b'{"model": 1}', "no model of SentencePiece"),
        (good()[: len(good()) // 2], "no model of SentencePiece, or is cut short|pieces"),
        (trained(model_type="char"), "into words or characters"),
        (trained(treat_whitespace_as_suffix=True), "a space after a word"),
        (
            trained(user_defined_symbols=["▁▁"]),
            "a space before a text and has user-defined pieces with a space .'▁▁'",
        ),
    ],
)
def test_what_is_damaged_or_of_another_kind_is_refused_in_a_line(
    content: bytes, words: str
) -> None:
    with pytest.raises(ValueError, match=words) as refused:
        from_sentencepiece(content)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (Pieces(["<unk>", "a"], [0.0], [2, 1]), "2 pieces, 1 scores"),
        (Pieces(["<unk>", "a", "a"], [0.0] * 3, [2, 1, 1]), "the same text"),
        (Pieces(["a", "b"], [0.0] * 2, [1, 1]), "for what is unknown"),
        (Pieces(["<unk>", ""], [0.0] * 2, [2, 1]), "pieces is empty"),
        (Pieces(["<unk>", "a" * 2_000], [0.0] * 2, [2, 1]), "2,000 characters"),
        (Pieces(["<unk>", "a"], [0.0] * 2, [2, 77]), "of the kind 77"),
        (Pieces(["<unk>", "a"], [0.0] * 2, [2, 1], start=9), "outside the vocabulary"),
    ],
)
def test_an_impossible_vocabulary_is_refused_in_a_line(pieces: Pieces, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        from_pieces(pieces)


def test_of_two_merges_that_of_the_higher_score_is_made_first() -> None:
    texts = ["<unk>", "a", "b", "c", "ab", "bc"]
    kinds = [PieceKind.UNKNOWN, *[PieceKind.NORMAL] * 5]
    for scores, wanted in (([0, 0, 0, 0, -1.0, -2.0], [4, 3]), ([0, 0, 0, 0, -2.0, -1.0], [1, 5])):
        made: BPETokenizer = from_pieces(Pieces(texts, scores, kinds, space_before=False))
        assert made.encode("abc").ids == wanted
