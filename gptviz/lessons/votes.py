"""What a class answered: how many chose what, for each question of a lesson; without names, and
only while the server runs.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from threading import Lock

# The most questions that are counted, those answered last, and the most answers of one question.
MOST_QUESTIONS, MOST_ANSWERS = 500, 1_000
Question = tuple[str, int, int]

_lock = Lock()
_answers: OrderedDict[Question, dict[str, str]] = OrderedDict()


def count(question: Question, session: str, answer: str) -> None:
    """Count the answer of a session, which tells visitors apart; a later one of the same session
    takes its place. The question is named by the lesson, and the numbers of the step and of the
    question in it.
    """
    with _lock:
        given = _answers.setdefault(question, {})
        _answers.move_to_end(question)
        if session in given or len(given) < MOST_ANSWERS:
            given[session] = answer
        while len(_answers) > MOST_QUESTIONS:
            _answers.popitem(last=False)


def counted(question: Question) -> list[tuple[str, int]]:
    """The answers to a question, the most frequent first, and how many visitors gave each."""
    with _lock:
        return Counter(_answers.get(question, {}).values()).most_common()


def forget() -> None:
    """Forget all answers."""
    with _lock:
        _answers.clear()
