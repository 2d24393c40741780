"""A model as one zip file, and back: such a file, or one with a model of another program, becomes a
model of the user's.

What cannot be packed is refused with a `CheckpointError`, and what cannot be unpacked with a
`ZipError`, which `unpack` turns into one.
"""

from __future__ import annotations

import os
import shutil
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import torch
from torch import Tensor

from gptviz.machine import memory, progress
from gptviz.machine.bounded import parse_json
from gptviz.machine.errors import reason_of
from gptviz.machine.files import in_place_of, length_of, replacement_path, scratch_folder
from gptviz.model import Config, parameter_count
from gptviz.pretrained import peft
from gptviz.pretrained.families import ImportRefusedError
from gptviz.pretrained.opening import source_at
from gptviz.pretrained.sources.nanogpt import SUFFIXES
from gptviz.pretrained.sources.source import ModelSource

from . import checkpoints, names, peft_adapters, zips
from .card import values_of
from .checkpoints import LONGEST, MOST_VALUES, SNAPSHOT, CheckpointError
from .status import RunError
from .zips import ZipEntries, ZipError

PACKED = ("config.json", "tokenizer.json", "model.safetensors", "card.json", "adapter.json")
# The files that a source may read besides the weights of another program.
CONFIG = "config.json"
SETTINGS_OF_OTHERS = (".json", ".txt", ".model", ".jinja")
STORED = (torch.float16, torch.bfloat16, torch.float32)
ROOM_LEFT = 64 * 2**20  # bytes that stay free on the disk
PIECE = 2**20  # bytes that are copied at once


def packed_bytes(folder: Path, *, snapshots: bool = True) -> int:
    """The size of the files that `pack` packs, in bytes; weights of another program count with the
    most they can have.
    """
    size = sum(length_of(path) for path in _files(folder, snapshots))
    return size + (
        4 * parameter_count(checkpoints.read_config(folder))
        if checkpoints.is_reference(folder)
        else 0
    )


def pack(folder: Path, file: BinaryIO | Path, *, snapshots: bool = True) -> None:
    """Write the model in `folder` into a zip file: config, tokenizer, card, weights and log, with
    or without its snapshots.

    Weights that are in the files of another program are written into it too, in the types they have
    there. Links are never followed: only plain files of the checkpoint are packed. If it fails, a
    file that was there before is still there.
    """
    if isinstance(file, Path):
        try:
            with in_place_of(file) as fresh, fresh.open("wb") as out:
                pack(folder, out, snapshots=snapshots)
        except OSError as error:
            raise CheckpointError(
                f"{checkpoints.name_of(folder)} cannot be packed into {file} ({reason_of(error)}): "
                "make room there, or choose another place"
            ) from None
        return
    name = names.possible_name(folder.name)
    check_is_whole(folder)
    try:
        with (
            zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive,
            _with_weights(folder) as written_out,
        ):
            paths = [*_files(folder, snapshots), *written_out]
            done = 0
            of = sum(map(length_of, paths))
            with progress.part(1, 2) if written_out else nullcontext():
                for path in paths:
                    if path in written_out:
                        inside = path.name
                    else:
                        inside = path.relative_to(folder).as_posix()
                    length = length_of(path)
                    with progress.part(done, of, length, step="byte"):
                        add(archive, path, f"{name}/{inside}")
                    done += length
    except OSError as error:
        raise CheckpointError(
            f"{checkpoints.name_of(folder)} cannot be packed ({reason_of(error)})"
        ) from None


def check_is_whole(folder: Path) -> None:
    """Refuse a model that lacks a file, as a run before its first step, or with files of several
    models; no weights are read.
    """
    checkpoints.check_weights(folder, checkpoints.read_config(folder))
    for name in PACKED[:2] if checkpoints.is_reference(folder) else PACKED[:3]:
        if not os.path.lexists(folder / name) or (folder / name).is_symlink():
            raise CheckpointError(
                f"{checkpoints.name_of(folder)} lacks {name}: copy the whole folder again"
            )


def _files(folder: Path, snapshots: bool) -> Iterator[Path]:
    """The plain files of a checkpoint. Links, and files behind links, are left out."""
    paths = [folder / name for name in (*PACKED, "log.jsonl")]
    if snapshots and not (folder / "snapshots").is_symlink():
        paths += checkpoints.snapshots(folder).values()
    for path in paths:
        with suppress(OSError):
            if stat.S_ISREG(path.lstat().st_mode):
                yield path


def add(archive: zipfile.ZipFile, path: Path, name: str) -> None:
    """Add a plain file, which is no link, to a zip file under this name. It reports how many of its
    bytes are written.
    """
    # If the system can refuse a link, it does: since the file was checked, somebody may have
    # replaced it by a link.
    size = length_of(path)
    with open(
        os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)), "rb"
    ) as content:
        entry = zipfile.ZipInfo(name)
        entry.external_attr = (stat.S_IFREG | 0o644) << 16
        # Weights hardly shrink, and compressing them takes seconds.
        if path.suffix == ".safetensors":
            entry.compress_type = zipfile.ZIP_STORED
        else:
            entry.compress_type = zipfile.ZIP_DEFLATED
        with archive.open(entry, "w", force_zip64=True) as out:
            while piece := content.read(PIECE):
                out.write(piece)
                progress.report(content.tell(), size, "byte")


@contextmanager
def _with_weights(folder: Path) -> Iterator[list[Path]]:
    """A file with the weights of a model that refers to those of another program, while the block
    runs; none for others.
    """
    if not checkpoints.is_reference(folder):
        yield []
        return
    source = checkpoints.source_of(folder)
    with scratch_folder("packing") as fresh:
        with progress.part(0, 2):
            checkpoints.write_tensors(
                fresh / "model.safetensors", weights_of(source, checkpoints.read_config(folder))
            )
        yield [fresh / "model.safetensors"]


def weights_of(source: ModelSource, config: Config) -> dict[str, Tensor]:
    """The weights of a source by our names, in the types they have there."""
    needed = sum(file.stat().st_size for file in source.files())
    free = memory.room(needed)
    if needed > memory.MOST_OF_MEMORY * free:
        sizes = (
            f"{memory.in_bytes(needed)} of weights, and {memory.in_bytes(free)} of memory is free"
        )
        raise CheckpointError(f"{source.path.name} has {sizes}: {memory.way_out()}")
    weights = dict[str, Tensor]()
    read = 0
    of = parameter_count(config)
    try:
        for name, tensor in source.parameters(config):
            weights[name] = (tensor if tensor.dtype in STORED else tensor.float()).contiguous()
            read += tensor.numel()
            progress.report(min(read, of), of, "number")
        return weights
    except ImportRefusedError as error:
        raise CheckpointError(str(error)) from None
    except (RuntimeError, IndexError) as error:  # a tensor that cannot be split as its config says
        raise CheckpointError(
            f"{source.path.name}: its tensors do not have the shapes its config says ({error})"
        ) from None


def unpack(file: BinaryIO | Path, name: str | None = None, base: str | None = None) -> Path:
    """Open a zip file as a model of the user's, and return its folder.

    The zip file is one that `pack` wrote, or holds a model of another program: a folder with
    config.json and weights, an adapter of PEFT, a .gguf file, or the ckpt.pt of nanoGPT. It is
    unpacked into a hidden folder, opened there once, and only then gets its name.

    Args:
        name: the name of the model; default: its name in the zip file, with a number if that is in
            use.
        base: for an adapter of PEFT, the model here that it changes; default: the one that its
            files name.

    Raises:
        CheckpointError: it is no zip file, holds no model, is damaged or too large for the disk, or
            the name is impossible or in use; nothing is left half-made.
    """
    if isinstance(file, Path):
        shown = file.name
    else:
        shown = Path(str(getattr(file, "name", "the zip file"))).name
    try:
        with zips.open_zip(file) as content:
            model = _ZippedModel(content, Path(shown).stem)
            with names.claim_name(name or model.name, or_next=name is None) as claim:
                needed = model.bytes
                free = shutil.disk_usage(checkpoints.own_folder()).free
                if needed > free - ROOM_LEFT:
                    sizes = (
                        f"{memory.in_bytes(needed)}, and {memory.in_bytes(free)} is free on the "
                        "disk"
                    )
                    raise ZipError(f"unpacked it has {sizes}: make room first")
                with replacement_path(claim.folder) as fresh:
                    fresh.mkdir()
                    made = model.made_in(fresh, base)
                    made.rename(claim.folder)  # fails if there is such a folder by now
                return claim.folder
    except ZipError as error:
        raise CheckpointError(f"{shown}: {error}") from None
    except RunError as error:
        raise CheckpointError(str(error)) from None
    except OSError as error:
        raise CheckpointError(
            f"{shown} cannot be unpacked below {checkpoints.own_folder()} ({reason_of(error)}): "
            "nothing "
            "of it is kept"
        ) from None


class _ZippedModel:
    """The model in a zip file, which must hold exactly one."""

    def __init__(self, content: ZipEntries, name: str) -> None:
        self._content = content
        # The main file of the model: the highest config.json, or that of an adapter, with weights
        # next to it, else the only .gguf or .pt file.
        real = [PurePosixPath(path) for path in content.names if not path.startswith("__MACOSX/")]
        adapters = {path.parent for path in real if path.name == peft.CONFIG}
        found_in = (
            path
            for path in real
            if path.name == (peft.CONFIG if path.parent in adapters else CONFIG)
        )
        configs = sorted(found_in, key=lambda path: len(path.parts))
        with_weights = {path.parent for path in real if path.suffix in (".safetensors", ".bin")}
        # minGPT has its own config.json next to its .pt
        whole = [path for path in configs if path.parent in with_weights]
        highest = [path for path in whole if len(path.parts) == len(whole[0].parts)]
        models = (
            highest
            or [path for path in real if path.suffix.lower() in (".gguf", *SUFFIXES)]
            or configs
        )
        if not models:
            raise ZipError(
                "it holds no model: neither a config.json with weights, nor a .gguf file or the "
                "ckpt.pt of nanoGPT"
            )
        if len(models) > 1:
            raise ZipError(
                f"it holds several models ({models[0]}, {models[1]}): unpack it, and open one of "
                "them"
            )
        self._main = str(models[0])
        at = PurePosixPath(self._main).parent
        beside_it = {
            path.relative_to(at): name
            for name in content.names
            if (path := PurePosixPath(name)).is_relative_to(at)
        }
        self._is_ours = PurePosixPath(self._main).name == CONFIG and self._config_is_ours()
        self._files = {str(path): name for path, name in beside_it.items() if self._is_wanted(path)}
        #: how many bytes its files have when they are unpacked
        self.bytes = content.size(*self._files.values())
        self.name = names.possible_name(at.name or name)  #: a name for it

    def _config_is_ours(self) -> bool:
        try:
            config = parse_json(
                self._content.read_entry(self._main, LONGEST["source.json"]), MOST_VALUES
            )
        except ZipError:
            raise
        except ValueError as error:
            raise ZipError(f"{self._main}: {error}") from None
        return isinstance(config, dict) and config.keys() == {"format", "config"}

    def _is_wanted(self, path: PurePosixPath) -> bool:
        """Whether a file with this path, relative to the main one, is unpacked."""
        if self._is_ours:
            is_snapshot = (
                len(path.parts) == 2
                and path.parts[0] == "snapshots"
                and SNAPSHOT.fullmatch(path.name) is not None
            )
            return str(path) in (*PACKED, "log.jsonl") or is_snapshot
        if len(path.parts) > 1:
            return False
        main = PurePosixPath(self._main).name
        if main not in (CONFIG, peft.CONFIG):
            return path.name in (main, "meta.pkl") or path.suffix in SETTINGS_OF_OTHERS
        if path.suffix == ".bin" and any(
            name.endswith(".safetensors") for name in self._content.names
        ):
            return False  # the same weights once more
        return path.suffix in (*SETTINGS_OF_OTHERS, ".safetensors", ".bin")

    def made_in(self, folder: Path, base: str | None) -> Path:
        """Unpack it below the empty `folder` and open it once; return the checkpoint there."""
        main = PurePosixPath(self._main).name
        made = folder / self.name
        if base is not None and main != peft.CONFIG:
            raise ZipError(f"it {peft_adapters.NO_BASE}")
        given = made if self._is_ours else folder / ".given" / self.name
        given.mkdir(parents=True)
        for path, name in self._files.items():
            (given / path).parent.mkdir(exist_ok=True)
            self._content.write(name, given / path)
        try:
            if main == peft.CONFIG:
                peft_adapters.reader(given, base)(made.name, root=folder)
            elif not self._is_ours:
                source = source_at(given if main == CONFIG else given / main)
                opened = source.describe_model()
                weights = weights_of(source, opened.config)  # in the types they have
                card = values_of(opened)
                checkpoints.save_opened(
                    made.name, opened.config, opened.tokenizer, card, weights=weights, root=folder
                )
            config = checkpoints.load(made).model.config
            for step in checkpoints.snapshots(made):
                checkpoints.check_weights(made, config, step)
        except (CheckpointError, ImportRefusedError) as error:
            raise ZipError(str(error).replace(f"{given.parent}{os.sep}", "")) from None
        return made
