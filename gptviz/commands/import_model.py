"""The command `import`: models of other programs, and zip files."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common import Parser, UsageError, command, field_and_value, pick_values
from .printing import CommandOutput, print_json

if TYPE_CHECKING:
    from gptviz.runs.imports import HubModel


def _options(this: Parser) -> None:
    this.add_argument(
        "source",
        metavar="SOURCE",
        help="a folder with config.json, weights and tokenizer, as model hubs have them; a .gguf "
        "file; nanoGPT's ckpt.pt; the "
        "name of a model on the hub; a zip file that 'export' wrote; a folder with a LoRA adapter "
        "of PEFT; or, with --map, a .pt "
        "or .safetensors file with the tensors of any GPT",
    )
    this.add_argument(
        "--base",
        metavar="NAME",
        help="for a LoRA adapter of PEFT, a folder or a zip file: the model here that it changes; "
        "default: the one in its files",
    )
    this.add_argument(
        "--name", help="what to call the model; default: the name of the folder or file"
    )
    this.add_argument(
        "--map",
        type=Path,
        metavar="FILE",
        help="a JSON file that says which tensor is which (see docs/models.md); without it, a "
        "first draft of one is printed",
    )
    this.add_argument(
        "--draft", type=Path, metavar="FILE", help="write that draft into a file instead"
    )
    this.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="what the tensors do not tell, such as n_head=6; 'train --help' lists all fields",
    )


@command(50, _options, on_device=False)
def import_(options: argparse.Namespace) -> CommandOutput | None:
    """Open a model that another program made, whose files stay where they are; or unpack a zip file
    with a model.
    """
    from gptviz.machine.memory import in_bytes
    from gptviz.runs import checkpoints, imports

    def announce_download(offer: HubModel) -> None:
        licence = f", licence {offer.licence}" if offer.licence else ""
        print(
            f"{offer.name}: {in_bytes(offer.missing_bytes)} are fetched from the hub{licence}; Ctrl-C "
            "stops",
            file=sys.stderr,
        )

    additions = imports.additions_of(options.map, dict(map(field_and_value, options.set)))
    if options.draft:
        _write_draft(options, additions)
        return None
    told = [
        *(["--base", options.base] if options.base else []),
        *(["--map", str(options.map)] if options.map else []),
    ]
    told += [*(word for setting in options.set for word in ("--set", setting))]
    command = shlex.join(["gptviz", "import", options.source, *told])
    try:
        with imports.bar(options.source):
            made = imports.import_model(
                options.source,
                options.name,
                additions=additions,
                command=command,
                offered=announce_download,
                base=options.base,
            )
    except checkpoints.CheckpointError as error:
        _print_tensors(options, additions, str(error))
        raise
    except KeyboardInterrupt:
        print(
            "gptviz: stopped; nothing was imported, and what has arrived is gone on with the next "
            "time",
            file=sys.stderr,
        )
        raise
    row = {
        "name": made.folder.name,
        **pick_values(made, "family", "parameters"),
        "notes": list(made.notes),
    }
    if options.map and options.json:
        compared = imports.examine_tensors(options.source, additions)
    else:
        compared = None
    row |= {} if compared is None else compared.as_json()
    if os.path.lexists(options.source):
        at = options.source
    else:
        at = "their place in the cache of huggingface_hub"
    if checkpoints.is_reference(made.folder):
        where = f"stay at {at}"
    else:
        where = f"are in {made.folder}"
    return CommandOutput(
        row,
        [
            f"{made.folder.name}: {made.family}, {made.parameters:,} parameters; its weights "
            f"{where}",
            *made.notes,
        ],
    )


def _write_draft(options: argparse.Namespace, additions: dict[str, Any]) -> None:
    """Write the draft of a mapping into a new file."""
    from gptviz.runs import imports

    examined = imports.examine_tensors(options.source, additions)
    if examined is None or examined.draft is None:
        raise UsageError(
            "--draft is for a .pt or .safetensors file with the tensors of any GPT, without --map"
        )
    try:
        with options.draft.open("x", encoding="utf-8") as file:
            file.write(examined.draft.text)
    except FileExistsError:
        raise UsageError(f"{options.draft} is there already: give the draft another name") from None
    for line in examined.draft.remarks():
        print(line)
    print(f"The draft is in {options.draft}: check it, then use it with --map {options.draft}")


def _print_tensors(options: argparse.Namespace, additions: dict[str, Any], error: str) -> None:
    """For a file of tensors that could not be opened: print its tensors and what does not match, or
    a draft of its mapping.
    """
    from gptviz.runs import checkpoints, imports

    with contextlib.suppress(checkpoints.CheckpointError):
        examined = imports.examine_tensors(options.source, additions)
        if examined is None:
            return
        if options.json:
            print_json({"error": error} | examined.as_json())
            return
        for line in examined.lines():
            print(line)
