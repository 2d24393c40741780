"""Special tokens after a vocabulary: they stand where models need them, and never in a text."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.text import (
    BPETokenizer,
    CharTokenizer,
    SpecialTokensTokenizer,
    SymbolTokenizer,
    Tokenizer,
    from_json,
)

INNER = [
    CharTokenizer("abc xyz"),
    SymbolTokenizer.numbers(5),
    BPETokenizer.learn("to be or not to be", 260),
]
every_inner = pytest.mark.parametrize("inner", INNER, ids=lambda inner: inner.kind)
texts = st.text("abc xyz01234", max_size=12)


@every_inner
@given(text=texts)
def test_a_text_is_read_as_by_the_inner_tokenizer_without_any_special_token(
    inner: Tokenizer, text: str
) -> None:
    tokenizer = SpecialTokensTokenizer(inner)
    assert tokenizer.encode(text) == inner.encode(text)
    assert np.array_equal(tokenizer.encode_ids(text), inner.encode_ids(text))
    assert max(tokenizer.encode(text).ids, default=0) < inner.vocab_size


@every_inner
@given(text=texts)
def test_sources_and_answers_are_the_text_between_their_special_tokens(
    inner: Tokenizer, text: str
) -> None:
    tokenizer = SpecialTokensTokenizer(inner)
    ids = inner.encode(text).ids
    assert tokenizer.source_ids(text) == [*ids, tokenizer.end]
    assert tokenizer.target_ids(text) == [tokenizer.start, *ids, tokenizer.end]
    assert (
        tokenizer.decode(tokenizer.target_ids(text)) == tokenizer.decode(ids) == inner.decode(ids)
    )


@every_inner
def test_special_tokens_are_three_rows_after_the_others_with_a_name_and_no_text(
    inner: Tokenizer,
) -> None:
    tokenizer = SpecialTokensTokenizer(inner)
    special = [tokenizer.padding, tokenizer.start, tokenizer.end]
    assert special == list(range(inner.vocab_size, tokenizer.vocab_size))
    assert [tokenizer.label(token) for token in special] == ["⟨padding⟩", "⟨start⟩", "⟨end⟩"]
    assert [tokenizer.piece(token) for token in special] == ["", "", ""]
    assert {tokenizer.kind_of(token) for token in special} == {"other"}
    for i in range(inner.vocab_size):
        assert (tokenizer.piece(i), tokenizer.label(i)) == (inner.piece(i), inner.label(i))
        assert tokenizer.id_of(inner.piece(i)) == inner.id_of(inner.piece(i))


@given(st.lists(st.lists(st.integers(0, 6), max_size=5), max_size=4))
def test_rows_are_filled_up_at_their_ends_to_the_longest(rows: list[list[int]]) -> None:
    tokenizer = SpecialTokensTokenizer(CharTokenizer("abc xyz"))
    filled = tokenizer.pad_rows(rows)
    assert filled.shape == (len(rows), max(map(len, rows), default=0))
    for row, whole in zip(rows, filled.tolist(), strict=True):
        assert whole == row + [tokenizer.padding] * (len(whole) - len(row))


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        (None, "'inner' must be the object"),
        ("characters", "'inner' must be the object"),
        ([], "'inner' must be the object"),
        ({}, "neither a 'kind'"),
        (
            {"kind": "marked", "inner": {"kind": "characters", "characters": ["a"]}},
            "has special tokens itself",
        ),
        ({"kind": "characters", "characters": ["b", "a"]}, "must be sorted"),
    ],
)
def test_an_inner_tokenizer_that_is_none_is_refused_in_a_sentence(
    inner: object, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        from_json(json.dumps({"kind": "marked", "inner": inner}))
    with pytest.raises(ValueError, match="'inner' must be the object"):
        from_json('{"kind": "marked"}')


def test_a_vocabulary_gets_special_tokens_once() -> None:
    with pytest.raises(ValueError, match="has its special tokens already"):
        SpecialTokensTokenizer(SpecialTokensTokenizer(CharTokenizer("a")))
