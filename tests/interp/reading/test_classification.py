"""What a classifier decides and why: sums that are exact, and counts against loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from gptviz.interp.reading.classification import classify, confusion, label_probabilities, mistakes
from gptviz.model import Transformer
from tests.tiny import CONTEXT, VOCAB, scrambled, some_ids, tiny

PADDING = VOCAB - 1
LABELS = 3
NAMES = ("bad", "fair", "good")
heads = pytest.mark.parametrize("head", ["flatten", "mean", "sum"])


def classifier(head: str = "mean") -> Transformer:
    return scrambled(
        tiny(mask="full", head=head, n_label=LABELS, padding=PADDING, positions="sinusoidal")
    )


@heads
@pytest.mark.parametrize("length", [1, 4, CONTEXT])
def test_what_the_words_add_and_the_bias_sum_to_the_logits(head: str, length: int) -> None:
    model = classifier(head)
    ids = some_ids(length, vocab=PADDING)[0]
    found = classify(model, ids)
    with torch.inference_mode():
        logits = model(ids[None])[0].double().numpy()
    np.testing.assert_allclose(found.logits, logits, rtol=1e-12)
    assert found.shares.shape == (length, LABELS)
    np.testing.assert_allclose(found.shares.sum(0) + found.bias, logits, atol=1e-5)
    np.testing.assert_allclose(
        found.probabilities, np.exp(logits) / np.exp(logits).sum(), rtol=1e-9
    )
    assert found.label == max(range(LABELS), key=lambda label: logits[label])
    table = found.labelled([f"w{i}" for i in range(length)], NAMES)
    assert [axis.name for axis in table.axes] == ["token", "label"]
    np.testing.assert_array_equal(table.values, found.shares)


@heads
def test_many_texts_padded_together_are_judged_as_each_alone(head: str) -> None:
    model = classifier(head)
    texts = [some_ids(length, vocab=PADDING, seed=length)[0] for length in (3, 1, CONTEXT, 5, 2)]
    ids = torch.stack([F.pad(text, (0, CONTEXT - len(text)), value=PADDING) for text in texts])
    together = label_probabilities(model, ids)
    np.testing.assert_allclose(
        together, [classify(model, text).probabilities for text in texts], atol=1e-6
    )
    np.testing.assert_allclose(together.sum(1), 1, atol=1e-12)
    assert label_probabilities(model, ids[:0]).shape == (0, LABELS)
    many = ids[torch.arange(3_000) % 5]
    np.testing.assert_allclose(
        label_probabilities(model, many), together[np.arange(3_000) % 5], atol=1e-6
    )


judged = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=30)


@given(judged)
def test_a_confusion_counts_every_text_once(pairs: list[tuple[int, int]]) -> None:
    found = confusion([label for label, _ in pairs], [predicted for _, predicted in pairs], NAMES)
    assert found.unit == "texts"
    assert [(axis.name, axis.labels) for axis in found.axes] == [
        ("label", NAMES),
        ("predicted", NAMES),
    ]
    for label in range(3):
        for predicted in range(3):
            assert found.values[label, predicted] == pairs.count((label, predicted))


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.lists(st.floats(0.01, 1), min_size=3, max_size=3)),
        max_size=20,
    ),
    st.integers(0, 8),
)
def test_mistakes_are_the_wrong_ones_the_most_confident_first(
    rows: list[tuple[int, list[float]]], at_most: int
) -> None:
    sure = np.array([row for _, row in rows]).reshape(-1, 3)
    sure = sure / sure.sum(1, keepdims=True)
    found = mistakes([label for label, _ in rows], sure, at_most)
    wrong = [
        row
        for row, (label, _) in enumerate(rows)
        if label != max(range(3), key=lambda each: sure[row, each])
    ]
    assert len(found) == min(at_most, len(wrong))
    assert [each.row for each in found] == sorted(wrong, key=lambda row: (-max(sure[row]), row))[
        :at_most
    ]
    for each in found:
        assert each.label == rows[each.row][0] != each.predicted
        assert each.probability == sure[each.row, each.predicted] == max(sure[each.row])
