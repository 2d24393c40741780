"""Jacobian lenses as files of PyTorch, as the package `jlens`, Neuronpedia and TransformerLens have
them.

Such a file has a table: `J` gives for the number of a block, counted from 0, the matrix J [d_model,
d_model] with which the stream x after it is brought to where it is after the last block, J x.
Beside it are `source_layers`, `d_model`, and in `n_prompts` over how many texts the mean was taken.
Nothing else in the table is read. A lens of ours that adds biases has them by block in `b`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from gptviz.machine.bounded import read_regular
from gptviz.machine.files import in_place_of

MAPS, BIASES = "J", "b"
# The most bytes of a file.
MOST_BYTES = 2**30


def read(path: Path, most: int) -> tuple[dict[int, Tensor], dict[int, Tensor]]:
    """The matrices [d_model, d_model] of a lens, and the biases [d_model] where it has some, by
    block, in float32, where they may take `most` bytes. A ValueError if the file is no lens, is
    damaged or too large, or would run code; an OSError if it cannot be read.
    """
    from .sources.tensors import load_pickle, require_plain

    if path.stat().st_size > MOST_BYTES:
        raise ValueError(
            f"{path.name} is larger than {MOST_BYTES // 2**20:,} MB, the most of a lens: ask for "
            "that of a smaller model"
        )
    is_of_torch = read_regular(path, 2, cut=True) == b"PK"  # `torch.save` writes a zip file
    content = load_pickle(path) if is_of_torch else None
    tables = (
        [content.get(name, {}) for name in (MAPS, BIASES)] if isinstance(content, Mapping) else [{}]
    )
    if not tables[0] or not all(isinstance(each, Mapping) for each in tables):
        raise ValueError(
            f"{path.name} is no Jacobian lens: that has a table “{MAPS}” with a matrix for each "
            "block. Ask for the file that "
            "`lens.save` of jlens wrote, not for one of a fit that is still going on"
        )
    for (block, tensor), sides in [
        *((each, 2) for each in tables[0].items()),
        *((each, 1) for each in tables[1].items()),
    ]:
        if type(block) is not int or not isinstance(tensor, Tensor) or tensor.ndim != sides:
            raise ValueError(
                f"{path.name} does not give a {'matrix' if sides == 2 else 'bias'} for each block"
            )
        require_plain(path, f"of block {block}", tensor)
    sizes = {size for table in tables for tensor in table.values() for size in tensor.shape}
    if len(sizes) != 1:
        raise ValueError(f"{path.name}: its matrices are not all square and of one size")
    if (needed := len(tables[0]) * next(iter(sizes)) ** 2 * 4) > most:
        raise ValueError(
            f"{path.name}: its matrices take {needed / 2**20:,.0f} MB, and {most // 2**20:,} is "
            "the most: ask for that of a "
            "smaller model"
        )
    maps, biases = (
        {block: tensor.float().clone() for block, tensor in table.items()} for table in tables
    )
    if not all(tensor.isfinite().all() for tensor in maps.values()):
        raise ValueError(f"{path.name}: its matrices are not all numbers: ask for another file")
    return maps, biases


def write(path: Path, maps: Mapping[int, Tensor], biases: Mapping[int, Tensor]) -> None:
    """Write matrices [d_model, d_model] and perhaps biases [d_model], by block, as such a file; an
    OSError if that fails.
    """
    tables = {
        name: {block: each.cpu().clone() for block, each in table.items()}
        for name, table in ((MAPS, maps), (BIASES, biases))
    }
    about = {
        "n_prompts": 1,
        "source_layers": sorted(maps),
        "d_model": len(next(iter(maps.values()))),
    }
    with in_place_of(path) as fresh:
        torch.save({name: table for name, table in tables.items() if table} | about, fresh)
