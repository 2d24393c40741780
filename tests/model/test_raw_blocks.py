"""Products with raw blocks by a library of others: right in every shape, chosen by time, and left
where anything is not as expected.
"""

from __future__ import annotations

import _ctypes
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch
from torch import Tensor

import gptviz
from gptviz.generate.generation import Generation
from gptviz.generate.sampling import Sampling
from gptviz.interp.changing.before_after import rounding
from gptviz.interp.changing.edit import Inputs
from gptviz.machine.hosting import variable
from gptviz.model import Record, Transformer, packed, raw_blocks
from gptviz.model.packed import ROWS_TIMED, BlockPart, Packed, Part
from gptviz.model.parts.part import Linear
from gptviz.model.precision import describe_types, exact_twin, rounds
from gptviz.model.raw_blocks import (
    AT_ONCE,
    FURTHEST,
    KINDS,
    MANY,
    PACKAGE,
    VERSION,
    Product,
    furthest,
    multiplies,
    multiply,
    problem,
)
from tests.command_line import Capture, output
from tests.pretrained.gguf_files import saved
from tests.pretrained.test_families import opened, theirs
from tests.pretrained.test_gguf import MODELS, PACKED, as_stored
from tests.tiny import some_ids

IS_INSTALLED = raw_blocks.find_spec(raw_blocks.MODULE) is not None
needs_library = pytest.mark.skipif(not IS_INSTALLED, reason="gptviz[fast] is not installed")


library_is_faster = packed._library_is_faster


def forget() -> None:
    """What is known of the library."""
    for known in (raw_blocks._library, raw_blocks._wrong, raw_blocks.furthest):
        known.cache_clear()
    library_is_faster.cache.clear()


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The library may be used."""
    monkeypatch.setenv(variable("fast"), "1")
    forget()
    yield
    forget()


@pytest.fixture
def fast(on: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is used, whatever is faster on this machine."""
    monkeypatch.setattr(packed, "_library_is_faster", lambda _: (True, True))


def some_blocks(kind: str, rows: int, width: int) -> tuple[Tensor, Tensor]:
    """Random blocks [rows, bytes of a row], and their numbers [rows, width] in float64."""
    code = gguf.GGMLQuantizationType[kind]
    numbers, size = gguf.GGML_QUANT_SIZES[code]
    generator = torch.Generator().manual_seed(rows + width)
    blocks = torch.randint(256, (rows, width // numbers * size), generator=generator)
    blocks = (blocks & 0xBF).to(torch.uint8)  # no scale is infinite
    return blocks, torch.from_numpy(gguf.dequantize(blocks.numpy(), code)).double()


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def distance(found: Tensor, x: Tensor, numbers: Tensor) -> float:
    expected = x.double() @ numbers.T
    return float((found - expected).norm() / expected.norm())


def test_the_kinds_have_the_numbers_of_the_format() -> None:
    assert {kind: gguf.GGMLQuantizationType[kind] for kind in KINDS} == KINDS
    assert not multiplies("F16")
    assert not multiplies("Q8_1")


# Rows that are and are no multiple of 8 and 16, widths that are and are no multiple of 128.
@needs_library
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 37, 128])
def test_products_are_those_in_float64_but_for_the_rounding(
    kind: str, rows: int, fast: None
) -> None:
    size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]][0]
    for width in (size, 3 * size, 18 * size):
        blocks, numbers = some_blocks(kind, rows, width)
        for count in (1, 2, 7, MANY - 1, MANY, MANY + 1, 2 * MANY):
            x = drawn(count, width)
            found = multiply(kind, blocks, x)
            assert found.shape == (count, rows)
            # One number alone can be near 0.
            if count * rows > 20:
                assert distance(found, x, numbers) < FURTHEST


@needs_library
def test_the_library_leaves_out_the_end_of_a_row_and_so_gets_zeros_there(fast: None) -> None:
    blocks, numbers = some_blocks("Q4_1", 128, 576)
    x = drawn(MANY, 576)
    alone = torch.empty(MANY, 128)
    Product("Q4_1", blocks, MANY, 576).write(x, alone)
    assert distance(alone, x, numbers) > 0.1, "a newer one may not need the zeros any more"
    assert distance(multiply("Q4_1", blocks, x), x, numbers) < FURTHEST


@needs_library
def test_no_place_in_memory_and_no_number_of_rows_is_one_too_odd(fast: None) -> None:
    blocks, numbers = some_blocks("Q4_1", 50, 96)
    x = drawn(5, 96)
    expected = multiply("Q4_1", blocks, x)
    beside = torch.empty(5 * 96 + 1)[1:].view(5, 96).copy_(x)
    gaps = torch.empty(5, 200)[:, 3:99].copy_(x)
    moved = torch.empty(blocks.numel() + 3, dtype=torch.uint8)[3:].view(blocks.shape).copy_(blocks)
    for some, of in ((blocks, beside), (blocks, gaps), (moved, x), (blocks, x.T.contiguous().T)):
        assert torch.equal(multiply("Q4_1", some, of), expected)
    assert multiply("Q4_1", blocks, x[:0]).shape == (0, 50)
    many = drawn(100_000, 96)
    found = multiply("Q4_1", blocks, many)
    assert distance(found, many, numbers) < FURTHEST
    assert torch.equal(found[-5:], multiply("Q4_1", blocks, many[-AT_ONCE:])[-5:])


@needs_library
def test_a_number_that_is_none_stays_one_and_only_in_its_row(fast: None) -> None:
    for kind in KINDS:
        blocks, _ = some_blocks(kind, 40, 256)
        for rows in (1, 3, MANY):
            for bad in (float("nan"), float("inf"), -float("inf")):
                x = drawn(rows, 256)
                x[0, 7] = bad
                found = multiply(kind, blocks, x)
                assert not found[0].isfinite().any()
                assert found[1:].isfinite().all()


@needs_library
@pytest.mark.parametrize("factor", [1e-30, 1e-6, 1e6, 1e30])
def test_large_and_small_rows_are_multiplied_as_exactly(factor: float, fast: None) -> None:
    for kind in KINDS:
        blocks, numbers = some_blocks(kind, 64, 256)
        x = drawn(3, 256) * factor
        assert distance(multiply(kind, blocks, x), x, numbers) < FURTHEST


@needs_library
def test_threads_change_no_bit(fast: None) -> None:
    blocks, _ = some_blocks("Q4_K", 300, 512)
    rows = [drawn(count, 512) for count in (1, 5, 70)]
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        expected = [multiply("Q4_K", blocks, x) for x in rows]
        torch.set_num_threads(2)
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda x: multiply("Q4_K", blocks, x), 20 * rows))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for a, b in zip(found, 20 * expected, strict=True))


def parts_of(model: Transformer) -> set[type]:
    return {
        type(part)
        for layer in model.modules()
        if isinstance(layer, Linear) and isinstance(layer.weight, Packed)
        for part in layer.weight.parts
    }


def matrix(model: Transformer, name: str) -> Packed:
    weight = model.get_parameter(f"blocks.0.mlp.{name}.weight")
    assert isinstance(weight, Packed)
    return weight


def file_of(kind: str, sizes: dict[str, Any], to: str, folder: Path) -> Path:
    width = {key: value for key, value in PACKED.items() if key in sizes}
    path = folder / "a.gguf"
    saved(theirs(kind, sizes | width), path, to=gguf.GGMLQuantizationType[to])
    return path


@needs_library
@pytest.mark.parametrize("to", ["Q4_0", "Q5_1", "Q8_0"])
@pytest.mark.parametrize(("kind", "sizes"), MODELS)
def test_models_of_each_family_give_the_logits_of_float32_but_for_the_distance_that_is_told(
    kind: str, sizes: dict[str, Any], to: str, tmp_path: Path, fast: None
) -> None:
    path = file_of(kind, sizes, to, tmp_path)
    model = as_stored(path)
    exact = opened(path)
    assert parts_of(model) == {BlockPart}
    assert rounds(model)
    assert describe_types(model).endswith(
        "multiplied in 8 bits by ik_llama.cpp (GPTVIZ_FAST=0: in bfloat16)"
    )
    ids = some_ids(40, vocab=31)[:1, : model.config.context_length]
    with torch.inference_mode():
        found = model(ids)[0, -1]
        expected = exact(ids)[0, -1]
    change, logit = rounding(model, Inputs(ids))
    # What is told is the distance to float32: divergence and logits by their definitions.
    log_exact = expected.double().log_softmax(-1)
    divergence = float((log_exact.exp() * (log_exact - found.double().log_softmax(-1))).sum())
    assert change.divergence == pytest.approx(divergence, rel=0.05, abs=1e-4)
    assert logit == pytest.approx(float((found - expected).abs().max()), rel=0.05, abs=1e-3)
    assert 0 < logit < 0.3 * float(expected.max() - expected.min())


@needs_library
@pytest.mark.parametrize(("kind", "sizes"), [MODELS[0], MODELS[7], MODELS[8]])
def test_steps_give_the_bits_of_passes_of_one_token(
    kind: str, sizes: dict[str, Any], tmp_path: Path, fast: None
) -> None:
    model = as_stored(file_of(kind, sizes, "Q4_1", tmp_path))
    ids = some_ids(8, vocab=31)[0]
    steps = islice(Generation(model, ids[:2], Sampling(temperature=0)), 5)
    cache = model.new_cache()
    with torch.inference_mode():
        model(ids[None, :1], cache=cache)
        expected = model(ids[None, 1:2], cache=cache)[0, -1]
        for step in steps:
            if step.position > 2:
                assert torch.equal(step.logits[0], expected)
            expected = model(step.tokens[None], cache=cache)[0, -1]


@needs_library
def test_edits_taps_and_gradients_are_near_those_of_float32(tmp_path: Path, fast: None) -> None:
    lm = gptviz.load(file_of(*MODELS[0], "Q8_0", tmp_path))
    assert parts_of(lm.model) == {BlockPart}
    exact = gptviz.load(tmp_path / "a.gguf", precision="float32")
    ids = some_ids(20, vocab=31)
    for change in ((), ("blocks.0.attention.head.1",), ("blocks.1.mlp", "blocks.0.mlp.neuron.3=2")):
        taps = Record(), Record()
        with torch.inference_mode():
            for one, tap in zip((lm, exact), taps, strict=True):
                one.edited(*change).model(ids, tap=tap)
        near, far = (tap.values for tap in taps)
        assert near.keys() == far.keys()
        for name, seen in far.items():
            real = seen.isfinite()  # scores are -inf where a query may not look
            error = (near[name] - seen)[real].norm()
            assert error <= 0.2 * seen[real].norm(), name
        assert not torch.equal(near["logits"], far["logits"])
    weight = matrix(lm.model, "down")
    x = drawn(3, weight.shape[1]).requires_grad_()
    packed.times_packed(x, weight, None).sum().backward()
    torch.testing.assert_close(x.grad, weight.numbers().sum(0).expand(3, -1), rtol=1e-3, atol=1e-3)


@needs_library
def test_what_is_faster_multiplies_with_one_and_with_many_vectors(
    tmp_path: Path, on: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file_of(*MODELS[0], "Q4_0", tmp_path)
    for with_one, with_many in ((1.0, 1.0), (1.0, 3.0), (3.0, 1.0)):
        packed._library_is_faster.cache.clear()
        # The time of the library, as a multiple of that of PyTorch.
        times = iter([[with_one, 2.0], [with_many, 2.0]] * 20)
        monkeypatch.setattr(packed, "_time_each", lambda acts, turns=5, times=times: next(times))
        monkeypatch.setattr(packed, "fastest_product", lambda width, group: packed.WIDENED)
        model = as_stored(path)
        weight = matrix(model, "down")
        (part,) = weight.parts
        assert isinstance(part, BlockPart if with_one < 2 else Part)
        if isinstance(part, BlockPart):
            assert (part.for_many is None) == (with_many < 2)
            exact = weight.numbers()
            few, many = drawn(3, exact.shape[1]), drawn(MANY, exact.shape[1])
            assert torch.equal(part.times(few), multiply("Q4_0", part.blocks, few))
            by_library = multiply("Q4_0", part.blocks, many)
            assert torch.equal(part.times(many), by_library) == (with_many < 2)
            assert distance(part.times(many), many, exact.double()) < FURTHEST
            assert part.memory == part.blocks.nbytes + (
                part.for_many.memory if part.for_many else 0
            )


@needs_library
def test_a_shape_that_the_library_multiplies_wrongly_is_left_to_pytorch(
    tmp_path: Path, fast: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_blocks, "WHOLE", 1)  # no zeros are added
    assert furthest("Q5_1", ROWS_TIMED, 96) > 0.2
    sizes = {"hidden_size": 64, "intermediate_size": 128, "head_dim": 16}
    saved(
        theirs("llama", MODELS[0][1] | sizes),
        tmp_path / "a.gguf",
        to=gguf.GGMLQuantizationType.Q5_1,
    )
    model = as_stored(tmp_path / "a.gguf")
    assert problem() == "", "whole groups of 128 are right"
    for name in ("up", "down"):
        weight = matrix(model, name)
        assert isinstance(weight.parts[0], BlockPart if weight.shape[1] == 128 else Part)


@needs_library
def test_it_can_be_turned_off(tmp_path: Path, fast: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable("fast"), "0")
    model = as_stored(file_of(*MODELS[0], "Q4_0", tmp_path))
    assert parts_of(model) == {Part}
    assert describe_types(model) == "Q4_0, multiplied in bfloat16"
    assert problem() == ""


def pretend(folder: Path, monkeypatch: pytest.MonkeyPatch, version: str | None) -> Path:
    """Install a package of its name in this version that has no library, and return where that
    would be.
    """
    (folder / raw_blocks.MODULE / "lib").mkdir(parents=True)
    (folder / raw_blocks.MODULE / "__init__.py").write_text("raise SystemExit('never imported')")
    if version is not None:
        about = folder / f"{PACKAGE.replace('-', '_')}-{version}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Name: {PACKAGE}\nVersion: {version}\n")
    else:
        monkeypatch.setattr(raw_blocks.metadata, "version", raise_not_found)
    monkeypatch.syspath_prepend(folder)
    name = raw_blocks.FILES.get(sys.platform, "libggml.so")
    return folder / raw_blocks.MODULE / "lib" / name


def raise_not_found(name: str) -> str:
    raise raw_blocks.metadata.PackageNotFoundError(name)


@pytest.mark.parametrize(
    ("version", "file", "why"),
    [
        ("0.1.6", None, f"its version is 0.1.6, and gptviz uses {VERSION}"),
        (None, None, "it cannot be opened (No package metadata was found for"),
        (VERSION, None, "it cannot be opened ("),
        (VERSION, b"no library", "it cannot be opened ("),
        (VERSION, "another library", "ggml_"),
    ],
)
def test_another_library_is_named_in_a_sentence_and_pytorch_multiplies(
    version: str | None,
    file: bytes | str | None,
    why: str,
    tmp_path: Path,
    on: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    path = pretend(tmp_path / "packages", monkeypatch, version)
    if isinstance(file, bytes):
        path.write_bytes(file)
    elif file:
        shutil.copy(_ctypes.__file__, path)
    sentence = problem()
    before = f"{PACKAGE} is not used for GGUF weights, and PyTorch multiplies them: "
    assert sentence.startswith(before)
    assert why in sentence
    assert output(capsys, "models").splitlines()[-1] == sentence
    model = as_stored(file_of(*MODELS[0], "Q4_0", tmp_path))
    assert parts_of(model) == {Part}
    assert describe_types(model) == f"Q4_0, multiplied in bfloat16 ({sentence})"


@needs_library
@pytest.mark.parametrize("fault", ["numbers", "kinds", "addresses", "status"])
def test_a_library_that_computes_something_else_is_not_used(
    fault: str, on: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = raw_blocks._library()
    match fault:
        case "numbers":
            right = raw_blocks.multiply
            monkeypatch.setattr(
                raw_blocks,
                "multiply",
                lambda kind, blocks, x: right(kind, blocks, x) * (1.03 if kind == "Q6_K" else 1.0),
            )
            expected = "its products with Q6_K are wrong by 3%"
        case "kinds":
            monkeypatch.setitem(KINDS, "Q5_0", KINDS["Q5_1"])
            expected = "it takes blocks of Q5_0 for others"
        case "addresses":
            monkeypatch.setattr(library, "get_data", lambda array: 0)
            expected = "it takes blocks of Q4_0 for others"
        case _:
            monkeypatch.setattr(library, "graph_compute", lambda graph, plan: 1)
            expected = "ik_llama.cpp multiplied nothing (status 1)"
    assert problem().endswith(expected)
    assert not multiplies("Q4_0")


def test_without_it_nothing_is_said_and_nothing_changes(
    on: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(raw_blocks, "find_spec", lambda name: None)
    assert problem() == ""
    assert not multiplies("Q4_0")
    model = as_stored(file_of(*MODELS[0], "Q4_0", tmp_path))
    assert parts_of(model) == {Part}
    assert describe_types(model) == "Q4_0, multiplied in bfloat16"


@needs_library
def test_an_exact_twin_multiplies_the_same_blocks_in_float32(tmp_path: Path, fast: None) -> None:
    path = file_of(*MODELS[0], "Q4_1", tmp_path)
    ids = some_ids(20, vocab=31)
    with torch.inference_mode():
        found = exact_twin(as_stored(path))(ids)
        torch.testing.assert_close(found, opened(path)(ids), rtol=1e-3, atol=1e-3)
