"""Writing a model of ours as one GGUF file, which llama.cpp and the programs that are built on it
open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gptviz.model import Config
from gptviz.model.parts.positions import rotary_frequencies, turned_pairs
from gptviz.text import Tokenizer

from .families.expressing import (
    Expressed,
    NotExpressibleError,
    differences,
    express_model,
    fields_in_words,
)
from .families.mixtures import KINDS
from .sources.gguf import ARCHITECTURES, BIASES, GGUF, MIXTURES, SETTINGS
from .sources.gguf_header import header_of
from .writing import Written

# How the matrices may be written, and the bits of a number. Where 32 numbers share a scale, rows of
# another width stay in float16, as in llama.cpp.
BITS_OF_KIND = {"F16": 16.0, "Q8_0": 8.5, "Q4_0": 4.5}
# What a file calls the architecture of each family. Mixtral is a Llama with experts there.
NAMES = {theirs: ours for ours, theirs in (ARCHITECTURES | MIXTURES).items()} | {"mixtral": "llama"}
# Those whose queries and keys llama.cpp turns in pairs of neighbours.
TURNED = ("llama", "mixtral", "granitemoe")
ROUTER = "ffn_gate_inp"
ROTARY_FREQUENCIES = "rope_freqs.weight"
# llama.cpp computes both from one table of 2-byte numbers; they differ by less than 0.0005.
GELUS = ("gelu", "gelu-tanh")
# What llama.cpp computes for Gemma 3, whatever a file says.
GEMMA3_PATTERN = "wwwwwf"
GEMMA3_NEAR_BASE = 10_000.0


def as_gguf(config: Config, first: str | None = None) -> Expressed:
    """A model with this config in the form of a family that GGUF files have; if several compute the
    same, in that of the family with the title `first`. A NotExpressibleError if there is none; the
    message names what the nearest one lacks.
    """
    written = express_model(config, first, among=tuple(NAMES))
    back = _Planned(_settings(written, config), _names(written, config)).outline().config
    lacks = differences(config, back)
    if written.family.model_type == "gemma3_text":
        kinds = "".join("w" if config.has_window(block) else "f" for block in range(config.n_layer))
        usual = (GEMMA3_PATTERN * config.n_layer)[: config.n_layer]
        checked = {
            "window_pattern": kinds == usual,
            "window_rotary_base": config.window_rotary_base == GEMMA3_NEAR_BASE,
            "score_scale": abs(config.scale * config.head_size**0.5 - 1) < 1e-6,
        }
        lacks += [name for name, is_usual in checked.items() if not is_usual]
    if written.family.model_type == "gpt_neox" and config.tied:
        lacks.append("tied")
    if {config.activation, back.activation} <= set(GELUS):
        lacks = [name for name in lacks if name != "activation"]
    if lacks:
        differs = fields_in_words(config, lacks)
        raise NotExpressibleError(
            f"a GGUF file of the family {written.family.title} cannot say what differs in {differs}"
        )
    return written


class _Planned(GGUF):
    """A GGUF file that is not written yet: what its reader would make of its header."""

    def __init__(self, settings: Mapping[str, Any], tensors: Mapping[str, Tensor | None]) -> None:
        super().__init__(Path("planned.gguf"))
        self.settings = settings
        self.tensors = tensors

    def _setting(self, name: str) -> Any:
        return self.settings.get(name)

    def _names(self) -> list[str]:
        return [*self.settings]

    def _has_tensor(self, name: str) -> bool:
        return name in self.tensors

    def _has_any(self, endings: tuple[str, ...]) -> bool:
        return any(name.endswith(endings) for name in self.tensors)

    def _rows(self, name: str) -> int:
        return int(self.settings["vocabulary"])

    def _tensor(self, name: str) -> Tensor:
        tensor = self.tensors[name]
        assert tensor is not None
        return tensor


def _settings(written: Expressed, config: Config) -> dict[str, Any]:
    """The settings of the header that describe the model, and the size of its vocabulary."""
    name = NAMES[written.family.model_type]
    fields = {key: value for key, value in written.fields.items() if value is not None}
    given = {
        end: next((fields[name] for name in theirs if name in fields), None)
        for end, theirs in SETTINGS.items()
    }
    given["attention.value_length"] = given["attention.key_length"]
    if config.window is None or not any(
        config.has_window(block) for block in range(config.n_layer)
    ):
        given["attention.sliding_window"] = None
    if config.positions == "rotary":
        given["rope.dimension_count"] = 2 * turned_pairs(config)
        if config.rotary_scaling == "linear":
            given |= {
                "rope.scaling.type": "linear",
                "rope.scaling.factor": float(config.rotary_factor),
            }
    if name == "gemma3":
        given["attention.sliding_window_pattern"] = len(GEMMA3_PATTERN)
    floats = ("epsilon", "freq_base", "freq_base_swa", "factor", "scale")
    made = {
        f"{name}.{end}": float(value) if end.endswith(floats) else value
        for end, value in given.items()
        if value is not None
    }
    return {"general.architecture": name, "vocabulary": config.vocab_size, **made}


def _names(found: Expressed, config: Config) -> dict[str, Tensor | None]:
    """The tensors that the reader asks for by name before it reads any, with their values where it
    reads them then.
    """
    names: dict[str, Tensor | None] = {"token_embd.weight": None}
    if not config.tied:
        names["output.weight"] = None
    if config.positions == "rotary" and config.rotary_scaling == "llama3":
        unscaled = rotary_frequencies(replace(config, rotary_scaling="none"))
        # what is divided by: [d_head / 2]
        names[ROTARY_FREQUENCIES] = (unscaled / rotary_frequencies(config)).float()
    return names | {
        name: None for field, ends in BIASES.items() if found.fields.get(field) for name in ends
    }


def _convert_tensor(kind: str, name: str, tensor: Tensor, config: Config) -> Tensor:
    """What a converter to GGUF makes of a tensor; `GGUF._back` is its reverse."""
    part = name.split(".")[-2]
    if part == f"{ROUTER}_shexp":
        return tensor[0]
    if kind in TURNED and part in ("attn_q", "attn_k"):
        # llama.cpp turns neighbouring numbers: i and i + d_head / 2 come next to each other.
        heads = config.n_head if part == "attn_q" else config.key_heads
        return tensor.unflatten(0, (heads, 2, -1)).transpose(1, 2).flatten(0, 2)
    if kind == "gemma3_text" and name.endswith("norm.weight"):
        return tensor + 1
    if (
        kind == "gpt2"
        and part in ("attn_qkv", "attn_output", "ffn_up", "ffn_down")
        and tensor.ndim == 2
    ):
        return tensor.T
    if kind == "gpt_neox" and part == "attn_qkv":
        # all queries, all keys, all values
        return tensor.unflatten(0, (config.n_head, 3, -1)).transpose(0, 1).flatten(0, 2)
    return tensor


def check_gguf(config: Config, tokenizer: Tokenizer, family: str | None) -> None:
    """Refuse a model or a tokenizer that a GGUF file cannot hold with a `NotExpressibleError`."""
    as_gguf(config, family)
    header_of(tokenizer)


def write_gguf(model: Written, path: Path, kind: str = "F16") -> None:
    """Write a model as one GGUF file, which is new. Its matrices are kept as `kind`, a key of
    `BITS_OF_KIND`, says; norms, biases and tables of positions stay in float32.

    Raises:
        NotExpressibleError: a GGUF file cannot hold the model, its tokenizer, or one of its
            numbers.
        ValueError: there is no such kind.
        OSError: the disk is full or not writable.
    """
    import gguf

    if kind not in BITS_OF_KIND:
        raise ValueError(f"no kind {kind!r:.40} of weights; there is {', '.join(BITS_OF_KIND)}")
    written = as_gguf(model.config, model.family)
    settings = _settings(written, model.config) | header_of(model.tokenizer, model.ends, model.chat)
    writer = gguf.GGUFWriter(path, settings.pop("general.architecture"))
    settings |= {
        f"{writer.arch}.vocab_size": settings.pop("vocabulary"),
        "general.name": model.name,
    }
    if model.licence:
        settings["general.license"] = model.licence
    writer.add_file_type(gguf.LlamaFileType[f"MOSTLY_{kind}"])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    add: dict[type, Callable[[str, Any], None]] = {
        list: writer.add_array,
        bool: writer.add_bool,
        int: writer.add_uint32,
        float: writer.add_float32,
        str: writer.add_string,
    }
    for name, value in settings.items():
        add[type(value)](name, value)
    for name, tensor in _tensors(model, written):
        values = np.ascontiguousarray(tensor.detach().float().numpy())
        stored = _kind_of(name, values, kind)
        if stored != gguf.GGMLQuantizationType.F32 and float(np.abs(values).max()) > float(
            np.finfo(np.float16).max
        ):
            raise NotExpressibleError(f"{name} has numbers that are too large for float16")
        writer.add_tensor(name, gguf.quantize(values, stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _tensors(model: Written, found: Expressed) -> Iterator[tuple[str, Tensor]]:
    """The tensors of the file, by name."""
    from gguf import MODEL_ARCH_NAMES, get_tensor_name_map

    numbers = {name: number for number, name in MODEL_ARCH_NAMES.items()}
    names = get_tensor_name_map(numbers[NAMES[found.family.model_type]], model.config.n_layer)
    experts: dict[str, list[Tensor]] = {kind: [] for kind in KINDS}
    for theirs, tensor in found.split_experts(model.weights):
        # those of a block stand in one tensor
        if (expert := found.family.expert(theirs)) is not None:
            experts[expert.kind].append(tensor)
            if len(experts[expert.kind]) == model.config.n_expert:
                yield (
                    f"blk.{expert.block}.ffn_{expert.kind}_exps.weight",
                    torch.stack(experts[expert.kind]),
                )
                experts[expert.kind].clear()
            continue
        name = names.get_name(theirs, try_suffixes=(".weight", ".bias"))
        if name is None:
            raise NotExpressibleError(
                f"a GGUF file of the family {found.family.title} has no place for {theirs}"
            )
        yield name, _convert_tensor(found.family.model_type, name, tensor, model.config)
    if (divisors := _names(found, model.config).get(ROTARY_FREQUENCIES)) is not None:
        yield ROTARY_FREQUENCIES, divisors


def _kind_of(name: str, values: np.ndarray[Any, Any], kind: str) -> Any:
    """How a tensor is stored: its GGML type."""
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    if values.ndim < 2 or name.startswith("position_embd") or ROUTER in name:
        return GGMLQuantizationType.F32
    chosen = GGMLQuantizationType[kind]
    if values.shape[-1] % GGML_QUANT_SIZES[chosen][0] == 0:
        return chosen
    return GGMLQuantizationType.F16
