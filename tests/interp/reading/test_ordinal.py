"""Mistakes between labels that have an order, against a loop over the texts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.interp.reading.classification import confusion
from gptviz.interp.reading.ordinal import label_distances, mean_absolute_error, reorder_labels

N = 5
NAMES = tuple(f"{stars} stars" for stars in range(1, N + 1))
PAIRS = st.lists(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)), min_size=1, max_size=40)


@given(PAIRS)
def test_distances_are_those_of_the_texts_one_by_one(pairs: list[tuple[int, int]]) -> None:
    counts = confusion(*zip(*pairs, strict=True), NAMES)  # type: ignore[call-arg]
    apart = [abs(label - predicted) for label, predicted in pairs]
    shares = label_distances(counts)
    assert shares.axes[0].labels == ("exactly right", "1 off", "2 off", "3 off", "4 off")
    assert shares.values == pytest.approx(
        [apart.count(distance) / len(pairs) for distance in range(N)]
    )
    assert mean_absolute_error(counts) == pytest.approx(np.mean(apart))


@given(PAIRS, st.permutations(range(N)))
def test_a_confusion_in_another_order_counts_the_same_texts(
    pairs: list[tuple[int, int]], order: list[int]
) -> None:
    labels, predicted = zip(*pairs, strict=True)
    moved = reorder_labels(confusion(labels, predicted, NAMES), order)
    places = {label: place for place, label in enumerate(order)}
    names = tuple(NAMES[label] for label in order)
    expected = confusion([places[i] for i in labels], [places[i] for i in predicted], names)
    assert moved.axes == expected.axes
    assert (moved.values == expected.values).all()
