"""The command `rows`: which rows of a text or of the data are hard, before and after, and what it changed to have read them."""

from __future__ import annotations

import argparse

import gptviz
from gptviz.machine import terminal

from .common import Command, Parser, UsageError, add_model, opened, print_folded, print_json, print_table

SHOWN, LONGEST = 12, 60


def _options(this: Parser) -> None:
    add_model(this)
    this.add_argument("--text", metavar="FILE", help="a text; default: what the model was trained on, and what was held out")
    this.add_argument("--most", type=int, default=64, metavar="N", help="rows of each kind, evenly spread; default: 64")
    before = this.add_mutually_exclusive_group()
    before.add_argument("--before", type=int, metavar="STEP", help="also the losses of the snapshot after so many steps")
    before.add_argument("--than", metavar="NAME", help="also the losses of another model, such as the one that a run began with")


def run(options: argparse.Namespace) -> None:
    """The command `rows NAME [--text FILE] [--most N] [--before STEP | --than NAME] [--json]`."""
    from gptviz.interp.reading.row_losses import difference
    from gptviz.text import read_corpus

    lm = opened(options)
    if options.most < 1:
        raise UsageError(f"--most is {options.most}; it must be 1 or more")
    try:
        rows = lm.data_rows(None if options.text is None else read_corpus(options.text).text, options.most)
        after, before = lm.losses_of_rows(rows).values.tolist(), None
        if options.before is not None or options.than is not None:
            other = options.than or options.name
            earlier = gptviz.load(other, options.device, options.before, options.precision)
            before = earlier.losses_of_rows(rows).values.tolist()
    except ValueError as error:
        raise UsageError(f"{options.name}: {error}") from None
    losses = [(loss, row.times) for loss, row in zip(after, rows, strict=True) if row.times is not None]
    found = difference([loss for loss, times in losses if times], [loss for loss, times in losses if not times])
    if options.json:
        content = [
            {
                "text": row.text,
                "loss": after[i],
                "before": None if before is None else before[i],
                "held_out": row.held_out,
                "times": row.times,
            }
            for i, row in enumerate(rows)
        ]
        print_json({"rows": content, "seen_minus_unseen": vars(found)})
        return
    order = sorted(range(len(rows)), key=lambda i: -after[i])[:SHOWN]
    columns = ["the hardest rows", "loss", *(["before"] if before is not None else []), "times read"]
    print_table(columns, [_line(rows[i].text, after[i], before, i, rows[i].times) for i in order])
    print_folded(f"{len(rows)} rows, mean loss {sum(after) / len(after):.4f} nats per token.")
    if min(found.counts):
        print_folded(
            f"{found.counts[0]} of them it had read in training: {found.means[0]:.4f}; {found.counts[1]} it had not: "
            f"{found.means[1]:.4f}. Difference {found.value:+.4f}, standard error {found.error:.4f}."
        )


def _line(text: str, loss: float, before: list[float] | None, row: int, times: int | None) -> list[str]:
    words = terminal.printable(" ".join(text.split()))
    earlier = [] if before is None else [f"{before[row]:.3f}"]
    return [
        words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…",
        f"{loss:.3f}",
        *earlier,
        "–" if times is None else f"{times:,}",
    ]


COMMAND = Command("rows", "Which rows of its data a model finds hard, and which it had read.", run, _options, place=147)
