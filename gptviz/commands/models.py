"""The command `models`: the models that can be opened."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .common import Command, nats, print_json


def run(options: argparse.Namespace) -> None:
    """The command `models [--json]`."""
    from gptviz.runs import checkpoints

    hidden = checkpoints.hidden()
    rows, losses = [], []
    for name, folder in checkpoints.folders().items():
        known, loss = _row(folder)
        losses.append(loss)
        row = {"name": name, **known} | ({"hides": str(hidden[name])} if name in hidden else {})
        rows.append(row)
    if options.json:
        print_json(rows)
        return
    for row, loss in zip(rows, losses, strict=True):
        family = f"   {row['family']}, licence {row.get('licence', 'not named')}" if "family" in row else ""
        about = row.get("error") or f"{row['parameters']:>12,} parameters{loss}{family}"
        notes = "   it diverged" * ("diverged" in row) + "   yours; it hides the one that came with gptviz" * ("hides" in row)
        print(f"{row['name']:<24} {about}{notes}")


def _row(folder: Path) -> tuple[dict[str, Any], str]:
    """The row of the model in `folder`, its size and result or what is wrong with its files; and its loss, as it is printed."""
    from gptviz.model import parameter_count
    from gptviz.runs import checkpoints
    from gptviz.runs.divergence import diverged

    try:
        card, config = checkpoints.read_card(folder), checkpoints.read_config(folder)
        checkpoints.check_weights(folder, config)
    except checkpoints.CheckpointError as error:
        return {"error": str(error)}, ""
    known = {"preset": card.plan, "corpus": card.corpus, "validation_loss": card.validation_loss}
    known |= {"family": card.family, "imported_from": card.imported_from, "licence": card.licence}
    told = {key: value for key, value in known.items() if value is not None}
    problem = diverged(card, config)
    unit = "text" if config.kind == "classifier" else "token"
    loss = "" if card.validation_loss is None else f"   validation {nats(card.validation_loss)} nats/{unit}"
    return {"parameters": parameter_count(config), **told} | ({"diverged": problem} if problem else {}), loss


COMMAND = Command("models", "List the models that can be opened.", run, place=20, on_device=False)
