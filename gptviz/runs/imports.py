"""Importing a model that another program made: its config and tokenizer become a checkpoint, its weights stay where they are."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from gptviz.model import parameter_count
from gptviz.pretrained import hub
from gptviz.pretrained.families import ImportRefusedError
from gptviz.pretrained.opening import filled, reference, source_at

from . import checkpoints, names, sharing, zips
from .card import Card, values_of
from .checkpoints import CheckpointError


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
        given: a folder or file of another program (see `gptviz.pretrained.opening`), the name of a model on the hub, or a zip
            file with a model (see `sharing`), whose weights are then unpacked among the user's own models.
        name: what to call the model; unless given, its name there, with a number where that is in use.
        command: the command line that does the same, for the card.

    Raises:
        CheckpointError: it cannot be opened, the name is in use or impossible, or the checkpoint cannot be written; nothing is
            left half-made.
    """
    if zips.is_zip(given):
        folder = sharing.unpack(Path(given), name)
        made = checkpoints.read_card(folder)
        return Imported(folder, _family(made), parameter_count(checkpoints.read_config(folder)), _notes(made))
    try:
        on_disk = os.path.lexists(given) or not hub.is_name(given)
        source = source_at(Path(given) if on_disk else hub.fetched(given))
        opened = source.opened()
        filled(source, opened.config)
    except ImportRefusedError as error:
        raise CheckpointError(str(error)) from None
    card = {
        "imported_from": str(source.path) if on_disk else given,
        **values_of(opened),
        **({"command": command} if command else {}),
    }
    wanted = name or names.possible(source.path.stem if source.path.is_file() else Path(given).resolve().name)
    with names.claimed(wanted, or_next=name is None) as claim:
        folder = checkpoints.save_reference(claim.name, opened.config, opened.tokenizer, card, reference(source))
    return Imported(folder, opened.family, parameter_count(opened.config), opened.notes)


def _family(card: Card) -> str:
    """What people call such models; gptviz made those whose card does not say."""
    family = card.values.get("family")
    return family if isinstance(family, str) else "gptviz"


def _notes(card: Card) -> tuple[str, ...]:
    """What a card from elsewhere says to the reader."""
    notes = card.values.get("notes")
    return tuple(note for note in notes if isinstance(note, str)) if isinstance(notes, list) else ()
