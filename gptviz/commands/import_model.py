"""The command `import`: models of other programs, and zip files."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from gptviz.settings.fields import described

from .common import UsageError, field_and_value, pick_values
from .options import Name, command
from .printing import CommandOutput, print_json

if TYPE_CHECKING:
    from gptviz.runs.imports import HubModel


@command(50, on_device=False)
def import_(
    source: Annotated[str, described("SOURCE")],
    /,
    *,
    base: Name | None = None,
    name: Name | None = None,
    map: Path | None = None,
    draft: Path | None = None,
    revisions: Annotated[str, described("NAME,NAME,…")] | None = None,
    set_: Sequence[Annotated[str, described("FIELD=VALUE")]] = (),
    options: Namespace,
) -> CommandOutput | None:
    """Open a model that another program made, whose files stay where they are; or unpack a zip file
    with a model.

    Args:
        source: a folder with config.json, weights and tokenizer, as model hubs have them; a .gguf
            file; nanoGPT's ckpt.pt; the name of a model on the hub; a zip file that 'export' wrote;
            a folder with a LoRA adapter of PEFT; or, with --map, a .pt or .safetensors file with
            the tensors of any GPT.
        base: for a LoRA adapter of PEFT, a folder or a zip file: the model here that it changes;
            default: the one in its files.
        name: what to call the model; default: the name of the folder or file.
        map: a JSON file that says which tensor is which (see docs/models.md); without it, a first
            draft of one is printed.
        draft: write that draft into a file instead.
        revisions: of a model on the hub: versions of it that become the snapshots of one model,
            such as step0,step1000,step143000; "all" for all that it has.
        set_: what the tensors do not tell, such as n_head=6; 'train --help' lists all fields.
    """
    from gptviz.machine.memory import in_bytes
    from gptviz.runs import checkpoints, imports

    def announce_download(offer: HubModel) -> None:
        licence = f", licence {offer.licence}" if offer.licence else ""
        print(
            f"{offer.name}: {in_bytes(offer.missing_bytes)} are fetched from the hub{licence}; "
            "Ctrl-C "
            "stops",
            file=sys.stderr,
        )

    additions = imports.additions_of(map, dict(field_and_value(text) for text in set_))
    if draft:
        _write_draft(source, draft, additions)
        return None
    source = source.removeprefix("hub:")
    if revisions is not None:
        return _import_revisions(source, revisions, name)
    told = [
        *(["--base", base] if base else []),
        *(["--map", str(map)] if map else []),
    ]
    told += [*(word for setting in set_ for word in ("--set", setting))]
    command = shlex.join(["gptviz", "import", source, *told])
    try:
        with imports.bar(source):
            made = imports.import_model(
                source,
                name,
                additions=additions,
                command=command,
                offered=announce_download,
                base=base,
            )
    except checkpoints.CheckpointError as error:
        _print_tensors(source, additions, str(error), as_json=options.json)
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
    if map and options.json:
        compared = imports.examine_tensors(source, additions)
    else:
        compared = None
    row |= {} if compared is None else compared.as_json()
    if os.path.lexists(source):
        at = source
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


def _import_revisions(source: str, named: str, name: str | None) -> CommandOutput:
    """Fetch revisions of a model on the hub as snapshots of one model."""
    from gptviz.runs import checkpoints, imports
    from gptviz.runs import revisions as of_hub

    if not imports.could_be_on_hub(source):
        raise UsageError(f"--revisions are of a model on the hub, and {source} is none")
    told = ["gptviz", "import", source, "--revisions", named]
    try:
        with imports.bar(source):
            made = of_hub.import_revisions(
                source,
                of_hub.split_names(named) if named != "all" else of_hub.every_name(source),
                name,
                command=shlex.join(told),
                offered=lambda found: print(
                    f"{source}: {found.said}; Ctrl-C stops", file=sys.stderr
                ),
            )
    except KeyboardInterrupt:
        print(
            "gptviz: stopped; revisions that have arrived are snapshots, and the next time goes on "
            "with the others",
            file=sys.stderr,
        )
        raise
    steps = list(checkpoints.snapshots(made.folder))
    names = checkpoints.read_card(made.folder).revisions or {}
    row = {"name": made.folder.name, **pick_values(made, "family", "parameters")}
    row |= {"steps": steps, "revisions": [names.get(str(step)) for step in steps]}
    return CommandOutput(
        row,
        [
            f"{made.folder.name}: {made.family}, {made.parameters:,} parameters, with "
            f"{len(steps)} snapshots, from {row['revisions'][0]} to {row['revisions'][-1]}; they "
            f"are in {made.folder}"
        ],
    )


def _write_draft(source: str, draft: Path, additions: dict[str, Any]) -> None:
    """Write the draft of a mapping into a new file."""
    from gptviz.runs import imports

    examined = imports.examine_tensors(source, additions)
    if examined is None or examined.draft is None:
        raise UsageError(
            "--draft is for a .pt or .safetensors file with the tensors of any GPT, without --map"
        )
    try:
        with draft.open("x", encoding="utf-8") as file:
            file.write(examined.draft.text)
    except FileExistsError:
        raise UsageError(f"{draft} is there already: give the draft another name") from None
    for line in examined.draft.remarks():
        print(line)
    print(f"The draft is in {draft}: check it, then use it with --map {draft}")


def _print_tensors(source: str, additions: dict[str, Any], error: str, *, as_json: bool) -> None:
    """For a file of tensors that could not be opened: print its tensors and what does not match, or
    a draft of its mapping.
    """
    from gptviz.runs import checkpoints, imports

    with contextlib.suppress(checkpoints.CheckpointError):
        examined = imports.examine_tensors(source, additions)
        if examined is None:
            return
        if as_json:
            print_json({"error": error} | examined.as_json())
            return
        for line in examined.lines():
            print(line)
