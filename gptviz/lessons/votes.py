"""What a class answered: how many chose what, for each question that it is asked. Each browser has
one voice, its last answer before the result is shown. Answers have no names, and are there only
while the server runs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from random import SystemRandom
from threading import Lock
from typing import NamedTuple

# The most answers to all questions together, and the most characters that are read of one: they
# take at most about 100 MB.
MOST_ANSWERS = 200_000
LONGEST = 100
FULL = (
    f"not all answers are counted: the server has room for {MOST_ANSWERS:,} of all questions "
    "together. A question that is asked again, or a new start of the server, makes room"
)
# The names under which the answers of browsers stand in a list. Nobody is called so, and none of
# them says anything of who is meant.
_ANIMALS = (
    "Albatross Alpaca Ant Armadillo Badger Bear Beaver Bee Beetle Bison Butterfly Camel "
    "Caribou Cat Cheetah Chinchilla Cicada Cormorant Crab Crane Cricket Crow Deer Dolphin "
    "Dormouse Dove Dragonfly Duck Eagle Eel Falcon Ferret Finch Firefly Flamingo Fox Frog "
    "Gazelle Gecko Gibbon Giraffe Goose Grasshopper Gull Hamster Hare Hedgehog Heron Horse Ibex "
    "Iguana Jackdaw Jaguar Jellyfish Kangaroo Kingfisher Kiwi Koala Lark Lemur Leopard Lion Lizard "
    "Llama Lobster Lynx Magpie Manatee Marmot Marten Meerkat Mole Moose Moth Mouse Newt Octopus "
    "Okapi Orca Ostrich Otter Owl Panda Parrot Pelican Penguin Pheasant Puffin Quail Rabbit "
    "Raccoon "
    "Raven Reindeer Robin Salmon Seahorse Seal Sparrow Squid Squirrel Starfish Stork Swallow "
    "Swan Tapir Tiger Tortoise Toucan Turtle Wolf Wombat "
    "Woodpecker Wren Yak Zebra"
)
ANIMALS = tuple(_ANIMALS.split())


class Question(NamedTuple):
    """A question that a class is asked."""

    where: str  #: the name of the lesson or of the page that asks it
    #: in a lesson the numbers of the step and of the question in it, from 1, as in "2.1"
    number: str
    words: str  #: as it is asked


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

    def answer_of(self, browser: str | None) -> str | None:
        """What a browser answered last, or None."""
        return self.answers.get(hash(browser))


def _shuffled_animals() -> list[str]:
    return SystemRandom().sample(ANIMALS, len(ANIMALS))


_lock = Lock()
_ballots: dict[Question, Ballot] = {}
# The animals in the order in which they are given away, another one in each run of the server, and
# the name that each voice was given.
_animals = _shuffled_animals()
_pseudonyms: dict[int, str] = {}


def count(question: Question, browser: str | None, answer: str) -> str:
    """Count the answer of a browser, in the place of an earlier one. Returns why it does not count,
    or an empty text if it does.

    Args:
        question: what was asked.
        browser: tells browsers apart; None for one that keeps no cookie.
        answer: what was answered.
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
        if voice not in _pseudonyms:
            lap, place = divmod(len(_pseudonyms), len(_animals))
            _pseudonyms[voice] = f"{_animals[place]} {lap + 1 if lap else ''}".strip()
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
    """Forget all answers, and who had which animal's name."""
    with _lock:
        _ballots.clear()
        _pseudonyms.clear()
        _animals[:] = _shuffled_animals()


def counted_answers() -> list[tuple[Question, str, int]]:
    """Each answer to each question, and how many browsers gave it, the questions in the order in
    which they were first answered.
    """
    with _lock:
        return [
            (question, answer, n_browsers)
            for question, each in _ballots.items()
            for answer, n_browsers in each.counts
        ]


def pseudonym(browser: str | None) -> str:
    """The animal's name under which the answers of a browser stand in a list, drawn at random with
    its first answer, and kept until the server ends or all answers are forgotten; empty if it gave
    none.
    """
    return _pseudonyms.get(hash(browser), "")


def answers_by_pseudonym() -> dict[str, dict[Question, str]]:
    """What each browser answered, under an animal's name, in the order of these names."""
    with _lock:
        found: dict[str, dict[Question, str]] = {}
        for question, each in _ballots.items():
            for voice, answer in each.answers.items():
                found.setdefault(_pseudonyms[voice], {})[question] = answer
        return dict(sorted(found.items()))
