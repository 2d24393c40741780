"""Commands of pages whose record names an analysis: the method of a language model that reads a
prompt is a command too.
"""

from __future__ import annotations

import argparse

from gptviz.ui.menu import PAGES

from .analysis import SHARED
from .common import Command, Parser, add_model, open_model, warn_of_unknown, with_bar
from .printing import CommandOutput, Table


def _options(this: Parser) -> None:
    add_model(this)
    this.add_argument("--prompt", required=True, metavar="TEXT", help=SHARED["prompt"])


def _derive_command(analysis: str, summary: str, place: int) -> Command:
    """The command of an analysis: a method that returns a `LabelledArray`."""

    def run(options: argparse.Namespace) -> CommandOutput:
        lm = open_model(options)
        with with_bar():
            result = getattr(lm, analysis)(options.prompt)
        warn_of_unknown(lm.tokenizer.encode(options.prompt))
        columns = result.records()
        rows = zip(*(map(str, column) for column in columns.values()), strict=True)
        return CommandOutput(result.to_dict(), [Table(rows, list(columns))])

    return Command(analysis, summary, run, _options, place=place)


_pages = [page for page in PAGES.values() if page.analysis]
DERIVED = [
    _derive_command(page.analysis, page.sentence, 300 + number)
    for number, page in enumerate(_pages)
]
