"""Opening a model of another program on this machine: its config, its tokenizer, and its weights,
which stay where they are.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gptviz.machine import memory, progress
from gptviz.model import Config, Transformer, parameter_count
from gptviz.model.builder import lay_out, parameter_shapes
from gptviz.model.costs import memory_needed
from gptviz.model.precision import place
from gptviz.text import Tokenizer

from .families import ImportRefusedError
from .families.base import MISMATCHED, ShapeError, missing_tensor
from .given import require_real
from .sources.folder import Folder
from .sources.folder_tokens import FILES, FolderTokens
from .sources.gguf import GGUF
from .sources.mapped import Mapped
from .sources.nanochat import NanoChat
from .sources.nanogpt import MinGPT, NanoGPT
from .sources.source import ModelSource

# the weights of a folder with config.json
WHOLE_MODELS = ("model.safetensors", "pytorch_model.bin")
MOST_NUMBERS_PER_BYTE = 8  # no quantisation stores a number in less than a bit


SOURCES: dict[str, type[ModelSource]] = {
    kind.kind: kind for kind in (Folder, GGUF, NanoChat, NanoGPT, MinGPT, Mapped)
}


def source_at(path: Path, additions: Mapping[str, Any] | None = None) -> ModelSource:
    """The source at this path, a folder or file, with facts that its files do not tell: a "mapping"
    (see `mapping.mapping_of`), or fields of our config under "set". An ImportRefusedError if gptviz
    can open nothing there, or an addition is already in its files.
    """
    if path.name in WHOLE_MODELS and Folder.recognises_path(path.parent) and not additions:
        return Folder(path.parent.resolve())
    kinds = (
        [Mapped]
        if additions and "mapping" in additions and Mapped.recognises_path(path)
        else SOURCES.values()
    )
    for kind in kinds:
        if kind.recognises_path(path):
            return kind(path.resolve(), additions)
    if not os.path.lexists(path):
        raise ImportRefusedError(f"there is nothing at {path}")
    raise ImportRefusedError(
        f"{path} holds no model that gptviz can open: it opens a folder with config.json and "
        "weights, a .gguf file, "
        "the ckpt.pt of nanoGPT, a checkpoint of nanochat with its meta_….json, or a .pt or "
        ".safetensors file with a mapping"
    )


def tokenizer_at(path: Path) -> Tokenizer:
    """The tokenizer at this path: of a model, or in a folder that has only the files of a
    tokenizer. No weights are read. An ImportRefusedError if there is none, or gptviz cannot read
    it; an OSError if a file cannot be read.
    """
    if path.is_dir():
        tokenizer = FolderTokens(path).tokenizer()
    else:
        tokenizer = source_at(path).describe_model().tokenizer
    if tokenizer is None:
        raise ImportRefusedError(f"{path} holds no tokenizer: none of {', '.join(FILES)} is there")
    return tokenizer


def reference(source: ModelSource) -> dict[str, Any]:
    """The record from which the source is found again: its kind and path, and the sizes of its
    files.
    """
    sizes = {str(file): file.stat().st_size for file in source.files()}
    return {
        "kind": source.kind,
        "path": str(source.path),
        "files": sizes,
        **({"said": source.additions} if source.additions else {}),
    }


def source_from_reference(content: dict[str, Any]) -> ModelSource:
    """The source that a reference describes."""
    kind = content.get("kind")
    path = content.get("path")
    sizes = content.get("files")
    additions = content.get("said", {})
    names_source = isinstance(kind, str) and kind in SOURCES and isinstance(path, str)
    if not names_source or not isinstance(sizes, dict) or not isinstance(additions, dict):
        raise ImportRefusedError("source.json is damaged: import the model again")
    for file, size in sizes.items():
        try:
            length = os.stat(file).st_size
        except OSError:
            raise ImportRefusedError(
                f"the weights at {file} are gone: put them back, or import the model again"
            ) from None
        if length != size:
            raise ImportRefusedError(f"the weights at {file} have changed: import the model again")
    return SOURCES[str(kind)](Path(str(path)), additions)


def require_room(
    source: ModelSource,
    config: Config,
    device: torch.device | str = "cpu",
    precision: str | None = None,
) -> None:
    """Refuse a model with this config that does not fit into the free memory; none of its tensors
    is read.

    This comes first, since files that are too large can fail to open, as if they were damaged.

    Raises:
        ImportRefusedError: it does not fit; a config of more numbers than the files can hold is
            left to `with_weights`.
    """
    numbers = parameter_count(config)
    if numbers > MOST_NUMBERS_PER_BYTE * source.size():
        return  # these files are wrong for another reason than their size
    needs = memory_needed.estimate_memory(config, source.number_bytes(numbers, precision, device))
    if problem := memory_needed.refusal(needs, memory.room(needs.total, device)):
        raise ImportRefusedError(f"{source.path.name} is not opened: {problem}")


def with_weights(
    source: ModelSource,
    config: Config,
    device: torch.device | str = "cpu",
    precision: str | None = None,
) -> Transformer:
    """The model with this config and the weights of the source.

    Names and shapes are compared before memory is allocated, and tensors are copied one after the
    other, so that the weights are in memory once. It reports how many tensors are read. `config` is
    as the source describes it, `precision` as in `gptviz.model.precision.place`.

    Raises:
        ImportRefusedError: there is too little memory; or a tensor is missing, of another shape,
            left over, or has values that are not finite.
    """
    expected = parameter_shapes(config)
    numbers = sum(map(math.prod, expected.values()))
    size = source.size()
    if numbers > MOST_NUMBERS_PER_BYTE * size:
        raise ImportRefusedError(
            f"{source.path.name}: the config describes {numbers:,} parameters, more than its "
            f"files of {size:,} bytes can hold: "
            f"{MISMATCHED}"
        )
    require_room(source, config, device, precision)
    model = place(lay_out(config), checked_tensors(source, config), device, precision)
    memory.release_memory()  # of tensors that were read
    return model


def checked_tensors(source: ModelSource, config: Config) -> Iterator[tuple[str, Tensor]]:
    """The parameters of a source, each with the shape that the config asks for and finite numbers,
    in the type that it is stored in; none is missing or left over.

    Raises:
        ImportRefusedError: as in `with_weights`, but for the memory.
    """
    expected = parameter_shapes(config)
    missing = set(expected)
    for name, tensor in _parameters(source, config):
        if expected.get(name) != tuple(tensor.shape):
            raise ImportRefusedError(
                f"{source.origin(config, name)} has the shape {tuple(tensor.shape)}, "
                f"the config asks for {expected.get(name, 'no such tensor')}: {MISMATCHED}"
            )
        # torch supports few operations on 8-bit numbers: not even `isfinite`.
        number = tensor.float() if tensor.element_size() == 1 else tensor
        require_real(source.origin(config, name), number)
        missing.remove(name)
        yield name, number
        progress.report(len(expected) - len(missing), len(expected), "tensor")
    if missing:
        raise missing_tensor(source.path.name, min(missing))


def _parameters(source: ModelSource, config: Config) -> Iterator[tuple[str, Tensor]]:
    """The parameters of a source; if a shape does not fit the config, the message names the source
    too.
    """
    try:
        yield from source.parameters(config)
    except ShapeError as error:
        raise ImportRefusedError(f"{source.path.name}: {error}") from None
