"""The command `app`: open the app in a browser."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from gptviz.lessons.library import FOLDER_SETTING, library
from gptviz.machine.hosting import Hosting, hosting, largest_upload, own_address, variable
from gptviz.machine.location import APP
from gptviz.machine.memory import free_bytes
from gptviz.settings.fields import field_infos

from .common import Parser, UsageError
from .options import command


def _options(this: Parser) -> None:
    this.add_argument(
        "--lessons", type=Path, metavar="DIR", help="the folder with your own lessons"
    )
    about = (
        "serve a class in the same network: its machines open the address that is printed, and "
        "only read"
    )
    this.add_argument("--lan", action="store_true", help=about)
    this.add_argument(
        "--start",
        metavar="LESSON-OR-LINK",
        help="what the address opens: the name of a lesson, or the link to a page",
    )
    this.add_argument(
        "--only",
        metavar="PAGES",
        help="the pages that the class may open, as in lessons,attention,next_token; on this "
        "machine all may be opened",
    )
    about = (
        "keep the answers of a class also as a list with a line for each browser, under the name "
        "of an animal drawn at random"
    )
    this.add_argument("--pseudonyms", action="store_true", help=about)
    this.more_help = _settings_help
    this.add_argument(
        "options",
        nargs="*",
        metavar="OPTION",
        help="options of 'streamlit run', for example --server.port=8600",
    )


@command(10, _options, as_json=False, on_device=False, passes_on=True)
def app(options: argparse.Namespace) -> None:
    """Open the app in a browser."""
    for name in ("start", "only"):
        if (given := getattr(options, name)) is not None:
            os.environ[variable(name)] = given
    if options.pseudonyms:
        os.environ[variable("pseudonyms")] = "1"
    # Read now: a setting that makes no sense is an error at the start, and not at the first visit.
    # Pages name the limit; the server enforces it for files that come without a page too.
    limit = f"--server.maxUploadSize={largest_upload()}"
    if options.lessons is not None:
        if not options.lessons.is_dir():
            raise UsageError(
                f"{options.lessons} is no folder: name the folder in which your lessons are"
            )
        if not any(options.lessons.glob("*.md")):
            print(
                f"gptviz: no lesson is in {options.lessons} yet: a lesson is a file whose name "
                "ends in .md",
                file=sys.stderr,
            )
        os.environ[FOLDER_SETTING] = str(options.lessons.absolute())
    if (start := hosting().start) is not None:
        from gptviz.lessons.start import check_start

        check_start(start, hosting().pages_of_class, library().lessons)
    shared = _for_a_class(options.options) if options.lan else []
    command = [
        sys.executable,
        "-m",
        "gptviz.serve",
        "run",
        str(APP),
        limit,
        *shared,
        *options.options,
    ]
    if sys.platform == "win32":  # where exec would give the terminal back before the app has ended
        sys.exit(subprocess.call(command))
    # the server replaces this process, so that a signal to the command reaches the server
    os.execv(sys.executable, command)


def _for_a_class(given: list[str]) -> list[str]:
    """Set the limits of a server for a class, unless they are set, and print its address; the
    options that it runs with. A UsageError if this machine is in no network.
    """
    address = own_address()
    if address is None:
        raise UsageError(
            "this machine is in no network, so that no other machine could open the app: leave "
            "--lan out"
        )
    usual = {"lan": "1", "longest_text": "10000", "memory": f"{free_bytes() / 2e6:.0f}"}
    for name, value in usual.items():
        os.environ.setdefault(variable(name), value)
    words = [word for option in given for word in option.split("=", 1)]
    port = words[words.index("--server.port") + 1] if "--server.port" in words[:-1] else "8501"
    print(
        f"The class opens http://{address}:{port} (others read; on this machine, "
        f"http://localhost:{port}, all is allowed)"
    )
    return ["--server.address=0.0.0.0", "--browser.serverAddress=localhost"]


def _settings_help() -> str:
    """The variables that say what a server allows."""
    lines = [f"  {variable(name):<22} {info.help}" for name, info in field_infos(Hosting).items()]
    return "\n".join(
        ["", "variables of the environment, for a server that others visit:", *lines, ""]
    )
