"""Answers of a class: each visitor counts once for a question, whatever it answered before, and
questions are bounded.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.lessons import votes

QUESTION = ("01-tokens", 0, 0)


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["3", "4", "ten"])), max_size=40)
)
def test_the_last_answer_of_each_visitor_counts(answers: list[tuple[str, str]]) -> None:
    votes.forget()
    for session, answer in answers:
        votes.count(QUESTION, session, answer)
    assert dict(votes.counted(QUESTION)) == Counter(dict(answers).values())
    counts = [count for _, count in votes.counted(QUESTION)]
    assert counts == sorted(counts, reverse=True)
    assert votes.counted(("01-tokens", 0, 1)) == []


def test_no_more_is_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    votes.forget()
    monkeypatch.setattr(votes, "MOST_QUESTIONS", 2)
    monkeypatch.setattr(votes, "MOST_ANSWERS", 3)
    for step in range(3):
        for session in "abcde":
            votes.count(("own", step, 0), session, "yes")
    assert [votes.counted(("own", step, 0)) for step in range(3)] == [
        [],
        [("yes", 3)],
        [("yes", 3)],
    ]
