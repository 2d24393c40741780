"""Weights with fewer bits: what a matrix becomes when it is kept in a few bits a number, and what
it weighs then.

The arithmetic stays that of float32: a quantiser gives back the numbers that the few bits stand
for, in the matrix's own shape, and the model multiplies with them. So a guess, a loss and a text
are those of the rounded weights, while speed and memory are those of float32: that is what
"simulated" means here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import torch
from torch import Tensor

from .builder import lay_out
from .config import Config
from .parts.part import Linear
from .parts.shortcuts import ValueEmbedding
from .precision import are_finite
from .transformer import Transformer

BITS = (8, 6, 5, 4, 3, 2)
GROUPS = (32, 64, 128)
# Kinds of GGUF files that the `gguf` library writes, by bits a weight. In each, 32 neighbouring
# numbers of a row share a scale.
GGUF_KINDS = ("Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0")
GGUF_BLOCK = 32
# As many numbers of a matrix are quantised at a time: what that needs in between stays small.
AT_ONCE = 2**22

_OWN = re.compile(r"([1-9])bit\.(?:row|g([1-9][0-9]{1,3}))")
FORMS = (
    "8bit.row, 4bit.g32 (bits 8, 6, 5, 4, 3 or 2; groups of 32, 64 or 128) or Q8_0, Q5_1, Q5_0, "
    "Q4_1, Q4_0"
)


class Quantiser(Protocol):
    """A way to keep a matrix in few bits."""

    @property
    def name(self) -> str:
        """Its name, which `quantiser` reads."""

    @property
    def title(self) -> str:
        """What it does with a matrix, after "is" or "are"."""

    def size(self, rows: int, width: int) -> int:
        """The bytes that a matrix of this shape takes, its scales included."""

    def brought_back(self, weight: Tensor) -> Tensor:
        """The numbers [out, in] in float32 that stand for those of a matrix; a ValueError if some
        are not finite or too large.
        """


@dataclass(frozen=True)
class RoundToNearest:
    """Each number w of a row, or of a group of neighbours in it, becomes s · round(w / s), where s
    is
    max |w| / (2^(bits − 1) − 1) as a bfloat16.

    So zero stays zero, and no number moves by more than s / 2. The whole numbers round(w / s) take
    `bits` bits each, and every s 2 bytes. If a row's width is no multiple of the group, its last
    group is shorter.
    """

    bits: int  #: of a number, from 2 to 8
    group: int | None = None  #: how many neighbours share a scale, or None for a whole row

    @property
    def name(self) -> str:
        return f"{self.bits}bit.{'row' if self.group is None else f'g{self.group}'}"

    @property
    def title(self) -> str:
        if self.group is None:
            shared = "a scale for each row"
        else:
            shared = f"a scale for each {self.group} neighbours"
        return f"rounded to {self.bits} bits a number, with {shared}"

    def size(self, rows: int, width: int) -> int:
        scales = rows * (1 if self.group is None else math.ceil(width / self.group))
        return math.ceil(rows * width * self.bits / 8) + 2 * scales

    def brought_back(self, weight: Tensor) -> Tensor:
        return _in_parts(weight, self._round_rows)

    def _round_rows(self, rows: Tensor) -> Tensor:
        width = rows.shape[1]
        group = min(self.group or width, width)
        # zeros make no number of a group larger
        padded = torch.nn.functional.pad(rows, (0, -width % group))
        groups = padded.unflatten(1, (-1, group))  # [rows, groups, group]
        levels = 2 ** (self.bits - 1) - 1
        largest_scale = torch.finfo(torch.bfloat16).max
        scale = (
            (groups.abs().amax(-1, keepdim=True) / levels)
            .clamp(max=largest_scale)
            .bfloat16()
            .float()
        )
        whole = torch.where(scale > 0, groups / scale, 0.0).round().clamp(-levels, levels)
        return (whole * scale).flatten(1)[:, :width]


@dataclass(frozen=True)
class OfGGUF:
    """What the `gguf` library makes of a matrix. Rows that are no multiple of 32 wide stay in
    float16, as in llama.cpp.
    """

    kind: str  #: one of `GGUF_KINDS`

    @property
    def name(self) -> str:
        return self.kind

    @property
    def title(self) -> str:
        return f"quantised as {self.kind} of GGUF files"

    def size(self, rows: int, width: int) -> int:
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

        numbers, taken = (
            GGML_QUANT_SIZES[GGMLQuantizationType[self.kind]] if width % GGUF_BLOCK == 0 else (1, 2)
        )
        return rows * width // numbers * taken

    def brought_back(self, weight: Tensor) -> Tensor:
        return _in_parts(weight, self._round_rows)

    def _round_rows(self, rows: Tensor) -> Tensor:
        from gguf import GGMLQuantizationType, dequantize, quantize

        if rows.shape[1] % GGUF_BLOCK:
            return rows.half().float()
        kind = GGMLQuantizationType[self.kind]
        return torch.from_numpy(dequantize(quantize(rows.cpu().numpy(), kind), kind)).to(
            rows.device
        )


def _in_parts(weight: Tensor, rounded: Callable[[Tensor], Tensor]) -> Tensor:
    """What `rounded` makes of some rows after the other."""
    if not are_finite(weight):
        raise ValueError("it has numbers that are not finite, which cannot be rounded to few bits")
    rows = max(1, AT_ONCE // weight.shape[1])
    numbers = torch.cat([rounded(some.detach().float()) for some in weight.split(rows)])
    if not are_finite(numbers):  # GGUF keeps its scales in float16
        raise ValueError(
            "it has numbers that are too large for float16, in which their scale is kept"
        )
    return numbers


def quantiser(text: str) -> Quantiser:
    """The quantiser of this name; a ValueError says which there are."""
    named = _OWN.fullmatch(text)
    if (
        named is not None
        and int(named[1]) in BITS
        and (named[2] is None or int(named[2]) in GROUPS)
    ):
        return RoundToNearest(int(named[1]), None if named[2] is None else int(named[2]))
    if text in GGUF_KINDS:
        return OfGGUF(text)
    raise ValueError(f"{text!r:.40} names no way to keep weights in few bits; there is {FORMS}")


def matrices(model: Transformer) -> dict[str, Tensor]:
    """The matrices of a model that a token is multiplied with, and its embeddings, by name; tied
    ones once. Norms, biases and tables of positions are none: they are few numbers, and files keep
    them whole.
    """
    multiplied = {
        part.weight for part in model.modules() if isinstance(part, Linear) or part is model.embed
    }
    multiplied |= {
        part.table.weight for part in model.modules() if isinstance(part, ValueEmbedding)
    }
    return {
        name: parameter for name, parameter in model.named_parameters() if parameter in multiplied
    }


@lru_cache(maxsize=64)
def matrix_names(config: Config) -> tuple[str, ...]:
    """The names of the `matrices` of a model of this config; nothing is allocated."""
    with torch.device("meta"):
        return tuple(matrices(lay_out(config)))
