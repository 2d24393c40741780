"""What a run learns from: windows against slices, targets one ahead, one seed one batch, and
nothing predicted twice.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gptviz.data.batches import (
    NOT_COUNTED,
    Batch,
    Data,
    Generated,
    Windows,
    consecutive_windows,
    spread,
)
from gptviz.text import TASKS, task
from tests.small_runs import REPETITIVE, data
from tests.tiny import CONTEXT


@pytest.mark.parametrize("length", [CONTEXT + 1, CONTEXT + 2, 30])
def test_every_window_of_the_text_is_drawn_the_last_one_too_and_each_as_often(length: int) -> None:
    ids = torch.randperm(1_000)[:length]  # no two alike: a window is known by its first token
    windows = {
        int(ids[start]): ids[start : start + CONTEXT + 1].tolist()
        for start in range(length - CONTEXT)
    }
    count = 100 * len(windows)
    (inputs,), targets = Windows(ids, REPETITIVE, CONTEXT).training(count, seed=3)
    assert inputs.shape == targets.shape == (count, CONTEXT)
    drawn = dict.fromkeys(windows, 0)
    for row, target in zip(inputs.tolist(), targets.tolist(), strict=True):
        assert [*row, target[-1]] == windows[row[0]]
        assert target == windows[row[0]][1:]
        drawn[row[0]] += 1
    # 100 expected of each; five standard deviations.
    assert all(50 < times < 150 for times in drawn.values())


@pytest.mark.parametrize(
    "source",
    [data(), *(Generated(task(name)) for name in TASKS)],
    ids=lambda source: type(source).__name__,
)
def test_one_seed_is_one_batch_and_another_seed_another(source: Data) -> None:
    first, again, other = (source.training(6, seed) for seed in (2**63 - 1, 2**63 - 1, 4))
    assert torch.equal(first.inputs[0], again.inputs[0])
    assert torch.equal(first.targets, again.targets)
    assert not torch.equal(first.inputs[0], other.inputs[0])
    one, two = (list(source.validation()) for _ in range(2))
    assert all(torch.equal(a.targets, b.targets) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("n_batches", [1, 3, 10, 37])
@pytest.mark.parametrize("rows", [0, 5_000, 9_999, 10**6])
def test_some_batches_lie_evenly_over_all_and_hold_no_more_rows_than_asked_or_one_full_batch(
    n_batches: int, rows: int
) -> None:
    full = torch.zeros(1_024, 8, dtype=torch.long)  # `EVALUATION_TOKENS` tokens
    every = [Batch((full,), full + number) for number in range(n_batches)]
    chosen = [int(batch.targets[0, 0]) for batch in spread(every, rows)]
    assert chosen == sorted(set(chosen))
    assert len(chosen) == min(n_batches, max(rows // 1_024, 1))
    gaps = np.diff(chosen) if len(chosen) > 1 else np.array([1])
    assert gaps.max() - gaps.min() <= 1
    assert abs(chosen[0] - (n_batches - 1 - chosen[-1])) <= 1, (
        "as far from the beginning as from the end"
    )


@pytest.mark.parametrize("name", TASKS)
def test_a_task_counts_only_the_predictions_that_it_says_count(name: str) -> None:
    making = task(name)
    examples = making.examples(5, np.random.default_rng(9))
    (inputs,), targets = Generated(making).training(5, seed=9)
    for row in range(5):
        for place in range(making.length - 1):
            assert inputs[row, place] == examples.ids[row, place]
            expected = examples.ids[row, place + 1] if examples.counted[row, place] else NOT_COUNTED
            assert targets[row, place] == expected
    assert (targets != NOT_COUNTED).any()
    assert (targets == NOT_COUNTED).any() == (
        name in ("addition", "modular", "quotes", "sentences")
    )


@pytest.mark.parametrize("name", TASKS)
def test_a_task_validates_with_all_it_holds_out_in_order(name: str) -> None:
    making = task(name)
    batches = list(Generated(making).validation())
    # whose sequences are so short that all fit into one
    assert len(batches) > 1 or name == "modular"
    whole = torch.cat([batch.inputs[0] for batch in batches])
    assert torch.equal(whole, torch.from_numpy(making.held_out().ids)[:, :-1])
    assert torch.equal(
        torch.cat([batch.targets != NOT_COUNTED for batch in batches]),
        torch.from_numpy(making.held_out().counted),
    )


@pytest.mark.parametrize(
    "length", [2, CONTEXT, CONTEXT + 1, CONTEXT + 2, 3 * CONTEXT, 3 * CONTEXT + 1, 5 * CONTEXT + 4]
)
@pytest.mark.parametrize("tokens", [1, 2 * CONTEXT, 10_000])
def test_consecutive_windows_predict_every_token_but_the_first_once_from_those_before_it(
    length: int, tokens: int
) -> None:
    ids = torch.randperm(1_000)[:length]
    predicted = []
    for (inputs,), targets in consecutive_windows(ids, CONTEXT, tokens):
        assert inputs.numel() <= max(tokens, CONTEXT)
        for row, target in zip(inputs, targets, strict=True):
            start = len(predicted)
            assert start % CONTEXT == 0
            assert torch.equal(row, ids[start : start + len(row)])
            predicted += target.tolist()
    assert predicted == ids[1:].tolist()


def test_a_text_validates_with_all_of_its_other_part() -> None:
    (batch, last) = data(validation=REPETITIVE[: CONTEXT + 3]).validation()
    assert (
        torch.cat([batch.targets.flatten(), last.targets.flatten()]).tolist()
        == REPETITIVE[1 : CONTEXT + 3].tolist()
    )


def test_some_rows_of_a_batch_are_those_of_all_its_tensors() -> None:
    batch = Batch((torch.arange(8).view(4, 2), torch.arange(4)), 10 * torch.arange(8).view(4, 2))
    (tokens, more), targets = batch.rows(slice(1, None, 2))
    assert (tokens.tolist(), more.tolist(), targets.tolist()) == (
        [[2, 3], [6, 7]],
        [1, 3],
        [[20, 30], [60, 70]],
    )
