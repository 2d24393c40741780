"""Word tokens, checked against the seed's own pattern, a counter and a dictionary."""

import re
import time
import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.text import WordTokenizer, words_of
from gptviz.text.tokenizers.words import cleaned

any_text = st.text(st.characters(codec=None, exclude_categories=()))
lettered = st.text(st.sampled_from("abcXYZ é’'`-_3\n.,ßйあ\u0301\u200d"), max_size=40)
word = st.text(st.sampled_from("abcdefgh"), min_size=2, max_size=5)
vocabulary = st.lists(word, min_size=1, max_size=12, unique=True)


def plainly_cleaned(text: str) -> str:
    """The cleaning of the seed, a character at a time."""
    cleaned_text = ""
    for character in unicodedata.normalize("NFD", text.lower()):
        if unicodedata.category(character) in ("Mn", "Mc", "Me") or character in "'`’\u200d":
            continue
        cleaned_text += " " if character == "\n" else character
    return cleaned_text


@given(st.one_of(any_text, lettered))
def test_words_are_those_of_the_seeds_pattern_after_its_cleaning(text: str) -> None:
    assert cleaned(text) == plainly_cleaned(text)
    assert words_of(text) == re.findall(r"[A-Za-z][A-Za-z]+\b", plainly_cleaned(text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't", ["dont"]),
        ("don’t rock`n'roll", ["dont", "rocknroll"]),
        ("a naïve CAFÉ, 7 I", ["naive", "cafe"]),
        ("one\ntwo", ["one", "two"]),
        ("3rd abc3 so-so", ["rd", "so", "so"]),
        ("İstanbul", ["istanbul"]),
        ("это кино 映画", []),
        ("\ud800 lone", ["lone"]),
        (" \n\t.!?", []),
    ],
)
def test_a_text_is_cleaned_as_the_seed_says(text: str, words: list[str]) -> None:
    assert words_of(text) == words
    assert WordTokenizer(["other"]).encode(text).ids == [1] * len(words)


def test_a_long_run_of_letters_takes_no_longer_than_its_length() -> None:
    begun = time.process_time()
    assert words_of("a" * 1_000_000 + "3 " + "word " * 100_000) == ["word"] * 100_000
    assert time.process_time() - begun < 5


@given(st.lists(st.lists(word, max_size=8).map(" ".join), max_size=8), st.integers(3, 12))
def test_the_vocabulary_is_the_most_frequent_words_then_unknown_and_padding(
    texts: list[str], vocab_size: int
) -> None:
    counts = Counter(" ".join(texts).split())
    if not counts:
        with pytest.raises(ValueError, match="no text has a word"):
            WordTokenizer.learn(texts, vocab_size)
        return
    # those of one place, if no others
    counts = Counter({name: count for name, count in counts.items() if count > 1}) or counts
    tokenizer = WordTokenizer.learn(iter(texts), vocab_size)
    assert tokenizer.vocab_size == min(vocab_size, len(counts) + 2) == len(tokenizer.words) + 2
    assert [tokenizer.label(tokenizer.unknown), tokenizer.label(tokenizer.padding)] == list(
        WordTokenizer.special_tokens
    )
    assert (tokenizer.unknown, tokenizer.padding) == (
        tokenizer.vocab_size - 2,
        tokenizer.vocab_size - 1,
    )
    by_hand = [
        name
        for count in sorted(set(counts.values()), reverse=True)
        for name in sorted(counts)
        if counts[name] == count
    ]
    assert list(tokenizer.words) == by_hand[: vocab_size - 2]


@given(st.lists(word, min_size=1, max_size=20), st.integers(3, 8))
def test_a_smaller_vocabulary_is_the_beginning_of_a_larger_one(
    words: list[str], vocab_size: int
) -> None:
    small, large = (WordTokenizer.learn(words, size).words for size in (vocab_size, vocab_size + 5))
    assert large[: len(small)] == small


@given(vocabulary, st.lists(word, max_size=6), lettered)
def test_ids_are_those_of_a_dictionary_and_what_it_lacks_is_told(
    words: list[str], others: list[str], tail: str
) -> None:
    tokenizer = WordTokenizer(words)
    text = ", ".join([*words, *others]) + ". " + tail
    read = words_of(text)
    encoding = tokenizer.encode(text)
    assert encoding.ids == [
        words.index(each) if each in words else tokenizer.unknown for each in read
    ]
    assert tokenizer.encode_ids(text).tolist() == encoding.ids
    assert [(u.position, u.character) for u in encoding.unknown] == [
        (i, w) for i, w in enumerate(read) if w not in words
    ]
    assert {u.instead for u in encoding.unknown} <= {"⟨unknown⟩"}


@given(vocabulary, st.data())
def test_padding_adds_nothing_to_a_text(words: list[str], data: st.DataObject) -> None:
    tokenizer = WordTokenizer(words)
    ids = data.draw(st.lists(st.integers(0, len(words) - 1)))
    assert tokenizer.decode([*ids, tokenizer.padding, tokenizer.padding]) == tokenizer.decode(ids)
    assert tokenizer.decode([tokenizer.unknown]) == "⟨unknown⟩"


@pytest.mark.parametrize("vocab_size", [2, 0, -1])
def test_a_vocabulary_with_no_room_for_a_word_is_refused(vocab_size: int) -> None:
    with pytest.raises(ValueError, match=f"at least 3 tokens.*not {vocab_size}"):
        WordTokenizer.learn(["some words"], vocab_size)
