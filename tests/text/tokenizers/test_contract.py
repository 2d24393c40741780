"""What every kind of tokenizer promises, whatever its vocabulary and the text. What one kind adds
has a file of its own.
"""

from __future__ import annotations

import tempfile
import tracemalloc
from collections import Counter
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from gptviz.pretrained.sources.folder_tokens import FolderTokens
from gptviz.runs import checkpoints
from gptviz.text import (
    TOKEN_KINDS,
    BPETokenizer,
    CharTokenizer,
    SpecialTokensTokenizer,
    SymbolTokenizer,
    Tokenizer,
    WordTokenizer,
    from_json,
)
from gptviz.text.tokenizers.cased_words import SPECIAL_TOKENS, CasedWordTokenizer, tokens_of
from gptviz.text.tokenizers.padded import PaddedTokenizer
from gptviz.text.tokenizers.registry import FROM_FIELDS
from gptviz.text.tokenizers.sentencepiece import from_sentencepiece
from gptviz.text.tokenizers.wordpiece import from_wordpiece
from tests.examples import tried
from tests.text import marian_vocabulary
from tests.text.sentencepieces import LLAMA, trained

# What a keyboard, a copy from elsewhere or an attack brings: any character, lone surrogates
# included, words of the models that ship, and parts of special tokens.
ODD = ["ROMEO:", " the", "\r\n", "\x00", "\u202e", "👩‍🚀", "<|endoftext|>", "[CLS]", "\ud7ff", "１"]
pieces_of_text = st.text(
    st.characters(codec=None, exclude_categories=()), max_size=20
) | st.sampled_from(ODD)
any_text = st.lists(pieces_of_text, max_size=4).map("".join)
symbol = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6).filter(
    lambda text: text.split() == [text]
)
token = symbol.filter(lambda text: tokens_of(text) == [text] and text not in SPECIAL_TOKENS)
word = st.text(st.sampled_from("abcdefgh"), min_size=2, max_size=5)


@cache
def marian() -> Tokenizer:
    with tempfile.TemporaryDirectory() as folder:
        marian_vocabulary.write(Path(folder))
        return FolderTokens(Path(folder)).tokenizer()


@cache
def shipped(name: str) -> Tokenizer:
    return checkpoints.load(checkpoints.BUNDLED / name).tokenizer


def several(one: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(one, min_size=1, max_size=8, unique=True)


characters = st.builds(CharTokenizer, any_text.filter(bool), st.none() | st.characters())
pieces = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", *"abcdefgh", "##a", "##b", "##cd", "dog", "the"]
KINDS: dict[str, st.SearchStrategy[Tokenizer]] = {
    "characters": characters,
    "symbols": st.builds(SymbolTokenizer, several(symbol)),
    "words": st.builds(WordTokenizer, several(word)),
    "cased words": st.builds(CasedWordTokenizer, several(token)),
    "bpe": st.deferred(lambda: st.just(BPETokenizer.learn("to be, or not to be: é 日本", 280))),
    "marked": st.builds(
        SpecialTokensTokenizer, characters | st.builds(SymbolTokenizer, several(symbol))
    ),
    "marian": st.deferred(lambda: st.just(marian())),
    "padded": st.builds(lambda inner: PaddedTokenizer(inner, inner.vocab_size + 3), characters),
    "of SentencePiece": st.deferred(
        lambda: st.just(from_sentencepiece(trained(**LLAMA), start=True, end=True))
    ),
    "of WordPiece": st.deferred(lambda: st.just(from_wordpiece("\n".join(pieces)))),
}
for name in ("shakespeare", "bpe", "classifier", "seq2seq", "reversal", "sentences"):
    KINDS[f"of the model {name}"] = st.builds(shipped, st.just(name))
every_kind = pytest.mark.parametrize("kind", KINDS)


def test_every_kind_that_a_checkpoint_may_have_is_here() -> None:
    assert set(FROM_FIELDS) | {"bpe", "marked", "marian", "padded"} <= set(KINDS)


@every_kind
@tried(10, 100, st.data(), any_text)
def test_a_text_has_the_same_ids_of_the_vocabulary_however_it_is_read(
    kind: str, data: st.DataObject, text: str
) -> None:
    tokenizer = data.draw(KINDS[kind])
    encoding = tokenizer.encode(text)
    ids = tokenizer.encode_ids(text)
    assert (ids.dtype, ids.tolist()) == (np.int64, encoding.ids)
    assert all(0 <= one < tokenizer.vocab_size for one in encoding.ids)
    assert all(0 <= unknown.position <= len(encoding.ids) for unknown in encoding.unknown)
    assert bool(encoding.unknown) == ("Not in the vocabulary" in encoding.unknown_sentence())
    assert encoding.unknown or not tokenizer.encode(tokenizer.decode(encoding.ids)).unknown


@every_kind
@tried(10, 100, st.data())
def test_every_token_is_shown_in_one_way_and_found_by_the_text_that_it_stands_for(
    kind: str, data: st.DataObject
) -> None:
    tokenizer = data.draw(KINDS[kind])
    ids = range(tokenizer.vocab_size)
    labels = tokenizer.labels()
    shown = [tokenizer.piece(one) for one in ids]
    assert labels == [tokenizer.label(one) for one in ids]
    # A byte may be a token of its own beside the character that it is.
    assert len(set(labels)) == len(labels) or isinstance(tokenizer, BPETokenizer)
    assert {tokenizer.kind_of(one) for one in ids} <= set(TOKEN_KINDS)
    times = Counter(shown)
    whole = [
        one for one in ids if shown[one] and "\ufffd" not in shown[one] and times[shown[one]] == 1
    ]
    assert [tokenizer.id_of(shown[one]) for one in whole] == whole
    assert tokenizer.id_of("") is tokenizer.id_of("no such token") is None


@lru_cache(maxsize=1)  # of a vocabulary that does not change, once for all texts
def opened_again(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer that is opened from what this one writes down: it has the same tokens."""
    again = from_json(tokenizer.to_json().encode().decode())
    assert (type(again), again.kind, again.to_json()) == (
        type(tokenizer),
        tokenizer.kind,
        tokenizer.to_json(),
    )
    assert again.labels() == tokenizer.labels()
    assert (again.padding, again.unknown_id, again.unused_ids) == (
        tokenizer.padding,
        tokenizer.unknown_id,
        tokenizer.unused_ids,
    )
    return again


@every_kind
@tried(10, 100, st.data(), any_text)
def test_what_is_written_down_opens_as_the_same_tokenizer(
    kind: str, data: st.DataObject, text: str
) -> None:
    tokenizer = data.draw(KINDS[kind])
    assert opened_again(tokenizer).encode(text) == tokenizer.encode(text)


@pytest.mark.parametrize("kind", ["characters", "symbols", "words", "cased words"])
@tried(50, 200, st.data())
def test_any_ids_that_stand_for_a_text_come_back_through_it(kind: str, data: st.DataObject) -> None:
    tokenizer = data.draw(KINDS[kind])
    special = WordTokenizer.special_tokens if kind == "words" else ()
    known = [one for one in range(tokenizer.vocab_size) if tokenizer.label(one) not in special]
    ids = data.draw(st.lists(st.sampled_from(known)))
    encoding = tokenizer.encode(tokenizer.decode(np.array(ids, np.int64)))
    assert (encoding.ids, encoding.unknown) == (ids, ())


@pytest.mark.parametrize("kind", ["symbols", "words", "cased words"])
@tried(10, 100, st.data(), any_text)
def test_a_text_with_a_piece_appended_reads_as_the_same_tokens_and_that_one(
    kind: str, data: st.DataObject, text: str
) -> None:
    tokenizer = data.draw(KINDS[kind])
    before = tokenizer.encode(text).ids
    spaced = [
        one
        for one in range(tokenizer.vocab_size)
        if tokenizer.piece(one).startswith(" ") and one != tokenizer.unknown_id
    ]
    assert spaced or kind == "cased words"
    for one in spaced:
        assert tokenizer.encode(text + tokenizer.piece(one)).ids == [*before, one]


@every_kind
@tried(3, 30, st.data())
def test_what_is_no_id_of_the_vocabulary_is_refused(kind: str, data: st.DataObject) -> None:
    tokenizer = data.draw(KINDS[kind])
    size = tokenizer.vocab_size
    strange: list[Any] = [[size], [-1], [0, size + 96], [0.5], [[0]], ["a"], [True]]
    for ids in strange:
        with pytest.raises(ValueError, match=f"vocabulary of {size} tokens|whole numbers"):
            tokenizer.decode(ids)
    for ask in (tokenizer.piece, tokenizer.label, tokenizer.kind_of):
        for one in (size, -1):
            with pytest.raises(
                ValueError, match=f"the id {one} is outside the vocabulary of {size} tokens"
            ):
                ask(one)


@pytest.mark.parametrize(
    ("tokenizer", "text", "ids"),
    [
        (SymbolTokenizer.numbers(20), "7 12 ", [7, 12]),
        (WordTokenizer(["good", "film"]), "good film ", [0, 1]),
    ],
    ids=["symbols", "words"],
)
def test_a_corpus_passes_without_a_copy_of_every_token(
    tokenizer: Tokenizer, text: str, ids: list[int]
) -> None:
    corpus = text * 100_000
    tracemalloc.start()
    found = tokenizer.encode_ids(corpus)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found.reshape(-1, 2) == ids).all()
    # Words are read from a cleaned copy of the text.
    assert peak < (
        3 * found.nbytes if tokenizer.kind == "symbols" else 4 * found.nbytes + len(corpus)
    )


@pytest.mark.parametrize("text", [[], [0], [1, 2, 0]])
@pytest.mark.parametrize("before", [(), (4, 5)])
@pytest.mark.parametrize("after", [(), (3,)])
def test_a_text_is_found_between_the_tokens_around_it_where_those_are(
    text: list[int], before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    tokenizer = CharTokenizer("abcdef")
    tokenizer.before = (4, 5)
    tokenizer.after = (3,)
    ids = [*before, *text, *after]
    assert ids[tokenizer.text_slice(ids)] == text
    assert tokenizer.text_slice(ids).start == len(before)
