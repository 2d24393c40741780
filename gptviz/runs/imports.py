"""Importing a model that another program made: its config and tokenizer become a checkpoint, its
weights stay where they are.

What cannot be opened is refused with a `CheckpointError`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gptviz.machine import memory, progress
from gptviz.machine.bounded import parse_json, read_regular
from gptviz.machine.progress import Progress
from gptviz.model import parameter_count
from gptviz.model.costs import memory_needed
from gptviz.model.precision import STORED
from gptviz.pretrained import peft
from gptviz.pretrained.families import ImportRefusedError
from gptviz.pretrained.opening import reference, require_room, source_at, with_weights
from gptviz.pretrained.places import hub
from gptviz.pretrained.places.hub import HubModel as HubModel  # also for callers that get one
from gptviz.pretrained.sources import mapping as mapping_file
from gptviz.pretrained.sources.folder import LONGEST_CONFIG, MOST_VALUES, outline_of
from gptviz.pretrained.sources.mapped import Examined, Mapped
from gptviz.pretrained.sources.source import number_bytes

from . import checkpoints, names, peft_adapters, sharing, zips
from .card import Card, values_of
from .checkpoints import CheckpointError


@dataclass(frozen=True)
class Imported:
    """A model that was imported."""

    folder: Path  #: its checkpoint, whose name is the model's
    family: str  #: the usual name of such models
    parameters: int  #: how many numbers it has
    notes: tuple[str, ...]  #: facts that a reader should know, in sentences


def import_model(
    given: str,
    name: str | None = None,
    *,
    additions: Mapping[str, Any] | None = None,
    suggested: str | None = None,
    command: str | None = None,
    offered: Callable[[HubModel], None] | None = None,
    base: str | None = None,
) -> Imported:
    """Open a model once to see that it is sound, and write a checkpoint that refers to it.

    It reports the bytes that arrive from the hub, then the tensors that are read.

    Args:
        given: a folder or file of another program (see `gptviz.pretrained.opening`), the name of a
            model on the hub, or a zip file with a model (see `sharing`), whose weights are then
            unpacked among the user's own models.
        name: the name of the model here; default: its name there, with a number if that is in use.
        additions: facts that the files of the model do not tell, as `additions_of` returns them: a
            mapping, or fields.
        suggested: a name to use instead of its name there, with a number if that is in use.
        command: the command line that does the same, for the card.
        offered: called with the offer of the hub before it is fetched.
        base: for a folder or zip file with a LoRA adapter of PEFT, the model here that it changes;
            default: the one that its files name.

    Raises:
        CheckpointError: it cannot be opened, the name is in use or impossible, or the checkpoint
            cannot be written; nothing is left half-made.
    """
    if peft.is_adapter(Path(given)):
        path = Path(given).resolve()
        save = peft_adapters.reader(
            path, base, imported_from=str(path), **({"command": command} if command else {})
        )
        with names.claim_name(
            name or suggested or names.possible_name(path.name), or_next=name is None
        ) as claim:
            return _imported_model(save(claim.name))
    if zips.is_zip(given):
        return _imported_model(sharing.unpack(Path(given), name, base))
    if base is not None:
        raise CheckpointError(f"{given} {peft_adapters.NO_BASE}")

    def accept(offer: HubModel) -> None:  # a model that cannot be opened is not fetched
        if offer.fields and (problem := too_large(offer)):
            raise ImportRefusedError(f"{given} is not fetched: {problem}")
        if offered is not None:
            offered(offer)

    try:
        on_disk = os.path.lexists(given) or not hub.is_name(given)
        source = source_at(Path(given) if on_disk else hub.fetch_model(given, accept), additions)
        require_room(source, source.outline().config, precision=STORED)
        opened = source.describe_model()
        with_weights(source, opened.config, precision=STORED)
    except ImportRefusedError as error:
        raise CheckpointError(str(error)) from None
    card = {
        "imported_from": str(source.path) if on_disk else given,
        **values_of(opened),
        **({"command": command} if command else {}),
    }
    if source.path.is_file():
        there = source.path.stem
    else:
        there = Path(given).resolve().name
    wanted = names.possible_name(suggested or there) if name is None else name
    with names.claim_name(wanted, or_next=name is None) as claim:
        folder = checkpoints.save_opened(
            claim.name, opened.config, opened.tokenizer, card, source=reference(source)
        )
    return Imported(folder, opened.family, parameter_count(opened.config), opened.notes)


def _imported_model(folder: Path) -> Imported:
    made = checkpoints.read_card(folder)
    return Imported(
        folder,
        made.family or "gptviz",
        parameter_count(checkpoints.read_config(folder)),
        made.notes,
    )


def additions_of(mapping: Path | None, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The value of `additions` for `import_model`: the mapping in a file, and `changes` of fields
    of our config.
    """
    try:
        return mapping_file.additions_of(mapping, changes)
    except ImportRefusedError as error:
        raise CheckpointError(str(error)) from None


def examine_tensors(given: str, additions: Mapping[str, Any] | None = None) -> Examined | None:
    """The tensors of the file `given` compared with its mapping or a draft, None for other sources;
    see `import_model`.
    """
    try:
        if os.path.lexists(given):
            source = source_at(Path(given), additions)
        else:
            source = None
        if isinstance(source, Mapped):
            return source.examine_tensors()
        return None
    except ImportRefusedError as error:
        raise CheckpointError(str(error)) from None


def too_large(offer: HubModel) -> str | None:
    """The reason why a model of the hub cannot be opened in the memory that is free, or None if it
    can.
    """
    config = outline_of(offer.fields).config
    needs = memory_needed.estimate_memory(
        config, number_bytes(offer.weights, parameter_count(config), STORED)
    )
    return memory_needed.refusal(needs, memory.room(needs.total))


def could_be_on_hub(name: str) -> bool:
    """Whether a model on the hub could have this name."""
    return hub.is_name(name)


def of_hub(name: str) -> Path:
    """The checkpoint of the model that has this name on the hub: imported before, or now, with a
    bar for its bytes.
    """
    known = list[Path]()
    for folder in checkpoints.folders().values():
        with suppress(CheckpointError):
            if (
                checkpoints.is_reference(folder)
                and checkpoints.read_card(folder).imported_from == name
            ):
                known.append(folder)
    if whole := next(filter(_has_weights, known), None):
        return whole
    with bar(name):
        # its files were removed from the cache: if the hub still has the same ones, its checkpoint
        # works again
        if known:
            try:
                hub.fetch_model(name)
            except ImportRefusedError as error:
                raise CheckpointError(str(error)) from None
        return next(filter(_has_weights, known), None) or import_model(name).folder


def _has_weights(folder: Path) -> bool:
    """Whether the files that a checkpoint refers to are there."""
    with suppress(CheckpointError):
        checkpoints.source_of(folder)
        return True
    return False


def in_place(
    path: Path, device: torch.device | str = "cpu", precision: str | None = None
) -> checkpoints.Checkpoint | None:
    """The model of another program in a folder or file, opened without importing it, or None if it
    is a checkpoint of gptviz. `device` and `precision` are as in `checkpoints.load`.
    """
    if peft.is_adapter(path):
        raise CheckpointError(
            f"{path.name} is a LoRA adapter of PEFT: import it first, with gptviz import {path}"
        )
    if not path.is_file() and not _is_of_others(path):
        return None
    try:
        source = source_at(path)
        require_room(source, source.outline().config, device, precision)
        opened = source.describe_model()
        return checkpoints.Checkpoint(
            names.possible_name(path.stem if path.is_file() else path.name),
            with_weights(source, opened.config, device, precision).eval(),
            opened.tokenizer,
            Card.from_json({"imported_from": str(source.path), **values_of(opened)}),
        )
    except ImportRefusedError as error:
        raise CheckpointError(str(error)) from None


def _is_of_others(folder: Path) -> bool:
    """Whether the config.json in a folder is another program's."""
    try:
        fields = parse_json(read_regular(folder / "config.json", LONGEST_CONFIG), MOST_VALUES)
    except (OSError, ValueError):
        return False
    return isinstance(fields, dict) and "format" not in fields and "model_type" in fields


@contextmanager
def bar(name: str, size: int | None = None) -> Iterator[None]:
    """A bar on stderr for the bytes that arrive in the block, or for `size` bytes that are written;
    drawn after the first.
    """
    from tqdm.auto import tqdm

    drawn: tqdm[Any] | None = None

    def draw(now: Progress) -> None:
        nonlocal drawn
        if size is None and now.step != hub.BYTE:
            return
        done, of = (now.done, now.of) if size is None else (round(now.share * size), size)
        if drawn is None:
            drawn = tqdm(total=of, initial=done, unit="B", unit_scale=True, desc=name, leave=False)
        drawn.update(done - drawn.n)

    try:
        with progress.listen_to(draw):
            yield
    finally:
        if drawn is not None:
            drawn.close()
