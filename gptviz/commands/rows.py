"""The command `rows`: which rows of a text or of the data are hard, before and after, and what it
changed to have read them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gptviz
from gptviz.machine import terminal

from .common import UsageError, pick_values, text_of
from .options import File, Name, command
from .printing import CommandOutput, Lines, Table

if TYPE_CHECKING:
    from gptviz.language_model import LanguageModel

SHOWN = 12
LONGEST = 60


@command(147)
def rows(
    lm: LanguageModel,
    text: File | None = None,
    most: int = 64,
    before: int | None = None,
    than: Name | None = None,
) -> CommandOutput:
    """Which rows of its data a model finds hard, and which it had read.

    Args:
        text: a text; default: what the model was trained on, and what was held out.
        most: rows of each kind, evenly spread.
        before: also the losses of the snapshot after so many steps.
        than: instead, the losses of another model, such as the one that a run began with.
    """
    from gptviz.interp.reading.row_losses import difference

    if before is not None and than is not None:
        raise UsageError("argument --than: not allowed with argument --before")
    earlier = None
    try:
        every = lm.data_rows(text_of(text), most)
        losses = lm.losses_of_rows(every).values.tolist()
        if before is not None or than is not None:
            earlier = (
                gptviz.load(than or lm.name, str(lm.device), before, lm.precision)
                .losses_of_rows(every)
                .values.tolist()
            )
    except ValueError as error:
        raise UsageError(f"{lm.name}: {error}") from None
    seen = [loss for loss, row in zip(losses, every, strict=True) if row.times]
    apart = difference(
        seen, [loss for loss, row in zip(losses, every, strict=True) if row.times == 0]
    )
    content = [
        {"text": row.text, "loss": loss, "before": old, **pick_values(row, "held_out", "times")}
        for row, loss, old in zip(every, losses, earlier or [None] * len(every), strict=True)
    ]
    columns = ["the hardest rows", "loss", *(["before"] if earlier else []), "times read"]
    hardest = sorted(content, key=lambda row: -row["loss"])[:SHOWN]
    lines: Lines = [
        Table([_cells(row) for row in hardest], columns),
        f"{len(every)} rows, mean loss {sum(losses) / len(losses):.4f} nats per token.",
    ]
    if min(apart.counts):
        lines.append(
            f"{apart.counts[0]} of them it had read in training: {apart.means[0]:.4f}; "
            f"{apart.counts[1]} it had not: "
            f"{apart.means[1]:.4f}. Difference {apart.value:+.4f}, standard error "
            f"{apart.error:.4f}."
        )
    return CommandOutput({"rows": content, "seen_minus_unseen": vars(apart)}, lines)


def _cells(row: dict[str, Any]) -> list[str]:
    words = terminal.escape_text(" ".join(row["text"].split()))
    if len(words) <= LONGEST:
        words = words
    else:
        words = f"{words[: LONGEST - 1]}…"
    before = [] if row["before"] is None else [f"{row['before']:.3f}"]
    return [
        words,
        f"{row['loss']:.3f}",
        *before,
        "–" if row["times"] is None else f"{row['times']:,}",
    ]
