"""Mistakes between labels that have an order: how far from its own label a text was put."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gptviz.labelled_array import Axis, LabelledArray


def reorder_labels(confusion: LabelledArray, order: Sequence[int]) -> LabelledArray:
    """The confusion matrix [label, predicted] with its labels in this `order` of their indices."""
    names = tuple(confusion.axes[0].labels[i] for i in order)
    axes = tuple(Axis(axis.name, names) for axis in confusion.axes)
    return LabelledArray(confusion.values[np.ix_(order, order)], axes, confusion.unit)


def label_distances(confusion: LabelledArray) -> LabelledArray:
    """The share of texts [distance] put 0, 1, 2 … labels away from their own, by a confusion matrix
    with labels in order.
    """
    places = np.arange(len(confusion.axes[0].labels))
    apart = np.abs(places[:, None] - places[None])  # [label, predicted]
    counts = np.bincount(apart.ravel(), weights=confusion.values.ravel(), minlength=len(places))
    names = ("exactly right", *(f"{distance} off" for distance in range(1, len(places))))
    return LabelledArray(counts / counts.sum(), (Axis("distance", names),), "share")


def mean_absolute_error(confusion: LabelledArray) -> float:
    """How many labels a text was put away from its own, on average; the labels are in their
    order.
    """
    shares: list[float] = label_distances(confusion).values.tolist()
    return sum(distance * share for distance, share in enumerate(shares))
