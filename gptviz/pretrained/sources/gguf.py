"""GGUF files, in which Ollama, LM Studio and llama.cpp keep models: one file with settings,
vocabulary and weights.

Matrices of the kinds in `gguf_blocks` stay as they are in the file (`gptviz.model.packed`), and
those in 2 bytes a number keep their type; the `gguf` library converts all others to float32, one
tensor at a time.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from gptviz.machine.bounded import read_regular, require_regular
from gptviz.model import Config
from gptviz.model.packed import Packed, bytes_of_number
from gptviz.model.precision import stays_packed, type_in_memory

from ..families import FAMILIES, Family, Given, ImportRefusedError
from ..families.base import MISMATCHED, ShapeError, missing_tensor
from ..given import WithoutEffect, without_place
from .gguf_blocks import KINDS, OpenFile, blocks_of
from .gguf_rotary import llama3_rule
from .gguf_tokenizer import HeaderTokens
from .source import ModelSource, Opened, Outline, fit_tokenizer
from .tensors import reading

if TYPE_CHECKING:
    from .gguf_reader import Reader

# The name of a family in `general.architecture` → its name in config.json.
ARCHITECTURES = {
    "llama": "llama",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "gpt2": "gpt2",
    "gptneox": "gpt_neox",
    "gemma3": "gemma3_text",
}
# Those with a mixture of experts; a Mixtral is called llama there.
MIXTURES = {
    "qwen2moe": "qwen2_moe",
    "qwen3moe": "qwen3_moe",
    "olmoe": "olmoe",
    "granitemoe": "granitemoe",
}
# Whether llama.cpp divides the weights of the chosen experts by their sum, which no setting says.
NORMED = {"qwen2_moe": False, "qwen3_moe": True, "olmoe": False}
# The end of a setting's name → the field of config.json with the same meaning.
SETTINGS = {
    "block_count": ("num_hidden_layers", "n_layer"),
    "context_length": ("max_position_embeddings", "n_positions"),
    "embedding_length": ("hidden_size", "n_embd"),
    "feed_forward_length": ("intermediate_size", "n_inner"),
    "attention.head_count": ("num_attention_heads", "n_head"),
    "attention.head_count_kv": ("num_key_value_heads",),
    "attention.key_length": ("head_dim",),
    "attention.layer_norm_rms_epsilon": ("rms_norm_eps",),
    "attention.layer_norm_epsilon": ("layer_norm_eps", "layer_norm_epsilon"),
    "attention.sliding_window": ("sliding_window",),
    "rope.freq_base": ("rope_theta", "rotary_emb_base"),
    "rope.freq_base_swa": ("rope_local_base_freq",),
    "use_parallel_residual": ("use_parallel_residual",),
    "expert_count": ("num_experts", "num_local_experts"),
    "expert_used_count": ("num_experts_per_tok",),
    "expert_feed_forward_length": ("moe_intermediate_size",),
    "expert_shared_feed_forward_length": ("shared_expert_intermediate_size",),
    "embedding_scale": ("embedding_multiplier",),
    "residual_scale": ("residual_multiplier",),
    "attention.scale": ("attention_multiplier",),
    "logit_scale": ("logits_scaling",),
}
# Fields of a Llama's config.json → the tensors that tell them. llama.cpp leaves out those of them
# that a file has not.
BIASES = {
    "attention_bias": ("attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias"),
    "mlp_bias": ("ffn_gate.bias", "ffn_up.bias", "ffn_down.bias"),
}
# The settings of a model that change nothing, or that are read apart.
WITHOUT_EFFECT: WithoutEffect = {
    "it is read apart from SETTINGS": """
        rope.dimension_count rope.scaling.type rope.scaling.factor attention.scale
        attention.sliding_window_pattern""",
    "the tensors say it too": "vocab_size tensor_data_layout",
    "it is about training, or all that gptviz opens has it": """
        rope.scaling.finetuned rope.scaling.original_context_length attention.causal""",
}
MAGIC = b"GGUF"
WHOLE_ALONE = "gptviz opens whole files; llama-gguf-split --merge makes one of all parts"
# Numbers of 2 bytes, as the format calls them.
SHORT = {"F16": torch.float16, "BF16": torch.bfloat16}
UNUSED = ("rope_freqs.weight", ".attn_rot_embd.weight")


class GGUF(ModelSource):
    """A `.gguf` file."""

    kind = "gguf"

    @classmethod
    def recognises_path(cls, path: Path) -> bool:
        return os.path.lexists(path) and (path.suffix.lower() == ".gguf" or _begins_as_gguf(path))

    def files(self) -> list[Path]:
        return [self.path]

    def number_bytes(
        self, numbers: int, precision: str | None, device: torch.device | str = "cpu"
    ) -> float:
        packed = stays_packed(precision, torch.device(device))
        total = 0.0
        for tensor in self._reader.tensors:
            kind = KINDS.get(tensor.tensor_type.name)
            stored = SHORT.get(tensor.tensor_type.name, torch.float32)
            total += int(tensor.n_elements) * (
                bytes_of_number(kind.bits, kind.group)
                if packed and kind is not None
                else type_in_memory(stored, precision).itemsize
            )
        return total / numbers

    @cached_property
    def _reader(self) -> Reader:
        from .gguf_reader import Reader

        with reading(self.path):
            require_regular(self.path)
            try:
                return Reader(self.path)
            except (
                IndexError,
                TypeError,
                AttributeError,
                OverflowError,
                UnicodeDecodeError,
            ) as error:
                raise ValueError(f"not a GGUF file, or cut in half: {error}") from None

    def _setting(self, name: str) -> Any:
        reader = self._reader
        with reading(self.path):
            return reader.value(name)

    def _names(self) -> list[str]:
        """The names of all settings."""
        return [*self._reader.fields]

    @cached_property
    def _header_settings(self) -> tuple[str, Given, dict[str, float]]:
        """Its family, its settings under the names of that family's config.json, and fields of our
        config that such a file may say though no config.json of the family does.
        """
        parts = self._setting("split.count")
        part = self._setting("split.no")
        # llama.cpp opens several files by the first of them
        if isinstance(parts, int) and isinstance(part, int) and parts > 1:
            raise ImportRefusedError(
                f"{self.path.name} is part {part + 1} of {parts} of a model: {WHOLE_ALONE}"
            )
        architecture = self._setting("general.architecture")
        known = ARCHITECTURES | MIXTURES
        if not isinstance(architecture, str) or architecture not in known:
            raise ImportRefusedError(
                f"{self.path.name}: its architecture is {architecture!r:.60}; of GGUF files "
                f"gptviz opens {', '.join(known)}"
            )
        has_experts = bool(self._setting(f"{architecture}.expert_count"))
        if architecture == "llama" and has_experts:
            kind = "mixtral"
        else:
            kind = known[architecture]
        fields: dict[str, Any] = {"model_type": kind, "vocab_size": self._rows("token_embd.weight")}
        for ending, names in SETTINGS.items():
            value = self._setting(f"{architecture}.{ending}")
            if value is not None:
                fields |= dict.fromkeys(names, value)
        fields["tie_word_embeddings"] = not self._has_tensor("output.weight")
        if kind == "llama":
            fields |= {field: self._has_any(ends) for field, ends in BIASES.items()}
        if kind in NORMED:
            fields["norm_topk_prob"] = NORMED[kind]
        more = self._rotary(architecture, fields)
        if kind == "gemma3_text":
            self._gemma3(fields)
        return kind, FAMILIES[kind].given_fields(fields), more

    def _number(self, name: str) -> float | None:
        """A setting that is a number, or None if there is no such setting."""
        value = self._setting(name)
        if value is not None and (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            raise ImportRefusedError(
                f"{self.path.name}: its setting {name} is {value!r:.60}; it must be a number"
            )
        return value

    def _gemma3(self, fields: dict[str, Any]) -> None:
        scale = self._number("gemma3.attention.scale")
        pattern = self._setting("gemma3.attention.sliding_window_pattern")
        fields["query_pre_attn_scalar"] = (
            1 / scale / scale if scale else fields.get("head_dim", 256)
        )
        if isinstance(pattern, list):
            fields["layer_types"] = [
                "sliding_attention" if windowed else "full_attention" for windowed in pattern
            ]
        elif pattern is not None:
            fields["sliding_window_pattern"] = pattern

    def _rotary(self, architecture: str, fields: dict[str, Any]) -> dict[str, float]:
        """Add what the header says of rotary positions to the fields of a config. Returns the field
        of our config with the share of a head's numbers that is turned, if it says so.
        """
        scaling = self._setting(f"{architecture}.rope.scaling.type")
        if scaling == "linear":
            fields["rope_scaling"] = {
                "rope_type": "linear",
                "factor": self._number(f"{architecture}.rope.scaling.factor"),
            }
        elif scaling not in (None, "none"):
            raise ImportRefusedError(
                f"{self.path.name}: rotary positions are scaled by {scaling!r:.40}; of GGUF files "
                "gptviz opens those scaled by linear"
            )
        if self._has_tensor("rope_freqs.weight"):
            divisors = self._tensor("rope_freqs.weight").double().flatten().numpy()
            base = self._number(f"{architecture}.rope.freq_base")
            try:
                fields["rope_scaling"] = llama3_rule(divisors, 10_000.0 if base is None else base)
            except ImportRefusedError as error:
                raise ImportRefusedError(f"{self.path.name}: {error}") from None
        turned = self._number(f"{architecture}.rope.dimension_count")
        size, width, heads = (
            self._number(f"{architecture}.{name}")
            for name in ("attention.key_length", "embedding_length", "attention.head_count")
        )
        # values that are missing or 0 are refused later
        size = size or (width / heads if width and heads else None)
        if turned is None or not size:
            return {}
        return {"rotary_fraction": turned / size}

    @cached_property
    def _by_name(self) -> dict[str, Any]:
        return {tensor.name: tensor for tensor in self._reader.tensors}

    def _has_tensor(self, name: str) -> bool:
        return name in self._by_name

    def _has_any(self, endings: tuple[str, ...]) -> bool:
        return any(name.endswith(endings) for name in self._by_name)

    def _rows(self, name: str) -> int:
        if not self._has_tensor(name):
            raise missing_tensor(self.path.name, name)
        return int(self._by_name[name].shape[-1])

    def outline(self) -> Outline:
        kind, given, more = self._header_settings
        own = {name: ending for ending, names in SETTINGS.items() for name in names}
        try:
            config = FAMILIES[kind].our_config(given, **more)
        except ImportRefusedError as error:
            words = re.sub(
                r"[a-z]\w*",
                lambda name: own.get(name[0], name[0]),
                str(error).removeprefix("config.json: "),
            )
            raise ImportRefusedError(f"{self.path.name}: {words}") from None
        self._refuse_unread(FAMILIES[kind], given, config)
        return Outline(FAMILIES[kind].title, config, self._setting("general.license"))

    def _refuse_unread(self, family: Family, given: Given, config: Config) -> None:
        """Refuse settings of the model that nothing has read; in such a file a 0 says that
        something is not there.
        """
        before = f"{self._setting('general.architecture')}."
        said = {
            name.removeprefix(before): self._setting(name)
            for name in self._names()
            if name.startswith(before)
        }
        fields = {name: value for name, value in said.items() if value}
        named = Given(fields, given.kind, self.path.name)
        named.allow_only("attention.value_length", config.head_size)
        named.allow_only("attention.head_count_kv", config.key_heads)
        named.allow_only("expert_gating_func", 1)  # a softmax
        known = given.read | {*" ".join(family.without_effect.values()).split()}
        named.read |= {name for name, theirs in SETTINGS.items() if known & {*theirs}}
        named.refuse_unread(WITHOUT_EFFECT)

    def describe_model(self) -> Opened:
        outline = self.outline()
        try:
            tokens = HeaderTokens(self._setting)
            tokenizer, notes = fit_tokenizer(tokens.tokenizer(), outline.config.vocab_size)
            chat = tokens.chat()
        except ValueError as error:
            raise ImportRefusedError(f"{self.path.name}: {error}") from None
        left = self._reader.unread
        if left:
            unread = [f"Its last {left:,} bytes belong to no tensor, and are not read."]
        else:
            unread = []
        kinds = sorted({tensor.tensor_type.name for tensor in self._reader.tensors})
        return Opened(
            outline.family,
            outline.config,
            tokenizer,
            (*notes, f"Its weights are stored as {', '.join(kinds)}.", *unread),
            outline.licence,
            chat,
            tokens.end_tokens(),
        )

    def parameters(self, config: Config) -> Iterator[tuple[str, Tensor]]:
        from gguf import MODEL_ARCH_NAMES, get_tensor_name_map

        kind, given, _ = self._header_settings
        known = {name: number for number, name in MODEL_ARCH_NAMES.items()}
        names = get_tensor_name_map(known[self._setting("general.architecture")], config.n_layer)
        taken: set[str] = set()

        def take(name: str) -> Tensor:
            expert = FAMILIES[kind].expert(name)
            own = names.get_name(name, try_suffixes=(".weight", ".bias")) or name
            if expert is not None:
                own = f"blk.{expert.block}.ffn_{expert.kind}_exps.weight"
            if (
                own not in self._by_name
                and kind == "llama"
                and own.endswith(sum(BIASES.values(), ()))
            ):
                return torch.zeros(self._rows(f"{own.removesuffix('.bias')}.weight"))
            if own not in self._by_name:
                raise missing_tensor(self.path.name, own)
            taken.add(own)
            if expert is not None:
                return self._of_expert(own, expert.number, config.n_expert)
            return self._undo_conversion(kind, own, self._tensor(own), config)

        yield from FAMILIES[kind].tensors(config, given, take)
        left = [name for name in sorted(self._by_name.keys() - taken) if not name.endswith(UNUSED)]
        if left:
            raise without_place(self.path.name, left, "the model as gptviz has it")

    @cached_property
    def _file(self) -> OpenFile:
        return OpenFile(self.path)

    def _tensor(self, name: str) -> Tensor:
        tensor = self._by_name[name]
        return self._numbers(name, tensor.data, int(tensor.data_offset), _shape(tensor))

    def _of_expert(self, name: str, number: int, experts: int) -> Tensor:
        """The matrix of one of the `experts` that a tensor has."""
        tensor = self._by_name[name]
        shape = _shape(tensor)
        if len(shape) != 3 or shape[0] != experts:
            raise ShapeError(
                f"{name} has the shape {shape}, and the header {experts} experts: {MISMATCHED}"
            )
        start = int(tensor.data_offset) + number * (int(tensor.n_bytes) // experts)
        return self._numbers(name, tensor.data[number], start, shape[1:])

    def _numbers(self, name: str, data: Any, start: int, shape: tuple[int, ...]) -> Tensor:
        """The numbers of this shape in some `data` of the tensor `name`, which begin at the byte
        `start` of the file.
        """
        from gguf import dequantize

        kind = self._by_name[name].tensor_type
        if (blocks := blocks_of(self._file, start, shape, kind.name)) is not None:
            return Packed([blocks])
        if kind.name in SHORT:
            return torch.from_numpy(np.array(data)).view(SHORT[kind.name]).reshape(shape)
        with reading(self.path):
            try:
                values = np.asarray(dequantize(data, kind), dtype=np.float32)
            except NotImplementedError as error:
                raise ImportRefusedError(
                    f"{self.path.name}: {name} is quantised as {kind.name}: {error}"
                ) from None
        return torch.from_numpy(values.reshape(shape).copy())

    def _undo_conversion(self, kind: str, name: str, tensor: Tensor, config: Config) -> Tensor:
        """The reverse of the changes that a converter to GGUF makes."""
        part = name.split(".")[-2]
        if part == "ffn_gate_inp_shexp":
            return tensor.reshape(1, -1)
        if kind in ("llama", "mixtral", "granitemoe") and part in ("attn_q", "attn_k"):
            heads = config.n_head if part == "attn_q" else config.key_heads
            # llama.cpp turns neighbouring numbers: i and i + d_head / 2 of each head stand next to
            # each other.
            return tensor[
                torch.arange(len(tensor)).unflatten(0, (heads, -1, 2)).transpose(1, 2).flatten()
            ]
        if kind == "gemma3_text" and name.endswith("norm.weight"):
            return tensor - 1  # GGUF stores the gain itself, the family its distance from 1
        if (
            kind == "gpt2"
            and part in ("attn_qkv", "attn_output", "ffn_up", "ffn_down")
            and tensor.ndim == 2
        ):
            return tensor.T
        if kind == "gpt_neox" and part == "attn_qkv":
            # all queries, all keys, all values
            rows = torch.arange(len(tensor)).unflatten(0, (3, config.n_head, -1))
            return tensor[rows.transpose(0, 1).flatten()]
        return tensor


def _shape(tensor: Any) -> tuple[int, ...]:
    """GGUF counts the axes from the last to the first."""
    return tuple(int(n) for n in reversed(tensor.shape))


def _begins_as_gguf(path: Path) -> bool:
    """Whether a file with another ending is a GGUF file: Ollama names its files by a hash."""
    try:
        return read_regular(path, len(MAGIC), cut=True) == MAGIC
    except OSError:
        return False
