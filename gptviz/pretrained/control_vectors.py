"""Directions in the stream as GGUF control vectors, which llama.cpp and repeng read and write.

The tensor `direction.N` has the numbers that are added to the stream after block N, counted from 0.
llama.cpp takes none for block 0, and refuses a file that has one.
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

ARCHITECTURE = "controlvector"
_NAME = re.compile(r"direction\.([0-9]{1,4})")


def read(path: Path) -> dict[int, Tensor]:
    """The vectors [d_model] of a file, by block. A ValueError if it has no such vectors or they
    differ in length, an OSError if it cannot be read.
    """
    from .sources.gguf_reader import Reader

    require_regular(path)
    try:
        reader = Reader(path)
        kind, tensors = (
            reader.value("general.architecture"),
            {tensor.name: np.array(tensor.data) for tensor in reader.tensors},
        )
    except (ValueError, IndexError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"{path.name} is no GGUF file, or cut in half: {error}") from None
    vectors = {
        int(name[1]): torch.from_numpy(vector)
        for text, vector in tensors.items()
        if (name := _NAME.fullmatch(text))
    }
    shapes = {(vector.dtype, vector.ndim, len(vector)) for vector in vectors.values()}
    if kind != ARCHITECTURE or len(shapes) != 1 or next(iter(shapes))[:2] != (torch.float32, 1):
        raise ValueError(
            f"{path.name} is no control vector: that has one vector of float32 for each block, "
            "all equally long"
        )
    return vectors


def write(path: Path, vectors: Mapping[int, Tensor], model: str) -> None:
    """Write vectors [d_model], by block, as a file that names the `model` that they belong to; an
    OSError if that fails.
    """
    from gguf import GGUFWriter

    with in_place_of(path) as fresh:
        writer = GGUFWriter(fresh, ARCHITECTURE)
        writer.add_string(f"{ARCHITECTURE}.model_hint", model)
        writer.add_uint32(f"{ARCHITECTURE}.layer_count", len(vectors))
        for block, vector in vectors.items():
            writer.add_tensor(f"direction.{block}", vector.numpy().astype(np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
