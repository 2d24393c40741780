"""The marks for start and end on a figure: one character each, so that they take no more room than a letter."""

from __future__ import annotations

from collections.abc import Iterable

START, END = "⟨start⟩", "⟨end⟩"  # as `gptviz.text.tokenizers.special_tokens` calls them
BRIEF = {START: START[0], END: END[-1]}
MEANING = {START: f"{BRIEF[START]} is the start", END: f"{BRIEF[END]} is the end"}


def brief(label: str) -> str:
    """A token's label, that of a mark as one character."""
    return BRIEF.get(label, label)


def said(labels: Iterable[str]) -> str:
    """What the characters for the marks among `labels` mean; empty where there are none."""
    present = set(labels)
    return ", ".join(meaning for mark, meaning in MEANING.items() if mark in present)
