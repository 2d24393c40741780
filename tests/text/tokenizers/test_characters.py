"""Character tokens, checked against a dictionary and a loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.text import CharTokenizer, from_json
from gptviz.text.tokenizers import characters

# Lone surrogates included: a paste or a wrongly read file can hold them.
any_text = st.text(st.characters(codec=None, exclude_categories=()))
some_text = any_text.filter(bool)


@given(some_text, any_text, st.none() | st.characters())
def test_ids_are_those_of_a_dictionary_of_sorted_characters(
    vocabulary: str, text: str, unknown: str | None
) -> None:
    tokenizer = CharTokenizer(vocabulary, unknown)
    table = {character: i for i, character in enumerate(sorted(set(vocabulary)))}
    stand_in = table.get(" ", 0) if unknown is None else table.setdefault(unknown, len(table))
    expected = [table.get(character, stand_in) for character in text]
    encoding = tokenizer.encode(text)
    assert tokenizer.vocab_size == len(table)
    assert encoding.ids == expected
    assert tokenizer.encode_ids(text).tolist() == expected
    assert [(u.position, u.character) for u in encoding.unknown] == [
        (i, character) for i, character in enumerate(text) if character not in table
    ]
    assert {u.instead for u in encoding.unknown} <= {tokenizer.label(stand_in)}


def test_two_surrogates_that_would_make_a_pair_in_json_stay_two_tokens() -> None:
    tokenizer = CharTokenizer("\udbff\udc00")
    assert from_json(tokenizer.to_json()).vocab_size == tokenizer.vocab_size == 2


def test_a_corpus_in_pieces_has_the_ids_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "to be, or not to be ☂ " * 9
    tokenizer = CharTokenizer("abenort ,")
    whole = tokenizer.encode_ids(text)
    monkeypatch.setattr(characters, "_CHUNK", 7)
    in_pieces = tokenizer.encode_ids(text)
    assert in_pieces.dtype == np.int64
    assert in_pieces.tolist() == whole.tolist() == tokenizer.encode(text).ids


def test_tiny_shakespeare_has_65_characters_and_the_known_counts(shakespeare: str) -> None:
    tokenizer = CharTokenizer(shakespeare)
    ids = tokenizer.encode_ids(shakespeare)
    assert ids.shape == (1_115_394,)
    assert (
        tokenizer.characters == "\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    )
    assert tokenizer.vocab_size == 65
    assert np.bincount(ids).tolist() == [
        shakespeare.count(character) for character in tokenizer.characters
    ]
    assert tokenizer.decode(ids) == shakespeare
    assert CharTokenizer(shakespeare, unknown="Ø").vocab_size == 66


def test_an_unknown_symbol_gets_the_last_row_or_the_one_it_has() -> None:
    own_row = CharTokenizer("abc", unknown="!")
    assert (own_row.characters, own_row.encode("b?").ids) == ("abc!", [1, 3])
    shared_row = CharTokenizer("a!c", unknown="!")
    assert (shared_row.characters, shared_row.encode("c?").ids) == ("!ac", [2, 0])
    assert own_row.encode("!").unknown == shared_row.encode("!").unknown == ()


def test_unknown_characters_are_named_once_and_counted_after_five() -> None:
    tokenizer = CharTokenizer("ab ")
    assert tokenizer.encode("ab").unknown_sentence() == ""
    assert tokenizer.encode("a€b€\u200b").unknown_sentence() == (
        "Not in the vocabulary: € (U+20AC EURO SIGN), U+200B ZERO WIDTH SPACE; the model reads ␣ "
        "instead."
    )
    many = tokenizer.encode("cdefghij").unknown_sentence()
    assert "g (U+0067 LATIN SMALL LETTER G), and 3 more; the model" in many
    assert "LETTER H" not in many


def test_a_vocabulary_that_cannot_be_made_says_why() -> None:
    with pytest.raises(ValueError, match="the text is empty"):
        CharTokenizer("")
    with pytest.raises(ValueError, match="65,537 distinct characters are too many"):
        CharTokenizer(map(chr, range(65_537)))
    assert CharTokenizer(map(chr, range(65_536))).vocab_size == 65_536
    with pytest.raises(ValueError, match="must be one character, not 'unk'"):
        CharTokenizer("abc", unknown="unk")
    with pytest.raises(ValueError, match="must be one character, not 'ab'"):
        CharTokenizer(["ab"])
