"""The command `heads`: what each head of a model does, as scores."""

from __future__ import annotations

import argparse

from .common import Command, Parser, add_model, add_pairs, opened, over_prompts, print_json, print_table, warn_of_unknown


def _options(this: Parser) -> None:
    add_model(this)
    this.add_argument("--prompt", metavar="TEXT", help="the text that the heads read; default: repeated random tokens")
    this.add_argument("--losses", action="store_true", help="also how much the loss rises without each head; a pass for each")
    add_pairs(this, "clean, right", "by how much the loss of the right answer rises without each piece")


def run(options: argparse.Namespace) -> None:
    """The command `heads NAME [--prompt TEXT] [--losses] [--json]`, or `… --pairs FILE`."""
    lm = opened(options)
    if over_prompts(options, lm, "switch off", needed=False):
        return
    if options.prompt is not None:
        warn_of_unknown(lm.tokenizer.encode(options.prompt))
    rows = lm.heads(options.prompt, losses=options.losses)
    if options.json:
        print_json(rows)
        return
    named = [name for name in rows[0] if name not in ("name", "block", "head")]
    names = [name for name in named if any(row[name] is not None for row in rows)]
    values = [["" if row[name] is None else f"{row[name]:.3f}" for name in names] for row in rows]
    print_table(["", *names], [[row["name"], *cells] for row, cells in zip(rows, values, strict=True)])


COMMAND = Command(
    "heads", "Score every head: previous token, induction, first token, copying and more.", run, _options, place=160
)
