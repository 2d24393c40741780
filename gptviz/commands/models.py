"""The command `models`: what can be opened."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .common import Command, nats, print_json


def add(command: Command) -> None:
    """Add the command."""
    command("models", run, "List the models that can be opened.", on_device=False)


def run(options: argparse.Namespace) -> None:
    """The command `models [--json]`."""
    from gptviz.runs import checkpoints

    hidden = checkpoints.hidden()
    rows = []
    for name, folder in checkpoints.folders().items():
        row = {"name": name, **_row(folder)} | ({"hides": str(hidden[name])} if name in hidden else {})
        rows.append(row)
    if options.json:
        print_json(rows)
        return
    for row in rows:
        quality = f"   validation loss {nats(row['validation_loss'])}" if "validation_loss" in row else ""
        family = f"   {row['family']}, licence {row.get('licence', 'not named')}" if "family" in row else ""
        about = row.get("error") or f"{row['parameters']:>12,} parameters{quality}{family}"
        notes = "   it diverged" * ("diverged" in row) + "   yours; it hides the one that came with gptviz" * ("hides" in row)
        print(f"{row['name']:<28} {about}{notes}")


def _row(folder: Path) -> dict[str, Any]:
    """What `models` says about the model in `folder`: its size and its result, or what is wrong with its files."""
    from gptviz.model import parameter_count
    from gptviz.runs import checkpoints
    from gptviz.runs.divergence import diverged

    try:
        card, config = checkpoints.read_card(folder), checkpoints.read_config(folder)
        checkpoints.check_weights(folder, config)
    except checkpoints.CheckpointError as error:
        return {"error": str(error)}
    known = {"preset": card.plan, "corpus": card.corpus, "validation_loss": card.validation_loss}
    known |= {"family": card.family, "imported_from": card.imported_from, "licence": card.licence}
    told = {key: value for key, value in known.items() if value is not None}
    problem = diverged(card, config)
    return {"parameters": parameter_count(config), **told} | ({"diverged": problem} if problem else {})
