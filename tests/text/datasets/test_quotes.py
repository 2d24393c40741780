"""The task quotes: every quotation is closed with the mark that belongs to the one that opened it."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from gptviz.text.datasets.quotes import Quotes

TASK = Quotes()
SENTENCE = re.compile(r"(?:Then |One day |In the park )?(\w+) \w+ ([“‘])the (.+)\.([”’])")


def read_sentences(held_out: bool) -> list[tuple[str, str, str, str]]:
    if held_out:
        drawn = TASK.held_out(800)
    else:
        drawn = TASK.examples(800, np.random.default_rng(3))
    found = [SENTENCE.fullmatch(TASK.tokenizer.decode(row)) for row in drawn.ids]
    assert None not in found
    return [one.groups() for one in found if one is not None]


@pytest.mark.parametrize("held_out", [False, True])
def test_the_mark_that_closes_belongs_to_the_one_that_opens_and_both_kinds_are_as_frequent(
    held_out: bool,
) -> None:
    pairs = Counter((opening, closing) for _, opening, _, closing in read_sentences(held_out))
    assert set(pairs) == {("“", "”"), ("‘", "’")}
    assert min(pairs.values()) > 340


def test_who_speaks_of_what_in_held_out_sentences_never_comes_in_training() -> None:
    nouns = ("dog", "house", "tree", "book", "cat", "hat", "door", "river")

    def pairs(held_out: bool) -> set[tuple[str, str]]:
        return {
            (name, next(word for word in said.split() if word in nouns))
            for name, _, said, _ in read_sentences(held_out)
        }

    tested = pairs(True)
    assert not tested & pairs(False)
    # Each name and each noun has one partner that is held out.
    assert (
        len(tested) == len({name for name, _ in tested}) == len({noun for _, noun in tested}) == 8
    )


def test_only_the_mark_that_closes_counts() -> None:
    counted = TASK.held_out(5).counted
    assert counted[:, -1].all()
    assert not counted[:, :-1].any()


def test_a_choice_is_between_the_two_marks_after_the_full_stop() -> None:
    for held_out in (False, True):
        choices = TASK.choices("quotes", 50, held_out=held_out)
        label = TASK.tokenizer.label
        for ids, at, right, wrong in zip(
            choices.ids, choices.at, choices.right, choices.wrong, strict=True
        ):
            assert label(int(ids[at])) == "."
            assert ids[at + 1] == right
            assert {label(int(right)), label(int(wrong))} == {"”", "’"}


def test_the_contrast_differs_in_the_mark_alone() -> None:
    [contrast] = TASK.contrasts()
    clean, corrupted = (
        TASK.tokenizer.encode(text).ids for text in (contrast.clean, contrast.corrupted)
    )
    assert sum(one != other for one, other in zip(clean, corrupted, strict=True)) == 1
    assert len(clean) == TASK.length - 1
