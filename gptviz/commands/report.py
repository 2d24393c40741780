"""The command `report`: the report of a training run as one HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path

from .common import Command, Parser, require_place, write_whole
from .printing import Shown


def _options(this: Parser) -> None:
    this.add_argument("name", metavar="NAME", help="a model, as listed by 'models'")
    this.add_argument("--out", type=Path, metavar="FILE", help="the file to write; default: here, by the model's name")


def run(options: argparse.Namespace) -> Shown:
    """The command `report NAME [--out FILE] [--json]`."""
    from gptviz.machine.memory import in_bytes
    from gptviz.runs import checkpoints
    from gptviz.takehome.page_file import as_html
    from gptviz.takehome.report import report

    out = options.out or Path(f"{checkpoints.find(options.name).name}-report.html")
    require_place(out)
    written = write_whole(out, as_html(report(options.name)))
    content = {"name": options.name, "path": str(out.absolute()), "bytes": written}
    return Shown(content, [f"The report of {options.name} is in {out} ({in_bytes(written)})"])


COMMAND = Command(
    "report",
    "Write the report of a training run (curves, settings, samples, card) as one HTML file that needs no server.",
    run,
    _options,
    place=80,
    on_device=False,
)
