"""Products with the blocks of a GGUF file as they lie in it, by the kernels of ik_llama.cpp.

The extra `gptviz[fast]` installs them, as a library in C that is called through ctypes. It rounds
what is multiplied to 8 bits a number. Only one version is used, whose products are compared with
those in float64 first; with any other one PyTorch multiplies as without it.

Source: https://github.com/ikawrakow/ik_llama.cpp, `ggml.h`.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from gptviz.machine.errors import reason_of
from gptviz.machine.hosting import hosting

MODULE = "ik_llama_cpp"
PACKAGE = "ik-llama-cpp-python"
VERSION = "0.1.5"
FILES = {"win32": "ggml.dll", "darwin": "libggml.dylib"}
# Kinds of blocks by their numbers in the format: with an unknown number the library ends the
# process.
KINDS = {"Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q8_0": 8, "Q4_K": 12, "Q5_K": 13, "Q6_K": 14}
FLOAT32 = 0
# From so many rows of x on, the library leaves out the end of a row of Q4_1 or Q5_1 whose width is
# no multiple of `WHOLE`: such a matrix then gets zeros there.
MANY = 32
WHOLE = 128
# Rows of x that are multiplied at a time: the library keeps a copy of them in 8 bits.
AT_ONCE = 512
MOST_THREADS = 64
# How far a product with a row may be from that in float64, as a share of its length. Rounding to 8
# bits takes 0.01 at most where there are few rows.
FURTHEST = 0.02
TRIED = (1, 7, MANY + 8)  #: rows of x with which a shape is tried


class UnusableError(Exception):
    """The library is not as it is expected; the message says how."""


_ADDRESS = ctypes.c_void_p
_SIZE = ctypes.c_size_t


class _Memory(ctypes.Structure):
    """`ggml_init_params`: memory for the description of products, without their numbers."""

    _fields_ = (("size", _SIZE), ("start", _ADDRESS), ("without_numbers", ctypes.c_bool))


class _Array(ctypes.Structure):
    """`ggml_tensor`, up to the place of its numbers."""

    _fields_ = (
        ("kind", ctypes.c_int * 2),
        ("buffer_and_shape", ctypes.c_int64 * 5),
        ("strides", _SIZE * 4),  # in bytes
        ("operation", ctypes.c_int * 18),
        ("gradient_sources_and_view", _ADDRESS * 13),
        ("numbers", _ADDRESS),
    )


class _Plan(ctypes.Structure):
    """`ggml_cplan`: what a product needs while it is computed."""

    _fields_ = (
        ("size", _SIZE),
        ("work", _ADDRESS),
        ("threads", ctypes.c_int),
        ("may_stop", _ADDRESS),
        ("stop", _ADDRESS),
    )


_ARRAY = ctypes.POINTER(_Array)
# The functions that are called: what each returns, and its arguments.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "init": (_ADDRESS, _Memory),
    "free": (None, _ADDRESS),
    "tensor_overhead": (_SIZE,),
    "graph_overhead_custom": (_SIZE, _SIZE, ctypes.c_bool),
    "new_tensor_2d": (_ARRAY, _ADDRESS, ctypes.c_int, ctypes.c_int64, ctypes.c_int64),
    "get_data": (_ADDRESS, _ARRAY),
    "mul_mat": (_ARRAY, _ADDRESS, _ARRAY, _ARRAY),
    "new_graph_custom": (_ADDRESS, _ADDRESS, _SIZE, ctypes.c_bool),
    "build_forward_expand": (None, _ADDRESS, _ARRAY),
    "graph_plan": (_Plan, _ADDRESS, ctypes.c_int),
    "graph_compute": (ctypes.c_int, _ADDRESS, ctypes.POINTER(_Plan)),
}
ARRAYS = 4  # more than a product has: a matrix, x and the result


@cache
def _library() -> Any:
    """Its functions by their names; an `UnusableError` if it is another one."""
    spec = find_spec(MODULE)
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / "lib" / FILES.get(sys.platform, "libggml.so")
    if platform.machine() in ("x86_64", "AMD64") and not torch.cpu._is_avx2_supported():
        raise UnusableError("it needs a processor with AVX2")  # elsewhere it ends the process
    try:
        if (version := metadata.version(PACKAGE)) != VERSION:
            raise UnusableError(f"its version is {version}, and gptviz uses {VERSION}")
        opened = ctypes.CDLL(str(path))  # it lets other threads of Python go on
        functions = {name: getattr(opened, f"ggml_{name}") for name in _FUNCTIONS}
    except (metadata.PackageNotFoundError, OSError, AttributeError) as error:
        raise UnusableError(f"it cannot be opened ({reason_of(error)})") from None
    for name, (result, *arguments) in _FUNCTIONS.items():
        functions[name].restype = result
        functions[name].argtypes = arguments
    return SimpleNamespace(**functions)


class Product:
    """x · Wᵀ with a matrix of blocks, for a number of rows of x that stays the same."""

    def __init__(self, kind: str, blocks: Tensor, rows: int, width: int) -> None:
        """Prepare it for x [rows, width] and `blocks` [out, bytes of a row]. An `UnusableError`
        if the library takes rows or addresses for others.
        """
        library = _library()
        size = ARRAYS * library.tensor_overhead() + library.graph_overhead_custom(ARRAYS, False)
        self._described = torch.empty(size, dtype=torch.uint8)
        begun = library.init(_Memory(size, self._described.data_ptr(), True))
        matrix = library.new_tensor_2d(begun, KINDS[kind], width, len(blocks))
        x = library.new_tensor_2d(begun, FLOAT32, width, rows)
        result = library.mul_mat(begun, matrix, x)
        self._graph = library.new_graph_custom(begun, ARRAYS, False)
        library.build_forward_expand(self._graph, result)
        library.free(begun)  # and what was described stays, in memory of ours
        self._blocks = blocks
        matrix.contents.numbers = blocks.data_ptr()
        if (
            matrix.contents.strides[1] != blocks.shape[1]
            or library.get_data(matrix) != blocks.data_ptr()
        ):
            raise UnusableError(f"it takes blocks of {kind} for others")
        self._x = x.contents
        self._result = result.contents
        self._plan = library.graph_plan(self._graph, MOST_THREADS)
        self._work = torch.empty(self._plan.size, dtype=torch.uint8)
        self._plan.work = self._work.data_ptr()
        self._compute = library.graph_compute

    def write(self, x: Tensor, result: Tensor) -> None:
        """Write x · Wᵀ, of the rows of x, to `result` [rows, out]; both are float32, and without
        gaps. Where x is no number, what is written is none that means something.
        """
        x = x.contiguous()
        self._x.numbers = x.data_ptr()
        self._result.numbers = result.data_ptr()
        self._plan.threads = min(torch.get_num_threads(), MOST_THREADS)
        if failed := self._compute(self._graph, self._plan):
            raise RuntimeError(f"ik_llama.cpp multiplied nothing (status {failed})")


def multiply(kind: str, blocks: Tensor, x: Tensor) -> Tensor:
    """x · Wᵀ, of x [n, in] and blocks [out, bytes of a row]: [n, out]. A row of x with a number
    that is infinite or none gives none, as in float32.
    """
    rows, width = x.shape
    missing = -width % WHOLE if rows >= MANY else 0
    if missing:  # a block of zeros is zero in every kind
        blocks = F.pad(blocks, (0, missing * blocks.shape[1] // width))
        x = F.pad(x, (0, missing))
    result = torch.empty(rows, len(blocks))
    if result.numel():
        for some, to in zip(x.split(AT_ONCE), result.split(AT_ONCE), strict=True):
            Product(kind, blocks, len(some), x.shape[1]).write(some, to)
    return result.add_((x @ x.new_zeros(x.shape[1]))[:, None])


@cache
def furthest(kind: str, out: int, width: int) -> float:
    """How far products with a matrix of this kind and shape are from those in float64, as a share
    of their length, at most: with random blocks, and few and many rows.
    """
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, dequantize

    numbers, size = GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    generator = torch.Generator().manual_seed(0)
    shape = out, width // numbers * size
    # Without this bit, no two bytes are a scale that is infinite or no number.
    blocks = torch.randint(256, shape, generator=generator).to(torch.uint8) & ~64
    exact = torch.from_numpy(dequantize(blocks.numpy(), GGMLQuantizationType[kind])).double()
    distances = torch.zeros(len(TRIED))
    for place, rows in enumerate(TRIED):
        x = torch.randn(rows, width, generator=generator)
        expected = x.double() @ exact.T
        distances[place] = (multiply(kind, blocks, x) - expected).norm() / expected.norm()
    return float(distances.nan_to_num(torch.inf).max())


@cache
def _wrong() -> str | None:
    """What is wrong with the library; "" if nothing is, None if it is not installed."""
    if find_spec(MODULE) is None:
        return None
    try:
        for kind in KINDS:
            if (distance := furthest(kind, 72, 512)) > FURTHEST:
                return f"its products with {kind} are wrong by {distance:.0%}"
    except (UnusableError, RuntimeError) as error:
        return str(error)
    return ""


def multiplies(kind: str) -> bool:
    """Whether the library multiplies blocks of this kind: it is installed, right, and not turned
    off.
    """
    return kind in KINDS and hosting().fast and _wrong() == ""


def problem() -> str:
    """Why PyTorch multiplies although the library is installed, in a sentence; "" where there is
    nothing to say.
    """
    if not hosting().fast or not (wrong := _wrong()):
        return ""
    return f"{PACKAGE} is not used for GGUF weights, and PyTorch multiplies them: {wrong}"
