"""A class guesses the next token: what is typed becomes a token as the tokenizer reads it, and the
result is that of a plain count.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gptviz
from gptviz.lessons.answering import answer_to
from gptviz.lessons.expression import ExpressionError
from gptviz.lessons.guessing import (
    FEW,
    LONGEST,
    MOST_FOUND,
    MOST_SHOWN,
    GuessableTokens,
    GuessResult,
    surprise,
)
from gptviz.lessons.lesson import LessonError, parse_lesson
from gptviz.lessons.quantities import Quantities

MODELS = ("bpe", "sentences", "shakespeare")


@cache
def tokens_of(name: str) -> GuessableTokens:
    return GuessableTokens(gptviz.load(name, "cpu").tokenizer)


@pytest.mark.parametrize(
    ("before", "word", "pieces"),
    [
        ("To be, or not to", "be", 1),
        ("I forgot to charge my", "phone", 3),
        ("the return of the", "unicorn", 2),
        ("ROMEO:", "\n", 1),
        ("", "unicorn", 2),
    ],
)
def test_a_word_of_several_tokens_counts_as_its_first(before: str, word: str, pieces: int) -> None:
    tokens = tokens_of("bpe")
    space = " " if before[-1:].isalnum() else ""
    cut = tokens.tokenizer.encode(before + space + word).ids[
        len(tokens.tokenizer.encode(before).ids) :
    ]
    assert len(cut) >= pieces
    first = tokens.first_token(before, word)
    assert first == tokens.names[cut[0]]
    assert tokens.find(before, word)[0] == first


@pytest.mark.parametrize("name", MODELS)
def test_every_token_is_found_by_its_name_and_what_it_begins_with_is_first(name: str) -> None:
    tokens = tokens_of(name)
    for token, i in list(tokens.ids.items())[:: max(1, len(tokens.ids) // 200)]:
        if tokens.tokenizer.id_of(tokens.tokenizer.piece(i)) == i:
            assert token in tokens.find("", token), token
    assert set(tokens.find("", "")) == (set(tokens.ids) if len(tokens.ids) <= FEW else set())


def test_a_word_after_a_space_that_is_read_already_begins_without_one() -> None:
    tokens = tokens_of("bpe")
    assert tokens.tokenizer.label(tokens.tokenizer.encode("To be, or not to ").ids[-1]) == "␣"
    assert tokens.first_token("To be, or not to ", "be") == "be"


def test_a_letter_is_itself_where_every_character_is_a_token() -> None:
    assert tokens_of("shakespeare").first_token("To be, or not t", "o") == "o"
    assert tokens_of("shakespeare").first_token("To be", "⏎") == "⏎"
    assert tokens_of("shakespeare").first_token("To be", "␣") == "␣"


@given(st.sampled_from(MODELS), st.text(max_size=40), st.text(max_size=300))
def test_any_text_finds_few_tokens_of_the_model_or_none(name: str, before: str, typed: str) -> None:
    tokens = tokens_of(name)
    found = tokens.find(before, typed)
    assert set(found) <= tokens.ids.keys()
    assert len(found) == len(set(found))
    assert len(found) <= (MOST_FOUND if typed else FEW)


def test_of_what_is_typed_only_its_beginning_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = tokens_of("bpe")
    read = list[int]()
    encode = type(tokens.tokenizer).encode

    def spied(self: object, text: str) -> object:
        read.append(len(text))
        return encode(tokens.tokenizer, text)

    monkeypatch.setattr(type(tokens.tokenizer), "encode", spied)
    tokens.find("To be", "x" * 1_000_000)
    assert max(read) <= len("To be") + 1 + LONGEST


@given(
    st.lists(st.integers(0, 19), max_size=60),
    st.lists(st.floats(0, 1), min_size=20, max_size=20).filter(any),
    st.none() | st.integers(0, 19),
)
def test_the_result_is_that_of_a_plain_count(
    guesses: list[int], weights: list[float], true: int | None
) -> None:
    shares = np.array(weights) / sum(weights)
    result = GuessResult(Counter(guesses), shares, true)
    assert result.n_guesses == len(guesses)
    for token in range(20):
        expected = guesses.count(token) / len(guesses) if guesses else 0
        assert result.shares(token) == (expected, shares[token])
    shown = result.tokens
    assert len(shown) == len(set(shown)) <= MOST_SHOWN + 1
    assert true is None or true in shown
    # no token that is left out has a larger share than one that is shown, but for the right one
    left = [max(result.shares(token)) for token in range(20) if token not in shown]
    assert max(left, default=0) <= min(
        (max(result.shares(token)) for token in shown if token != true), default=1
    )
    of_class, of_model = zip(*map(result.shares, shown), result.others, strict=True)
    assert sum(of_class) == pytest.approx(1 if guesses else 0)
    assert sum(of_model) == pytest.approx(1)


def test_surprise_is_in_bits_and_without_a_bound_where_nobody_guessed() -> None:
    assert [surprise(share) for share in (1, 0.5, 0.125)] == [0, 1, 3]
    assert surprise(0) == math.inf


FRONT = "---\ntitle: x\nabout: x\nmodel: bpe\n---\n## Step\n"
GUESS = '```question\nask: x\nkind: guess\nprompt: "To be, or not to"\nanswer: "{answer}"\n```\n'


def test_the_answer_to_a_guess_is_the_first_token_of_what_went_on() -> None:
    functions = Quantities(lambda name, step: gptviz.load(name, "cpu", step), "bpe").functions

    def answer(text: str) -> object:
        lesson = parse_lesson(FRONT + GUESS.format(answer=text), "a-lesson")
        return answer_to(lesson.steps[0].questions[0], functions).value

    assert answer("'be'") == "␣be"
    assert answer("'phone'") == tokens_of("bpe").first_token("To be, or not to", "phone")
    assert answer("likeliest('To be, or not to')") == "␣be"
    for wrong, why in (("3", "it must be a text"), ("''", "has no token")):
        with pytest.raises(ExpressionError, match=why):
            answer(wrong)
    with pytest.raises(LessonError, match="'prompt' is missing"):
        parse_lesson(FRONT + GUESS.format(answer="'be'").replace("prompt", "# prompt"), "a-lesson")
