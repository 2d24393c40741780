"""Opening a language model by its name or its path."""

from __future__ import annotations

import os
from pathlib import Path

from gptviz.machine.warning import warn_caller
from gptviz.model import Transformer
from gptviz.model.devices import device as choose_device
from gptviz.model.precision import check as check_precision
from gptviz.runs import checkpoints, imports
from gptviz.runs.card import Card
from gptviz.text import Tokenizer


def open_parts(
    name: str | Path, device: str | None, step: int | None, precision: str
) -> tuple[str, Transformer, Tokenizer, Card, int | None, str]:
    """What a `LoadedModel` is made of, its name first: see `load`."""
    if not isinstance(name, str | Path):
        raise TypeError(
            f'{name!r:.80} names no model: give a name such as "shakespeare", or a pathlib.Path'
        )
    on = choose_device(device)
    check_precision(precision)
    if isinstance(name, Path):
        folder = name.absolute()
        if not os.path.lexists(folder):
            raise checkpoints.CheckpointError(f"there is no file and no folder at {name}")
        if step is None and (found := imports.in_place(folder, on, precision)) is not None:
            return *_open_checkpoint(found), None, precision
    else:
        folder = folder_called(name)
        if name in checkpoints.hidden_checkpoints():
            warn_caller(checkpoints.about_hiding(name, folder))
    return *_open_checkpoint(checkpoints.load(folder, on, step, precision)), step, precision


def _open_checkpoint(found: checkpoints.Checkpoint) -> tuple[str, Transformer, Tokenizer, Card]:
    return found.name, found.model, found.tokenizer, found.card


def folder_called(name: str) -> Path:
    """The checkpoint of this name, else that of the hub, imported if it was not before; a
    CheckpointError if neither exists.
    """
    try:
        return checkpoints.find(name)
    except checkpoints.CheckpointError as error:
        missing = error
    if not imports.could_be_on_hub(name):
        if set(name) & set("/\\"):
            path = f". A file or folder is opened with load(pathlib.Path({name!r:.80}))"
        else:
            path = ""
        raise checkpoints.CheckpointError(f"{missing}{path}")
    try:
        return imports.of_hub(name)
    except checkpoints.CheckpointError as error:
        raise checkpoints.CheckpointError(
            f"{missing}. It was looked for on the Hugging Face hub too: {error}"
        ) from None
