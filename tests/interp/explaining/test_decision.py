"""Decisions of classifiers: they add up to the model's logits, and leaving a word out is leaving it
out.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gptviz.interp.explaining.decision import (
    BIAS,
    decision,
    decisive_token,
    left_out,
    runner_up,
    token_worth,
)
from gptviz.interp.reading.classification import classify, judge
from tests.tiny import scrambled, some_ids, tiny

LABELS = 3
HEADS = ["flatten", "mean"]


def classifier(head: str, seed: int = 0):  # type: ignore[no-untyped-def]
    return scrambled(tiny(head=head, n_label=LABELS, mask="full", final_norm=False), seed).double()


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize(("label", "against"), [(0, None), (2, None), (2, 0), (0, 2)])
def test_bias_and_shares_add_up_to_what_the_model_says(
    head: str, label: int, against: int | None
) -> None:
    model = classifier(head)
    ids = some_ids(6, batch=1)
    with torch.inference_mode():
        logits = model(ids)[0].numpy()
    chosen = decision(classify(model, ids[0]), label, against)
    expected = logits[label] - (0 if against is None else logits[against])
    assert chosen.total == pytest.approx(expected, abs=1e-12)
    assert chosen.bias + sum(chosen.shares.tolist()) == pytest.approx(expected, abs=1e-9)
    assert chosen.sum == pytest.approx(expected, abs=1e-9)


def test_the_other_way_round_every_number_changes_its_sign() -> None:
    found = classify(classifier("flatten"), some_ids(6, batch=1)[0])
    one = decision(found, 1, 0)
    other = decision(found, 0, 1)
    np.testing.assert_array_equal(one.shares, -other.shares)
    assert (one.bias, one.total) == (-other.bias, -other.total)


def test_the_bias_stands_before_the_words() -> None:
    found = classify(classifier("mean"), some_ids(3, batch=1)[0])
    chosen = decision(found, 1)
    shown = chosen.labelled(["a", "b", "a"])
    assert shown.axes[0].labels == (BIAS, "a", "b", "a")
    assert shown.values.tolist() == [found.bias[1], *found.shares[:, 1]]


def test_the_runner_up_is_the_likeliest_of_the_others() -> None:
    for seed in range(6):
        found = classify(classifier("mean", seed), some_ids(5, batch=1, seed=seed)[0])
        for label in range(LABELS):
            others = [other for other in range(LABELS) if other != label]
            assert runner_up(found, label) == max(others, key=found.probabilities.__getitem__)


@pytest.mark.parametrize("head", ["flatten", "mean", "first", "first-relu"])
def test_each_row_is_the_text_without_one_token(head: str) -> None:
    model = classifier(head)
    ids = some_ids(5, batch=1)[0]
    rows = left_out(model, ids)
    some = left_out(model, ids, [3, 1])
    tokens = ids.tolist()
    for place in range(5):
        rest = torch.tensor(tokens[:place] + tokens[place + 1 :])
        np.testing.assert_allclose(rows[place], judge(model, rest).logits, atol=1e-9)
    np.testing.assert_allclose(some, rows[[3, 1]], atol=1e-9)


def test_the_decisive_word_costs_the_label_most() -> None:
    model = classifier("flatten")
    ids = some_ids(7, batch=1, seed=3)[0]
    whole = judge(model, ids).probabilities
    rows = torch.from_numpy(left_out(model, ids)).softmax(-1).numpy()
    label = max(range(LABELS), key=whole.__getitem__)
    token, instead = decisive_token(whole, rows)
    assert all(rows[token, label] <= row[label] for row in rows)
    assert instead == max(range(LABELS), key=rows[token].__getitem__)


@pytest.mark.parametrize(("label", "against"), [(0, None), (2, 1)])
def test_a_token_is_worth_what_the_decision_loses_without_it(
    label: int, against: int | None
) -> None:
    model = classifier("first")
    ids = some_ids(5, batch=1)[0]

    def margin(tokens: list[int]) -> float:
        logits = judge(model, torch.tensor(tokens)).logits
        return float(logits[label] - (0 if against is None else logits[against]))

    tokens = ids.tolist()
    found = token_worth(judge(model, ids), left_out(model, ids), label, against)
    assert found.total == pytest.approx(margin(tokens), abs=1e-9)
    lost = [margin(tokens) - margin(tokens[:place] + tokens[place + 1 :]) for place in range(5)]
    np.testing.assert_allclose(found.labelled([*"abcde"]).values, lost, atol=1e-9)
