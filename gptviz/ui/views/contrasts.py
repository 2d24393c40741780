"""Pairs of prompts with known answers, for the models that were trained to tell them apart."""

from __future__ import annotations

from gptviz.language_model import LanguageModel
from gptviz.text.datasets.sentences import Contrast, contrasts


def known_contrasts(lm: LanguageModel) -> tuple[Contrast, ...]:
    """The pairs of prompts with known answers that this model was trained to tell apart."""
    return contrasts() if (lm.card.source or {}).get("task") == "sentences" else ()
