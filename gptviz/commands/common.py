"""Shared by all commands: errors in one line, options, and what they open and write."""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gptviz
from gptviz.machine import terminal
from gptviz.machine.errors import reason_of
from gptviz.machine.files import in_place_of

from .printing import CommandOutput

if TYPE_CHECKING:
    from gptviz.language_model import LanguageModel
    from gptviz.text import Encoding

# Of a name with more letters than any path has that is meant, so many letters are said.
LONGEST_WORD = 400
KEPT = 80
INTERRUPTED = 130  # the exit status of what Ctrl-C ended, as shells have it


class UsageError(Exception):
    """An error that the user can correct, shown in one line."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    #: the end of its help text; called only when the help is printed, since it may import torch
    more_help: Callable[[], str] | None = None

    def format_help(self) -> str:
        return super().format_help() + (self.more_help() if self.more_help else "")

    def error(self, message: str) -> Any:
        self.exit(2, f"gptviz: {one_line(message)} (see {self.prog} --help)\n")


@dataclass(frozen=True)
class Command:
    """A command of the command line."""

    name: str  #: of the command
    summary: str  #: what it does, in a sentence
    #: carries it out, with the options; what it returns is printed
    run: Callable[[argparse.Namespace], CommandOutput | None]
    add_options: Callable[[Parser], None] = lambda _: None  #: adds its own options
    _: KW_ONLY
    place: int  #: its place in the help: tens, so that another command fits between
    as_json: bool = True  #: whether it has the option --json
    on_device: bool = True  #: whether it has the option --device
    passes_on: bool = False  #: whether it takes options that it does not know, to pass them on


def first_paragraph(function: Callable[..., Any]) -> str:
    """The first paragraph of a docstring."""
    return " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())


def one_line(message: object) -> str:
    """A message in one line, in which no name is longer than `LONGEST_WORD` letters."""
    words = (
        word if len(word) <= LONGEST_WORD else f"{word[:KEPT]}…{word[-1]}"
        for word in reason_of(message).split()
    )
    return terminal.escape_text(" ".join(words))


def nats(loss: float) -> str:
    # a run that diverges may have a loss of forty digits
    if loss < 1e6:
        return f"{loss:.4f}"
    return f"{loss:.4g}"


def open_model(options: argparse.Namespace, name: str | None = None) -> LanguageModel:
    """The model that the options name, or the one called `name`. If it hides a shipped one, a line
    on stderr says so.
    """
    from gptviz.runs import checkpoints

    name = options.name if name is None else name
    # a misspelt name is an error here, and not looked for on the hub
    folder = checkpoints.find(name)
    if name in checkpoints.hidden_checkpoints():
        print(f"gptviz: {checkpoints.about_hiding(name, folder)}", file=sys.stderr)
    return gptviz.load(name, options.device, precision=options.precision)


def field_and_value(
    text: str, option: str = "--set", example: str = "n_layer=2"
) -> tuple[str, Any]:
    """`FIELD=VALUE`, the value a number, true, false or a word; `option` and its `example` are for
    a message.
    """
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(
            f"{option} {text} names no value; write {option} FIELD=VALUE, as in {option} {example}"
        )
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def token_text(lm: LanguageModel, token: int) -> str:
    """The text of a token, or its name if it stands for no text: `⟨start⟩` for the start token."""
    return lm.tokenizer.piece(token) or lm.tokenizer.label(token)


def pick_values(one: object, *names: str) -> dict[str, Any]:
    """The values of some attributes, by their names."""
    return {name: getattr(one, name) for name in names}


def text_of(path: str | None) -> str | None:
    """The text of a file, or of a corpus by name; None where none is named."""
    from gptviz.text import read_corpus

    if path is None:
        return None
    return read_corpus(path).text


@contextmanager
def with_bar() -> Iterator[None]:
    """Show on a terminal how far the computation in this block is."""
    from tqdm import tqdm

    from gptviz.machine import progress

    with (
        tqdm(total=1.0, bar_format="{l_bar}{bar}", leave=False, disable=None, delay=0.5) as bar,
        progress.listen_to(lambda now: bar.update(now.share - bar.n)),
    ):
        yield


def warn_of_unknown(encoding: Encoding) -> None:
    if encoding.unknown:
        print(f"gptviz: {encoding.unknown_sentence()}", file=sys.stderr)


def require_place(out: Path) -> None:
    """Check, before long work, that a file can be written there; a UsageError if its folder is
    missing, or it is a folder.
    """
    if not out.absolute().parent.is_dir():
        raise UsageError(
            f"there is no folder {out.parent}: make it, or choose another place for {out.name}"
        )
    if out.is_dir():
        raise UsageError(
            f"{out} is a folder: give the name of a file in it, such as {out / 'page.html'}"
        )


def write_whole(
    out: Path, content: str | bytes, title: str, about: dict[str, Any]
) -> CommandOutput:
    """Write a file; what was there stays until it is complete. Says where `title` is now; a
    UsageError if that fails.
    """
    from gptviz.machine.memory import in_bytes

    written = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    try:
        with in_place_of(out.absolute()) as temporary:
            temporary.write_bytes(written)
    except OSError as error:
        raise UsageError(
            f"{out} cannot be written ({reason_of(error)}): choose another place"
        ) from None
    about |= {"path": str(out.absolute()), "bytes": len(written)}
    return CommandOutput(about, [f"{title} is in {out} ({in_bytes(len(written))})"])
