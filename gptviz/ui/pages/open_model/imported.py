"""The models of other programs that were opened before: what their cards say, and where their weights are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from gptviz.machine.bounded import read_regular
from gptviz.machine.memory import in_bytes
from gptviz.runs import checkpoints, manage
from gptviz.runs.card import Card
from gptviz.runs.checkpoints import LONGEST
from gptviz.ui.shell.subject.model_list import imported


@dataclass(frozen=True)
class ImportedModel:
    """A model that was imported: the place of its weights, and their bytes there, or None if its own folder has them."""

    name: str
    card: Card
    place: str
    size: int | None

    @property
    def line(self) -> str:
        """Its family, its licence and its size, in a line."""
        count = self.card.values.get("parameters")
        return ", ".join([*imported(self.card), *([f"{count:,} parameters"] if isinstance(count, int) else [])])

    @property
    def notes(self) -> list[str]:
        """Sentences that a reader should know of it."""
        weights = (
            "It has its weights itself." if self.size is None else f"Its weights ({in_bytes(self.size)}) stay at {self.place}."
        )
        return [*self.card.notes, weights]


def imported_models() -> list[ImportedModel]:
    """The models of the user's own that other programs made."""
    found = []
    for name, folder in checkpoints.folders().items():
        if not manage.is_own(folder):
            continue
        try:
            card = checkpoints.read_card(folder)
        except checkpoints.CheckpointError:
            continue
        if card.family is not None:
            place, weights = _weights(folder) if checkpoints.is_reference(folder) else (str(folder), None)
            found.append(ImportedModel(name, card, place, weights))
    return found


def _weights(folder: Path) -> tuple[str, int | None]:
    """Where source.json says that the weights are, and how many bytes they have."""
    try:
        content = json.loads(read_regular(folder / "source.json", LONGEST["source.json"]))
        return str(content["path"]), sum(int(each) for each in content["files"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "a place that its source.json does not name", None


def names_by_place() -> dict[str, str]:
    """The names of these models by the place of their weights."""
    return {model.place: model.name for model in imported_models()}
