"""Tokenizers from elsewhere that could end or hold up the process: refused by their sizes, or read
by a process that is ended.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as description
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from gptviz.machine.bounded import TooMuchError
from gptviz.text import BPETokenizer
from gptviz.text.tokenizers import reading_outside
from gptviz.text.tokenizers.byte_pairs import CUTS, Cut, byte_pairs
from gptviz.text.tokenizers.marian import MarianTokenizer
from gptviz.text.tokenizers.sentencepiece import from_sentencepiece
from gptviz.text.tokenizers.wordpiece import from_wordpiece
from tests.text.sentencepieces import LLAMA, trained

LETTERS = [chr(code) for code in range(32, 127)]
BPE = {
    "type": "BPE",
    "vocab": {letter: place for place, letter in enumerate(LETTERS)},
    "merges": [],
}
WORDPIECE = {
    "type": "WordPiece",
    "vocab": BPE["vocab"] | {"[UNK]": 95, "##a": 96},
    "unk_token": "[UNK]",
}  # type: ignore[operator]
WORDPIECE |= {"continuing_subword_prefix": "##", "max_input_chars_per_word": 2**60}
FOREVER = r"(a+)\1+$"


def fields(**changes: Any) -> dict[str, Any]:
    """The content of a tokenizer.json of single letters."""
    return {"version": "1.0", "added_tokens": [], "model": BPE, **changes}


def split(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def replace(found: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"String": found}, "content": content}


def unigram(*pieces: str) -> dict[str, Any]:
    return {
        "type": "Unigram",
        "vocab": [[piece, -1.0] for piece in (*LETTERS, *pieces)],
        "unk_id": 0,
        "byte_fallback": False,
    }


def added(place: int, content: str) -> dict[str, Any]:
    names = ("single_word", "lstrip", "rstrip", "normalized", "special")
    return {"id": 95 + place, "content": content, **dict.fromkeys(names, False)}


def template(ids: list[int], times: int = 1) -> dict[str, Any]:
    start = {"SpecialToken": {"id": "s", "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    tokens = {"s": {"id": "s", "ids": ids, "tokens": ["a"] * len(ids)}}
    return {
        "type": "TemplateProcessing",
        "single": [start] * times + [text],
        "pair": [text],
        "special_tokens": tokens,
    }


def nested(depth: int) -> dict[str, Any]:
    step: dict[str, Any] = {"type": "Digits", "individual_digits": True}
    for _ in range(depth):
        step = {"type": "Sequence", "pretokenizers": [step]}
    return step


DIGITS = {"type": "Digits", "individual_digits": True}
TOO_MUCH: dict[str, tuple[dict[str, Any], str]] = {
    "a long piece": (
        fields(model=unigram("a" * 300_000)),
        "one of its tokens has 300,000 characters",
    ),
    "long merges": (fields(model=BPE | {"vocab": {"a" * 2_000: 0}}), "2,000 characters"),
    "many pieces": (
        fields(model=unigram(*(f"{place:0990}" for place in range(3_000)))),
        "2,970,095 characters together",
    ),
    "a long added token": (fields(added_tokens=[added(0, "a" * 2_000)]), "2,000 characters"),
    "added tokens": (
        fields(added_tokens=[added(place, f"{place:0990}") for place in range(2_000)]),
        "1,980,000 characters",
    ),
    "many steps": (
        fields(pre_tokenizer={"type": "Sequence", "pretokenizers": [DIGITS] * 100_000}),
        "more than 1,000 parts",
    ),
    "steps within steps": (
        fields(pre_tokenizer=nested(450)),
        "pre_tokenizer has more than 1,000 parts",
    ),
    "many tokens around": (
        fields(post_processor=template([1] * 100_000, 500)),
        "post_processor has more than 1,000 parts",
    ),
    "a long pattern": (
        fields(pre_tokenizer=split("a?" * 10_000)),
        r"the texts in its pre_tokenizer have 20,\d+ characters",
    ),
    "a decoder": (
        fields(decoder={"type": "Replace", "pattern": {"Regex": "(a+)+b"}, "content": ""}),
        r"decoder has the pattern",
    ),
}


@pytest.mark.parametrize("case", TOO_MUCH)
def test_sizes_that_no_tokenizer_has_are_refused_before_the_library_sees_them(case: str) -> None:
    content, words = TOO_MUCH[case]
    with pytest.raises(TooMuchError, match=words):
        BPETokenizer.from_json(json.dumps(content))


def test_a_token_around_texts_that_the_vocabulary_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="the id 1000 is outside the vocabulary"):
        BPETokenizer.from_fields(fields(post_processor=template([1_000])))


def test_tokens_and_patterns_of_gguf_files_and_pickles_are_bounded_too() -> None:
    for tokens, cut, words in (
        ([*LETTERS, "a" * 2_000], Cut(), "2,000 characters"),
        (LETTERS, Cut(FOREVER), "none of those that are known to be quick"),
    ):
        with pytest.raises(TooMuchError, match=words):
            byte_pairs(tokens, [], [], [], cut)


def test_a_vocabulary_of_marian_with_a_long_piece_is_refused() -> None:
    model = description.ModelProto.FromString(trained(model_type="unigram"))  # type: ignore[attr-defined]
    model.pieces[-1].piece = "a" * 2_000
    with pytest.raises(TooMuchError, match="2,000 characters"):
        MarianTokenizer(
            model.SerializeToString(),
            trained(model_type="unigram"),
            ["<unk>", "</s>"],
            "<unk>",
            "</s>",
            "</s>",
        )


ODD_PATTERNS = [r"(?:[aeiou][a-z]?)+", r"(?<=b)c", r"(\w)\1", "a+b|.c"]


@pytest.mark.parametrize("pattern", ODD_PATTERNS)
def test_another_process_reads_as_the_library_does(pattern: str) -> None:
    theirs = Tokenizer(models.BPE(BPE["vocab"] | {"aa": 95, "ab": 96}, [("a", "a"), ("a", "b")]))  # type: ignore[arg-type, operator]
    theirs.normalizer = normalizers.Replace(Regex("(xy)+z"), "b")
    theirs.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    ours = BPETokenizer.from_json(theirs.to_str()).with_frame([1], [2])
    assert ours._outside is not None
    for text in ("", "abc aab aaab xyxyz bcbc hello", "é a", "aa\ud800a"):
        read = theirs.encode(text.replace("\ud800", "\ufffd")).ids
        assert ours.encode(text).ids == [1, *read, 2] == ours.encode_ids(text).tolist()
        assert ours.decode(read) == theirs.decode(read)
    again = BPETokenizer.from_json(ours.to_json())
    assert again.encode("xyz aab").ids == ours.encode("xyz aab").ids
    assert (
        json.loads(ours.to_json())["pre_tokenizer"] == json.loads(theirs.to_str())["pre_tokenizer"]
    )
    assert [one.character for one in ours.encode("aé").unknown] == ["é"]


def test_a_text_that_a_pattern_reads_forever_is_refused_in_a_line_and_the_next_one_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading_outside, "MOST_SECONDS", 1.0)
    tokenizer = BPETokenizer.from_fields(fields(pre_tokenizer=split(FOREVER)))
    with pytest.raises(
        ValueError,
        match="longer than 1 seconds with 6,001 characters, because of the pattern .* "
        "pre_tokenizer",
    ):
        tokenizer.encode("a" * 6_000 + "!")
    assert tokenizer.encode("ab").ids == [BPE["vocab"][letter] for letter in "ab"]  # type: ignore[index]


def test_long_words_of_wordpiece_and_texts_that_grow_are_read_outside() -> None:
    for content, reason in (
        (fields(model=WORDPIECE), "max_input_chars_per_word, which is 1,152,921,504,606,846,976"),
        (fields(normalizer=replace("a", "a" * 60)), "the 1 steps of its normalizer"),
    ):
        tokenizer = BPETokenizer.from_fields(content)
        assert tokenizer._outside is not None
        assert tokenizer._outside._reason == reason
        assert tokenizer.encode("a").ids == Tokenizer.from_str(json.dumps(content)).encode("a").ids


def test_tokenizers_in_use_are_read_in_this_process() -> None:
    bert = from_wordpiece(
        "[UNK]\n[CLS]\n[SEP]\na\n##b\n",
        small_letters=True,
        without_accents=None,
        splits_chinese=True,
    )
    rules = [
        {"model_type": "unigram", "normalization_rule_name": rule}
        for rule in ("nfkc", "nmt_nfkc_cf")
    ]
    pieces = [trained(**settings) for settings in (LLAMA, *rules)]
    for tokenizer in (BPETokenizer.learn("some text", 260), bert, *map(from_sentencepiece, pieces)):
        assert tokenizer._outside is None
        assert BPETokenizer.from_json(tokenizer.to_json())._outside is None
    for cut in CUTS.values():
        assert (
            BPETokenizer.from_json(byte_pairs(LETTERS, [], [], [], cut).to_json())._outside is None
        )


@pytest.mark.parametrize("rule", ["nmt_nfkc", "nfkc", "identity"])
def test_runs_of_spaces_are_read_as_sentencepiece_reads_them(rule: str) -> None:
    content = trained(model_type="unigram", normalization_rule_name=rule)
    theirs = sentencepiece.SentencePieceProcessor(model_proto=content)
    ours = from_sentencepiece(content, start=False)
    long = " " * 100_000  # to look for the end of the text after every space took a minute
    for text in (f"a{long}b{long}", f"{long}a", "  a \n b  \n  ", "\n a ", "   "):
        assert ours.encode(text).ids == theirs.encode(text)
