"""Fitted lenses as files of PyTorch. Jacobian ones are as the package `jlens`, Neuronpedia and
TransformerLens have them.

Such a file has a table: `J` gives for the number of a block, counted from 0, the matrix J [d_model,
d_model] with which the stream x after it is brought to where it is after the last block, J x; or it
is one tensor [block, d_model, d_model]. Beside it are `source_layers`, `d_model`, and in
`n_prompts` over how many texts the mean was taken. The last block has no matrix: there J x is x.

A tuned lens of ours, A x + b, has its matrices in `A` and the biases in `b`, so that no program
that knows `J` alone reads it without its biases. Earlier versions wrote `J` and `b`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from gptviz.machine.bounded import read_regular
from gptviz.machine.files import in_place_of
from gptviz.machine.memory import FLOAT32

from .given import Given, WithoutEffect, real_numbers

MAPS = "J"
AFFINE = "A"
BIASES = "b"
# The most bytes of a file.
MOST_BYTES = 2**30
_NUMBERS = ("d_model", "source_layers", "n_prompts")
_BLOCK = re.compile(r"(?:layer_|layers\.|blocks\.)?([0-9]{1,4})")
# The settings beside the tables, and in the table `metadata`, that change nothing.
WITHOUT_EFFECT: WithoutEffect = {
    "it says how the lens was fitted": """
        n_prompts n_done next_idx skip_first skip_first_positions max_seq_len dim_batch *dtype
        corpus* dataset* seed estimator processing hook_convention converted_from dropped_fields""",
    "it says what made it, and for which model": """
        model_name model_id model_revision model_system transformer_lens_fit *_version created*
        description license""",
}


class PublishedLens(NamedTuple):
    """What a file has of a lens."""

    maps: dict[int, Tensor]  #: by block, the matrix [d_model, d_model]
    biases: dict[int, Tensor]  #: by block, the bias [d_model]; empty where it has none
    target: object  #: the block that the stream is brought to, or None if the file does not say


def read_lens(path: Path, most: int) -> PublishedLens:
    """The lens in a file, in float32, where its matrices may take `most` bytes. A ValueError if the
    file is no lens, has more than is known of lenses, is damaged or too large, or would run code;
    an OSError if it cannot be read.
    """
    from .sources.tensors import load_pickle

    if path.stat().st_size > MOST_BYTES:
        raise ValueError(
            f"{path.name} is larger than {MOST_BYTES // 2**20:,} MB, the most of a lens: ask for "
            "that of a smaller model"
        )
    is_of_torch = read_regular(path, 2, cut=True) == b"PK"  # `torch.save` writes a zip file
    content = load_pickle(path) if is_of_torch else None
    # a number or a list may be a tensor too
    given = Given(
        {
            name: value.tolist() if name in _NUMBERS and isinstance(value, Tensor) else value
            for name, value in (content if isinstance(content, dict) else {}).items()
        },
        "lens file",
        path.name,
    )
    named = AFFINE if AFFINE in given.fields else MAPS
    maps = _by_block(given, named, 2)
    biases = _by_block(given, BIASES, 1)
    if not maps:
        raise ValueError(
            f"{path.name} is no Jacobian lens: that has a table “{MAPS}” with a matrix for each "
            "block. Ask for the file that `lens.save` of jlens wrote, not for one of a fit that is "
            "still going on"
        )
    sizes = {size for each in (*maps.values(), *biases.values()) for size in each.shape}
    if len(sizes) != 1 or biases.keys() - maps.keys():
        raise ValueError(
            f"{path.name}: its matrices and biases are not of the same blocks, all square and of "
            "one size"
        )
    if (needed := len(maps) * max(sizes) ** 2 * FLOAT32) > most:
        raise ValueError(
            f"{path.name}: its matrices take {needed / 2**20:,.0f} MB, and {most // 2**20:,} is "
            "the most: ask for that of a smaller model"
        )
    given.allow_only("d_model", *sizes)
    given.allow_only("source_layers", [*maps], sorted(maps))
    about = given.inner_table("metadata")
    targets = [each.optional("target_layer") for each in (about, given)]
    given.refuse_unread(WITHOUT_EFFECT)
    about.refuse_unread(WITHOUT_EFFECT)
    read, added = (
        {block: real_numbers(f"{path.name}: {name}, block {block}", each) for block, each in one}
        for name, one in ((named, maps.items()), (BIASES, biases.items()))
    )
    return PublishedLens(read, added, next((one for one in targets if one is not None), None))


def _by_block(given: Given, name: str, sides: int) -> dict[int, Tensor]:
    """The tensors with so many sides in the table called `name`, by block."""
    from .sources.tensors import require_plain

    table = given.optional(name)
    if isinstance(table, Tensor):
        require_plain(Path(given.file), name, table)
        blocks = given.optional("source_layers")
        known = blocks if isinstance(blocks, list) else range(len(table) if table.ndim else 0)
        if table.ndim != sides + 1 or len(known) != len(table):
            raise ValueError(
                f"{given.file}: {name} has the shape {[*table.shape]}; it must be [block, d_model, "
                "d_model], with as many blocks as source_layers, or a table by block"
            )
        pairs = [*zip(known, table, strict=True)]
    else:
        pairs = [*given.table(name).items()]
    found: dict[int, Tensor] = {}
    for key, tensor in pairs:
        block = _BLOCK.fullmatch(str(key))
        number = -1 if block is None else int(block[1])
        if number < 0 or number in found or not isinstance(tensor, Tensor) or tensor.ndim != sides:
            raise ValueError(
                f"{given.file} does not give one {'matrix' if sides == 2 else 'bias'} for each "
                f"block: see {key!r:.60} in {name}"
            )
        require_plain(Path(given.file), f"{name} of block {key}", tensor)
        found[number] = tensor
    return found


def write(path: Path, maps: Mapping[int, Tensor], biases: Mapping[int, Tensor]) -> None:
    """Write matrices [d_model, d_model] as a Jacobian lens, or with biases [d_model] as a tuned
    one, by block. A ValueError if there are none, an OSError if it cannot be written.
    """
    if not maps:
        raise ValueError(
            "a file of a lens has a matrix for each block but the last, and this model has one "
            "block: there is nothing to write"
        )
    tables = {AFFINE: maps, BIASES: biases} if biases else {MAPS: maps}
    about = {
        "n_prompts": 1,
        "source_layers": sorted(maps),
        "d_model": len(next(iter(maps.values()))),
    }
    with in_place_of(path) as fresh:
        torch.save(
            {
                name: {block: each.cpu().clone() for block, each in table.items()}
                for name, table in tables.items()
            }
            | about,
            fresh,
        )
