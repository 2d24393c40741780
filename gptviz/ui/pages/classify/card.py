"""What a classifier's card says of texts that are not here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gptviz.data.classification import LabelledSource
from gptviz.figures.format import percent
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.text import LabelledTexts

MOST_COUNTED = 2**31  # texts in a cell of a card


def _share(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1 else None


def on_card(card: Mapping[str, Any]) -> str | None:
    """How often the model and the baseline were right on held-out texts, as its card says; None where the card lacks it."""
    own, of_baseline = _share(card.get("accuracy")), _share(card.get("baseline_accuracy"))
    if own is None:
        return None
    texts = card.get("texts")
    n = texts.get("held_out") if isinstance(texts, dict) else None
    of = f"of {n:,} held-out texts" if isinstance(n, int) else "of its held-out texts"
    return f"Right on {percent(own)} {of}" + (f"; TF-IDF baseline {percent(of_baseline)}" if of_baseline is not None else "")


def confusion_on_card(card: Mapping[str, Any], names: tuple[str, ...]) -> LabelledArray | None:
    """Which label was taken for which on held-out texts, as the card says [label, predicted]; None where the card has
    no such table."""
    rows, n_label = card.get("confusion"), len(names)
    if not isinstance(rows, list) or len(rows) != n_label:
        return None
    if not all(isinstance(row, list) and len(row) == n_label for row in rows):
        return None
    if not all(type(count) is int and 0 <= count <= MOST_COUNTED for row in rows for count in row):
        return None
    return LabelledArray(np.array(rows, np.int64), (Axis("label", names), Axis("predicted", names)), "texts")


def restored(card: Mapping[str, Any], labelled: LabelledTexts) -> tuple[LabelledTexts, LabelledTexts] | None:
    """The texts trained on and those held out, where `labelled` are the texts that the card names; else None."""
    source = card.get("source")
    if card.get("corpus_sha256") != labelled.sha256 or not isinstance(source, dict):
        return None
    try:
        parts = LabelledSource(labelled, float(source.get("fraction", 0.9)), int(source.get("seed", 0))).split()
    except (TypeError, ValueError, OverflowError):
        return None
    # A card of an older version may mean another way to split.
    sizes_on_card = card.get("texts")
    sizes = {"training": len(parts[0]), "held_out": len(parts[1])}
    return parts if sizes_on_card is None or sizes_on_card == sizes else None
