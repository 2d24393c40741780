"""The command `report`: the report of a training run as one HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path

from .common import Parser, command, require_place, write_whole
from .printing import CommandOutput


def _options(this: Parser) -> None:
    this.add_argument("name", metavar="NAME", help="a model, as listed by 'models'")
    this.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="the file to write; default: here, by the model's name",
    )


@command(80, _options, on_device=False)
def report(options: argparse.Namespace) -> CommandOutput:
    """Write the report of a training run (curves, settings, samples, card) as one HTML file that
    needs no server.
    """
    from gptviz.runs import checkpoints
    from gptviz.takehome.page_file import as_html
    from gptviz.takehome.report import report

    out = options.out or Path(f"{checkpoints.find(options.name).name}-report.html")
    require_place(out)
    return write_whole(
        out, as_html(report(options.name)), f"The report of {options.name}", {"name": options.name}
    )
