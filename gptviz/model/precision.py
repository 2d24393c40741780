"""Precision: the type in which weights are kept in memory, and the type in which they are
multiplied.

Only the matrices are kept in 2 bytes a number or less (see `packed`), and only products with them
are computed so. The stream, norms, scores, softmax and logits are float32: so all that a tap sees
is float32, and probabilities sum to 1. Training is always in float32 here; what its steps are
computed in is chosen by `gptviz.train.engine`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from gptviz.machine.hosting import variable

from .devices import STORED, may_bfloat16
from .fast import LINE, Arena, make_fast
from .packed import BlockPart, Packed, looked_up_packed, times_exactly, times_packed
from .parts.part import Embedding, Linear
from .raw_blocks import problem
from .transformer import Transformer

# What a user may ask for → what weights are multiplied in.
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
PRECISIONS = (STORED, *TYPES)
# Weights that are kept in 2 bytes become float32 as many at a time: few enough to stay in a
# processor's own memory.
AT_ONCE = 2**18
# How blocks are multiplied by the library of `raw_blocks`, and what turns that off.
BY_LIBRARY = f"8 bits by ik_llama.cpp ({variable('fast')}=0: in bfloat16)"


def check(precision: str) -> None:
    """Refuse a precision that there is not, with a ValueError."""
    if precision not in PRECISIONS:
        raise ValueError(f"no precision {precision!r:.40}; there is {', '.join(PRECISIONS)}")


def type_in_memory(stored: torch.dtype, precision: str | None) -> torch.dtype:
    """The type of a matrix in memory: that of its file, unless fewer bytes will do for what is
    asked; None asks for training.
    """
    if precision is None:
        return torch.float32
    # whole numbers, for example, are not multiplied as they are
    known = stored if stored in TYPES.values() else torch.float32
    asked = known if precision == STORED else TYPES[precision]
    return min((asked, known), key=lambda dtype: dtype.itemsize)


def stays_packed(precision: str | None, device: torch.device) -> bool:
    """Whether a matrix of 4 to 8 bits stays so in memory: on a processor, in a model that is opened
    as stored.
    """
    return precision == STORED and device.type == "cpu"


def are_finite(tensor: Tensor) -> bool:
    """Whether no number of a tensor is infinite or none at all, found without a second tensor of
    its size.
    """
    if isinstance(tensor, Packed):
        return tensor.is_finite()
    return tensor.numel() == 0 or all(bool(end.isfinite()) for end in tensor.aminmax())


def type_of_products(stored: torch.dtype, precision: str, device: torch.device) -> torch.dtype:
    """The type in which a matrix is multiplied.

    "stored" is bfloat16 where the file has bfloat16 and the device multiplies it without a detour,
    else float32. A matrix in float16 is multiplied in float16 only where that is asked for: large
    values of the stream are beyond its range.
    """
    if precision != STORED:
        return TYPES[precision]
    if stored == torch.bfloat16 and may_bfloat16(device):
        return stored
    return torch.float32


@torch.no_grad()
def place(
    model: Transformer,
    weights: Iterable[tuple[str, Tensor]],
    device: torch.device | str = "cpu",
    precision: str | None = None,
) -> Transformer:
    """Give `model`, which is laid out on the CPU, its weights, one after the other, and bring it to
    `device`.

    A matrix that makes a vector longer lies turned in memory, [in, out] instead of [out, in], since
    MKL reads it faster so where the text is one token long, as in generation; its shape and numbers
    are the same. So does an embedding that is the unembedding too: every token that is written
    reads all of it there, and a single row where it is embedded. All weights lie in an `Arena`.

    Args:
        model: its parameters take no memory yet, since nothing was written to them.
        weights: every parameter by name, in the type that it is stored in.
        precision: one of `PRECISIONS`, or None for a model that is to be trained: in float32, and
            nothing is turned.
    """
    device = torch.device(device)
    parameters = dict(model.named_parameters())
    parts = [part for part in model.modules() if isinstance(part, Linear) or part is model.embed]
    matrices = {part.weight for part in parts}
    may_turn = {part.weight for part in parts if isinstance(part, Linear)}
    arena = Arena(sum(4 * parameter.numel() + LINE for parameter in parameters.values()))
    for name, tensor in weights:
        parameter = parameters[name]
        if isinstance(tensor, Packed):
            if parameter in matrices and stays_packed(precision, device):
                _keep_packed([part for part in parts if part.weight is parameter], tensor, arena)
                continue
            tensor = tensor.numbers()
        if parameter in matrices:
            dtype = type_in_memory(tensor.dtype, precision)
        else:
            dtype = torch.float32
        turned = (
            precision is not None and parameter in may_turn and len(parameter) > parameter.shape[1]
        )
        turned &= device.type == "cpu" and dtype == torch.float32
        shape = tensor.shape[::-1] if turned else tensor.shape
        if device.type == "cpu" and precision is not None:
            fresh = arena.new_tensor(shape, dtype)
        else:
            fresh = torch.empty(shape, dtype=dtype, device=device)
        parameter.data = (fresh.t() if turned else fresh).copy_(tensor)
    make_fast(model)
    for part in parts:  # what is kept in 2 bytes a number or less gives float32 all the same
        is_packed = isinstance(part.weight, Packed)
        dtype = part.weight.dtype
        if isinstance(part, Embedding) and (is_packed or dtype != torch.float32):
            part.look_up = looked_up_packed if is_packed else looked_up
        elif isinstance(part, Linear) and is_packed:
            part.multiply = times_packed
        elif isinstance(part, Linear) and dtype != torch.float32:
            is_wide = type_of_products(dtype, precision or STORED, device) == torch.float32
            part.multiply = in_float32 if is_wide else in_its_type
    if device.type == "cpu":
        return model
    return model.to(device)


def _keep_packed(parts: list[torch.nn.Module], matrix: Packed, arena: Arena) -> None:
    """Give these parts a matrix that stays as its file has it."""
    if any(isinstance(part, Linear) for part in parts):
        matrix.prepare(arena.new_tensor)
    weight = torch.nn.Parameter(matrix, requires_grad=False)
    for part in parts:
        part.weight = weight


def describe_types(model: Transformer) -> str:
    """The types of an open model in words: what its weights are kept in, and what they are
    multiplied in where that differs.
    """
    linear = [part for part in model.modules() if isinstance(part, Linear)]
    if packed := [part.weight for part in linear if isinstance(part.weight, Packed)]:
        kinds = sorted({kind for weight in packed for kind in weight.kinds})
        roundings = {
            BY_LIBRARY if isinstance(part, BlockPart) else "bfloat16"
            for weight in packed
            for part in weight.parts or ()
        }
        why = f" ({problem()})" if problem() else ""
        return f"{', '.join(kinds)}, multiplied in {' and '.join(sorted(roundings))}{why}"
    matrix = model.embed.weight.dtype
    products = {part.multiply for part in linear}
    name = str(matrix).removeprefix("torch.")
    if in_float32 in products:
        return f"{name}, multiplied in float32"
    return name


def rounds(model: Transformer) -> bool:
    """Whether products with the matrices of an open model are rounded to 2 bytes a number or
    less.
    """
    weights = [part.weight for part in model.modules() if isinstance(part, Linear | Embedding)]
    return any(
        isinstance(weight, Packed) or weight.dtype.itemsize < torch.float32.itemsize
        for weight in weights
    )


def exact_twin(model: Transformer) -> Transformer:
    """A twin with the same weights in the same memory that multiplies in float32, some rows at a
    time, and so more slowly.
    """
    twin = copy.deepcopy(
        model, {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    )
    for part in twin.modules():
        if isinstance(part, Linear):
            if isinstance(part.weight, Packed):
                part.multiply = times_exactly
            else:
                part.multiply = in_float32
    return twin


def bytes_in_memory(model: Transformer) -> int:
    """What the weights of an open model take."""
    return sum(
        weight.memory if isinstance(weight, Packed) else weight.nbytes
        for weight in model.parameters()
    )


def looked_up(ids: Tensor, table: Tensor) -> Tensor:
    """The rows `ids` [...] of a table [rows, width] in float32: [..., width]."""
    return F.embedding(ids, table).float()


def in_its_type(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x · Wᵀ + b, with the product in the type of the matrix."""
    product = F.linear(x.to(weight.dtype), weight).float()
    if bias is None:
        return product
    return product + bias


def in_float32(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x · Wᵀ + b in float32. The matrix is never in memory in float32 as a whole, nor where a
    gradient goes back to x.
    """
    product: Tensor = _InFloat32.apply(x, weight)
    if bias is None:
        return product
    return product + bias


class _InFloat32(torch.autograd.Function):
    """x · Wᵀ, of which autograd by itself would keep the float32 parts of W until the gradient
    comes back. W itself gets none.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(weight)
        return torch.cat(
            [F.linear(x, some.float()) for some in weight.split(_rows(weight))], dim=-1
        )

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (weight,) = ctx.saved_tensors
        rows = _rows(weight)
        of_x = gradient.new_zeros(*gradient.shape[:-1], weight.shape[1])
        for part, some in zip(gradient.split(rows, dim=-1), weight.split(rows), strict=True):
            of_x += part @ some.float()
        return of_x, None


def _rows(weight: Tensor) -> int:
    """How many rows of a matrix become float32 at a time."""
    return max(1, AT_ONCE // weight.shape[1])
