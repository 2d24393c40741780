"""Sentences with a dial, against counts, an enumeration of every sentence, and what chance
allows.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import product
from math import log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng

from gptviz.text.datasets.jobs import STATES, VERBS, WORD, Jobs

SENTENCE = re.compile(r"the (\S+) (\S+) that (\S+) was (\S+)\.")
OWN = Jobs(others="baker 30, cook 100", pair="they it", nurse=0)
dials = st.builds(Jobs, *[st.integers(0, 100)] * 4)


def read(some: Jobs, count: int, seed: int = 0) -> list[tuple[str, ...]]:
    """Job, verb, word and state of drawn sentences, from their text."""
    found = (
        SENTENCE.fullmatch(some.tokenizer.decode(row))
        for row in some.examples(count, default_rng(seed)).ids
    )
    return [one.groups() for one in found if one is not None]


@pytest.mark.parametrize("some", [Jobs(), OWN], ids=["usual", "own words"])
def test_every_sentence_has_one_of_each_and_shares_are_as_set_within_what_chance_allows(
    some: Jobs,
) -> None:
    drawn = read(some, 12_000)
    assert len(drawn) == 12_000
    assert {verb for _, verb, _, _ in drawn} == set(VERBS)
    assert {state for *_, state in drawn} == set(STATES)
    jobs = Counter(job for job, *_ in drawn)
    assert set(jobs) == set(some.shares)
    first = Counter(job for job, _, word, _ in drawn if word == some.words[0])
    for job, share in some.shares.items():
        p = share / 100
        assert abs(jobs[job] / 12_000 - 1 / len(jobs)) < 5 * sqrt(1 / len(jobs) / 12_000)
        assert abs(first[job] / jobs[job] - p) <= 5 * sqrt(p * (1 - p) / jobs[job])


@given(dials)
def test_the_floor_is_the_mean_surprise_of_every_sentence_at_its_own_probability(
    some: Jobs,
) -> None:
    total = 0.0
    for share, _, _, is_first in product(some.shares.values(), VERBS, STATES, (True, False)):
        word = share / 100 if is_first else 1 - share / 100
        p = word / len(some.shares) / len(VERBS) / len(STATES)
        total -= p * log(p) if p else 0.0
    assert some.floor == pytest.approx(total / (some.length - 1))


@given(dials)
def test_a_contrast_is_followed_by_what_is_set_for_its_job(some: Jobs) -> None:
    for one in some.contrasts():
        of = {prompt: some.shares[prompt.split()[1]] for prompt in (one.clean, one.corrupted)}
        assert (
            of[one.clean]
            == max(some.shares.values())
            > 50
            > of[one.corrupted]
            == min(some.shares.values())
        )
        assert (one.right, one.wrong) == some.words
    assert bool(some.contrasts()) == (min(some.shares.values()) < 50 < max(some.shares.values()))


def test_prompts_end_where_the_dial_decides() -> None:
    for prompt, answer in OWN.example_prompts(20):
        assert len(OWN.tokenizer.encode(prompt).ids) == WORD
        assert OWN.tokenizer.label(answer) in OWN.words
    assert OWN.example_prompt() == "the cook said that"


def test_the_title_says_what_is_set() -> None:
    assert Jobs().title == "jobs"
    assert Jobs(nurse=10, doctor=90).title == "jobs (nurse 10, doctor 90)"
    assert OWN.title == "jobs (nurse 0, others baker 30, cook 100, pair they it)"
