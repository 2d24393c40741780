"""Byte-pair encoding, checked against GPT-2 written as a loop, against transformers, and by round
trips.
"""

import json
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from gptviz.text import BPETokenizer, python_reference
from gptviz.text.tokenizers import bpe
from tests.text.byte_level import Rules

VARIED = [
    "",
    "Hello, world!",
    "They'll say it's what we've done, I'm sure; he'd CAN'T won't y'all'd've",
    "  leading,   inner    runs  \n\n\t of \r\n white space   ",
    "12345 3.14159 1,000,000 ٣٤٥ ½ ²",
    "👍🏽 family 👩‍👩‍👧 flag 🇫🇷 ☂\ufe0f",
    "שלום עולם, مرحبا بالعالم",
    "日本語のテキスト 中文 한국어 हिन्दी",
    "e\u0301 zero\u200bwidth nbsp\u00a0here \u2028 \x85 \x1c \x00 \ufffd \ufeff",
    "def f(x):\n    return x ** 2  # ½\n\n\n",
    "LYSANDER.\nHow now, my love? Why is your cheek so pale?",
    "end<|endoftext|>start <|endoftext|> <|endoftext",
]
# White space, contractions and every sort of character that GPT-2's pattern tells apart.
mixed_text = st.text(
    st.sampled_from(" \n\t\r'stldvemr.,!0１²aZéñЯ日ש👍\u0301\u200b\u00a0\u2028\x85\x1c\u180e\ufffd")
    | st.characters(codec="utf-8")
)


@pytest.fixture(scope="module")
def gpt2(gpt2_files: tuple[Path, Path]) -> BPETokenizer:
    return BPETokenizer.from_gpt2(*gpt2_files)


@cache
def learned() -> BPETokenizer:
    return BPETokenizer.learn(python_reference().text[:40_000], 500)


def test_gpt2_has_50257_tokens_and_known_ids(gpt2: BPETokenizer) -> None:
    assert gpt2.vocab_size == len(gpt2.labels()) == 50_257
    assert gpt2.encode("Hello world").ids == [15496, 995]
    assert gpt2.encode("<|endoftext|>").ids == [50256]
    assert [gpt2.piece(995), gpt2.label(995), gpt2.kind_of(995)] == [" world", "␣world", "word"]
    assert gpt2.id_of(" world") == 995
    assert gpt2.id_of(" worldx") is None
    assert gpt2.id_of("\ud800") is None


def test_gpt2_agrees_with_transformers(gpt2: BPETokenizer, gpt2_files: tuple[Path, Path]) -> None:
    transformers = pytest.importorskip(
        "transformers", reason="compares with transformers, which is not installed"
    )
    vocabulary = json.loads(gpt2_files[0].read_text(encoding="utf-8"))
    merges = [
        tuple(line.split(" "))
        for line in gpt2_files[1].read_text(encoding="utf-8").split("\n")[1:-1]
    ]
    peer = transformers.GPT2Tokenizer(vocab=vocabulary, merges=merges)
    for text in [*VARIED, " ".join(VARIED)]:
        ids = peer.encode(text)
        assert gpt2.encode(text).ids == gpt2.encode_ids(text).tolist() == ids
        assert gpt2.decode(ids) == peer.decode(ids, clean_up_tokenization_spaces=False) == text
    partial = [peer.encode("👍")[0], 995]
    assert (
        gpt2.decode(partial)
        == peer.decode(partial, clean_up_tokenization_spaces=False)
        == "\ufffd world"
    )


def test_gpt2_agrees_with_its_algorithm_written_as_a_loop(
    gpt2: BPETokenizer, gpt2_files: tuple[Path, Path]
) -> None:
    vocabulary = json.loads(gpt2_files[0].read_text(encoding="utf-8"))
    lines = gpt2_files[1].read_text(encoding="utf-8").split("\n")[1:-1]
    rules = Rules(sorted(vocabulary, key=vocabulary.__getitem__), lines, ["<|endoftext|>"])

    @settings(max_examples=100)
    @given(mixed_text)
    def agrees(text: str) -> None:
        assert gpt2.encode(text).ids == rules.encode(text)

    agrees()


def test_the_labels_of_gpt2_are_the_text_its_tokens_stand_for(gpt2: BPETokenizer) -> None:
    def label(text: str) -> list[str]:
        return [gpt2.label(i) for i in gpt2.encode(text).ids]

    assert label("Hello world\n\tüber") == ["Hello", "␣world", "⏎", "⇥", "ü", "ber"]
    assert [gpt2.piece(i) for i in gpt2.encode(" ☂").ids] == [" \ufffd", "\ufffd"]
    assert label(" ☂") == ["␣<E2 98>", "<82>"]
    assert gpt2.label(50256) == "<|endoftext|>"
    labels = gpt2.labels()
    # Only the bytes of a partial character are written with a space between them.
    assert not re.search(r"\s", re.sub(r"<[0-9A-F]{2}( [0-9A-F]{2})*>", "", "".join(labels)))
    assert labels[::97] == [gpt2.label(i) for i in range(0, 50_257, 97)]


def test_a_piece_is_what_its_token_decodes_to_and_leads_back_to_it(gpt2: BPETokenizer) -> None:
    for tokenizer in (gpt2, learned()):
        pieces = [tokenizer.piece(i) for i in range(tokenizer.vocab_size)]
        assert pieces == [tokenizer.decode([i]) for i in range(tokenizer.vocab_size)]
        whole = {i: piece for i, piece in enumerate(pieces) if "\ufffd" not in piece}
        assert {i: tokenizer.id_of(piece) for i, piece in whole.items()} == {i: i for i in whole}
        assert len(whole) > tokenizer.vocab_size / 2


@settings(deadline=None)
@given(mixed_text)
def test_any_text_comes_back_from_a_learned_vocabulary(text: str) -> None:
    encoding = learned().encode(text)
    assert learned().decode(encoding.ids) == text
    assert encoding.unknown == ()


@example("a\n\n\n\n    b", 1)
@example("a\n\n\n\n    b", 3)
@given(mixed_text, st.integers(1, 12))
def test_a_corpus_in_pieces_has_the_tokens_of_the_whole(text: str, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bpe, "_CHUNK", size)
        pieces = list(bpe._chunks(text))
        in_pieces = learned().encode_ids(text).tolist()
    assert "".join(pieces) == text
    assert in_pieces == learned().encode(text).ids


def test_tiny_shakespeare_is_cut_into_pieces_and_comes_back(
    shakespeare: str, gpt2: BPETokenizer
) -> None:
    assert len(list(bpe._chunks(shakespeare))) > 10
    ids = gpt2.encode_ids(shakespeare)
    # 301,966 + 36,059: the tokens of nanoGPT's train.bin and val.bin (its
    # data/shakespeare/readme.md).
    assert ids.shape == (338_025,)
    assert gpt2.decode(ids) == shakespeare


def test_learning_takes_the_most_frequent_pair_first() -> None:
    tokenizer = BPETokenizer.learn("abab abab cdcd", 257)
    assert tokenizer.piece(256) == "ab"
    assert sorted(tokenizer.piece(i) for i in range(256) if tokenizer.piece(i).isascii()) == list(
        map(chr, range(128))
    )


def test_learning_is_repeatable_and_shortens_the_text() -> None:
    text = python_reference().text[:40_000]
    assert BPETokenizer.learn(text, 500).to_json() == learned().to_json()
    assert learned().vocab_size == 500
    assert len(learned().encode_ids(text)) < len(text) / 2


def test_a_vocabulary_that_cannot_be_learned_says_why() -> None:
    with pytest.raises(ValueError, match="the text is empty"):
        BPETokenizer.learn("")
    with pytest.raises(ValueError, match="at least 256 tokens, one per byte, not 100"):
        BPETokenizer.learn("abc", 100)
    assert BPETokenizer.learn("abc", 5000).vocab_size < 300


def test_a_lone_surrogate_is_read_as_the_replacement_character_and_named() -> None:
    encoding = learned().encode("é \ud800x")
    assert learned().decode(encoding.ids) == "é \ufffdx"
    assert learned().encode_ids("é \ud800x").tolist() == encoding.ids
    [unknown] = encoding.unknown
    assert (unknown.character, unknown.name, unknown.instead) == ("\ud800", "U+D800", "\ufffd")
    assert learned().piece(encoding.ids[unknown.position]) != " "


def wrapped(model: models.Model, **parts: object) -> BPETokenizer:
    backend = Tokenizer(model)
    for name, part in parts.items():
        setattr(backend, name, part)
    return BPETokenizer.from_json(backend.to_str())


def unknowns(tokenizer: BPETokenizer, text: str) -> list[tuple[int, str, str]]:
    encoding = tokenizer.encode(text)
    assert encoding.ids == tokenizer.encode_ids(text).tolist()
    return [(unknown.position, unknown.character, unknown.instead) for unknown in encoding.unknown]


def test_a_vocabulary_of_characters_reports_what_it_reads_as_its_unknown_token() -> None:
    vocabulary = {"a": 0, "b": 1, "[U]": 2}
    assert unknowns(wrapped(models.BPE(vocabulary, [], unk_token="[U]")), "aéb日") == [
        (1, "é", "[U]"),
        (3, "日", "[U]"),
    ]
    fused = wrapped(models.BPE(vocabulary, [], unk_token="[U]", fuse_unk=True))
    assert unknowns(fused, "aé日b") == [(1, "é", "[U]"), (1, "日", "[U]")]
    unigram = wrapped(models.Unigram([("a", -1.0), ("?", -2.0)], unk_id=1, byte_fallback=False))
    assert unknowns(unigram, "aé") == [(1, "é", "?")]


def test_a_vocabulary_without_an_unknown_token_reports_what_it_leaves_out() -> None:
    tokenizer = wrapped(models.BPE({"a": 0, "b": 1}, []))
    assert unknowns(tokenizer, "aé日b \ud800") == [(1, "é", ""), (1, "日", ""), (2, "\ud800", "")]
    assert unknowns(tokenizer, "é" * 3 + "ab") == [(0, "é", "")] * 3
    assert tokenizer.encode("é").unknown_sentence() == (
        "Not in the vocabulary: é (U+00E9 LATIN SMALL LETTER E WITH ACUTE); the model reads "
        "nothing instead."
    )


def test_a_vocabulary_of_words_reports_the_word() -> None:
    words = models.WordLevel({"a": 0, "[U]": 1}, unk_token="[U]")
    tokenizer = wrapped(words, pre_tokenizer=pre_tokenizers.Whitespace())
    assert unknowns(tokenizer, "a cat a") == [(1, "cat", "[U]")]
    assert (
        "the text “cat”; the model reads [U] instead"
        in tokenizer.encode("a cat").unknown_sentence()
    )


def test_a_byte_vocabulary_with_missing_bytes_reports_every_character_it_breaks() -> None:
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = wrapped(models.BPE({"a": 0, "Ã": 1}, []), pre_tokenizer=byte_level)
    assert unknowns(tokenizer, "aéa日") == [(1, "é", ""), (3, "日", "")]
    assert unknowns(tokenizer, "日aaé") == [(0, "日", ""), (2, "é", "")]
    with_token = wrapped(
        models.BPE({"a": 0, "Ã": 1, "?": 2}, [], unk_token="?"), pre_tokenizer=byte_level
    )
    assert unknowns(with_token, "éa日a") == [(1, "é", "?"), (3, "日", "?")]


def test_a_vocabulary_without_its_own_unknown_token_refuses_the_text_in_a_sentence() -> None:
    tokenizer = wrapped(models.BPE({"a": 0}, [], unk_token="[U]"))
    assert tokenizer.encode("aa").ids == [0, 0]
    for encode in (tokenizer.encode, tokenizer.encode_ids):
        with pytest.raises(ValueError, match="cannot read the text"):
            encode("é")


def test_sentencepiece_spaces_and_bytes_are_shown_as_what_they_stand_for() -> None:
    tokenizer = wrapped(
        models.BPE(
            {"▁": 0, "a": 1, "▁a": 2, "<0xE2>": 3, "[U]": 4},
            [("▁", "a")],
            unk_token="[U]",
            byte_fallback=True,
        ),
        normalizer=normalizers.Replace(" ", "▁"),
        decoder=decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
        ),
    )
    assert tokenizer.labels() == ["␣", "a", "␣a", "<E2>", "[U]"]
    assert tokenizer.decode(tokenizer.encode("a a").ids) == "a a"
    assert tokenizer.id_of(" a") == 2


def test_truncation_padding_and_dropout_of_a_file_do_not_change_the_ids() -> None:
    backend = Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")], dropout=0.9))
    backend.enable_truncation(2)
    backend.enable_padding(length=9)
    tokenizer = BPETokenizer.from_json(backend.to_str())
    for length in (1, 50):
        text = "ab" * length
        assert tokenizer.encode(text).ids == tokenizer.encode_ids(text).tolist() == [2] * length


def test_added_tokens_are_literal_and_keep_text_whole_around_them() -> None:
    backend = Tokenizer.from_str(learned().to_json())
    backend.add_special_tokens(["<é b>", "<é>", " the"])
    tokenizer = BPETokenizer.from_json(backend.to_str())
    assert tokenizer.vocab_size == learned().vocab_size + 3
    assert [tokenizer.piece(500), tokenizer.label(500), tokenizer.id_of("<é b>")] == [
        "<é b>",
        "<é␣b>",
        500,
    ]
    text = "x <é b> y<é>z" * 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bpe, "_CHUNK", 1)
        assert tokenizer.encode_ids(text).tolist() == tokenizer.encode(text).ids
    assert [tokenizer.encode(text).ids.count(i) for i in (500, 501)] == [3, 3]
    assert tokenizer.decode(tokenizer.encode(text).ids) == text
    # Of the two tokens that now stand for the same text, the first is found.
    assert tokenizer.piece(502) == " the"
    assert tokenizer.id_of(" the") == learned().id_of(" the") != 502


def test_files_that_are_not_a_tokenizer_are_refused_by_name(tmp_path: Path) -> None:
    good = tmp_path / "tokenizer.json"
    wrong = tmp_path / "wrong"
    good.write_text(learned().to_json(), encoding="utf-8")
    assert BPETokenizer.from_file(good).to_json() == learned().to_json()
    with pytest.raises(FileNotFoundError, match="absent"):
        BPETokenizer.from_file(tmp_path / "absent")
    wrong.write_bytes(b'{"model": "\xff"}')
    with pytest.raises(ValueError, match=r"wrong is not UTF-8 text \(byte 11\)"):
        BPETokenizer.from_file(wrong)
    for encoder, merges in [
        ('{"a": 0}', "#version: 0.2\na b\n"),
        ('{"a": "x"}', ""),
        ('{"a": 0}', "a\n"),
        ("{}", "a b"),
    ]:
        good.write_text(encoder, encoding="utf-8")
        wrong.write_text(merges, encoding="utf-8")
        with pytest.raises(ValueError, match="."):
            BPETokenizer.from_gpt2(good, wrong)
