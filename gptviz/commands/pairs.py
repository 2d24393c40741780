"""The option --pairs: what a command says of a list of prompts."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

from .common import Parser, UsageError
from .printing import CommandOutput, Table

if TYPE_CHECKING:
    from gptviz.interp.over_prompts import How
    from gptviz.language_model import LanguageModel


class Pairs(NamedTuple):
    """What a command says of a list of prompts."""

    how: How  #: what is measured
    columns: str  #: of the list
    says: str  #: what that is of each head and MLP, for the help
    instead_of: tuple[str, ...] = ("prompt",)  #: the options for which there is no use with a list
    is_needed: bool = True  #: whether they have to be given without one

    def add_option(self, this: Parser) -> None:
        """Add --pairs."""
        this.add_argument(
            "--pairs",
            metavar="FILE",
            help=f"a list of prompts: CSV whose first line names its columns ({self.columns}), or "
            "lines with | between clean, "
            f"corrupted, right and wrong. Says {self.says}: mean, standard deviation and share of "
            "the same sign for every head "
            "and MLP",
        )

    def show_answers(self, options: argparse.Namespace, lm: LanguageModel) -> CommandOutput | None:
        """What the list says that --pairs names; None if there is none.

        Raises:
            UsageError: there is neither a list nor what it stands for, or both; it cannot be read,
                or some lines do not fit the model.
        """
        from gptviz.interp.over_prompts import SAYS
        from gptviz.interp.units.unit import unit
        from gptviz.text.datasets.corpora import read_corpus
        from gptviz.text.datasets.prompt_pairs import prompt_rows

        given = [name for name in self.instead_of if getattr(options, name) is not None]
        if options.pairs is None and self.is_needed and len(given) < len(self.instead_of):
            raise UsageError(
                f"give --{' and --'.join(self.instead_of)}, or a list of prompts with --pairs FILE"
            )
        if options.pairs is None:
            return None
        if given:
            raise UsageError(f"--pairs has the prompts: leave --{given[0]} out")
        spread = lm.over_prompts(
            prompt_rows(read_corpus(options.pairs).text, options.pairs), self.how
        )
        columns = {
            "mean": spread.mean,
            "standard deviation": spread.deviation,
            "same sign": spread.same_sign,
        }
        numbers = {
            name: dict(zip(spread.units, values.tolist(), strict=True))
            for name, values in columns.items()
        }
        content = {
            "how": self.how,
            "says": SAYS[self.how],
            "prompts": len(spread.values),
            **numbers,
        }
        order = (-abs(spread.mean)).argsort(kind="stable").tolist()
        titles = [unit(name, lm.model.config).title for name in spread.units]
        cells = [
            [
                titles[i],
                f"{spread.mean[i]:+.4f}",
                f"{spread.deviation[i]:.4f}",
                f"{spread.same_sign[i]:.0%}",
            ]
            for i in order
        ]
        first = f"{SAYS[self.how]}, over {len(spread.values):,} prompts, the largest mean first"
        return CommandOutput(content, [first, Table(cells, ["", *columns])])
