"""The model of a lesson about any decoder that the reader has opened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gptviz.languages import translate
from gptviz.runs import checkpoints

from .lesson import Lesson

# A decoder with fewer tokens reads letters or digits, not parts of words.
FEWEST_TOKENS = 1_000


def opened_last() -> str | None:
    """The name of the decoder of another program, with parts of words as tokens, that was opened
    last, or None.
    """
    opened = {name: folder for name, folder in checkpoints.folders().items() if _is_meant(folder)}
    return max(
        opened, key=lambda name: ((opened[name] / "card.json").stat().st_mtime, name), default=None
    )


def about_what_is_open(lesson: Lesson) -> Lesson:
    """The lesson with its model filled in: one about any decoder is then about the one opened last,
    if any was, and no other.
    """
    model = opened_last() if lesson.any_decoder else None
    if model is None:
        return lesson
    return replace(lesson, model=model, any_decoder=False)


def stands_in(lesson: Lesson) -> str:
    """Sentences about a lesson that is about any decoder, on a machine where none was opened: which
    model it goes on with.
    """
    said = translate(
        "This lesson is about a model that others trained, and no such model that reads pieces of "
        "words is open here. Until one is, it goes on with {model}, a small model that comes with "
        "this program.",
        lesson.language,
    )
    return said.format(model=lesson.model)


def _is_meant(folder: Path) -> bool:
    try:
        if checkpoints.imported_from(folder) is None:
            return False
        config = checkpoints.read_config(folder)
    except (checkpoints.CheckpointError, OSError):
        return False
    return config.kind == "decoder" and config.n_layer > 0 and config.vocab_size >= FEWEST_TOKENS
