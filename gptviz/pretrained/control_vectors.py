"""Directions in the stream as GGUF control vectors, which llama.cpp and repeng read and write.

The tensor `direction.N` has the numbers that are added to the stream after block N, counted from 0;
where all are 0, nothing is added. llama.cpp takes none for block 0, and refuses a file that has
one: its numbers are a setting of the file that gptviz alone reads, `controlvector.direction.0`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gptviz.machine.bounded import require_regular
from gptviz.machine.files import in_place_of

from .given import Given, WithoutEffect, real_numbers, without_place

ARCHITECTURE = "controlvector"
FIRST = f"{ARCHITECTURE}.direction.0"
_NAME = re.compile(r"direction\.([0-9]{1,4})")
# The settings of such a file that change nothing.
WITHOUT_EFFECT: WithoutEffect = {
    "it says what made the file, and for which model": """
        general.* controlvector.model_hint controlvector.name controlvector.description""",
    "the tensors say it too": "controlvector.layer_count GGUF.*",
}


def read_vectors(path: Path) -> dict[int, Tensor]:
    """The vectors [d_model] of a file, by block, without those that are all 0. A ValueError if it
    has no such vectors, they differ in length, or it has more than is known of such files; an
    OSError if it cannot be read.
    """
    from .sources.gguf_reader import Reader

    require_regular(path)
    try:
        reader = Reader(path)
        fields = {name: reader.value(name) for name in reader.fields}
        stored = {tensor.name: torch.tensor(tensor.data) for tensor in reader.tensors}
    except (ValueError, IndexError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"{path.name} is no GGUF file, or cut in half: {error}") from None
    given = Given(fields, "control vector", path.name)
    kind = given.optional("general.architecture")
    first = given.optional(FIRST)
    if isinstance(first, list):
        stored[FIRST.partition(".")[2]] = torch.tensor(first)
    shapes = {(vector.dtype, vector.ndim, len(vector)) for vector in stored.values()}
    if kind != ARCHITECTURE or len(shapes) != 1 or next(iter(shapes))[:2] != (torch.float32, 1):
        raise ValueError(
            f"{path.name} is no control vector: that has one vector of float32 for each block, "
            "all equally long"
        )
    given.refuse_unread(WITHOUT_EFFECT)
    if left := [name for name in stored if not _NAME.fullmatch(name)]:
        raise without_place(path.name, left, "a control vector")
    vectors: dict[int, Tensor] = {}
    for name, vector in stored.items():
        block = int(name.partition(".")[2])
        if block in vectors:
            raise ValueError(f"{path.name} has two vectors for block {block}: see {name}")
        vectors[block] = real_numbers(f"{path.name}: {name}", vector)
    if not any(vector.any() for vector in vectors.values()):
        raise ValueError(f"{path.name} adds nothing to the stream: all its numbers are 0")
    return {block: vector for block, vector in vectors.items() if vector.any()}


def write(path: Path, vectors: Mapping[int, Tensor], model: str) -> None:
    """Write vectors [d_model], by block, as a file that names the `model` that they belong to. A
    ValueError if the only one is that of block 0, an OSError if the file cannot be written.
    """
    from gguf import GGUFWriter

    others = {block: vector for block, vector in vectors.items() if block}
    if not others:
        raise ValueError(
            "this direction acts only after block 0, and llama.cpp takes no vector there: no file "
            "of it is written. Find it for another block, or for all of them"
        )
    with in_place_of(path) as fresh:
        writer = GGUFWriter(fresh, ARCHITECTURE)
        writer.add_string(f"{ARCHITECTURE}.model_hint", model)
        writer.add_uint32(f"{ARCHITECTURE}.layer_count", len(others))
        if 0 in vectors:
            writer.add_array(FIRST, vectors[0].float().tolist())
        for block, vector in others.items():
            writer.add_tensor(f"direction.{block}", vector.numpy().astype(np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
