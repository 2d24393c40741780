"""The costs of a model, as formulas of batch and context: parameters, matrix products, and what is
held in memory.

Every number follows from the parts as they are laid out on torch's meta device, where tensors have
a shape and no content: so it holds for every architecture, and nothing is allocated or run. Only
matrix products are counted as operations, as torch's own counter does: all else is little compared
with them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch

from gptviz.machine.memory import FLOAT32

from ..builder import describe, lay_out
from ..config import Config
from ..parts.attention import Attention, AttentionBase, CrossAttention
from ..parts.experts import MixtureOfExperts
from ..parts.heads import Head
from ..parts.part import Linear

# What the numbers of a model are grouped into, in the order in which a forward pass comes to it.
PARTS = ("embedding", "positions", "norms", "attention", "cross-attention", "MLP", "head", "loss")
_BLOCK = re.compile(r"(?<=blocks\.)\d+")


def part_of(path: str) -> str:
    """Which of `PARTS` a module or a parameter belongs to, by its path; the encoder's are counted
    with the decoder's.
    """
    inside = path.removeprefix("encoder.")
    if re.search(r"(^|[._])norm(_after)?(\.|$)", inside):
        return "norms"
    if re.search(r"(^|\.)positions(\.|$)", inside):
        return "positions"
    if not (block := re.match(r"blocks\.\d+\.(attention|cross|mlp)", inside)):
        if inside.startswith("head"):
            return "head"
        return "embedding"
    return {"attention": "attention", "cross": "cross-attention", "mlp": "MLP"}[block[1]]


def in_every_block(path: str) -> str:
    """The path with a star for the number of the block: what is alike in all blocks has one
    name.
    """
    return _BLOCK.sub("*", path)


@dataclass(frozen=True)
class TensorSize:
    """One tensor of parameters."""

    name: str  #: its path
    shape: tuple[int, ...]  #: its lengths along each axis
    #: how many numbers it adds to the model: 0 where they are another tensor's (tied)
    parameters: int

    @property
    def part(self) -> str:
        """Which of `PARTS` it belongs to."""
        return part_of(self.name)


def sizes(config: Config) -> list[TensorSize]:
    """Every tensor of parameters, in the order in which a forward pass reads them; they sum to the
    model's total.
    """
    return [
        TensorSize(f"{layer.name}.{key}", shape, 0 if key in layer.tied else math.prod(shape))
        for layer in describe(config)
        for key, shape in layer.shapes.items()
    ]


@dataclass(frozen=True)
class Product:
    """A matrix product of a forward pass, in all blocks that have it."""

    name: str  #: the path of what computes it, a star for the number of the block
    part: str  #: which of `PARTS` it belongs to
    #: its operations: a multiplication and an addition for each pair of numbers. B texts of T
    #: tokens are read, in an encoder–decoder with sources of S tokens.
    formula: str
    times: int  #: the number of blocks
    forward: int  #: operations of a forward pass, in all blocks
    #: operations of the backward pass: as many again for the gradient of each of the two factors
    backward: int

    @property
    def training(self) -> int:
        """Operations of a step of training, without the optimiser."""
        return self.forward + self.backward


@dataclass(frozen=True)
class _Factors:
    """A product without its batch and lengths: `numbers` of every row, whose letters are in
    `rows`.
    """

    name: str
    rows: str
    numbers: tuple[int, ...]
    learns: bool

    def product(self, batch: int, tokens: int, source: int, times: int) -> Product:
        lengths = {"B": batch, "T": tokens, "S": source}
        count = 2 * times * math.prod(lengths[row] for row in self.rows) * math.prod(self.numbers)
        text = " · ".join(["2", *self.rows, *(f"{number:,}" for number in self.numbers)])
        return Product(
            self.name,
            part_of(self.name.replace("*", "0")),
            text,
            times,
            count,
            2 * count * self.learns,
        )


def products(config: Config, batch: int, tokens: int, source: int | None = None) -> list[Product]:
    """The matrix products of a pass over `batch` texts of `tokens` tokens, which gives logits at
    every place. An encoder reads as many tokens of each text unless `source` says how many.
    """
    return [
        factors.product(batch, tokens, tokens if source is None else source, times)
        for factors, times in _factors(config).items()
    ]


def flops(config: Config, batch: int, tokens: int, source: int | None = None) -> tuple[int, int]:
    """The operations of all products of a forward pass, and of a step of training; see
    `products`.
    """
    made = products(config, batch, tokens, source)
    return sum(product.forward for product in made), sum(product.training for product in made)


@lru_cache(maxsize=64)
def _factors(config: Config) -> dict[_Factors, int]:
    """The products and the number of blocks that have each."""
    with torch.device("meta"):
        model = lay_out(config)
    counts: dict[_Factors, int] = {}
    for path, part in model.named_modules():
        in_encoder = path.startswith("encoder.")
        # Without blocks a decoder reads nothing of its encoder, to which no gradient comes back
        # then.
        learns = not in_encoder or config.n_layer > 0
        tokens = "S" if in_encoder else "T"
        if isinstance(part, MixtureOfExperts):
            made = [
                _Factors(
                    f"{in_every_block(path)}.experts.*.{name}",
                    "B" + tokens,
                    (part.n_active, *sizes),
                    learns,
                )
                for name in ("gate", "up", "down")
                for sizes in [
                    (
                        getattr(part.every_expert[0], name).in_features,
                        getattr(part.every_expert[0], name).out_features,
                    )
                ]
            ]
        elif ".experts." in path:
            continue  # counted above: a token passes few of them
        elif isinstance(part, Linear):
            # How many vectors it multiplies; none where the head reads nothing.
            holder, _, name = path.rpartition(".")
            owner = model.get_submodule(holder)
            rows = "B" + tokens
            if isinstance(owner, Head):
                rows = {"tokens": rows, "text": "B", "nothing": ""}[
                    owner.layers_read.get(name, "tokens")
                ]
            elif isinstance(owner, CrossAttention) and name == "kv":
                rows = "BS"
            if rows:
                made = [
                    _Factors(
                        in_every_block(path), rows, (part.in_features, part.out_features), learns
                    )
                ]
            else:
                made = []
        elif isinstance(part, AttentionBase):
            made = _of_attention(config, part, in_every_block(path), tokens, learns)
        else:
            continue
        for product in made:
            counts[product] = counts.get(product, 0) + 1
    return counts


def _of_attention(
    config: Config, part: AttentionBase, path: str, tokens: str, learns: bool
) -> list[_Factors]:
    """The products between tokens: scores, what is read by them, and those of positions that
    compare queries with vectors.
    """
    sizes = (config.n_head, config.head_size)
    keys = "S" if isinstance(part, CrossAttention) else tokens
    made = [
        _Factors(f"{path}.{name}", "B" + tokens + keys, sizes, learns) for name in ("scores", "z")
    ]
    if isinstance(part, Attention) and (compared := part.positions.compared_with):
        made.append(_Factors(f"{path}.positions", "B" + tokens, (*sizes, compared), learns))
    return made


def cache_numbers(config: Config, batch: int, tokens: int, source: int | None = None) -> int:
    """How many numbers the keys and values of this many tokens are, kept so that generation need
    not compute them again.

    2 · n_layer · B · T · n_kv_head · d_head; with an encoder also those of its S tokens.
    """
    read = tokens
    if config.n_encoder_layer:
        read += tokens if source is None else source
    return 2 * config.n_layer * batch * read * config.key_heads * config.head_size


def weight_bytes(config: Config, number: int = FLOAT32) -> int:
    """The bytes of the weights if a number of a matrix takes this many bytes, as `precision` keeps
    them: all else is float32.
    """
    return FLOAT32 * sum(size.parameters for size in sizes(config)) - (
        FLOAT32 - number
    ) * _in_matrices(config)


@lru_cache(maxsize=64)
def _in_matrices(config: Config) -> int:
    """How many numbers may be kept in 2 bytes: those of the linear layers and of the embedding."""
    with torch.device("meta"):
        model = lay_out(config)
    matrices = {
        part.weight for part in model.modules() if isinstance(part, Linear) or part is model.embed
    }
    return sum(matrix.numel() for matrix in matrices)


def by_part(rows: Sequence[tuple[str, int]]) -> dict[str, int]:
    """The sums of `rows` (part, number) by part, in the order of `PARTS`; parts without any are
    left out.
    """
    sums = {part: sum(number for of_part, number in rows if of_part == part) for part in PARTS}
    return {part: total for part, total in sums.items() if total}
