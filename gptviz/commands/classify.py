"""The command `classify`: the label of a text."""

from __future__ import annotations

import argparse
import sys

from .common import Command, Parser, UsageError, add_model, opened, print_json, warn_of_unknown


def _options(this: Parser) -> None:
    add_model(this)
    this.add_argument("--text", required=True, metavar="TEXT")


def run(options: argparse.Namespace) -> None:
    """The command `classify NAME --text TEXT [--json]`."""
    lm = opened(options)
    if lm.model.config.kind != "classifier":
        raise UsageError(f"{options.name} is not a classifier: use generate {options.name} --prompt TEXT")
    encoding = lm.tokenizer.encode(options.text)
    warn_of_unknown(encoding)
    if (read := lm.model.config.context_length) < len(encoding.ids):
        units = "words" if lm.tokenizer.kind == "words" else "tokens"
        print(f"gptviz: only the first {read} of {len(encoding.ids):,} {units} are read", file=sys.stderr)
    probabilities = lm.classify(options.text)
    if options.json:
        print_json({"label": max(probabilities, key=probabilities.__getitem__), "probabilities": probabilities})
        return
    for name, probability in sorted(probabilities.items(), key=lambda item: -item[1]):
        print(f"{probability:>7.2%}  {name}")


COMMAND = Command("classify", "Predict the label of a text.", run, _options, place=100)
