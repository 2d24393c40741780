"""The model of a lesson about any decoder that the reader has opened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gptviz.runs import checkpoints

from .lesson import Lesson

# A decoder with fewer tokens reads letters or digits, not parts of words.
FEWEST_TOKENS = 1_000


def opened_last() -> str | None:
    """The name of the decoder of another program, with parts of words as tokens, that was opened last, or None."""
    found = [(_when(folder), name) for name, folder in checkpoints.folders().items() if _is_meant(folder)]
    return max(found)[1] if found else None


def about_what_is_open(lesson: Lesson) -> Lesson:
    """The lesson with its model filled in: for a lesson about any decoder the one opened last, for others unchanged."""
    model = opened_last() if lesson.any_decoder else None
    return lesson if model is None else replace(lesson, model=model)


def _is_meant(folder: Path) -> bool:
    try:
        if checkpoints.imported_from(folder) is None:
            return False
        config = checkpoints.read_config(folder)
    except (checkpoints.CheckpointError, OSError):
        return False
    return config.kind == "decoder" and config.n_layer > 0 and config.vocab_size >= FEWEST_TOKENS


def _when(folder: Path) -> float:
    return (folder / "card.json").stat().st_mtime
