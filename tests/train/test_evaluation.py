"""The loss and accuracy on held-out data, against a loop over its predictions."""

from __future__ import annotations

import math

import pytest
import torch

from gptviz.data.batches import NOT_COUNTED, Batch, consecutive_windows
from gptviz.model import Transformer
from gptviz.train import evaluation
from gptviz.train.evaluation import Evaluation, evaluate
from tests.tiny import CONTEXT, VOCAB, scrambled, some_ids, tiny


def on(model: Transformer, length: int, tokens: int = 8_192) -> Evaluation:
    return evaluate(model, consecutive_windows(some_ids(length)[0], CONTEXT, tokens))


def by_loop(model: Transformer, batches: list[Batch]) -> tuple[float, list[int], list[int]]:
    """In float64: minus the mean logarithm of the right token's probability, and how often it was
    the likeliest, by place.
    """
    losses = []
    right = [0] * CONTEXT
    counted = [0] * CONTEXT
    double = scrambled(model.config).double()
    for (inputs,), targets in batches:
        for row, target in zip(inputs, targets.tolist(), strict=True):
            for place in range(len(row)):
                if target[place] == NOT_COUNTED:
                    continue
                with torch.inference_mode():
                    logits = double(row[None, : place + 1])[0, -1].tolist()
                losses.append(
                    math.log(math.fsum(math.exp(x) for x in logits)) - logits[target[place]]
                )
                right[place] += logits[target[place]] == max(logits)
                counted[place] += 1
    return math.fsum(losses) / len(losses), right, counted


@pytest.mark.parametrize(
    "length", [2, CONTEXT, CONTEXT + 1, CONTEXT + 2, 3 * CONTEXT + 1, 5 * CONTEXT + 4]
)
@pytest.mark.parametrize("tokens", [1, 2 * CONTEXT, 10_000])
def test_loss_and_accuracy_are_those_of_a_loop_in_float64_the_last_short_window_included(
    length: int, tokens: int
) -> None:
    model = scrambled(tiny())
    found = on(model, length, tokens)
    loss, right, counted = by_loop(model, list(consecutive_windows(some_ids(length)[0], CONTEXT)))
    assert found.loss == pytest.approx(loss, rel=1e-5)
    assert found.tokens == length - 1 == sum(counted)
    assert found.right.tolist() == right[: length - 1]
    assert found.counted.tolist() == counted[: length - 1]
    assert found.accuracy == sum(right) / sum(counted)


def test_what_does_not_count_changes_neither_loss_nor_accuracy() -> None:
    model = scrambled(tiny())
    inputs = some_ids(batch=30)
    targets = some_ids(batch=30, seed=1)
    targets[:, [0, 1, 5]] = NOT_COUNTED
    targets[3, 2] = NOT_COUNTED
    batches = [Batch((inputs[:20],), targets[:20]), Batch((inputs[20:],), targets[20:])]
    found = evaluate(model, batches)
    loss, right, counted = by_loop(model, batches)
    assert found.loss == pytest.approx(loss, rel=1e-5)
    assert counted == [0, 0, 29, 30, 30, 0, 30, 30]
    assert found.by_place() == [
        None,
        None,
        right[2] / 29,
        right[3] / 30,
        right[4] / 30,
        None,
        right[6] / 30,
        right[7] / 30,
    ]
    assert any(right)


def test_dropout_is_off_and_the_model_is_left_as_it_was() -> None:
    model = scrambled(tiny(dropout=0.5))
    loss = on(model, 30).loss
    for training in (True, False):
        assert on(model.train(training), 30).loss == loss
        assert all(module.training == training for module in model.modules())


def test_a_large_vocabulary_is_taken_in_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    model = scrambled(tiny())
    loss = on(model, 20 * CONTEXT).loss
    rows = []
    model.register_forward_pre_hook(lambda _, inputs: rows.append(len(inputs[0])))
    monkeypatch.setattr(evaluation, "MOST_LOGITS", 3 * CONTEXT * VOCAB)
    assert on(model, 20 * CONTEXT).loss == pytest.approx(loss, rel=1e-6)
    assert max(rows) == 3


@pytest.mark.parametrize(
    "batches", [[], [Batch((some_ids(),), torch.full((2, CONTEXT), NOT_COUNTED))]]
)
def test_nothing_to_evaluate_is_said(batches: list[Batch]) -> None:
    with pytest.raises(ValueError, match="nothing to evaluate"):
        evaluate(scrambled(tiny()), batches)
