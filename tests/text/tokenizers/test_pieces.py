"""What the tokens of a text are: whole words, parts, signs, parts of characters, unknown or
special.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest
from hypothesis import strategies as st

from gptviz.text import (
    BPETokenizer,
    CharTokenizer,
    SpecialTokensTokenizer,
    SymbolTokenizer,
    Tokenizer,
    python_reference,
)
from gptviz.text.datasets.languages import FIRST, TRANSLATED, examples
from gptviz.text.tokenizers.cased_words import CasedWordTokenizer
from gptviz.text.tokenizers.pieces import KINDS, cost, pieces, word_labels, words
from gptviz.text.tokenizers.wordpiece import from_wordpiece
from tests.examples import tried

any_text = st.text(
    st.sampled_from(" \nthe anding,.'1é日👍") | st.characters(codec="utf-8"), max_size=60
)


@cache
def learned() -> BPETokenizer:
    return BPETokenizer.learn(python_reference().text[:60_000], 600)


def kinds(tokenizer: Tokenizer, text: str) -> list[tuple[str, str]]:
    return [(piece.label, piece.kind) for piece in pieces(tokenizer, tokenizer.encode(text))]


@tried(30, 500, any_text)
def test_the_bytes_of_the_tokens_are_those_of_the_text(text: str) -> None:
    found = pieces(learned(), learned().encode(text))
    assert b"".join(piece.data for piece in found) == text.encode()
    assert {piece.kind for piece in found} <= {*KINDS}
    assert [piece.word for piece in found] == sorted(piece.word for piece in found)


@tried(30, 500, any_text)
def test_a_part_of_a_character_is_a_token_whose_bytes_are_no_text(text: str) -> None:
    for piece in pieces(learned(), learned().encode(text)):
        whole = "\ufffd" not in piece.data.decode("utf-8", "replace") or "\ufffd" in text
        assert whole or piece.kind == "part of a character"


def test_letters_of_words_are_parts_and_a_word_of_one_letter_is_whole() -> None:
    part = "part of a word"
    sign = "sign"
    assert [kind for _, kind in kinds(CharTokenizer("abcd "), "a bc d")] == [
        "whole word",
        sign,
        part,
        part,
        sign,
        "whole word",
    ]


def test_parts_of_one_word_have_one_number_and_other_words_another() -> None:
    tokenizer = learned()
    found = pieces(tokenizer, tokenizer.encode("unicorn's return"))
    by_word: dict[int, str] = {}
    for piece in found:
        by_word[piece.word] = by_word.get(piece.word, "") + piece.label
    assert list(by_word.values()) == ["unicorn's", "␣return"]


@tried(30, 500, st.text(st.sampled_from(" \nthe anding,.1é"), max_size=60))
@pytest.mark.parametrize("by_letters", [True, False])
def test_the_words_of_a_text_are_its_runs_of_letters_and_digits(
    by_letters: bool, text: str
) -> None:
    tokenizer = CharTokenizer(" \nthe andig,.1é") if by_letters else learned()
    ids = tokenizer.encode(text).ids
    found = words(tokenizer, ids)
    assert [place for word in found for place in word] == [*range(len(ids))]
    runs = "".join(letter if letter.isalnum() else " " for letter in text).split()
    written = [tokenizer.decode(ids[word.start : word.stop]) for word in found]
    if by_letters:
        assert [word for word in written if word.isalnum()] == runs
    else:  # a token may have a sign before its letters, and letters before its sign
        assert "".join(written) == text
        assert not any(a[-1].isalnum() and b[0].isalnum() for a, b in pairwise(written))
    assert len(word_labels(tokenizer, ids, found)) == len(found)


def test_wordpiece_joins_only_the_pieces_that_go_on() -> None:
    tokenizer = from_wordpiece("[PAD]\n[UNK]\n[CLS]\n[SEP]\nuni\n##corn\nking\n,\n")
    found = pieces(tokenizer, tokenizer.encode("unicorn king, €"))
    assert [(piece.label, piece.kind) for piece in found] == [
        ("[CLS]", "special"),
        ("uni", "part of a word"),
        ("##corn", "part of a word"),
        ("king", "whole word"),
        (",", "sign"),
        ("[UNK]", "unknown"),
        ("[SEP]", "special"),
    ]
    assert found[2].data == b"corn"
    assert found[1].word == found[2].word != found[3].word
    assert found[5].instead_of == "€"


def test_what_a_vocabulary_lacks_is_unknown_and_named() -> None:
    (found,) = pieces(CharTokenizer("ab "), CharTokenizer("ab ").encode("€"))
    assert (found.kind, found.instead_of, found.data) == ("unknown", "€", b"")
    assert kinds(CasedWordTokenizer(["Mary"]), "Mary saw") == [
        ("Mary", "whole word"),
        ("⟨unknown⟩", "unknown"),
    ]


def test_special_tokens_of_any_kind_are_no_text() -> None:
    tokenizer = SpecialTokensTokenizer(SymbolTokenizer.numbers(3))
    assert [tokenizer.is_special(i) for i in range(tokenizer.vocab_size)] == [False] * 3 + [
        True
    ] * 3
    assert kinds(CasedWordTokenizer(["Mary"]), "Mary ⟨end⟩")[1] == ("⟨end⟩", "special")


@pytest.mark.parametrize("text", examples().values(), ids=examples())
def test_every_example_costs_what_a_count_says(text: str) -> None:
    found = cost(learned(), text)
    assert found.tokens == len(learned().encode(text).ids)
    assert found.bytes == len(text.encode()) == round(found.bytes_per_token * found.tokens)
    assert cost(CharTokenizer(text), text).tokens == len(text)


def test_the_examples_are_eight_languages_then_numbers_and_code() -> None:
    names = [*examples()]
    assert names[0] == FIRST
    assert names[TRANSLATED:] == ["Numbers", "Code"]
    assert {name for name, text in examples().items() if cost(learned(), text).words is None} == {
        "Chinese",
        "Japanese",
    }
    assert cost(learned(), "one two, don't").words == 3
    assert cost(learned(), "शाम को बच्चे").words == 3
