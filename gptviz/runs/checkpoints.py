"""Checkpoints: a folder of JSON and safetensors, so that opening one never runs code.

config.json         {"format": 1, "config": the fields of Config}
tokenizer.json      the tokenizer
model.safetensors   the weights, tied ones once
source.json         instead of the weights: where another program keeps them (see
`gptviz.pretrained.opening`) adapter.json        of a LoRA adapter: the model whose weights it
changes, its base; model.safetensors then has only the adapter card.json           how it was made:
data, recipe, command, steps, losses, date, version (see `card`)
snapshots/          the weights after some steps of training, one file per step, if training kept
them
log.jsonl           what happened during training (see `log`)
dictionary.safetensors  of a model that ships: sparse features of its stream (see `fitted`)

What of it is missing, damaged, of another version or of another model is refused with a
`CheckpointError`, and so is what cannot be written: then the last good file is still there.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from gptviz.machine import memory
from gptviz.machine.bounded import parse_json, read_regular
from gptviz.machine.errors import reason_of
from gptviz.machine.files import DEVICE, file_stamp, home, in_place_of, replacement_path, swap
from gptviz.machine.hosting import NotAllowedError, hosting, require_writable
from gptviz.machine.location import BUNDLED
from gptviz.model.kinds import Kind, kind_said
from gptviz.settings.known_names import name_known
from gptviz.text import Tokenizer, from_json

from .card import Card

# torch takes a second to import: what reads and writes weights imports it, and what names and lists
# models does not wait for it.
if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from gptviz.model import Config, Transformer
    from gptviz.model.lora import Factors, MergedTransformer
    from gptviz.pretrained.sources.source import ModelSource

FORMAT = 1
STORED_TYPES = ("F16", "BF16", "F32", "F64")  # as safetensors calls them
# The most that is read of a file: bytes, and values of its JSON. The largest tokenizers that are
# published take half of it.
LONGEST = {
    "config.json": 2**16,
    "card.json": 16 * 2**20,
    "tokenizer.json": 64 * 2**20,
    "source.json": 2**20,
    "adapter.json": 2**20,
    "plan.json": 2**16,
}
MOST_VALUES = 500_000


class CheckpointError(ValueError):
    """A checkpoint that cannot be opened or saved; the message names the checkpoint, what is wrong
    and what to do.
    """


class NameInUseError(CheckpointError):
    """A name that a model has already, the user's own or a shipped one."""


class NotNumbersError(CheckpointError):
    """Weights with values that the type they would be stored in cannot hold."""


@dataclass(frozen=True)
class Checkpoint:
    """A model opened from a folder."""

    name: str
    model: Transformer
    tokenizer: Tokenizer
    card: Card


@dataclass(frozen=True)
class Adapter:
    """A LoRA adapter, without its numbers."""

    base: str  #: the name of the model whose weights it changes
    #: the hash of the file, or files, with these weights: with any others the adapter would be
    #: another model
    sha256: str
    #: the rank of each change, by the name of the part whose matrix it changes (see
    #: `gptviz.model.lora`)
    ranks: Mapping[str, int]

    @property
    def rank(self) -> int:
        """The highest of its ranks."""
        return max(self.ranks.values(), default=0)


def own_folder() -> Path:
    """The folder of the user's own models."""
    return home() / "checkpoints"


def folders() -> dict[str, Path]:
    """Every checkpoint by its name: the user's own first, then the bundled ones. A name is a key of
    this table, never a path.

    If both have the same name, it is that of the user's own: see `hidden_checkpoints`.
    """
    by_name = _folders_in(own_folder())
    by_name |= {
        name: folder for name, folder in _folders_in(BUNDLED).items() if name not in by_name
    }
    allowed = hosting().allowed_models
    if allowed is None:
        return by_name
    return {name: folder for name, folder in by_name.items() if name in allowed}


def folder_of(name: str) -> Path | None:
    """The folder that `folders` has under this name, None if there is none; it looks only at the
    models of this name.
    """
    if not NAME.fullmatch(name):  # it may be a path, or stand for characters that cannot be shown
        return folders().get(name)
    allowed = hosting().allowed_models
    if allowed is not None and name not in allowed:
        return None
    return next(
        (
            root / name
            for root in (own_folder(), BUNDLED)
            if name in _names_in(root) and _is_model(root, name)
        ),
        None,
    )


def hidden_checkpoints() -> dict[str, Path]:
    """The bundled checkpoints that cannot be opened by their name, because one of the user's own
    has the same name.
    """
    owned = _folders_in(own_folder())
    return {name: folder for name, folder in _folders_in(BUNDLED).items() if name in owned}


def about_hiding(name: str, folder: Path) -> str:
    """The message that the user's own model in `folder` hides the bundled one of the same `name`,
    and how to have both.
    """
    return (
        f"{name} is a model of yours and hides the one of this name that came with gptviz: "
        f"to use that one again, rename or delete {folder}, or do so on the page Runs"
    )


def folders_with(file: str) -> dict[str, Path]:
    """What the user's own folder of models has beside these: every folder with this file, by name."""
    return _folders_in(own_folder(), file)


def _folders_in(root: Path, file: str = "config.json") -> dict[str, Path]:
    """The checkpoints in one folder, by name, without links that lead out of it and folders that
    may not be read.
    """
    by_name: dict[str, Path] = {}
    for name in sorted(_names_in(root)):
        if _is_model(root, name, file):
            by_name.setdefault(_show_name(name), root / name)
    return by_name


def _names_in(root: Path) -> list[str]:
    """The names of all that is in a folder, as they are written there: some systems find a file by
    others too.
    """
    with suppress(OSError):
        return os.listdir(root)
    return []


def _is_model(root: Path, name: str, file: str = "config.json") -> bool:
    # os.path instead of pathlib, which raises for a folder that may not be read and for a link to
    # itself.
    path = os.path.join(root, name)
    has_file = not name.startswith(".") and os.path.lexists(os.path.join(path, file))
    leads_into = os.path.join(os.path.realpath(root), "")
    return has_file and (not os.path.islink(path) or os.path.realpath(path).startswith(leads_into))


def name_of(folder: Path) -> str:
    r"""The name of the checkpoint in `folder`: that of the folder, with an escape for each
    character that cannot be shown.

    Names come from other machines too: a byte that is not UTF-8 becomes `\xff`, a newline `\n`.
    """
    return _show_name(folder.name)


def _show_name(name: str) -> str:
    if name.isprintable():  # which a byte that is not UTF-8 is not
        return name
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii")
        for sign in text
    )


def find(name: str) -> Path:
    """The folder of the checkpoint called `name`."""
    folder = folder_of(name)
    if folder is None:
        raise CheckpointError(f"no model named {name[:80]!r}{name_known(name, folders())}")
    return folder


def imported_from(folder: Path) -> str | None:
    """Where an imported model came from, by its card, of which nothing else is checked; None for
    one that was trained here.
    """
    said = _card(folder).get("imported_from")
    if isinstance(said, str):
        return said
    return None


def read_kind(folder: Path) -> Kind:
    """The kind of a model by its config, of which nothing else is checked."""
    fields = read_json(folder, "config.json").get("config")
    return kind_said(fields if isinstance(fields, dict) else {})


def _card(folder: Path) -> dict[str, Any]:
    if os.path.lexists(folder / "card.json"):
        return read_json(folder, "card.json")
    return {}


def read_card(folder: Path) -> Card:
    """The card of a checkpoint; an empty card if there is none."""
    return Card.from_json(_card(folder))


def read_config(folder: Path) -> Config:
    """The config of a checkpoint; no weights are read."""
    from gptviz.model import Config

    content = read_json(folder, "config.json")
    if content.get("format") != FORMAT:
        raise CheckpointError(
            f"{name_of(folder)}/config.json is of format {content.get('format')!r:.80}, this "
            f"version reads {FORMAT}: "
            "open it with the version that made it, or save it again"
        )
    try:
        return Config.from_dict(content.get("config"))  # type: ignore[arg-type]
    except ValueError as error:
        raise CheckpointError(f"{name_of(folder)}/config.json: {error}") from None


def read_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a checkpoint."""
    with _explain_errors(folder, "tokenizer.json"):
        return from_json(
            read_regular(folder / "tokenizer.json", LONGEST["tokenizer.json"]).decode("utf-8")
        )


def read_json(folder: Path, file: str) -> dict[str, Any]:
    """The JSON object in a `file` of a checkpoint, one of `LONGEST`; a CheckpointError if it cannot
    be read.
    """
    try:
        str(folder).encode("utf-8")
    except UnicodeEncodeError:
        # Neither safetensors nor Streamlit's caches take such a path.
        raise CheckpointError(
            f"{name_of(folder)} is in a folder whose name is not UTF-8 text: rename the folder"
        ) from None
    with _explain_errors(folder, file):
        content = parse_json(read_regular(folder / file, LONGEST[file]), MOST_VALUES)
    if not isinstance(content, dict):
        raise CheckpointError(
            f"{name_of(folder)}/{file} is not a JSON object: copy the folder again"
        )
    return content


@contextmanager
def _explain_errors(folder: Path, file: str) -> Iterator[None]:
    """Turn errors while `file` is read into a `CheckpointError` that says what to do."""
    try:
        yield
    except FileNotFoundError:
        raise CheckpointError(
            f"the model {name_of(folder)} lacks {file}: copy the whole folder again"
        ) from None
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{name_of(folder)}/{file} cannot be read ({reason_of(error)}): copy the folder again"
        ) from None


def snapshots(folder: Path) -> dict[int, Path]:
    """The file of every snapshot of the checkpoint in `folder`, by its step, in the order of the
    steps.
    """
    by_step = {}
    with suppress(OSError):
        for file in (folder / "snapshots").iterdir():
            if SNAPSHOT.fullmatch(file.name):
                by_step[int(file.stem)] = file
    return dict(sorted(by_step.items()))


def snapshot_path(folder: Path, step: int) -> Path:
    """Where the snapshot after `step` steps lies."""
    return folder / "snapshots" / f"{step:08d}.safetensors"


def load(
    folder: Path,
    device: torch.device | str = "cpu",
    step: int | None = None,
    precision: str | None = None,
    *,
    unmerged: bool = False,
) -> Checkpoint:
    """Open the checkpoint in `folder` on `device`; with `step`, the snapshot after that many steps.

    Args:
        precision: one of `gptviz.model.precision.PRECISIONS`, for a model that is only read; a
            model that was trained here counts as stored in float32. None opens a model that can be
            trained, in float32.
        unmerged: of an adapter, an `AdaptedTransformer`, of which only the adapter is trained;
            otherwise an adapter opens as its base with the changed weights, a `MergedTransformer`.

    Raises:
        CheckpointError: a file is missing, truncated, of another version, or does not fit the
            others; there is no snapshot of that step; the model needs more memory than is free; or
            as in `base_of`.
    """
    by_step = snapshots(folder)
    if step is not None and step not in by_step:
        steps = ", ".join(map(str, by_step)) or "none"
        raise CheckpointError(
            f"{name_of(folder)} has no snapshot of step {step}: there are {steps}"
        )
    config = read_config(folder)
    tokenizer = read_tokenizer(folder)
    if tokenizer.vocab_size != config.vocab_size:
        raise CheckpointError(
            f"{name_of(folder)}: the tokenizer has {tokenizer.vocab_size:,} tokens, the model "
            f"{config.vocab_size:,}: "
            "they are not from one model"
        )
    if step is None:
        weights = folder / "model.safetensors"
    else:
        weights = by_step[step]
    if is_adapter(folder):
        model = _adapted_model(weights, config, device, precision, unmerged)
    elif step is None and is_reference(folder):
        from gptviz.pretrained.opening import ImportRefusedError, with_weights

        try:
            model = with_weights(source_of(folder), config, device, precision)
        except ImportRefusedError as error:
            raise CheckpointError(f"{name_of(folder)}: {error}") from None
    else:
        model = _read_model(weights, config, device, precision)
    return Checkpoint(name_of(folder), model.eval(), tokenizer, read_card(folder))


def _expected_shapes(folder: Path, config: Config) -> Mapping[str, tuple[int, ...]]:
    """The shapes of the tensors that a file of weights of the checkpoint in `folder` has, by name.

    They are compared before weights are allocated, so that no config can make this machine allocate
    memory for weights that the file does not have.
    """
    from gptviz.model import lora
    from gptviz.model.builder import parameter_shapes

    if is_adapter(folder):
        return lora.parameter_shapes(config, read_adapter(folder).ranks)
    return parameter_shapes(config)


def is_adapter(folder: Path) -> bool:
    """Whether the checkpoint in `folder` is a LoRA adapter: it has a base, whose weights it
    changes.
    """
    return os.path.lexists(folder / "adapter.json")


def read_adapter(folder: Path) -> Adapter:
    """The adapter in `folder`, without its numbers."""
    content = read_json(folder, "adapter.json")
    base = content.get("base")
    sha256 = content.get("sha256")
    ranks = content.get("ranks")
    if not (
        isinstance(base, str) and isinstance(sha256, str) and isinstance(ranks, dict)
    ) or not all(type(rank) is int and 0 < rank <= MOST_VALUES for rank in ranks.values()):
        raise CheckpointError(f"{name_of(folder)}/adapter.json is damaged: copy the folder again")
    return Adapter(base, sha256, ranks)


def adapter_of(base: Path, ranks: Mapping[str, int]) -> Adapter:
    """An adapter of the model in the folder `base`, of these ranks."""
    name = name_of(base)
    if is_adapter(base):
        raise CheckpointError(
            f"{name} is an adapter itself, of {read_adapter(base).base}, and an adapter has no "
            "adapters: take that model instead"
        )
    with _explain_errors(base, "model.safetensors"):
        return Adapter(name, weights_hash(base), ranks)


def base_of(folder: Path) -> Path:
    """The folder with the base of the adapter in `folder`, whose weights are those that the adapter
    was made for.
    """
    adapter = read_adapter(folder)
    name = name_of(folder)
    folders = base_folders(folder)
    if not folders:
        raise CheckpointError(
            f"{name} is a LoRA adapter and changes the weights of {adapter.base[:80]!r}, and "
            "there is no model of that name: "
            "bring that model back, give it its name again, or import it"
        )
    for base in folders:
        with suppress(OSError):
            if not is_adapter(base) and weights_hash(base) == adapter.sha256:
                return base
    if is_adapter(folders[0]):
        what = "is an adapter itself"
    else:
        what = "has other weights than when the adapter was made"
    raise CheckpointError(
        f"{name} is a LoRA adapter and changes the weights of {adapter.base[:80]!r}, which "
        f"{what}: bring the model back as it "
        "was, or train the adapter again"
    )


def base_folders(folder: Path) -> list[Path]:
    """The models that have the name of the base of the adapter in `folder`: the user's own first,
    then the bundled one.
    """
    base = read_adapter(folder).base
    return [
        by_name[base]
        for by_name in (_folders_in(own_folder()), _folders_in(BUNDLED))
        if base in by_name
    ]


def weight_files(folder: Path, step: int | None = None) -> list[Path]:
    """The files with the weights of the checkpoint in `folder`, for an adapter those of its base
    too; they may be missing.
    """
    bases = base_folders(folder) if is_adapter(folder) else []
    return [
        folder / "model.safetensors" if step is None else snapshot_path(folder, step),
        *(base / "model.safetensors" for base in bases),
    ]


def weights_hash(folder: Path) -> str:
    """The sha256 of the file, or files, with the weights of the checkpoint in `folder`."""
    if is_reference(folder):
        files = source_of(folder).files()
    else:
        files = [folder / "model.safetensors"]
    hashes = [_hash(file, file_stamp(file)) for file in files]
    if len(hashes) == 1:
        return hashes[0]
    return " ".join(hashes)


@lru_cache(maxsize=256)
def _hash(file: Path, written: object) -> str:
    """The hash of a file; `written` differs if the file has changed."""
    with file.open("rb") as content:
        return file_digest(content, "sha256").hexdigest()


def _adapted_model(
    path: Path, config: Config, device: torch.device | str, precision: str | None, unmerged: bool
) -> Transformer:
    """The base of an adapter with the adapter in the file at `path`."""
    import torch

    from gptviz.model.lora import AdaptedTransformer

    folder = _folder_of(path)
    base = load(base_of(folder), device, precision=precision).model
    if base.config != config:
        raise CheckpointError(
            f"{name_of(folder)} and its base {read_adapter(folder).base} differ in config.json: "
            "copy it again"
        )
    adapter = _read_factors(path, config)
    if not unmerged:
        # the changed matrices lie beside those of the base
        _require_room(name_of(folder), config, device, precision)
        return with_adapter(base, adapter, name_of(folder))
    model = AdaptedTransformer(base, read_adapter(folder).ranks)
    with torch.no_grad():
        for name, factors in adapter.items():
            part = model.get_submodule(name)
            part.lora_a.copy_(factors.a)  # type: ignore[operator]
            part.lora_b.copy_(factors.b)  # type: ignore[operator]
    return model


def with_adapter(base: Transformer, adapter: Mapping[str, Factors], name: str) -> MergedTransformer:
    """The model that an adapter called `name` makes of its base."""
    from gptviz.model.lora import MergedTransformer
    from gptviz.model.precision import are_finite

    model = MergedTransformer(base, adapter)
    for part in adapter:
        if not are_finite(model.get_parameter(f"{part}.weight")):
            raise CheckpointError(
                f"{name}: with what the adapter adds, the weights of {part} are no finite numbers"
            )
    return model


def read_factors(folder: Path) -> dict[str, Factors]:
    """The numbers of the adapter in `folder`, in float32, by the names of the parts whose matrices
    they change.
    """
    return _read_factors(folder / "model.safetensors", read_config(folder))


def _read_factors(path: Path, config: Config) -> dict[str, Factors]:
    from gptviz.model.lora import factors

    folder = _folder_of(path)
    expected = _expected_shapes(folder, config)
    with _fitting(path, expected) as file:
        return factors(dict(_read_weights(file, name_of(folder), expected)))


def is_reference(folder: Path) -> bool:
    """Whether the weights of the checkpoint in `folder` are in the files of another program."""
    return os.path.lexists(folder / "source.json") and not os.path.lexists(
        folder / "model.safetensors"
    )


def source_of(folder: Path) -> ModelSource:
    """The files of another program that have the weights of the checkpoint in `folder`."""
    from gptviz.pretrained.opening import ImportRefusedError, source_from_reference

    try:
        return source_from_reference(read_json(folder, "source.json"))
    except ImportRefusedError as error:
        raise CheckpointError(f"{name_of(folder)}: {error}") from None


def check_weights(folder: Path, config: Config, step: int | None = None) -> None:
    """Check that weights, or those of a snapshot, fit the config by names, shapes and the file's
    length; none are read.
    """
    if step is None and is_reference(folder):
        source_of(folder)
        return
    if is_adapter(folder):
        base_of(folder)
    if step is None:
        path = folder / "model.safetensors"
    else:
        path = snapshots(folder)[step]
    with _fitting(path, _expected_shapes(folder, config)):
        pass


def _read_model(
    path: Path, config: Config, device: torch.device | str, precision: str | None
) -> Transformer:
    """A model with the weights of a file, which are read one tensor after the other."""
    from gptviz.model.builder import lay_out
    from gptviz.model.precision import place

    folder = _folder_of(path)
    name = name_of(folder)
    expected = _expected_shapes(folder, config)
    with _fitting(path, expected) as file:
        _require_room(name, config, device, precision)
        return place(lay_out(config), _read_weights(file, name, expected), device, precision)


def _require_room(
    name: str, config: Config, device: torch.device | str, precision: str | None
) -> None:
    """Refuse the weights of a model of this config where there is too little memory for them."""
    import torch

    from gptviz.model.costs import memory_needed
    from gptviz.model.precision import type_in_memory

    needs = memory_needed.estimate_memory(config, type_in_memory(torch.float32, precision).itemsize)
    if problem := memory_needed.refusal(needs, memory.room(needs.total, device)):
        raise CheckpointError(f"{name} is not opened: {problem}")


def _read_weights(
    file: Any, name: str, expected: Mapping[str, tuple[int, ...]]
) -> Iterator[tuple[str, Tensor]]:
    """The weights of a file in float32, as they were trained, one after the other."""
    from gptviz.model.precision import are_finite

    for part in expected:
        tensor = file.get_tensor(part).float()
        if not are_finite(tensor):
            raise CheckpointError(
                f"{name}: {part} holds values that are not numbers: train or copy the model again"
            )
        yield part, tensor


def stored_weights(folder: Path, config: Config) -> dict[str, Tensor]:
    """The weights of the checkpoint in `folder`, each in the type in which it is stored."""
    expected = _expected_shapes(folder, config)
    with _fitting(folder / "model.safetensors", expected) as file:
        return {name: file.get_tensor(name) for name in expected}


def _folder_of(path: Path) -> Path:
    """The folder of the checkpoint to which a file of weights belongs."""
    if path.name == "model.safetensors":
        return path.parent
    return path.parent.parent


@contextmanager
def _fitting(path: Path, expected: Mapping[str, tuple[int, ...]]) -> Iterator[Any]:
    """The file at `path`, open, after its length and the names, shapes and types of its tensors
    were checked.
    """
    from gptviz.pretrained.sources.tensors import open_safetensors

    folder = _folder_of(path)
    file_name = path.relative_to(folder)
    try:
        with open_safetensors(path) as file:  # this compares the length with the header's
            stored = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
            for name in sorted(expected.keys() | stored.keys()):
                if stored.get(name) != expected.get(name):
                    wants = sum(map(math.prod, expected.values()))
                    raise CheckpointError(
                        f"{name_of(folder)}: config.json describes {wants:,} parameters, with "
                        f"{name[:80]} "
                        f"{expected.get(name, 'absent')}; {file_name} has it "
                        f"{stored.get(name, 'absent')}: "
                        "the two files are not from one model"
                    )
                if (kind := file.get_slice(name).get_dtype()) not in STORED_TYPES:
                    raise CheckpointError(
                        f"{name_of(folder)}/{file_name} stores {name} as {kind}, this version "
                        f"reads {', '.join(STORED_TYPES)}: "
                        "save it again in one of them"
                    )
            yield file
    except FileNotFoundError:
        raise CheckpointError(
            f"the model {name_of(folder)} lacks {file_name}: copy the whole folder again"
        ) from None
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"{name_of(folder)}/{file_name} is damaged or cut short ({reason_of(error)}): copy it "
            "again"
        ) from None


LONGEST_NAME = 64
NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}")
SNAPSHOT = re.compile(r"[0-9]{8,12}\.safetensors")
DICTIONARY = "dictionary.safetensors"
PLAN = "plan.json"  # instead of a model, the plan of a dictionary that is fitted: see `fits`
NOTES = "notes.json"  # what the reader calls units of the model, and wrote about them
FILES = {
    *(
        "config.json",
        "tokenizer.json",
        "model.safetensors",
        "source.json",
        "adapter.json",
        "card.json",
        "snapshots",
    ),
    *("log.jsonl", "state.safetensors", "status.json", "stop_request", DICTIONARY, NOTES, PLAN),
    "wish",  # the stop request of version 0.1
}


def check_writable(what: str) -> None:
    """Refuse `what` on a server that only shows models."""
    try:
        require_writable(what)
    except NotAllowedError as error:
        raise CheckpointError(str(error)) from None


def check_name(name: str) -> None:
    """Refuse a name that no model can have."""
    if not NAME.fullmatch(name) or name.endswith("."):
        raise CheckpointError(
            f"{name[:80]!r} cannot name a model: use up to {LONGEST_NAME} letters, digits, '-', "
            "'_' and '.', "
            "beginning with a letter or digit"
        )
    if DEVICE.fullmatch(name):
        raise CheckpointError(
            f"{name!r} cannot name a model: Windows takes it for a device, so the model could not "
            "be shared"
        )


def destination(name: str, root: Path | None = None) -> Path:
    """The folder that a checkpoint saved as `name` below `root` (default: the user's own) takes or
    replaces.
    """
    check_name(name)
    target = (own_folder() if root is None else root) / name
    if target.is_dir():
        holds = {file.name for file in target.iterdir() if not file.name.startswith(".")}
    else:
        holds = set()
    if target.is_symlink() or (target.exists() and not target.is_dir()) or holds - FILES:
        raise CheckpointError(
            f"{target} holds something other than a model, which would be lost: choose another name"
        )
    return target


def is_in_use(name: str, root: Path | None = None) -> bool:
    """Whether a model saved as `name` below `root` (default: the user's own) would replace one, or
    hide a bundled one.
    """
    if os.path.lexists((own_folder() if root is None else root) / name):
        return True
    is_own = root is None or os.path.realpath(root) == os.path.realpath(own_folder())
    return is_own and name in _folders_in(BUNDLED)


def check_is_free(name: str, root: Path | None = None) -> None:
    """Refuse a name that is in use (see `is_in_use`) with a `NameInUseError`."""
    if is_in_use(name, root):
        is_bundled = not os.path.lexists((own_folder() if root is None else root) / name)
        if is_bundled:
            whose = " (it came with gptviz, and your new model would hide it)"
        else:
            whose = ""
        raise NameInUseError(
            f"there is a model named {name} already{whose}: choose another name, or replace it"
        )


def save(
    name: str,
    model: Transformer,
    tokenizer: Tokenizer,
    card: dict[str, Any],
    *,
    root: Path | None = None,
    dtype: torch.dtype | None = None,
    adapter: Adapter | None = None,
    replace: bool = False,
) -> Path:
    """Write a checkpoint called `name` below `root` (default: the user's own) and return its
    folder.

    It is written to a temporary folder, which is then renamed: after a crash or on a full disk the
    last good one is still there; if two are saved under one new name at the same time, one is
    refused.

    Args:
        dtype: the type weights are stored in, float32 unless given; float16 halves the file.
        adapter: for an `AdaptedTransformer`, of which only the adapter is written: its base.
        replace: whether a model that has the name is replaced, or hidden if it is a bundled one;
            otherwise the name is refused.

    Raises:
        NameInUseError: there is a model of that name.
        CheckpointError: the name is not possible (see `destination`), `dtype` cannot hold the
            weights, or the disk is full or not writable.
    """
    destination(name, root)
    if not replace:
        check_is_free(name, root)
    weights = _stored_weights(name, model, dtype)
    return save_opened(
        name,
        model.config,
        tokenizer,
        card,
        weights=weights,
        adapter=adapter,
        root=root,
        replace=replace,
    )


def save_opened(
    name: str,
    config: Config,
    tokenizer: Tokenizer,
    card: dict[str, Any],
    *,
    weights: dict[str, Tensor] | None = None,
    source: dict[str, Any] | None = None,
    adapter: Adapter | None = None,
    root: Path | None = None,
    replace: bool = False,
) -> Path:
    """Write a checkpoint of a model that was not built, and return its folder; other arguments are
    as in `save`.

    Args:
        weights: its parameters by their names, each in the type it has.
        source: instead of `weights`, the files of another program in which they stay (see
            `gptviz.pretrained.opening.reference`).
        adapter: the base, if `weights` are those of a LoRA adapter.
    """
    from safetensors.torch import save_file

    from gptviz.model import parameter_count

    target = destination(name, root)
    if not replace:
        check_is_free(name, root)
    root = target.parent
    try:
        root.mkdir(parents=True, exist_ok=True)
        with replacement_path(target) as fresh:
            fresh.mkdir()
            _write_json(fresh / "config.json", {"format": FORMAT, "config": config.to_dict()})
            (fresh / "tokenizer.json").write_text(tokenizer.to_json(), encoding="utf-8")
            if weights is not None:
                save_file(weights, fresh / "model.safetensors", metadata={"format": "pt"})
            if source is not None:
                _write_json(fresh / "source.json", source)
            if adapter is not None:
                _write_json(fresh / "adapter.json", asdict(adapter))
            _write_json(fresh / "card.json", {**card, "parameters": parameter_count(config)})
            if replace:
                swap(fresh, target)
            else:
                fresh.rename(target)  # fails if there is such a folder by now
    except (OSError, SafetensorError) as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            check_is_free(name, root)
        untouched = "; the last saved one is untouched" if replace else ""
        raise CheckpointError(
            f"cannot write the model {name} below {root} ({reason_of(error)}): "
            f"see that there is room and that you may write there{untouched}"
        ) from None
    return target


def _stored_weights(name: str, model: Transformer, dtype: torch.dtype | None) -> dict[str, Tensor]:
    """The weights in the type in which they are stored, float32 unless given."""
    import torch

    dtype = dtype or torch.float32
    weights = {
        key: value.detach().to("cpu", dtype).contiguous() for key, value in model.named_parameters()
    }
    for key, value in weights.items():
        if not value.isfinite().all():
            kind = str(dtype).removeprefix("torch.")
            raise NotNumbersError(
                f"{name} is not saved: {key} holds values that are not numbers in {kind}"
            )
    return weights


def write_weights(path: Path, model: Transformer, dtype: torch.dtype | None = None) -> None:
    """Replace the file at `path`, that of a model or of a snapshot, by the weights of `model`, as a
    whole or not at all.
    """
    if path.parent != _folder_of(path):
        with suppress(OSError):  # writing the file says what is wrong
            path.parent.mkdir(exist_ok=True)
    write_tensors(path, _stored_weights(path.name, model, dtype))


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Replace the safetensors file at `path` by `tensors`, as a whole or not at all."""
    from safetensors.torch import save_file

    with _in_place_of(path) as fresh:
        save_file(tensors, fresh, metadata={"format": "pt"})


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Replace the JSON file at `path` by `content`, as a whole or not at all."""
    with _in_place_of(path) as fresh:
        _write_json(fresh, content)


def write_text(path: Path, content: str) -> None:
    """Replace the file at `path` by `content`, as a whole or not at all."""
    with _in_place_of(path) as fresh:
        fresh.write_text(content, encoding="utf-8")


@contextmanager
def _in_place_of(path: Path) -> Iterator[Path]:
    """A path next to `path`, renamed to `path` at the end: after a crash or on a full disk the last
    good file stays.
    """
    try:
        with in_place_of(path) as fresh:
            yield fresh
            fresh.chmod(0o644)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"cannot write {path} ({reason_of(error)}): the last good one is untouched"
        ) from None


def _write_json(path: Path, content: dict[str, Any]) -> None:
    # A name from the file system may have a lone surrogate; escaped with a backslash it is the same
    # string in JSON.
    path.write_text(
        json.dumps(content, indent=1, ensure_ascii=False) + "\n",
        encoding="utf-8",
        errors="backslashreplace",
    )
