"""The command `export`: a model for others, or a page or a lesson as one file."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from gptviz.machine.hosting import variable

from . import lessons
from .common import Parser, UsageError, one_line, require_place, write_whole
from .options import command
from .printing import CommandOutput, Lines

# How a page is written, with the ending of its file.
PAGE_FORMATS = {"html": "html", "notebook": "ipynb"}
WORTH_SAYING = 50_000_000  # bytes: to write more takes a moment
LESSON = "lesson:"  # begins the name of a lesson


def _options(this: Parser) -> None:
    this.add_argument(
        "name",
        metavar="NAME",
        help="a model, as listed by 'models'; with --model, a page such as attention; or "
        "lesson:NAME",
    )
    this.add_argument(
        "--format",
        choices=[
            "zip",
            "transformers",
            "nanogpt",
            "gguf",
            "peft",
            "python",
            "html",
            "notebook",
            "scorm",
        ],
        help="zip: one file that 'import' opens; transformers: a folder as the Hugging Face hub "
        "has them; nanogpt: a folder with "
        "ckpt.pt and, for characters, meta.pkl; gguf: one file for llama.cpp; peft: of a LoRA "
        "adapter the folder that PEFT "
        "opens; python: of a decoder a folder with one file to read, which needs only Python, and "
        "its weights; of a page, html: "
        "one file that needs no server; notebook: its code for Jupyter; of a lesson, html "
        "too, or scorm: a package of SCORM 1.2 for course sites such as Moodle; default: zip, of a "
        "page "
        "html, or as --out ends",
    )
    this.add_argument(
        "--weights",
        choices=["F16", "Q8_0", "Q4_0"],
        help="of a GGUF file: how its matrices are kept, in 16, 8.5 or 4.5 bits a number; default: "
        "F16",
    )
    page = this.add_argument_group(
        "a page",
        "For example: export attention --model shakespeare --prompt ROMEO: --out page.html",
    )
    this.add_argument(
        "--language",
        metavar="LANG",
        help="of a lesson or a page: the language of its texts, such as es or de, as far as it is "
        "translated; default: that of GPTVIZ_LANGUAGE, or English",
    )
    page.add_argument("--model", metavar="NAME", help="the model that the page shows")
    page.add_argument("--prompt", metavar="TEXT", help="the prompt that it reads")
    page.add_argument(
        "--state",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="more of what the page's address says, such as block=1; -: an object in JSON from the "
        "standard input, which may say "
        "more than the page takes",
    )
    this.add_argument(
        "--out",
        type=Path,
        metavar="PATH",
        help="the file or folder to write; default: here, by the name of the model or page",
    )
    # how it was called before, for a model
    this.add_argument("--to", dest="out", type=Path, help=argparse.SUPPRESS)
    this.add_argument(
        "--without-snapshots",
        action="store_true",
        help="leave the snapshots of its training out of the zip file",
    )


@command(60, _options, on_device=False)
def export(options: argparse.Namespace) -> CommandOutput:
    """Write a model as one zip file, or as another program keeps models; or a page or a lesson of
    the app as one file.
    """
    if options.language:
        os.environ[variable("language")] = options.language
    if options.name.startswith(LESSON):
        name = options.name.removeprefix(LESSON)
        if options.format not in (None, "html", "scorm"):
            raise UsageError(f"a lesson is written as html or scorm, not as {options.format}")
        return lessons.export(name, options.out, for_course=options.format == "scorm")
    if options.format == "scorm":
        raise UsageError(
            f"a package for course sites is of a lesson: export lesson:NAME, not {options.name}"
        )
    from gptviz.machine.location import page_names

    is_named = options.out is not None and options.format is None and options.name in page_names()
    if options.model is not None or options.format in PAGE_FORMATS or is_named:
        return _export_page(options)
    return _export_model(options)


def _export_model(options: argparse.Namespace) -> CommandOutput:
    options.format = options.format or "zip"
    from gptviz.machine.location import page_names
    from gptviz.machine.memory import in_bytes
    from gptviz.runs import checkpoints
    from gptviz.runs.exports import FORMATS, GGUFFormat
    from gptviz.runs.imports import bar

    try:
        folder = checkpoints.find(options.name)
    except checkpoints.CheckpointError:
        if options.name in page_names():
            raise UsageError(
                f"{options.name} is a page: name the model that it is to show, with --model NAME"
            ) from None
        raise
    chosen = FORMATS[options.format]
    with_snapshots = not options.without_snapshots
    if options.weights is not None:
        if options.format != "gguf":
            raise UsageError(
                f"--weights is for a GGUF file, and the format is {options.format}: add --format "
                "gguf"
            )
        chosen = GGUFFormat(options.weights)
    to = options.out or Path(f"{folder.name}{chosen.ending}")
    if chosen.why_not(folder) is None:
        much = chosen.bytes(folder, snapshots=with_snapshots)
    else:
        much = 0
    is_large = much > WORTH_SAYING
    if is_large:
        print(
            f"{options.name}: about {in_bytes(much)} are written to {to}; Ctrl-C stops",
            file=sys.stderr,
        )
    try:
        with bar(options.name, much) if is_large else nullcontext():
            chosen.write(folder, to, snapshots=with_snapshots)
    except KeyboardInterrupt:
        print("gptviz: stopped; nothing was written", file=sys.stderr)
        raise
    left_out = chosen.left_out(folder)
    lines: Lines = [f"{options.name} is in {to}"]
    if left_out is not None:
        lines.append(f"Left out: {left_out}; a zip file keeps all of a model")
    return CommandOutput(
        {
            "name": options.name,
            "format": options.format,
            "path": str(to.absolute()),
            "left_out": left_out,
        },
        lines,
    )


def _state(given: Sequence[str]) -> dict[str, str]:
    """The values of a page's address, by their keys."""
    values: dict[str, str] = {}
    for setting in given:
        if setting == "-":
            values |= _state_from_input()
        else:
            key, equals, value = setting.partition("=")
            if not equals:
                raise UsageError(
                    f"--state {setting} names no value; write --state KEY=VALUE, as in --state "
                    "block=1"
                )
            values[key] = value
    return values


def _state_from_input() -> dict[str, str]:
    try:
        values = json.load(sys.stdin)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--state -: the standard input is no JSON: {error}") from None
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise UsageError(
            '--state -: the standard input must be an object of texts, such as {"block": "1"}'
        )
    return values


def _export_page(options: argparse.Namespace) -> CommandOutput:
    from gptviz.takehome.notebook import as_notebook
    from gptviz.takehome.page import read_page
    from gptviz.takehome.page_file import as_html

    query = _state(options.state)
    query |= {
        key: value
        for key, value in (("model", options.model), ("prompt", options.prompt))
        if value is not None
    }
    if options.out is not None and options.out.suffix == ".ipynb":
        ending = "notebook"
    else:
        ending = "html"
    form = options.format or ending
    if form not in PAGE_FORMATS:
        raise UsageError(f"a page is written as {' or '.join(PAGE_FORMATS)}, not as {form}")
    out = options.out or Path(f"{options.name}.{PAGE_FORMATS[form]}")
    require_place(out)
    page = read_page(options.name, query)
    if page.rejected and "-" not in options.state:
        raise UsageError("; ".join(page.rejected.values()))
    for sentence in page.rejected.values():
        print(f"gptviz: {one_line(sentence)}", file=sys.stderr)
    text = (as_html if form == "html" else as_notebook)(page)
    return write_whole(
        out, text, f"The page {options.name}", {"page": options.name, "format": form}
    )
