"""GGUF files: every family, every way to store weights, and the tokenizer in the header."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch

from gptviz.model import Transformer, parameter_count
from gptviz.model.packed import Packed
from gptviz.model.parts.part import Linear
from gptviz.model.precision import bytes_in_memory, describe_types, exact_twin, rounds
from gptviz.pretrained.families import ImportRefusedError
from gptviz.pretrained.opening import source_at, with_weights
from gptviz.pretrained.sources.gguf_blocks import KINDS, OpenFile, blocks_of
from gptviz.pretrained.sources.gguf_reader import Reader
from gptviz.pretrained.sources.gguf_rotary import llama3_rule
from tests.pretrained.gguf_files import add_setting, permuted, saved
from tests.pretrained.test_families import (
    CONTEXT,
    GROUPED,
    LLAMA3,
    MIXED,
    SIZES,
    opened,
    same_logits,
    theirs,
)
from tests.tiny import some_ids

WIDE = GROUPED | {"hidden_size": 32, "intermediate_size": 64}
GPT2 = {"n_embd": 24, "n_layer": 2, "n_head": 2, "n_positions": CONTEXT, "n_inner": 40}
WITHOUT_HEADS = {key: value for key, value in GROUPED.items() if key != "head_dim"}
PARTLY = {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.5}
GEMMA3 = GROUPED | {"num_hidden_layers": 7, "sliding_window": 5, "query_pre_attn_scalar": 8}
MODELS: list[tuple[str, dict[str, Any]]] = [
    ("llama", GROUPED),
    ("llama", GROUPED | {"tie_word_embeddings": True}),
    ("llama", GROUPED | {"attention_bias": True}),
    ("llama", GROUPED | {"attention_bias": True, "mlp_bias": True}),
    (
        "llama",
        GROUPED | {"rope_parameters": {"rope_type": "linear", "rope_theta": 300.0, "factor": 4.0}},
    ),
    ("qwen2", WITHOUT_HEADS),
    ("qwen3", GROUPED),
    ("gpt2", GPT2),
    ("gpt_neox", SIZES | {"rope_parameters": PARTLY}),
    ("gpt_neox", SIZES | {"rope_parameters": PARTLY, "use_parallel_residual": False}),
    ("gemma3_text", GEMMA3),
]


# The tensors of a file as llama.cpp reads them: those of the model, then those of each block.
ROTARY = (
    "token_embd output_norm output",
    "attn_norm attn_q attn_k attn_v attn_output ffn_norm ffn_gate ffn_up ffn_down",
)
JOINED = "attn_norm attn_qkv attn_output ffn_norm ffn_up ffn_down"
TENSORS = {
    "llama": ROTARY,
    "qwen2": ROTARY,
    "qwen3": (ROTARY[0], f"{ROTARY[1]} attn_q_norm attn_k_norm"),
    "gpt2": ("token_embd position_embd output_norm", JOINED),
    "gpt_neox": ("token_embd output_norm output", JOINED),
    "gemma3_text": (
        "token_embd output_norm",
        f"{ROTARY[1]} attn_q_norm attn_k_norm post_attention_norm post_ffw_norm",
    ),
}


@pytest.mark.parametrize(("kind", "sizes"), MODELS)
def test_each_family_has_the_logits_of_transformers(
    kind: str, sizes: dict[str, Any], tmp_path: Path
) -> None:
    model = theirs(kind, sizes)
    saved(model, tmp_path / "a.gguf")
    same_logits(opened(tmp_path / "a.gguf"), model)
    outside, inside = TENSORS[kind]
    expected = set(outside.split()) | {
        f"blk.{i}.{name}" for i in range(model.config.num_hidden_layers) for name in inside.split()
    }
    found = {
        tensor.name.rsplit(".", 1)[0] for tensor in gguf.GGUFReader(tmp_path / "a.gguf").tensors
    }
    assert found | {"output"} == expected | {"output"}, "a tied head is not written"


def test_the_windows_of_gemma_3_are_those_of_the_header(tmp_path: Path) -> None:
    model = theirs(
        "gemma3_text",
        GEMMA3
        | {"layer_types": ["sliding_attention", "full_attention"] * 3 + ["sliding_attention"]},
    )
    saved(model, tmp_path / "a.gguf", settings={"gemma3.attention.sliding_window_pattern": 2})
    same_logits(opened(tmp_path / "a.gguf"), model)
    saved(
        model,
        tmp_path / "b.gguf",
        settings={"gemma3.attention.sliding_window_pattern": [True, False] * 3 + [True]},
    )
    same_logits(opened(tmp_path / "b.gguf"), model)


def quantisations() -> list[gguf.GGMLQuantizationType]:
    """Those that the library can both make and bring back, of blocks short enough for a tiny
    model.
    """
    found = []
    for kind in gguf.GGMLQuantizationType:
        size = gguf.GGML_QUANT_SIZES[kind][0]
        values = np.linspace(-1, 1, 2 * size, dtype=np.float32).reshape(2, size)
        try:
            gguf.dequantize(gguf.quantize(values, kind), kind)
        except (NotImplementedError, KeyError, ValueError):
            continue
        found.append(kind)
    return found


@pytest.mark.parametrize("kind", quantisations(), ids=lambda kind: kind.name)
def test_each_quantisation_has_the_logits_of_its_own_weights(
    kind: gguf.GGMLQuantizationType, tmp_path: Path
) -> None:
    size = max(32, gguf.GGML_QUANT_SIZES[kind][0])
    model = theirs(
        "llama", WIDE | {"hidden_size": size, "intermediate_size": 2 * size, "head_dim": 8}
    )
    saved(model, tmp_path / "a.gguf", to=kind)
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if tensor.ndim == 2 and tensor.shape[1] % gguf.GGML_QUANT_SIZES[kind][0] == 0:
                heads = {"q_proj": 4, "k_proj": 2}.get(name.split(".")[-2])
                rows = permuted(tensor.numpy(), heads) if heads else tensor.numpy()
                back = gguf.dequantize(gguf.quantize(np.ascontiguousarray(rows), kind), kind)
                tensor.copy_(torch.from_numpy(unpermuted(back, heads) if heads else back))
    same_logits(opened(tmp_path / "a.gguf"), model)
    assert kind.name in source_at(tmp_path / "a.gguf").describe_model().notes[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_of_any_bytes_have_the_numbers_of_the_library(kind: str, tmp_path: Path) -> None:
    made = KINDS[kind]
    rows = 40
    width = 512
    data = np.random.default_rng(0).integers(
        0, 256, (rows * width // made.numbers, made.size), dtype=np.uint8
    )
    scales = {"Q6_K": slice(208, 210)}.get(
        kind, slice(0, 4 if kind in ("Q4_1", "Q5_1", "Q4_K", "Q5_K") else 2)
    )
    halves = np.random.default_rng(1).normal(size=(len(data), 2)).astype(np.float16)
    data[:, scales] = halves.view(np.uint8)[:, : scales.stop - scales.start]
    (tmp_path / "a").write_bytes(b"before" + data.tobytes() + b"after")
    numbers = gguf.dequantize(data.reshape(rows, -1), gguf.GGMLQuantizationType[kind])
    blocks = blocks_of(OpenFile(tmp_path / "a"), len(b"before"), (rows, width), kind)
    assert blocks is not None
    assert (made.numbers, made.size) == gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    assert blocks.read_rows(torch.arange(1)).q.shape == (1, width // made.group, made.group)
    for some in (
        torch.arange(rows),
        torch.arange(3, 9),
        torch.tensor([9, 8, 11]),
        torch.tensor([39, 0]),
        torch.tensor([5]),
    ):
        assert np.array_equal(blocks.read_rows(some).numbers().numpy(), numbers[some.numpy()])
    assert blocks.is_finite(torch.arange(rows))
    data[-1, scales] = np.array([np.inf, np.nan], np.float16).view(np.uint8)[
        : scales.stop - scales.start
    ]
    (tmp_path / "a").write_bytes(b"before" + data.tobytes() + b"after")
    assert blocks.is_finite(torch.arange(rows - 1))
    assert not blocks.is_finite(torch.arange(rows))


OF_QWEN = {"moe_intermediate_size": 32, "num_experts": 5, "num_experts_per_tok": 3}
MIXTURES: list[tuple[str, dict[str, Any]]] = [
    ("mixtral", WIDE | MIXED),
    (
        "qwen2_moe",
        WITHOUT_HEADS | OF_QWEN | {"hidden_size": 32, "shared_expert_intermediate_size": 64},
    ),
    ("qwen3_moe", WIDE | OF_QWEN | {"norm_topk_prob": True}),
    (
        "olmoe",
        SIZES
        | {"hidden_size": 32, "intermediate_size": 64, "num_experts": 5, "num_experts_per_tok": 3},
    ),
    (
        "granitemoe",
        WITHOUT_HEADS
        | MIXED
        | {
            "hidden_size": 32,
            "intermediate_size": 64,
            "residual_multiplier": 0.3,
            "logits_scaling": 2.0,
        }
        | {"embedding_multiplier": 3.0, "attention_multiplier": 0.2},
    ),
]


@pytest.mark.parametrize(("kind", "sizes"), MIXTURES)
def test_each_family_with_experts_has_the_logits_of_transformers(
    kind: str, sizes: dict[str, Any], tmp_path: Path
) -> None:
    model = theirs(kind, sizes)
    saved(model, tmp_path / "a.gguf")
    found = {
        tensor.name: tuple(tensor.shape) for tensor in gguf.GGUFReader(tmp_path / "a.gguf").tensors
    }
    assert len(found["blk.0.ffn_gate_exps.weight"]) == 3
    same_logits(opened(tmp_path / "a.gguf"), model)


@pytest.mark.parametrize("to", ["Q4_0", "Q8_0", "F16", "BF16"])
@pytest.mark.parametrize(("kind", "sizes"), MIXTURES)
def test_experts_of_few_bits_stay_so_and_have_the_numbers_of_their_part_of_the_stack(
    kind: str, sizes: dict[str, Any], to: str, tmp_path: Path
) -> None:
    saved(theirs(kind, sizes), tmp_path / "a.gguf", to=gguf.GGMLQuantizationType[to])
    stored = as_stored(tmp_path / "a.gguf")
    exact = opened(tmp_path / "a.gguf")
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(tmp_path / "a.gguf").tensors}
    for matrix in ("gate", "up", "down"):
        tensor = tensors[f"blk.1.ffn_{matrix}_exps.weight"]
        stack = gguf.dequantize(tensor.data, tensor.tensor_type)
        for number in range(5):
            name = f"blocks.1.mlp.experts.{number}.{matrix}.weight"
            mine = stored.get_parameter(name)
            is_folded = kind == "granitemoe" and matrix == "down"
            expected = torch.from_numpy(stack[number].copy()) * (0.3 if is_folded else 1.0)
            torch.testing.assert_close(exact.get_parameter(name).data, expected, rtol=1e-6, atol=0)
            assert is_folded or isinstance(mine, Packed) == to.startswith("Q")
            assert torch.equal(mine.float(), exact.get_parameter(name)), name
    ids = some_ids(20, vocab=31)
    with torch.inference_mode():
        torch.testing.assert_close(exact_twin(stored)(ids), exact(ids), rtol=1e-3, atol=1e-3)


def test_a_stack_of_another_number_of_experts_is_refused(tmp_path: Path) -> None:
    router = {"blk.0.ffn_gate_inp.weight": np.zeros((4, 32), np.float32)}
    for words, extra in {
        r"blocks.0.mlp.router.weight has the shape \(5, 32\)": {},
        "4 experts": router,
    }.items():
        model = theirs("mixtral", WIDE | MIXED | {"num_hidden_layers": 1})
        model.config.num_local_experts = 4
        saved(model, tmp_path / "a.gguf", instead=extra)
        with pytest.raises(ImportRefusedError, match=f"a.gguf: .*{words}") as refused:
            opened(tmp_path / "a.gguf")
        assert "\n" not in str(refused.value)


PACKED = {"hidden_size": 64, "intermediate_size": 96, "head_dim": 16, "n_embd": 64, "n_inner": 96}


def as_stored(path: Path) -> Transformer:
    """The model with its weights as they are in the file."""
    source = source_at(path)
    return with_weights(source, source.describe_model().config, precision="stored").eval()


@pytest.mark.parametrize("to", ["Q4_0", "Q5_1", "Q8_0"])
@pytest.mark.parametrize(("kind", "sizes"), MODELS)
def test_matrices_of_each_family_stay_at_their_bits_and_give_the_logits_of_float32(
    kind: str, sizes: dict[str, Any], to: str, tmp_path: Path
) -> None:
    width = {key: value for key, value in PACKED.items() if key in sizes}
    saved(theirs(kind, sizes | width), tmp_path / "a.gguf", to=gguf.GGMLQuantizationType[to])
    stored = as_stored(tmp_path / "a.gguf")
    exact = opened(tmp_path / "a.gguf")
    kept = {name for name, parameter in stored.named_parameters() if isinstance(parameter, Packed)}
    assert kept == {
        f"{name}.weight"
        for name, part in stored.named_modules()
        if isinstance(part, Linear) or name == "embed"
    } - ({"head.unembed.weight"} if stored.config.tied else set())
    for (name, mine), theirs_exact in zip(
        stored.named_parameters(), exact.parameters(), strict=True
    ):
        assert torch.equal(mine.float(), theirs_exact), name
    assert to in describe_types(stored)
    assert rounds(stored)
    ids = some_ids(20, vocab=31)
    with torch.inference_mode():
        found = stored(ids)
        expected = exact(ids)
        assert torch.equal(exact_twin(stored)(ids).argmax(-1), expected.argmax(-1))
        torch.testing.assert_close(exact_twin(stored)(ids), expected, rtol=1e-3, atol=1e-3)
    spread = (expected - expected.mean(-1, keepdim=True)).square().mean().sqrt()
    # What a product is rounded by grows on the way through blocks of random weights.
    assert 0 < (found - expected).square().mean().sqrt() < 0.1 * spread


def test_what_a_file_takes_in_memory_is_known_before_it_is_read(tmp_path: Path) -> None:
    sizes = WIDE | {"hidden_size": 64, "intermediate_size": 128, "head_dim": 16}
    for to in ("Q4_0", "Q8_0", "F16", "F32"):
        saved(theirs("llama", sizes), tmp_path / to, to=gguf.GGMLQuantizationType[to])
        source = source_at(tmp_path / to)
        numbers = parameter_count(source.outline().config)
        expected = source.number_bytes(numbers, "stored") * numbers
        taken = bytes_in_memory(as_stored(tmp_path / to))
        # Rows are filled up to a multiple of 16: those of the vocabulary of 31, which is in no
        # block of rows of its own.
        assert 0.85 < expected / taken < 1.05, to


def test_a_file_that_is_cut_while_it_is_open_is_named(tmp_path: Path) -> None:
    saved(theirs("llama", WIDE), tmp_path / "a.gguf", to=gguf.GGMLQuantizationType.Q4_0)
    model = as_stored(tmp_path / "a.gguf")
    with (tmp_path / "a.gguf").open("r+b") as file:
        file.truncate(100)
    with pytest.raises(OSError, match=r"a\.gguf was cut short while it was open"):
        model.embed(torch.tensor([1]))


def test_blocks_whose_scale_is_no_number_are_refused(tmp_path: Path) -> None:
    saved(theirs("llama", WIDE), tmp_path / "a.gguf", to=gguf.GGMLQuantizationType.Q4_0)
    [tensor] = [
        tensor
        for tensor in gguf.GGUFReader(tmp_path / "a.gguf").tensors
        if tensor.name == "blk.1.ffn_up.weight"
    ]
    with (tmp_path / "a.gguf").open("r+b") as file:
        file.seek(int(tensor.data_offset))
        file.write(np.array([np.nan], dtype=np.float16).tobytes())
    for precision in ("stored", "float32"):
        source = source_at(tmp_path / "a.gguf")
        with pytest.raises(
            ImportRefusedError,
            match=r"a\.gguf: .*mlp\.up\.weight holds values that are not numbers",
        ):
            with_weights(source, source.outline().config, precision=precision)


def unpermuted(rows: np.ndarray[Any, Any], heads: int) -> np.ndarray[Any, Any]:
    """The inverse of `permuted`, as a loop over rows."""
    order = permuted(np.arange(rows.shape[0])[:, None], heads)[:, 0]
    back = np.empty_like(rows)
    for place, row in enumerate(order):
        back[row] = rows[place]
    return back


def test_the_list_of_quantisations_is_not_empty() -> None:
    assert {"Q4_0", "Q4_1", "Q8_0", "BF16", "F16", "F32"} <= {kind.name for kind in quantisations()}


# Rotary positions


def divisors(base: float, size: int, factor: float, context: int) -> np.ndarray[Any, Any]:
    """What llama.cpp's converter writes as rope_freqs.weight, frequency by frequency."""
    found = []
    for pair in range(size // 2):
        wavelength = 2 * math.pi / (1.0 / base ** (2 * pair / size))
        if wavelength < context / 4:
            found.append(1.0)
        elif wavelength > context:
            found.append(factor)
        else:
            smooth = (context / wavelength - 1) / 3
            found.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(found, dtype=np.float32)


@pytest.mark.parametrize(
    ("base", "size", "factor", "context"),
    [
        (500_000.0, 128, 8.0, 8_192),
        (500_000.0, 64, 32.0, 8_192),
        (10_000.0, 64, 4.0, 4_096),
        (500.0, 8, 8.0, 12),
    ],
)
def test_the_rule_is_read_back_from_the_frequencies(
    base: float, size: int, factor: float, context: int
) -> None:
    rule = llama3_rule(divisors(base, size, factor, context).astype(np.float64), base)
    assert (rule["factor"], rule["original_max_position_embeddings"]) == (factor, context)
    assert llama3_rule(np.ones(4), base)["rope_type"] == "default"


@pytest.mark.parametrize(
    "change",
    [lambda d: d[::-1], lambda d: d * 0.5, lambda d: np.where(d == 1, np.nan, d), lambda d: d[:0]],
)
def test_other_frequencies_are_refused(change: Any) -> None:
    with pytest.raises(ImportRefusedError, match="do not follow the rule of Llama 3.1"):
        llama3_rule(change(divisors(500_000.0, 64, 8.0, 8_192).astype(np.float64)), 500_000.0)


def test_a_file_with_frequencies_of_its_own_has_the_logits_of_transformers(tmp_path: Path) -> None:
    model = theirs("llama", GROUPED | {"rope_parameters": LLAMA3})
    extra = {"rope_freqs.weight": divisors(500.0, 8, 8.0, 12)}
    saved(model, tmp_path / "a.gguf", extra=extra)
    same_logits(opened(tmp_path / "a.gguf"), model)


def test_a_scaling_of_another_kind_is_refused_by_its_name(tmp_path: Path) -> None:
    saved(
        theirs("llama", GROUPED), tmp_path / "a.gguf", settings={"llama.rope.scaling.type": "yarn"}
    )
    with pytest.raises(ImportRefusedError, match=r"a\.gguf: rotary positions are scaled by 'yarn'"):
        opened(tmp_path / "a.gguf")


# The header


def test_the_header_is_read_as_the_library_reads_it(tmp_path: Path) -> None:
    settings = {
        "some.texts": ["a", "", "日本", "x" * 300],
        "some.numbers": [1, -2, 3],
        "some.shares": [0.5, -1.0],
        "some.flags": [True, False],
        "some.text": "é",
        "some.flag": True,
    }
    saved(theirs("llama", GROUPED), tmp_path / "a.gguf", settings=settings)
    theirs_read = gguf.GGUFReader(tmp_path / "a.gguf")
    mine = Reader(tmp_path / "a.gguf")
    for name, field in theirs_read.fields.items():
        assert mine.value(name) == field.contents(), name
    assert mine.value("no such name") is None
    assert [t.name for t in mine.tensors] == [t.name for t in theirs_read.tensors]
    for one, other in zip(mine.tensors, theirs_read.tensors, strict=True):
        assert np.array_equal(one.data, other.data)


def header(path: Path, name: str, value: Any) -> int:
    """A file with this one setting; where the setting's value begins."""
    writer = gguf.GGUFWriter(path, "llama")
    add_setting(writer, name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path.read_bytes().index(name.encode()) + len(name) + 4


@pytest.mark.parametrize(
    ("value", "place", "content", "words"),
    [
        (["abc"] * 3, 4, 2**40, "more than the file has bytes"),
        (["abc"] * 3, 12, 2**40, "cut short"),
        (["abc"] * 3, 12, 2**63, "cut short"),
        ([1, 2, 3], 4, 15, "cut short"),
    ],
)
def test_a_list_that_claims_too_much_is_refused(
    tmp_path: Path, value: Any, place: int, content: int, words: str
) -> None:
    at = header(tmp_path / "a.gguf", "some.list", value)
    data = bytearray((tmp_path / "a.gguf").read_bytes())
    data[at + place : at + place + 8] = content.to_bytes(8, "little")
    (tmp_path / "a.gguf").write_bytes(data)
    with pytest.raises(ImportRefusedError, match=rf"a\.gguf .*{words}"):
        source_at(tmp_path / "a.gguf").describe_model()


def test_a_list_of_millions_of_small_numbers_is_not_read(tmp_path: Path) -> None:
    at = header(tmp_path / "a.gguf", "some.list", [1, 2, 3])
    data = (tmp_path / "a.gguf").read_bytes()
    kind = int(gguf.GGUFValueType.UINT8).to_bytes(4, "little")
    many = kind + (4_000_001).to_bytes(8, "little") + bytes(4_000_001)
    (tmp_path / "a.gguf").write_bytes(data[:at] + many)
    with pytest.raises(ImportRefusedError, match="4,000,001 entries, and 4,000,000 are the most"):
        source_at(tmp_path / "a.gguf").describe_model()


def test_a_gguf_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    saved(theirs("llama", GROUPED), tmp_path / "a.gguf", architecture="mamba")
    with pytest.raises(ImportRefusedError, match=r"a\.gguf: its architecture is 'mamba'"):
        opened(tmp_path / "a.gguf")


@pytest.mark.parametrize("part", [0, 1])
def test_a_part_of_several_files_is_refused_as_one(part: int, tmp_path: Path) -> None:
    saved(
        theirs("llama", GROUPED), tmp_path / "a.gguf", settings={"split.no": part, "split.count": 2}
    )
    with pytest.raises(
        ImportRefusedError,
        match=rf"a\.gguf is part {part + 1} of 2 of a model: .*llama-gguf-split --merge",
    ):
        opened(tmp_path / "a.gguf")
    saved(theirs("llama", GROUPED), tmp_path / "a.gguf", settings={"split.no": 0, "split.count": 1})
    opened(tmp_path / "a.gguf")


def test_biases_that_a_llama_has_not_in_its_file_are_zero(tmp_path: Path) -> None:
    values = (
        np.random.default_rng(0)
        .normal(size=GROUPED["num_key_value_heads"] * GROUPED["head_dim"])
        .astype(np.float32)
    )
    model = theirs("llama", GROUPED)
    biased = theirs("llama", GROUPED | {"attention_bias": True})
    saved(model, tmp_path / "a.gguf", extra={"blk.1.attn_v.bias": values})
    zeros = {name: torch.zeros_like(tensor) for name, tensor in biased.state_dict().items()}
    biased.load_state_dict(
        zeros
        | model.state_dict()
        | {"model.layers.1.self_attn.v_proj.bias": torch.from_numpy(values)}
    )
    same_logits(opened(tmp_path / "a.gguf"), biased)
