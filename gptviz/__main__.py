"""The command line: the work of the app without a browser. `python -m gptviz` lists the commands."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TextIO, cast

import gptviz

from . import terminal
from .commands import (
    app,
    attribute,
    circuit,
    classify,
    compare,
    context,
    costs,
    describe,
    evaluate,
    export,
    generate,
    heads,
    import_model,
    lens,
    lessons,
    models,
    neurons,
    patch,
    report,
    stream,
    train,
)
from .commands.common import INTERRUPTED, Parser, UsageError, one_line

# The help names the command as the user called it.
PROGRAM = "gptviz" if Path(sys.argv[0]).stem == "gptviz" else "python -m gptviz"
COMMANDS = (
    app,
    models,
    describe,
    costs,
    import_model,
    export,
    train,
    report,
    generate,
    classify,
    evaluate,
    attribute,
    circuit,
    compare,
    context,
    heads,
    neurons,
    lens,
    lessons,
    patch,
    stream,
)


def parser() -> Parser:
    """The parser of the command line, with every command and option."""
    main = Parser(prog=PROGRAM, description="Open, train, watch and take apart a transformer.")
    main.add_argument("--version", action="version", version=f"gptviz {gptviz.__version__}")
    commands = main.add_subparsers(title="commands", metavar="COMMAND")

    def command(
        name: str, run: Callable[[argparse.Namespace], None], summary: str, *, as_json: bool = True, on_device: bool = True
    ) -> Parser:
        added = commands.add_parser(name, help=summary, description=summary)
        added.set_defaults(run=run, parser=added)
        if as_json:
            added.add_argument("--json", action="store_true", help="print JSON")
        if on_device:
            added.add_argument("--device", help="cpu, cuda or mps; default: the fastest there is")
        return added

    for module in COMMANDS:
        module.add(command)
    return main


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status: 0; 2 for an error, which is one line on stderr; 130 where Ctrl-C ended it."""
    this = parser()
    arguments = sys.argv[1:] if arguments is None else arguments
    options, unknown = this.parse_known_args(arguments, argparse.Namespace(arguments=arguments))
    if unknown and getattr(options, "run", None) is app.run:
        options.options += unknown
    elif unknown:
        getattr(options, "parser", this).error(f"unrecognized arguments: {' '.join(unknown)}")
    if not hasattr(options, "run"):
        this.print_help()
        return 0
    try:
        with warnings.catch_warnings():
            # The commands themselves say which characters a vocabulary lacks, and which model hides another.
            warnings.filterwarnings("ignore", "Not in the vocabulary")
            warnings.filterwarnings("ignore", ".* hides the one of this name")
            options.run(options)
    except BrokenPipeError:
        raise
    except (UsageError, ValueError, OSError, RuntimeError, MemoryError) as error:
        print(f"gptviz: {one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def run() -> None:
    """The command `gptviz`: `main` with the arguments of this process, which ends with its exit status."""
    # Characters that the terminal's encoding lacks are escaped. A closed pipe ends the command without an error.
    for output in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):
            output.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    if sys.stdout.isatty():  # a file or another program gets exactly what the model wrote
        sys.stdout = cast(TextIO, terminal.Terminal(sys.stdout))
    try:
        status = main()
        sys.stdout.flush()
    except KeyboardInterrupt:  # while another one ended the command
        status = INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    signal.signal(signal.SIGINT, lambda *_: os._exit(status))  # Python would print where in its own end it was interrupted
    sys.exit(status)


if __name__ == "__main__":
    run()
