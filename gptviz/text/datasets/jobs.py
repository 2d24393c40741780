"""Sentences with a dial: `the nurse said that she was tired .`, where it is set how often a nurse
is “she”.

A model of these sentences knows of nurses and doctors what they say, and nothing else: its
probability of “she” after “the nurse said that” can be held against the share that was set, and
against the share in the sentences that it was trained on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import log
from typing import Final

import numpy as np
from numpy.random import Generator

from gptviz.settings.fields import setting
from gptviz.text.tokenizers.base import Ids
from gptviz.text.tokenizers.cased_words import CasedWordTokenizer

from .base import HELD_OUT, Contrast, Examples, Task, all_counted, validation_rng

VERBS: Final = ("said", "thought", "knew", "wrote")
STATES: Final = ("tired", "happy", "late", "ill", "busy", "ready")
WORD: Final = 4
"""The place of the word that the dial sets, in a sentence: `the nurse said that` stands before it."""
_MOST_JOBS: Final = 20
_OTHER: Final = re.compile(r"\s*(\S+)\s+(\d{1,3})\s*%?\s*")


def _share_of(job: str, default: int) -> int:
    about = (
        f"In how many of 100 sentences about a {job} the first of the two words stands: “she”, "
        "unless you write other words."
    )
    dial: int = setting(default, f"{job.capitalize()}: “she” in %", about)
    return dial


@dataclass(frozen=True)
class Jobs(Task):
    """`the JOB VERB that WORD was STATE .`: the word is the first of two, such as “she”, as often
    as is set for its job.

    Job, verb and state are drawn at random, each as likely as the others of its kind, and the word
    only by the job's share.
    """

    name = "jobs"
    sentence = (
        "Sentences such as “the nurse said that she was tired.”, with a dial: how often a nurse "
        "is “she”, and a doctor. What the "
        "model finds likely comes out as the share in its data."
    )

    length = 8  # seven words and a full stop

    nurse: int = _share_of("nurse", 90)
    doctor: int = _share_of("doctor", 10)
    teacher: int = _share_of("teacher", 80)
    pilot: int = _share_of("pilot", 20)
    others: str = setting(
        "",
        "Words of yours",
        "More words in the place of the job, each with its share in percent, such as: baker 30, "
        "cook 70",
    )
    pair: str = setting(
        "she he",
        "The two words",
        "The words that the dial chooses between: the first as often as is set.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.tokenizer  # every word is one token, and stands once

    def limits(self) -> dict[str, tuple[int, int]]:
        # shares are percentages
        return dict.fromkeys(("nurse", "doctor", "teacher", "pilot"), (0, 100))

    @cached_property
    def shares(self) -> dict[str, int]:
        """By job, in how many of 100 sentences the first of the two words stands; `others` as `word
        share, word share`.
        """
        shares = {job: getattr(self, job) for job in self.limits()}
        for text in filter(str.strip, self.others.split(",")):
            other = _OTHER.fullmatch(text)
            if other is None or int(other[2]) > 100:
                raise ValueError(
                    f"others of the task jobs has {text.strip()!r:.60}; write each word with its "
                    "share in percent, from 0 to "
                    "100, and commas between, such as: baker 30, cook 70"
                )
            if other[1] in shares:
                raise ValueError(
                    f"others of the task jobs has {other[1]!r:.60}, which has a share already: "
                    "write each word once"
                )
            shares[other[1]] = int(other[2])
        if len(shares) > _MOST_JOBS:
            raise ValueError(
                f"the task jobs has {len(shares)} words with a share; it takes at most {_MOST_JOBS}"
            )
        return shares

    @cached_property
    def words(self) -> tuple[str, str]:
        """The two words that the dial chooses between."""
        words = self.pair.split()
        if len(words) != 2:
            raise ValueError(
                f"pair of the task jobs is {self.pair!r:.60}; write two words with a space "
                "between, such as: she he"
            )
        return words[0], words[1]

    @property
    def tokenizer(self) -> CasedWordTokenizer:
        return _tokenizer((*self.shares, *self.words))

    @property
    def floor(self) -> float:
        """`(ln jobs + ln verbs + mean over the jobs of H(share) + ln states) / 7`, H(p) = −p ln p −
        (1 − p) ln (1 − p).

        A sentence is four independent choices, all of which can be seen in it: a job, a verb and a
        state, each of equally likely ones, and one of two words, whose entropy depends on the job.
        “the”, “that”, “was” and the full stop add nothing.
        """
        words = sum(_entropy(share / 100) for share in self.shares.values()) / len(self.shares)
        return (log(len(self.shares)) + log(len(VERBS)) + words + log(len(STATES))) / (
            self.length - 1
        )

    def examples(self, count: int, rng: Generator) -> Examples:
        return all_counted(self._ids(count, rng))

    def example_prompts(self, count: int, part: str = "") -> list[tuple[str, int]]:
        """The beginnings of held-out sentences, up to the word that the dial sets."""
        rows = self._ids(max(count, HELD_OUT), validation_rng(0))[:count]
        return [(self.tokenizer.decode(row[:WORD]), int(row[WORD])) for row in rows]

    def example_prompt(self) -> str:
        """The first of the prompts with known answers, or else of those held out."""
        return next((contrast.clean for contrast in self.contrasts()), super().example_prompt())

    def prompt(self, job: str) -> str:
        """The beginning of a sentence about a job, up to the word that the dial sets."""
        return f"the {job} {VERBS[0]} that"

    def twin(self) -> Jobs:
        """The same with nurse and doctor exchanged."""
        return replace(self, nurse=self.doctor, doctor=self.nurse)

    def questions(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """A sentence about each job, and the two words."""
        return tuple(map(self.prompt, self.shares)), self.words

    def contrasts(self) -> tuple[Contrast, ...]:
        """The job with the largest share against that with the smallest, if the likelier word
        differs.
        """
        most, least = (choose(self.shares, key=self.shares.__getitem__) for choose in (max, min))
        if not self.shares[least] < 50 < self.shares[most]:
            return ()
        about = (
            f"In the data a {most} is “{self.words[0]}” in {self.shares[most]} % of the "
            f"sentences, a {least} in "
            f"{self.shares[least]} %."
        )
        title = f"{most.capitalize()} or {least}"
        return (
            Contrast(self.name, title, about, self.prompt(most), self.prompt(least), *self.words),
        )

    def _ids(self, count: int, rng: Generator) -> Ids:
        # see _tokenizer
        jobs = list(self.shares)
        first = 1 + len(VERBS) + len(STATES)
        share = np.array([self.shares[job] for job in jobs]) / 100
        job, verb, state = (
            rng.integers(n, size=count) for n in (len(jobs), len(VERBS), len(STATES))
        )
        word = (rng.random(count) >= share[job]).astype(np.int64)
        the, that, was, stop = (np.full(count, i) for i in (0, *range(first, first + 3)))
        of_job = first + 3
        verb = 1 + verb
        state = 1 + len(VERBS) + state
        # [count, length]
        return np.stack(
            (the, of_job + job, verb, that, of_job + len(jobs) + word, was, state, stop), axis=1
        )


def _entropy(share: float) -> float:
    return -sum(p * log(p) for p in (share, 1 - share) if p)


@lru_cache(maxsize=8)
def _tokenizer(own: tuple[str, ...]) -> CasedWordTokenizer:
    """The words of all sentences, then `own`: the jobs and the two words; a ValueError if one is no
    word, or stands twice.
    """
    try:
        return CasedWordTokenizer(("the", *VERBS, *STATES, "that", "was", ".", *own))
    except ValueError as error:
        raise ValueError(f"the words of the task jobs: {error}") from None
