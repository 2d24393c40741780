"""The command `models`: the models that can be opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .common import nats
from .options import command
from .printing import CommandOutput, Table


@command(20, on_device=False)
def models() -> CommandOutput:
    """List the models that can be opened."""
    from gptviz.model.raw_blocks import problem
    from gptviz.runs import checkpoints

    hidden = checkpoints.hidden_checkpoints()
    rows = []
    cells = []
    for name, folder in checkpoints.folders().items():
        known, loss = _row(folder)
        row = {"name": name, **known} | ({"hides": str(hidden[name])} if name in hidden else {})
        if "family" in row:
            family = f"   {row['family']}, licence {row.get('licence', 'not named')}"
        else:
            family = ""
        about = row.get("error") or f"{row['parameters']:>12,} parameters{loss}{family}"
        notes = "   it diverged" * (
            "diverged" in row
        ) + "   yours; it hides the one that came with gptviz" * ("hides" in row)
        rows.append(row)
        cells.append((f"{name:<23}", f"{about}{notes}"))
    said = [problem()] if problem() else []
    return CommandOutput(rows, [Table(cells), *said])


def _row(folder: Path) -> tuple[dict[str, Any], str]:
    """The row of the model in `folder`, its size and result or what is wrong with its files; and
    its loss, as it is printed.
    """
    from gptviz.model import parameter_count
    from gptviz.runs import checkpoints
    from gptviz.runs.divergence import describe_divergence

    try:
        card = checkpoints.read_card(folder)
        config = checkpoints.read_config(folder)
        checkpoints.check_weights(folder, config)
    except checkpoints.CheckpointError as error:
        return {"error": str(error)}, ""
    known = {"preset": card.plan, "corpus": card.corpus, "validation_loss": card.validation_loss}
    known |= {"family": card.family, "imported_from": card.imported_from, "licence": card.licence}
    told = {key: value for key, value in known.items() if value is not None}
    problem = describe_divergence(card, config)
    unit = "text" if config.kind == "classifier" else "token"
    if card.validation_loss is None:
        loss = ""
    else:
        loss = f"   validation {nats(card.validation_loss)} nats/{unit}"
    return {"parameters": parameter_count(config), **told} | (
        {"diverged": problem} if problem else {}
    ), loss
