"""The command `experts`: how often the experts of a mixture are chosen over a text, and for which tokens."""

from __future__ import annotations

import argparse
from typing import Any

from .common import Command, Parser, UsageError, add_model, opened, print_json, print_table, warn_of_unknown

# The tokens listed of each expert.
TOKENS = 8


def _options(this: Parser) -> None:
    add_model(this, "the text that the model reads")
    this.add_argument("--block", type=int, metavar="N", help="one block alone, counted from 0; default: all")


def run(options: argparse.Namespace) -> None:
    """The command `experts NAME PROMPT [--block N] [--json]`."""
    from gptviz.interp.reading.experts import even_load, load, taken

    lm = opened(options)
    config = lm.model.config
    if not config.experts or not config.n_layer or config.n_encoder_layer:
        raise UsageError(f"{options.name} has no experts: its MLPs are whole, see the command neurons")
    if options.block is not None and not 0 <= options.block < config.n_layer:
        raise UsageError(f"there is no block {options.block}: blocks are counted from 0 to {config.n_layer - 1}")
    warn_of_unknown(lm.tokenizer.encode(options.prompt))
    weights = lm.experts(options.prompt)
    shares, names = load(weights).values, weights.axes[2].labels
    rows: list[dict[str, Any]] = [
        {
            "block": block,
            "expert": expert,
            "name": names[expert],
            "load": float(shares[block, expert]),
            "tokens": [one._asdict() for one in taken(weights, block, expert)[:TOKENS]],
        }
        for block in (range(config.n_layer) if options.block is None else [options.block])
        for expert in range(len(names))
    ]
    if options.json:
        print_json(rows)
        return
    print(
        f"each token passes {config.n_active} of {config.n_expert} experts: {even_load(config):.1%} each if all were used alike"
    )
    cells = [
        [
            f"blocks.{row['block']}.mlp.expert.{row['expert']}",
            f"{row['load']:.1%}",
            " ".join(repr(one["token"]) for one in row["tokens"]),
        ]
        for row in rows
    ]
    print_table(["", "of the tokens", "most often for"], cells)


COMMAND = Command(
    "experts", "Which experts of a mixture the tokens of a text pass, and how often each is chosen.", run, _options, place=175
)
