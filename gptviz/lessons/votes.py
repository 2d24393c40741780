"""What a class answered: how many chose what, for each question of a lesson. Each browser has one
voice, its last answer before the result is shown. Answers have no names, and are there only while
the server runs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from threading import Lock

# The most answers to all questions together, and the most characters that are read of one: they
# take at most about 100 MB.
MOST_ANSWERS = 200_000
LONGEST = 100
FULL = (
    f"not all answers are counted: the server has room for {MOST_ANSWERS:,} of all questions "
    "together. A question that is asked again, or a new start of the server, makes room"
)
Question = tuple[str, int, int]


@dataclass
class Ballot:
    """The answers to a question."""

    #: by a number that tells browsers apart, and nothing else about them
    answers: dict[int, str] = field(default_factory=dict)
    is_shown: bool = False  #: whether the result is shown: from then on none is counted
    is_full: bool = False  #: whether an answer was not counted since there was no room

    @property
    def counts(self) -> list[tuple[str, int]]:
        """The answers, the most frequent first, and how many browsers gave each."""
        return Counter(self.answers.values()).most_common()


_lock = Lock()
_ballots: dict[Question, Ballot] = {}


def count(question: Question, browser: str | None, answer: str) -> str:
    """Count the answer of a browser, in the place of an earlier one. Returns why it does not count,
    or an empty text if it does.

    Args:
        question: the lesson, and the numbers of the step and of the question in it.
        browser: tells browsers apart; None for one that keeps no cookie.
    """
    with _lock:
        ballot = _ballots.setdefault(question, Ballot())
        voice = hash(browser)
        if browser is None:
            return "this browser keeps no cookies, so that its answers are not counted"
        if ballot.is_shown:
            return "the result is shown already, so that this answer is not counted"
        n_answers = sum(len(each.answers) for each in _ballots.values())
        if voice not in ballot.answers and n_answers >= MOST_ANSWERS:
            ballot.is_full = True
            return FULL
        ballot.answers[voice] = answer[:LONGEST]
        return ""


def ballot(question: Question) -> Ballot:
    """The answers to a question so far."""
    with _lock:
        found = _ballots.get(question, Ballot())
        return replace(found, answers=dict(found.answers))


def show(question: Question) -> None:
    """Show the result: answers are counted no longer."""
    with _lock:
        _ballots.setdefault(question, Ballot()).is_shown = True


def ask_again(question: Question) -> None:
    """Forget the answers to a question, and count anew."""
    with _lock:
        _ballots.pop(question, None)


def forget() -> None:
    """Forget all answers."""
    with _lock:
        _ballots.clear()
