"""The command `scan`: what stands out in a model that reads a prompt."""

from __future__ import annotations

import argparse

from .common import Command, Parser, UsageError, add_model, opened, print_folded, print_json, warn_of_unknown


def _options(this: Parser) -> None:
    add_model(this, prompt="what the model reads")


def run(options: argparse.Namespace) -> None:
    """The command `scan NAME --prompt TEXT [--json]`."""
    lm = opened(options)
    warn_of_unknown(lm.tokenizer.encode(options.prompt))
    try:
        findings = lm.scan(options.prompt)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if options.json:
        print_json([finding.to_dict() for finding in findings])
    for finding in () if options.json else findings:
        print_folded(f"{finding.strength:.2f}  {finding.page:<12} {finding.sentence}", 19)
    if not findings and not options.json:
        print("Nothing stands out.")


COMMAND = Command("scan", "What stands out in a model that reads a prompt, the most telling first.", run, _options, place=125)
