"""Which heads of the shipped model `sentences` carry its answers, as patches find them."""

from __future__ import annotations

import numpy as np
import pytest

import gptviz
from gptviz.interp.changing.attribution_patching import correlation
from gptviz.interp.changing.patching import PatchedPiece, answers
from gptviz.language_model import LanguageModel
from gptviz.text.datasets.base import Contrast
from gptviz.text.datasets.sentences import contrasts

CONTRASTS = {contrast.part: contrast for contrast in contrasts()}


@pytest.fixture(scope="module")
def lm() -> LanguageModel:
    return gptviz.load("sentences")


def shares(lm: LanguageModel, contrast: Contrast, what: str) -> np.ndarray:
    """What each head restores, [block, head]."""
    return lm.patch(
        contrast.clean, contrast.corrupted, contrast.right, contrast.wrong, f"attention.{what}"
    ).shares


@pytest.mark.parametrize("part", CONTRASTS)
def test_a_head_alone_restores_half_of_every_answer_and_the_preview_finds_it(
    lm: LanguageModel, part: str
) -> None:
    one = CONTRASTS[part]
    asked = (one.clean, one.corrupted, one.right, one.wrong, "attention.z")
    exact = lm.patch(*asked)
    guess = lm.patch(*asked, exact=False)
    assert exact.clean > 5 > -5 > exact.corrupted
    assert exact.shares.max() > 0.5
    assert correlation(exact.answers, guess.answers) > 0.9
    assert exact.shares.flat[guess.shares.argmax()] > 0.5


def test_a_name_that_is_said_twice_is_found_by_where_a_head_looks_and_moved_by_what_later_heads_take(
    lm: LanguageModel,
) -> None:
    one = CONTRASTS["names"]
    z, pattern, v = (shares(lm, one, what) for what in ("z", "pattern", "v"))
    finder = int(z[0].argmax())
    movers = np.argsort(z[1])[-2:]
    # The head of block 0 looks elsewhere where the other name is said again; what there is to take
    # is the same.
    assert min(z[0, finder], pattern[0, finder]) > 0.5
    assert abs(v[0, finder]) < 0.1
    # The two heads of block 1 look at the same place in both prompts, and take from it which name
    # it was.
    assert np.abs(pattern[1, movers]).max() < 0.1
    assert v[1, movers].sum() > 0.8
    pair = lm.pair(one.clean, one.corrupted, one.right, one.wrong)
    clean, corrupted, (together,) = answers(
        lm.model, pair, [[PatchedPiece("blocks.1.attention.z", int(head)) for head in movers]]
    )
    assert (together - corrupted) / (clean - corrupted) > 0.9


def test_of_brackets_one_head_takes_the_one_that_was_opened_last(lm: LanguageModel) -> None:
    z, v, pattern = (shares(lm, CONTRASTS["brackets"], what) for what in ("z", "v", "pattern"))
    head = np.unravel_index(z.argmax(), z.shape)
    assert min(z[head], v[head]) > 0.9
    assert abs(pattern[head]) < 0.1
    assert np.sort(z.ravel())[-2] < 0.1


def test_the_circuit_of_names_appears_late_in_training(lm: LanguageModel) -> None:
    one = CONTRASTS["names"]

    def answered(step: int) -> bool:
        pair = gptviz.load("sentences", step=step).pair(one.clean, one.corrupted)
        words = [lm.tokenizer.piece(token).strip() for token in (pair.right, pair.wrong)]
        return words == [one.right, one.wrong]

    assert not answered(0)
    assert not answered(64)
    assert answered(1_448)
