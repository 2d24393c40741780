"""Start and end tokens on a figure: one character each, so that they take no more room than a letter."""

from __future__ import annotations

from collections.abc import Iterable

START, END = "⟨start⟩", "⟨end⟩"  # as `gptviz.text.tokenizers.special_tokens` calls them
BRIEF = {START: START[0], END: END[-1]}
MEANING = {START: f"{BRIEF[START]} is the start", END: f"{BRIEF[END]} is the end"}


def short_label(label: str) -> str:
    """The label of a token; one character for the start and the end token."""
    return BRIEF.get(label, label)


def legend(labels: Iterable[str]) -> str:
    """The meaning of the characters for the special tokens among `labels`; empty if there are none."""
    present = set(labels)
    return ", ".join(meaning for token, meaning in MEANING.items() if token in present)
