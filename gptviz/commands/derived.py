"""Commands of pages whose record names an analysis: the method of a language model that reads a
prompt is a command too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptviz.ui.menu import PAGES

from .common import Command
from .options import command
from .printing import CommandOutput, Table

if TYPE_CHECKING:
    from gptviz.language_model import LanguageModel


def _derive_command(analysis: str, summary: str, place: int) -> Command:
    """The command of an analysis: a method that returns a `LabelledArray`."""

    def run(lm: LanguageModel, prompt: str) -> CommandOutput:
        result = getattr(lm, analysis)(prompt)
        columns = result.records()
        rows = zip(*(map(str, column) for column in columns.values()), strict=True)
        return CommandOutput(result, [Table(rows, list(columns))])

    run.__name__ = analysis
    run.__doc__ = summary
    return command(place)(run)


_pages = [page for page in PAGES.values() if page.analysis]
DERIVED = [
    _derive_command(page.analysis, page.sentence, 300 + number)
    for number, page in enumerate(_pages)
]
