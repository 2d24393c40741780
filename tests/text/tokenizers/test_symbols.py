"""Symbol tokens, checked against a dictionary and `str.split`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.text import SymbolTokenizer, Tokenizer, WordTokenizer

any_text = st.text(st.characters(codec=None, exclude_categories=()))
symbol = st.text(st.characters(codec="utf-8"), min_size=1).filter(
    lambda text: text.split() == [text]
)
vocabulary = st.lists(symbol, min_size=1, max_size=12, unique=True)
spaces = st.text(st.sampled_from(" \t\n\r\x0b\x1c\x85\u2003\u3000"), min_size=1, max_size=3)


@given(vocabulary, st.lists(symbol, max_size=6), spaces, any_text)
def test_ids_are_those_of_a_dictionary_over_the_split_text(
    symbols: list[str], others: list[str], space: str, tail: str
) -> None:
    tokenizer = SymbolTokenizer(symbols)
    text = space + space.join([*symbols, *others]) + space + tail
    words = text.split()
    encoding = tokenizer.encode(text)
    assert tokenizer.vocab_size == len(symbols)
    assert encoding.ids == [symbols.index(word) if word in symbols else 0 for word in words]
    assert tokenizer.encode_ids(text).tolist() == encoding.ids
    assert [(u.position, u.character) for u in encoding.unknown] == [
        (i, word) for i, word in enumerate(words) if word not in symbols
    ]
    assert {u.instead for u in encoding.unknown} <= {tokenizer.label(0)}


def test_numbers_have_themselves_as_ids() -> None:
    tokenizer = SymbolTokenizer.numbers(100)
    assert tokenizer.encode("7 99\n0").ids == [7, 99, 0]
    assert tokenizer.decode([7, 99, 0]) == "7 99 0"
    assert (tokenizer.piece(7), tokenizer.label(7), tokenizer.kind_of(7)) == (" 7", "7", "digit")


@pytest.mark.parametrize("tokenizer", [SymbolTokenizer.numbers(3), WordTokenizer(["film"])])
def test_of_a_long_word_that_the_vocabulary_lacks_the_beginning_is_named(
    tokenizer: Tokenizer,
) -> None:
    encoding = tokenizer.encode("zy" * 50_000)
    assert encoding.unknown[0].character == "zy" * 50_000
    assert encoding.unknown_sentence().startswith(
        f"Not in the vocabulary: the text “{'zy' * 19}z…”; the model reads"
    )
