"""A text that repeats itself is found out, and from where on it does."""

from __future__ import annotations

import random

import pytest

from gptviz.generate.repetition import LEAST_TOKENS, ROUNDS, Loop, loop_at_end


def by_slices(ids: list[int]) -> Loop | None:
    """The same, by comparing the text with itself moved along, for every length and every
    beginning.
    """
    for length in range(1, len(ids) + 1):
        for start in range(len(ids)):
            end = ids[start:]
            if len(end) >= max(ROUNDS * length, LEAST_TOKENS) and end[length:] == end[:-length]:
                return Loop(start, length)
    return None


@pytest.mark.parametrize("seed", range(20))
def test_a_loop_is_found_as_by_comparing_the_text_with_itself(seed: int) -> None:
    draws = random.Random(seed)
    head = [draws.randrange(3) for _ in range(draws.randrange(20))]
    round_ = [draws.randrange(3) for _ in range(draws.randrange(1, 9))]
    ids = head + round_ * draws.randrange(1, 6) + round_[: draws.randrange(len(round_))]
    assert loop_at_end(ids) == by_slices(ids)


def test_a_loop_is_named_from_its_first_token_on() -> None:
    assert loop_at_end([9, 8, *[1, 2, 3, 4, 5] * 3]) == Loop(2, 5)
    assert loop_at_end([7] * LEAST_TOKENS) == Loop(0, 1)


def test_twice_the_same_is_no_loop_yet() -> None:
    assert loop_at_end(list(range(20)) * 2) is None
    assert loop_at_end([1, 2] * 3) is None, "too short to tell"
    assert loop_at_end([]) is None
