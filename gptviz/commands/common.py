"""What the commands share: errors in one line, options, and how they print."""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import gptviz
from gptviz import terminal
from gptviz.files import in_place_of

if TYPE_CHECKING:
    from gptviz.language_model import LanguageModel
    from gptviz.text import Encoding

INTERRUPTED = 130  # the exit status of what Ctrl-C ended, as shells have it


class UsageError(Exception):
    """An error that the user can correct, shown in one line."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line.

    Attributes:
        more_help: the end of its help text; called only when the help is printed, since it may import torch.
    """

    more_help: Callable[[], str] | None = None

    def format_help(self) -> str:
        return super().format_help() + (self.more_help() if self.more_help else "")

    def error(self, message: str) -> Any:
        self.exit(2, f"gptviz: {one_line(message)} (see {self.prog} --help)\n")


def one_line(message: object) -> str:
    return terminal.escaped(" ".join(str(message).split()))


def nats(loss: float) -> str:
    return f"{loss:.4f}" if loss < 1e6 else f"{loss:.4g}"  # a run that diverges may have a loss of forty digits


def opened(options: argparse.Namespace) -> LanguageModel:
    """The model that the options name; where it hides a shipped one, that is said on stderr."""
    from gptviz.runs import checkpoints

    folder = checkpoints.find(options.name)  # a misspelt name is an error here, and not looked for on the hub
    if options.name in checkpoints.hidden():
        print(f"gptviz: {checkpoints.about_hiding(options.name, folder)}", file=sys.stderr)
    return gptviz.load(options.name, options.device, precision=options.precision)


def add_precision(this: Parser) -> None:
    this.add_argument(
        "--precision",
        choices=["stored", "float32", "bfloat16", "float16"],
        default="stored",
        help="what weights are multiplied in; default: what the model's file has, where this machine multiplies in it",
    )


def setting(text: str) -> tuple[str, Any]:
    """`FIELD=VALUE`, the value a number, true, false or a word."""
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--set {text} names no value; write --set FIELD=VALUE, as in --set n_layer=2")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def written(lm: LanguageModel, token: int) -> str:
    """The text of a token; of one that stands for no text, such as the start token, its name, `⟨start⟩`."""
    return lm.tokenizer.piece(token) or lm.tokenizer.label(token)


def answer(lm: LanguageModel, number: int) -> str:
    """What a model answers: the text of a token, or a classifier's label."""
    return lm.labels[number] if lm.model.config.kind == "classifier" else written(lm, number)


def warn_of_unknown(encoding: Encoding) -> None:
    if encoding.unknown:
        print(f"gptviz: {encoding.unknown_sentence()}", file=sys.stderr)


def require_place(out: Path) -> None:
    """Find out, before long work, that a file cannot be written to this path.

    Raises:
        UsageError: its folder does not exist, or there is a folder at its place.
    """
    if not out.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {out.parent}: make it, or choose another place for {out.name}")
    if out.is_dir():
        raise UsageError(f"{out} is a folder: give the name of a file in it, such as {out / 'page.html'}")


def write_whole(out: Path, text: str) -> int:
    """Write a file, so that what was there stays until the new file is complete; the number of its bytes.

    Raises:
        UsageError: it cannot be written.
    """
    content = text.encode("utf-8", "replace")
    try:
        with in_place_of(out.absolute()) as beside:
            beside.write_bytes(content)
    except OSError as error:
        raise UsageError(f"{out} cannot be written ({error.strerror or error}): choose another place") from None
    return len(content)


def _room() -> int:
    """How many characters a line has: those of the terminal, or COLUMNS. A file or another program takes lines of any length."""
    return shutil.get_terminal_size(fallback=(sys.maxsize, 1)).columns


def print_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of texts below the names of their columns; the first column names the rows.

    Where they are wider than the terminal, the table goes on below itself with its other columns: no number is cut.
    """
    room = _room()
    widths = [max(len(row[column]) for row in (names, *rows)) for column in range(len(names))]
    left = list(range(1, len(names)))
    while left:
        taken = 1
        while taken < len(left) and widths[0] + sum(2 + widths[column] for column in left[: taken + 1]) <= room:
            taken += 1
        for row in (names, *rows):
            print(f"{row[0]:<{widths[0]}}", *(f"{row[column]:>{widths[column]}}" for column in left[:taken]), sep="  ")
        left = left[taken:]
        if left:
            print()


def print_folded(text: str, indent: int = 0) -> None:
    """Print a line of words; where it is longer than the terminal, it goes on below, `indent` characters from the left."""
    room = max(_room(), indent + 20)
    lines = textwrap.wrap(text, room, subsequent_indent=" " * indent, break_on_hyphens=False, drop_whitespace=True)
    print("\n".join(lines))


def print_json(content: Any) -> None:
    print(json.dumps(finite(content), allow_nan=False))


def finite(content: Any) -> Any:
    """The same with null for every number that JSON has no word for: NaN and the infinities."""
    if isinstance(content, dict):
        return {key: finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


class Command(Protocol):
    """Adds a command, with the options that several commands have, and gives its parser."""

    def __call__(
        self, name: str, run: Callable[[argparse.Namespace], None], summary: str, *, as_json: bool = True, on_device: bool = True
    ) -> Parser:
        """Add the command called `name`, which `run` carries out.

        Args:
            name: of the command.
            run: gets the options.
            summary: what the command does, in a sentence.
            as_json: whether it has the option --json.
            on_device: whether it has the option --device.
        """
        ...
