"""What a classifier's card records about texts that are not on this machine."""

from __future__ import annotations

import numpy as np

from gptviz.data.classification import LabelledSource
from gptviz.figures.format import percent
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.runs.card import Card
from gptviz.text import LabelledTexts


def on_card(card: Card) -> str | None:
    """How often the model and the baseline were right on held-out texts, as its card records; None where it does not."""
    own, of_baseline = card.accuracy, card.baseline_accuracy
    if own is None:
        return None
    n = (card.texts or {}).get("held_out")
    of = f"of {n:,} held-out texts" if n is not None else "of its held-out texts"
    return f"Right on {percent(own)} {of}" + (f"; TF-IDF baseline {percent(of_baseline)}" if of_baseline is not None else "")


def confusion_on_card(card: Card, names: tuple[str, ...]) -> LabelledArray | None:
    """The confusion matrix [label, predicted] of the held-out texts, as the card records it; None where the card has
    no such table.
    """
    if card.confusion is None or len(card.confusion) != len(names):
        return None
    return LabelledArray(np.array(card.confusion, np.int64), (Axis("label", names), Axis("predicted", names)), "texts")


def restored(card: Card, labelled: LabelledTexts) -> tuple[LabelledTexts, LabelledTexts] | None:
    """The texts trained on and those held out, where `labelled` are the texts that the card names; else None."""
    source = card.source
    if card.corpus_sha256 != labelled.sha256 or source is None:
        return None
    try:
        parts = LabelledSource(labelled, float(source.get("fraction", 0.9)), int(source.get("seed", 0))).split()
    except (TypeError, ValueError, OverflowError):
        return None
    # A card of an older version may mean another way to split.
    sizes = {"training": len(parts[0]), "held_out": len(parts[1])}
    return parts if card.texts is None or card.texts == sizes else None
