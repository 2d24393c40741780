"""The command `export`: a model for others."""

from __future__ import annotations

import argparse
from pathlib import Path

from .common import Command, print_json


def add(command: Command) -> None:
    """Add the command and its options."""
    this = command("export", run, "Write a model as one zip file, or as another program keeps models.", on_device=False)
    this.add_argument("name", metavar="NAME", help="a model, as listed by 'models'")
    this.add_argument(
        "--format",
        choices=["zip", "transformers", "nanogpt"],
        default="zip",
        help="zip: one file that 'import' opens; transformers: a folder as the Hugging Face hub has them; nanogpt: a folder with "
        "ckpt.pt and, for characters, meta.pkl; default: zip",
    )
    this.add_argument("--to", type=Path, metavar="PATH", help="the file or folder to make; default: here, by the model's name")
    this.add_argument("--without-snapshots", action="store_true", help="leave the snapshots of its training out of the zip file")


def run(options: argparse.Namespace) -> None:
    """The command `export NAME [--format F] [--to PATH] [--json]`."""
    from gptviz.runs import checkpoints
    from gptviz.runs.exports import FORMATS

    folder = checkpoints.find(options.name)
    to = options.to or Path(f"{folder.name}.zip" if options.format == "zip" else f"{folder.name}-{options.format}")
    FORMATS[options.format].write(folder, to, snapshots=not options.without_snapshots)
    if options.json:
        print_json({"name": options.name, "format": options.format, "path": str(to.absolute())})
        return
    print(f"{options.name} is in {to}")
