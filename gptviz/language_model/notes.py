"""Names and notes of the reader's own on the units of a language model."""

from __future__ import annotations

from pathlib import Path

from gptviz.interp.units.unit import unit as unit_named
from gptviz.runs import checkpoints
from gptviz.runs import notes as kept
from gptviz.runs.notes import Note

from .core import LoadedModel


def notes(lm: LoadedModel) -> dict[str, Note]:
    """What the reader calls its units, and wrote about them, by the names of the units: kept on
    this machine under the name of the model, for all of its snapshots.

    Raises:
        NotesError: the file of them is damaged; the message names it.
    """
    return dict(kept.read_notes(_folder_of(lm)))


def write_note(
    lm: LoadedModel, unit: str, *, name: str | None = None, note: str | None = None
) -> Note:
    """Keep what the reader calls a unit, or wrote about it, on this machine; every page shows it.

    Args:
        unit: the name of a head, an MLP, a neuron, a feature, a direction or another unit, as in an
            edit.
        name: one line of at most 60 characters; None leaves it as it is, an empty text takes it
            away.
        note: the same with at most 4,000 characters.

    Returns:
        What is kept of the unit now.

    Raises:
        ValueError: the model has no such unit, a text is too long, or the file of all names and
            notes is damaged; the message names it.
        OSError: the file cannot be written.
    """
    which = unit_named(unit, lm.model.config).name
    return kept.write_note(_folder_of(lm), which, name=name, note=note)


def _folder_of(lm: LoadedModel) -> Path:
    """The folder of the model; of one that was opened from a file and not imported, one of its name
    that does not exist: its notes are kept by that name.
    """
    try:
        return checkpoints.find(lm.name)
    except checkpoints.CheckpointError:
        return Path(lm.name)
