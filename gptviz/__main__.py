"""The command line: the work of the app without a browser. `python -m gptviz` lists the
commands.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import TextIO, cast

import gptviz

from .commands import COMMANDS
from .commands.common import INTERRUPTED, Command, Parser, UsageError, one_line
from .commands.printing import show
from .machine import terminal

# The help names the command as the user called it.
if Path(sys.argv[0]).stem == "gptviz":
    PROGRAM = "gptviz"
else:
    PROGRAM = "python -m gptviz"


def parser() -> Parser:
    """The parser of the command line, with every command and option."""
    main = Parser(prog=PROGRAM, description="Open, train, watch and take apart a transformer.")
    main.add_argument("--version", action="version", version=f"gptviz {gptviz.__version__}")
    commands = main.add_subparsers(title="commands", metavar="COMMAND")

    for command in COMMANDS:
        this = commands.add_parser(command.name, help=command.summary, description=command.summary)
        this.set_defaults(command=command, parser=this)
        if command.as_json:
            this.add_argument("--json", action="store_true", help="print JSON")
        if command.on_device:
            this.add_argument("--device", help="cpu, cuda or mps; default: the fastest there is")
        command.add_options(this)
    return main


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status: 0; 2 for an error, which is one line on stderr; 130 where
    Ctrl-C ended it.
    """
    this = parser()
    arguments = sys.argv[1:] if arguments is None else arguments
    options, unknown = this.parse_known_args(arguments, argparse.Namespace(arguments=arguments))
    command: Command | None = getattr(options, "command", None)
    if unknown and command is not None and command.passes_on:
        # in the order in which they were typed: a value stands after its option
        known = [*options.options, *unknown]
        options.options = [each for each in arguments if each in known]
    elif unknown:
        getattr(options, "parser", this).error(f"unrecognized arguments: {' '.join(unknown)}")
    if command is None:
        this.print_help()
        return 0
    try:
        with warnings.catch_warnings():
            # The commands themselves say which characters a vocabulary lacks, and which model hides
            # another.
            warnings.filterwarnings("ignore", "Not in the vocabulary")
            warnings.filterwarnings("ignore", ".* hides the one of this name")
            if (shown := command.run(options)) is not None:
                show(shown, as_json=options.json)
    except BrokenPipeError:
        raise
    except (UsageError, ValueError, OSError, RuntimeError, MemoryError) as error:
        print(f"gptviz: {one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def run() -> None:
    """The command `gptviz`: `main` with the arguments of this process, which ends with its exit
    status.
    """
    # Characters that the terminal's encoding lacks are escaped. A closed pipe ends the command
    # without an error.
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
    # Python would print where in its own end it was interrupted
    signal.signal(signal.SIGINT, lambda *_: os._exit(status))
    sys.exit(status)


if __name__ == "__main__":
    run()
