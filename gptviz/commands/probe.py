"""The command `probe`: what can be read from the stream after each layer by a linear probe."""

from __future__ import annotations

import argparse

from .common import Command, Parser, UsageError, add_model, opened, print_folded, print_json, print_table, with_bar


def _options(this: Parser) -> None:
    add_model(this)
    about = "what the probe says of a token: case, word (the place in it), before-1 to before-4, or of its task, such as carry"
    this.add_argument("--label", required=True, metavar="LABEL", help=about)
    this.add_argument("--layer", default="all", metavar="LAYER", help="a layer, such as blocks.0.mlp; default: all")
    this.add_argument("--corpus", metavar="PATH", help="a text file to read; default: the data held out of training")


def run(options: argparse.Namespace) -> None:
    """The command `probe NAME --label LABEL [--layer LAYER] [--corpus PATH] [--json]`."""
    from gptviz.text import read_corpus

    lm = opened(options)
    text = None if options.corpus is None else read_corpus(options.corpus).text
    with with_bar():
        found = lm.probe(options.label, text)
    names = [layer.name for layer in found.layers]
    if options.layer not in ("all", *names):
        raise UsageError(f"{options.name} has no layer {options.layer}: give all, or one of {', '.join(names)}")
    every = zip(names, found.accuracy.tolist(), found.control.tolist(), strict=True)
    rows = [row for row in every if options.layer in ("all", row[0])]
    if options.json:
        print_json([{"layer": layer, "accuracy": right, "control": control} for layer, right, control in rows])
        return
    cells = [[layer, f"{right:.1%}", f"{control:.1%}"] for layer, right, control in rows]
    print_table(["tokens whose label is right", "probe", "shuffled labels"], cells)
    print_folded(f"always saying the commonest of the {len(found.classes)} labels: {found.commonest:.1%}")
    if options.layer == "all":
        print_folded(found.said)


COMMAND = Command(
    "probe",
    "What linear probes read from the stream after each layer, beside shuffled labels.",
    run,
    _options,
    place=185,
)
