"""Importing a model that another program made: its config and tokenizer become a checkpoint, its weights stay where they are."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from gptviz.model import parameter_count
from gptviz.pretrained import hub
from gptviz.pretrained.families import ImportRefusedError
from gptviz.pretrained.opening import filled, reference, source_at

from . import checkpoints, names
from .checkpoints import LONGEST_NAME, CheckpointError


@dataclass(frozen=True)
class Imported:
    """A model that was imported.

    Attributes:
        folder: its checkpoint, whose name is the model's.
        family: what people call such models.
        parameters: how many numbers it has.
        notes: what a reader should know, in sentences.
    """

    folder: Path
    family: str
    parameters: int
    notes: tuple[str, ...]


def import_model(given: str, name: str | None = None, *, command: str | None = None) -> Imported:
    """Open a model once to see that it is sound, and write a checkpoint that refers to it.

    Args:
        given: a folder or file of another program (see `gptviz.pretrained.opening`), or the name of a model on the hub.
        name: what to call the model; unless given, its name there, with a number where that is in use.
        command: the command line that does the same, for the card.

    Raises:
        CheckpointError: it cannot be opened, the name is in use or impossible, or the checkpoint cannot be written; nothing is
            left half-made.
    """
    try:
        on_disk = os.path.lexists(given) or not hub.is_name(given)
        source = source_at(Path(given) if on_disk else hub.fetched(given))
        opened = source.opened()
        filled(source, opened.config)
    except ImportRefusedError as error:
        raise CheckpointError(str(error)) from None
    card = {
        "imported_from": str(source.path) if on_disk else given,
        "family": opened.family,
        "notes": list(opened.notes),
        **({"licence": opened.licence} if opened.licence else {}),
        **({"command": command} if command else {}),
    }
    wanted = name or _possible(source.path.stem if source.path.is_file() else Path(given).resolve().name)
    with names.claimed(wanted, or_next=name is None) as claim:
        folder = checkpoints.save_reference(claim.name, opened.config, opened.tokenizer, card, reference(source))
    return Imported(folder, opened.family, parameter_count(opened.config), opened.notes)


def _possible(name: str) -> str:
    """A name that a model can have, made of that of a folder or file."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("._-")[:LONGEST_NAME].rstrip(".") or "model"
