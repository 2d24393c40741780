"""What a run was trained on, drawn again: against the batches that a trainer reads, a loop over
them, and the rule of Wilson.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gptviz.data.batches import Batch, Generated, Windows
from gptviz.data.trained_on import Share, Trained, count_followers
from gptviz.text import task
from gptviz.train.trainer import Trainer
from tests.small_runs import data, fresh, recipe

TEXT = torch.tensor([0, 1, 2, 0, 1, 3, 0, 1, 2, 2, 0, 1])


class Watched:
    """Data that remember what was drawn of them."""

    def __init__(self, of: Windows) -> None:
        self.of = of
        self.drawn = list[Batch]()

    def training(self, size: int, seed: int) -> Batch:
        self.drawn.append(self.of.training(size, seed))
        return self.drawn[-1]

    def __getattr__(self, name: str) -> object:
        return getattr(self.of, name)


def test_the_batches_drawn_again_are_those_that_the_trainer_read() -> None:
    watched = Watched(data())
    plan = recipe(steps=4)
    for _ in Trainer(fresh(), watched, plan):  # type: ignore[arg-type]
        pass
    again = list(Trained(data(), plan.batch_size, plan.seed, 4).batches())
    assert len(again) == len(watched.drawn) == 4
    assert all(
        one.inputs[0].equal(other.inputs[0])
        for one, other in zip(again, watched.drawn, strict=True)
    )


def loop(rows: list[list[int]], prompt: list[int], word: list[int]) -> tuple[int, int]:
    """How often the word follows the prompt, and how often anything does."""
    came = could = 0
    for row in rows:
        for at in range(len(row) - len(prompt)):
            if row[at : at + len(prompt)] == prompt:
                could += 1
                came += row[at + len(prompt) : at + len(prompt) + len(word)] == word
    return came, could


def test_in_a_text_each_place_counts_once() -> None:
    trained = Trained(Windows(TEXT, TEXT, 4), 2, 0, 50)
    ((two, three, long),) = count_followers(
        trained,
        [torch.tensor([0, 1])],
        [[torch.tensor([2]), torch.tensor([3]), torch.tensor([2, 2])]],
    )
    rows = [TEXT.tolist()]
    assert (two.count, two.of) == loop(rows, [0, 1], [2]) == (2, 3)
    assert (three.count, three.of) == loop(rows, [0, 1], [3]) == (1, 3)
    assert (long.count, long.of) == loop(rows, [0, 1], [2, 2]) == (1, 3)


def test_in_the_rows_of_a_task_all_that_were_drawn_count() -> None:
    some = task("jobs")
    trained = Trained(Generated(some), 16, 3, 20)
    rows = [
        [*x, y[-1]]
        for batch in trained.batches()
        for x, y in zip(batch.inputs[0].tolist(), batch.targets.tolist(), strict=True)
    ]
    assert len(rows) == 320
    prompts = [
        some.tokenizer.encode(text).ids for text in ("the nurse said that", "the pilot knew that")
    ]
    words = [some.tokenizer.encode(word).ids for word in ("she", "he")]
    found = count_followers(
        trained, list(map(torch.tensor, prompts)), [list(map(torch.tensor, words))] * 2
    )
    for prompt, shares in zip(prompts, found, strict=True):
        assert [(share.count, share.of) for share in shares] == [
            loop(rows, prompt, word) for word in words
        ]
        assert sum(share.count for share in shares) == shares[0].of > 0


@given(st.integers(0, 400), st.integers(1, 400))
def test_the_ends_of_the_interval_are_those_shares_from_which_it_is_just_as_far_as_chance_allows(
    count: int, more: int
) -> None:
    share = Share(count, count + more)
    low, high = share.interval
    assert 0 <= low <= share.value <= high <= 1
    for end in (low, high):
        far = (share.value - end) ** 2
        assert far == pytest.approx(
            NormalDist().inv_cdf(0.975) ** 2 * end * (1 - end) / share.of, abs=1e-9
        )


def test_of_what_never_could_come_nothing_is_known() -> None:
    assert math.isnan(Share(0, 0).value)
    assert Share(0, 0).interval == (0, 1)
