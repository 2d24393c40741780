"""Answers of a class: each browser has one voice for a question, its last answer before the result
is shown; none is dropped without a word.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.lessons import votes
from tests.command_line import printed_elsewhere

QUESTION = votes.Question("01-tokens", "1.1", "How many?")
OTHER = votes.Question("01-tokens", "1.2", "How many words?")


@pytest.fixture(autouse=True)
def _no_answers() -> None:
    votes.forget()


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["3", "4", "ten"])), max_size=40),
    st.integers(0, 40),
)
def test_the_last_answer_of_each_browser_before_the_result_counts(
    answers: list[tuple[str, str]], shown_after: int
) -> None:
    votes.forget()
    for place, (browser, answer) in enumerate(answers):
        if place == shown_after:
            votes.show(QUESTION)
        is_counted = not votes.count(QUESTION, browser, answer)
        assert is_counted == (place < shown_after)
    counted = votes.ballot(QUESTION).counts
    assert dict(counted) == Counter(dict(answers[:shown_after]).values())
    counts = [count for _, count in counted]
    assert counts == sorted(counts, reverse=True)
    assert votes.ballot(OTHER).counts == []


def test_a_question_that_is_asked_again_is_counted_anew() -> None:
    votes.count(QUESTION, "a", "3")
    votes.show(QUESTION)
    assert "the result is shown already" in votes.count(QUESTION, "b", "4")
    votes.ask_again(QUESTION)
    assert not votes.count(QUESTION, "b", "4")
    assert votes.ballot(QUESTION).counts == [("4", 1)]


def test_a_browser_without_cookies_has_no_voice_and_is_told_so() -> None:
    assert "keeps no cookies" in votes.count(QUESTION, None, "3")
    assert not votes.ballot(QUESTION).answers


def test_more_than_a_thousand_browsers_are_counted() -> None:
    assert not any(votes.count(QUESTION, str(number), "yes") for number in range(2_500))
    assert votes.ballot(QUESTION).counts == [("yes", 2_500)]
    assert not votes.ballot(QUESTION).is_full


def test_where_there_is_no_room_both_sides_are_told_and_what_was_counted_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(votes, "MOST_ANSWERS", 3)
    for browser in "abc":
        assert not votes.count(QUESTION, browser, "yes")
    assert votes.count(OTHER, "d", "no") == votes.FULL
    assert votes.ballot(OTHER).is_full
    assert not votes.count(QUESTION, "c", "no"), "who has a voice may change it"
    assert votes.ballot(QUESTION).counts == [("yes", 2), ("no", 1)]
    votes.ask_again(QUESTION)
    assert not votes.count(OTHER, "d", "no")


def test_of_a_browser_nothing_is_kept_but_a_number_and_of_an_answer_its_beginning() -> None:
    votes.count(QUESTION, "the number of a cookie", "x" * 10_000)
    ((voice, answer),) = votes.ballot(QUESTION).answers.items()
    assert isinstance(voice, int)
    assert answer == "x" * votes.LONGEST


answered = st.dictionaries(
    st.tuples(st.sampled_from([QUESTION, OTHER]), st.sampled_from("abcdef")),
    st.sampled_from(["3", "4", "ten"]),
)


@given(answered)
def test_the_answers_of_the_hour_are_those_of_a_plain_count(
    answers: dict[tuple[votes.Question, str], str],
) -> None:
    votes.forget()
    for (question, browser), answer in answers.items():
        votes.count(question, browser, answer)
    counted = votes.counted_answers()
    assert {(question, answer): count for question, answer, count in counted} == Counter(
        (question, answer) for (question, _), answer in answers.items()
    )
    rows = votes.answers_by_pseudonym()
    by_browser: dict[str, dict[votes.Question, str]] = {}
    for (question, browser), answer in answers.items():
        by_browser.setdefault(browser, {})[question] = answer
    assert {votes.pseudonym(browser): given for browser, given in by_browser.items()} == rows
    assert list(rows) == sorted(rows), "the order in which browsers answered is not told"


def test_a_pseudonym_is_an_animal_that_stays_until_all_is_forgotten() -> None:
    assert votes.pseudonym("a") == "", "who has not answered has none"
    n_browsers = len(votes.ANIMALS) + 5
    for number in range(n_browsers):
        votes.count(QUESTION, str(number), "3")
    names = [votes.pseudonym(str(number)) for number in range(n_browsers)]
    assert names == [votes.pseudonym(str(number)) for number in range(n_browsers)]
    assert len(set(names)) == n_browsers
    assert {name.partition(" ")[0] for name in names} == set(votes.ANIMALS)
    votes.forget()
    for number in range(n_browsers):
        votes.count(QUESTION, str(number), "3")
    assert names != [votes.pseudonym(str(number)) for number in range(n_browsers)]


def test_pseudonyms_are_drawn_anew_in_each_run() -> None:
    code = (
        "from gptviz.lessons import votes; question = votes.Question('a', '', '?');"
        "[votes.count(question, str(n), 'x') for n in range(9)];"
        "print([votes.pseudonym(str(n)) for n in range(9)])"
    )
    assert printed_elsewhere(code) != printed_elsewhere(code)
