"""Tensors in files of other programs: safetensors, whole or in parts, and PyTorch's own format,
read without running any code.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from gptviz.machine.bounded import TooMuchError, parse_json, read_regular, require_regular
from gptviz.machine.errors import reason_of
from gptviz.machine.lines import lines_of

from ..families import ImportRefusedError
from ..families.base import missing_tensor

LONGEST_INDEX = 16 * 2**20  # bytes
MOST_NAMES = 500_000
# Bytes of the names, types and shapes in a file, about 40,000 of them: 300,000 empty tensors would
# take half a minute and 500 MB.
LONGEST_HEADER = 4 * 2**20
# The weights of a folder are in the first of these that it has, whole or in the parts that an index
# lists.
WEIGHTS = ("model.safetensors", "pytorch_model.bin")


def open_safetensors(path: Path) -> Any:
    """A `.safetensors` file, open; use it in a `with`. An OSError if there is no such file, it is
    no regular file, or its header is longer than `LONGEST_HEADER`; a SafetensorError if it is no
    such file, or cut short.
    """
    require_regular(path)  # opening a pipe would wait for ever
    with path.open("rb") as file:
        header = int.from_bytes(file.read(8), "little")
    if path.stat().st_size > header > LONGEST_HEADER:
        raise OSError(f"its header has {header:,} bytes, and {LONGEST_HEADER:,} are the most")
    return safe_open(path, framework="pt")


class TensorFile(Protocol):
    """A file of named tensors."""

    def names(self) -> list[str]:
        """The names of all its tensors."""

    def tensor(self, name: str) -> Tensor:
        """The tensor of this name, in the type it is stored in."""

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of all tensors; none is read."""

    def is_same(self, one: str, other: str) -> bool:
        """Whether two tensors are the same one, stored once."""


class SafetensorsFile:
    """A `.safetensors` file; a tensor is read when it is asked for."""

    def __init__(self, path: Path) -> None:
        self.file = open_safetensors(path)

    def names(self) -> list[str]:
        return list(self.file.keys())

    def tensor(self, name: str) -> Tensor:
        tensor: Tensor = self.file.get_tensor(name)
        return tensor

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: tuple(self.file.get_slice(name).get_shape()) for name in self.names()}

    def is_same(self, one: str, other: str) -> bool:
        """Never: each tensor of such a file is stored separately."""
        return False


class TorchFile:
    """A file that `torch.save` wrote, opened with `weights_only=True`: nothing in it can run."""

    def __init__(self, path: Path) -> None:
        self.tensors = state_dict(path)

    def names(self) -> list[str]:
        return list(self.tensors)

    def tensor(self, name: str) -> Tensor:
        return self.tensors[name]

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: tuple(tensor.shape) for name, tensor in self.tensors.items()}

    def is_same(self, one: str, other: str) -> bool:
        """Whether two tensors have the same memory and shape."""
        first = self.tensors[one]
        second = self.tensors[other]
        return first.data_ptr() == second.data_ptr() and first.shape == second.shape


def load_pickle(path: Path) -> Any:
    """The content that `torch.save` wrote to this file, if it has only tensors, numbers, texts,
    lists and tables.
    """
    with reading(path):
        require_regular(path)
        try:
            return _load_file(path)
        except (pickle.UnpicklingError, OSError, MemoryError):
            raise
        except Exception as error:  # with a damaged file torch's reader can raise any error
            raise ValueError(error) from None


def _load_file(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError as error:
        if "mmap" not in str(error):  # only files of the newer format can be mapped
            raise
        return torch.load(path, map_location="cpu", weights_only=True)


def state_dict(path: Path, content: Any = None) -> dict[str, Tensor]:
    """The tensors by name in a file that `torch.save` wrote, with this `content` if it was read
    before: under a usual name, or at its top. The top comes last: nanoGPT has one tensor there, its
    best loss, next to the `model`.
    """
    content = load_pickle(path) if content is None else content
    for key in ("model", "model_state_dict", "state_dict", "module", None):
        if key is None:
            inner = content
        elif isinstance(content, Mapping):
            inner = content.get(key)
        else:
            inner = None
        if isinstance(inner, Mapping):
            tensors = {
                str(name): value for name, value in inner.items() if isinstance(value, Tensor)
            }
            for name, value in tensors.items():
                require_plain(path, name, value)
            if tensors:
                return tensors
    raise ImportRefusedError(
        f"{path.name} holds no tensors by name: ask for the file with the weights"
    )


def require_plain(path: Path, name: str, tensor: Tensor) -> None:
    """Refuse a tensor that has fewer numbers in the file than its shape says, or none at all.

    A row that is repeated without being stored again could have any size, and fill the memory when
    it is used.

    Raises:
        ImportRefusedError: the message names the file and the tensor.
    """
    is_dense = (
        tensor.layout == torch.strided and tensor.device.type == "cpu" and not tensor.is_quantized
    )
    if not is_dense or tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise ImportRefusedError(
            f"{path.name}: the tensor {name:.80} is not stored number by number: save it with "
            ".contiguous()"
        )


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn every error while this file is read into an `ImportRefusedError` that names it.

    Raises:
        ImportRefusedError: the file is missing, damaged, too large, or would run code.
    """
    try:
        yield
    except FileNotFoundError:
        raise ImportRefusedError(
            f"{path.name} is missing from {path.parent}: copy or download it too"
        ) from None
    except pickle.UnpicklingError:
        raise ImportRefusedError(
            f"{path.name} holds more than tensors, and opening it could run code: it is not "
            "opened. Ask for a .safetensors file"
        ) from None
    except ImportRefusedError:
        raise
    except TooMuchError as error:
        raise ImportRefusedError(f"{path.name}: {error}") from None
    except (
        OSError,
        SafetensorError,
        RuntimeError,
        ValueError,
        EOFError,
        KeyError,
        MemoryError,
    ) as error:
        first = [*lines_of(reason_of(error)), type(error).__name__][0].strip()[:200]
        raise ImportRefusedError(
            f"{path.name} is damaged or cut short ({first}): copy or download it again"
        ) from None


class Tensors:
    """The tensors of a model, in one file or in several."""

    def __init__(self, files: Mapping[Path, TensorFile]) -> None:
        self.files = list(files)  #: all files they are read from
        self._where: dict[str, tuple[Path, TensorFile]] = {}
        for path, file in files.items():
            with reading(path):
                self._where |= dict.fromkeys(file.names(), (path, file))
        self._taken: set[str] = set()

    def names(self) -> list[str]:
        """The names of all tensors."""
        return list(self._where)

    def take(self, name: str) -> Tensor:
        """The tensor of this name, in the type it is stored in; in the file it may have another
        name: see `names_in_files`.
        """
        known = self._known_name(name)
        if known is None:
            raise missing_tensor(", ".join(path.name for path in self.files[:3]), name)
        self._taken.add(known)
        return self._read_tensor(known)

    def _known_name(self, name: str) -> str | None:
        return next((stored for stored in names_in_files(name) if stored in self._where), None)

    def _read_tensor(self, known: str) -> Tensor:
        path, file = self._where[known]
        with reading(path):
            return file.tensor(known)

    def has_tensors(self, *names: str) -> bool:
        """Whether there are names, and a tensor of each."""
        return bool(names) and None not in map(self._known_name, names)

    def is_same(self, one: str, other: str) -> bool:
        """Whether two tensors that are there hold the same numbers in the same shape; neither
        counts as taken.
        """
        return torch.equal(
            *(
                self._read_tensor(known)
                for name in (one, other)
                if (known := self._known_name(name)) is not None
            )
        )

    def find_tensor(self, name: str) -> str:
        """The file that has the tensor of this name, and the tensor's name there, for messages."""
        known = self._known_name(name)
        if known is None:
            return name
        return f"{self._where[known][0].name}: {known}"

    def unused_names(self) -> list[str]:
        """The names of tensors that were not taken."""
        return sorted(self._where.keys() - self._taken)


def names_in_files(name: str) -> list[str]:
    """The names that a tensor may have in new and old files, the newest first.

    Some files leave out the first word of all names (`transformer.`), some call the unembedding
    `lm_head`, others `embed_out`, and the oldest, converted from TensorFlow, call gain and bias of
    a LayerNorm `gamma` and `beta`.
    """
    known = [name, ALIASES.get(name, name)]
    known += [
        name.replace(f"LayerNorm.{new}", f"LayerNorm.{old}")
        for new, old in (("weight", "gamma"), ("bias", "beta"))
    ]
    return list(
        dict.fromkeys(
            spelling
            for known_name in known
            for spelling in (known_name, known_name.partition(".")[2])
        )
    )


ALIASES = {"embed_out.weight": "lm_head.weight"}


def in_folder(folder: Path) -> Tensors:
    """The tensors of the model in a folder: of `model.safetensors`, of its parts, or of
    `pytorch_model.bin`.
    """
    files: dict[Path, TensorFile] = {}
    for path in files_in(folder):
        with reading(path):
            files[path] = (
                SafetensorsFile(path) if path.suffix == ".safetensors" else TorchFile(path)
            )
    return Tensors(files)


def files_in(folder: Path) -> list[Path]:
    """The files with the weights of the model in a folder; none of them is opened."""
    for name in WEIGHTS:
        if paths := parts_in(folder, name):
            for path in paths:
                with reading(path):
                    require_regular(path)
            return paths
    raise ImportRefusedError(
        f"{folder} has no weights: gptviz looks for model.safetensors or pytorch_model.bin, or an "
        "index of their parts"
    )


def parts_in(folder: Path, name: str) -> list[Path]:
    """The files with the weights that a folder has under this name: the whole file, as in
    `transformers`, else those that its index lists, if there is one.
    """
    index = folder / f"{name}.index.json"
    if os.path.lexists(folder / name):
        return [folder / name]
    if not os.path.lexists(index):
        return []
    with reading(index):
        content = parse_json(read_regular(index, LONGEST_INDEX), MOST_NAMES)
    if isinstance(content, dict):
        table = content.get("weight_map")
    else:
        table = None
    if (
        not isinstance(table, dict)
        or not table
        or not all(isinstance(name, str) for name in table.values())
    ):
        raise ImportRefusedError(f"{index.name} has no weight_map with the file of each tensor")
    names = sorted(set(table.values()))
    for name in names:
        if Path(name).name != name or name in ("", ".", ".."):
            raise ImportRefusedError(
                f"{index.name} points out of its folder, to {name!r:.80}: it is not opened. Put "
                "the files that it names beside it"
            )
    return [index.parent / name for name in names]
