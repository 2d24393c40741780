"""The command `app`: open the app in a browser."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from gptviz.location import APP

from .common import Command


def add(command: Command) -> None:
    """Add the command and its options."""
    this = command("app", run, "Open the app in a browser.", as_json=False, on_device=False)
    this.add_argument("options", nargs="*", metavar="OPTION", help="options of 'streamlit run', for example --server.port=8600")


def run(options: argparse.Namespace) -> None:
    """The command `app [OPTION …]`."""
    command = [sys.executable, "-m", "streamlit", "run", str(APP), *options.options]
    if sys.platform == "win32":  # where exec would give the terminal back before the app has ended
        sys.exit(subprocess.call(command))
    os.execv(sys.executable, command)  # the server replaces this process, so that a signal to the command reaches the server
