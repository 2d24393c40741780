"""The command `report`: the report of a training run as one HTML file."""

from __future__ import annotations

from pathlib import Path

from .common import require_place, write_whole
from .options import Name, command
from .printing import CommandOutput


@command(80, on_device=False)
def report(name: Name, /, *, out: Path | None = None) -> CommandOutput:
    """Write the report of a training run (curves, settings, samples, card) as one HTML file that
    needs no server.

    Args:
        out: the file to write; default: here, by the model's name.
    """
    from gptviz.runs import checkpoints
    from gptviz.takehome.page_file import as_html
    from gptviz.takehome.report import report

    out = out or Path(f"{checkpoints.find(name).name}-report.html")
    require_place(out)
    return write_whole(out, as_html(report(name)), f"The report of {name}", {"name": name})
