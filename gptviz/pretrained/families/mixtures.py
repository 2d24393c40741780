"""Families whose MLPs are mixtures of experts: Mixtral, Qwen 2 and 3 MoE, OLMoE, Granite MoE.

Their files have the matrices of each expert by themselves, or those of all experts stacked: with
gate and up in one tensor [expert, 2 · size, d_model], and down in another, [expert, d_model, size].
Both are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor

from gptviz.model import Config

from ..given import Given, ImportRefusedError
from .base import MISMATCHED, Expert, ShapeError, Take
from .llama import Llama, Qwen2, Qwen3

_OUR_EXPERT = re.compile(r"mlp\.experts\.(\d+)\.(\w+)")
_EXPERT = re.compile(r"model\.layers\.(\d+)\..*\.experts\.(\d+)\.(\w+)\.weight")
KINDS = ("gate", "up", "down")


class Mixture(Llama):
    """What these families have in common."""

    biases: ClassVar[tuple[str, ...]] = ()
    place: ClassVar[str] = "mlp"  #: the path of the mixture in a layer
    router: ClassVar[str] = "gate"  #: the name of the router in it
    #: the names of gate, up and down of an expert
    each: ClassVar[tuple[str, str, str]] = ("gate_proj", "up_proj", "down_proj")
    #: the pairs of names, in a layer, that the tensors of all experts may have
    stacks: ClassVar[tuple[tuple[str, str], ...]] = (
        ("mlp.experts.gate_up_proj", "mlp.experts.down_proj"),
    )
    #: the fields that may have the number of experts; the first one is written
    counts: ClassVar[tuple[str, ...]] = ("num_experts", "num_local_experts")
    n_expert: ClassVar[int] = 8  #: that number if the config has none
    table: ClassVar = Llama.table | {"n_active": ("num_experts_per_tok", 2)}

    def settings(self, given: Given) -> dict[str, Any]:
        name = next(
            (name for name in self.counts if given.optional(name) is not None), self.counts[0]
        )
        count = given.our_number("n_expert", name, self.n_expert)
        return super().settings(given) | {"mlp": "experts", "n_expert": count, "mlp_bias": False}

    def fields(self, config: Config) -> dict[str, Any]:
        return super().fields(config) | {self.counts[0]: config.n_expert}

    def expert(self, name: str) -> Expert | None:
        expert = _EXPERT.fullmatch(name)
        return (
            None
            if expert is None
            else Expert(int(expert[1]), int(expert[2]), KINDS[self.each.index(expert[3])])
        )

    def names(self, part: str) -> str | tuple[str, ...]:
        if part == "mlp.router":
            return f"{self.place}.{self.router}"
        if (expert := _OUR_EXPERT.fullmatch(part)) is not None:
            return f"{self.place}.experts.{expert[1]}.{self.each[KINDS.index(expert[2])]}"
        return super().names(part)

    def tensors(self, config: Config, given: Given, take: Take) -> Iterator[tuple[str, Tensor]]:
        place = next(
            (
                place
                for place in (self.place, "mlp")
                if _has_tensor(take, f"model.layers.0.{place}.{self.router}.weight")
            ),
            None,
        )
        renamed = (
            take
            if place in (self.place, None)
            else lambda name: take(name.replace(f".{self.place}.", f".{place}."))
        )
        for names in self.stacks:
            if _has_tensor(take, f"model.layers.0.{names[0]}"):
                return super().tensors(config, given, self._of_stacks(config, renamed, names))
        return super().tensors(config, given, renamed)

    def _of_stacks(self, config: Config, take: Take, names: tuple[str, str]) -> Take:
        """`take`, with the tensors of each expert out of the stacks of these `names`."""
        held: dict[str, Tensor] = {}  # a stack is read once for all experts

        def take_one(name: str) -> Tensor:
            if (expert := self.expert(name)) is None:
                return take(name)
            stack = f"model.layers.{expert.block}.{names[expert.kind == 'down']}"
            if stack not in held:
                if len(held) > 1:
                    held.clear()
                held[stack] = take(stack)
                if held[stack].ndim != 3 or len(held[stack]) != config.n_expert:
                    raise ShapeError(
                        f"{stack} has the shape {tuple(held[stack].shape)}, not {config.n_expert} "
                        f"experts: {MISMATCHED}"
                    )
            whole = held[stack][expert.number]
            return whole if expert.kind == "down" else whole.chunk(2)[expert.kind == "up"]

        return take_one


def _has_tensor(take: Take, name: str) -> bool:
    try:
        take(name)
    except ImportRefusedError:
        return False
    return True


class Mixtral(Mixture):
    """Mixtral (Jiang et al. 2024)."""

    model_type = "mixtral"
    title = "Mixtral"
    architecture = "MixtralForCausalLM"
    base = 1e6
    place = "block_sparse_moe"
    each = ("w1", "w3", "w2")
    counts = ("num_local_experts", "num_experts")
    table: ClassVar = Mixture.table | {"norm_eps": ("rms_norm_eps", 1e-5)}

    def settings(self, given: Given) -> dict[str, Any]:
        return super().settings(given) | {
            "window": given.our_number("window", "sliding_window", needed=False),
            "expert_norm": True,
        }

    def fields(self, config: Config) -> dict[str, Any]:
        return super().fields(config) | {"sliding_window": config.window}


class _QwenMixture(Mixture):
    """What the mixtures of Qwen have in common: all blocks have experts, whose size has a name of
    its own.
    """

    table: ClassVar = Mixture.table | {"d_mlp": ("moe_intermediate_size", None)}
    without_effect: ClassVar = Qwen2.without_effect | {
        "all blocks have experts": "intermediate_size"
    }

    def settings(self, given: Given) -> dict[str, Any]:
        given.allow_only("decoder_sparse_step", 1)
        given.allow_only("mlp_only_layers", [])
        return super().settings(given) | {"expert_norm": given.switch("norm_topk_prob", False)}

    def fields(self, config: Config) -> dict[str, Any]:
        return super().fields(config) | {
            "norm_topk_prob": config.expert_norm,
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
        }


class Qwen2Moe(_QwenMixture, Qwen2):
    """Qwen 1.5 and 2 with experts (2024): one of them is shared."""

    model_type = "qwen2_moe"
    title = "Qwen 2 MoE"
    architecture = "Qwen2MoeForCausalLM"
    n_expert = 60
    parts: ClassVar = _QwenMixture.parts | {
        "mlp.shared_gate": "mlp.shared_expert_gate",
        **{f"mlp.shared.{kind}": f"mlp.shared_expert.{kind}_proj" for kind in KINDS},
    }
    table: ClassVar = _QwenMixture.table | {"n_active": ("num_experts_per_tok", 4)}

    def settings(self, given: Given) -> dict[str, Any]:
        bias = given.switch("qkv_bias", True)
        if given.optional("layer_types") is None:
            # which blocks then have a window, versions of its code see differently
            given.allow_only("use_sliding_window", False)
        shared = given.our_number("d_shared", "shared_expert_intermediate_size", 5_632)
        return super().settings(given) | {"d_shared": shared, "qkv_bias": bias}

    def fields(self, config: Config) -> dict[str, Any]:
        return super().fields(config) | {
            "shared_expert_intermediate_size": config.d_shared,
            "qkv_bias": config.qkv_bias,
        }


class Qwen3Moe(_QwenMixture, Qwen3):
    """Qwen 3 with experts (2025)."""

    model_type = "qwen3_moe"
    title = "Qwen 3 MoE"
    architecture = "Qwen3MoeForCausalLM"
    n_expert = 128
    biases = ("attention_bias",)
    table: ClassVar = _QwenMixture.table | {"n_active": ("num_experts_per_tok", 8)}

    def settings(self, given: Given) -> dict[str, Any]:
        width = given.our_number("d_model", "hidden_size") // given.our_number(
            "n_head", "num_attention_heads"
        )
        has_window = given.switch("use_sliding_window", False)
        plain = given.change_fields({"head_dim": width}, use_sliding_window=False)
        return super().settings(plain) | {
            "window": given.our_number("window", "sliding_window", 4_096) if has_window else None
        }

    def fields(self, config: Config) -> dict[str, Any]:
        return super().fields(config) | {
            "use_sliding_window": config.window is not None,
            "sliding_window": config.window,
        }


class Olmoe(Mixture):
    """OLMoE (Muennighoff et al. 2024): norms over all queries and keys of a token."""

    model_type = "olmoe"
    title = "OLMoE"
    architecture = "OlmoeForCausalLM"
    n_expert = 64
    biases = ("attention_bias",)
    table: ClassVar = Mixture.table | {
        "n_active": ("num_experts_per_tok", 8),
        "norm_eps": ("rms_norm_eps", 1e-5),
    }

    def settings(self, given: Given) -> dict[str, Any]:
        given.allow_only("clip_qkv")
        return super().settings(given) | {
            "qk_norm": "whole",
            "expert_norm": given.switch("norm_topk_prob", False),
        }

    def fields(self, config: Config) -> dict[str, Any]:
        return super().fields(config) | {"norm_topk_prob": config.expert_norm}


class GraniteMoe(Mixture):
    """Granite 3 with experts (IBM 2024): numbers that multiply the embedding, scores, sublayers and
    logits.

    What multiplies sublayers and logits is folded into their last matrices and into the gain of the
    last norm.
    """

    model_type = "granitemoe"
    title = "Granite MoE"
    architecture = "GraniteMoeForCausalLM"
    biases = ("attention_bias",)
    place = "block_sparse_moe"
    router = "router.layer"
    counts = ("num_local_experts",)
    stacks = (
        ("block_sparse_moe.input_linear.weight", "block_sparse_moe.output_linear.weight"),
        ("block_sparse_moe.experts.gate_up_proj", "block_sparse_moe.experts.down_proj"),
    )

    def settings(self, given: Given) -> dict[str, Any]:
        self._factors(given)
        return super().settings(given) | {
            "expert_norm": True,
            "embed_scale": given.our_number("embed_scale", "embedding_multiplier", 1.0),
            "score_scale": given.our_number("score_scale", "attention_multiplier", 1.0),
        }

    def _factors(self, given: Given) -> tuple[float, float]:
        """What sublayers are multiplied by, and what logits are divided by."""
        return given.number("residual_multiplier", 1.0), given.number(
            "logits_scaling", 1.0, low=1e-6
        )

    def fields(self, config: Config) -> dict[str, Any]:
        scales = {"embedding_multiplier": config.embed_scale, "attention_multiplier": config.scale}
        return super().fields(config) | scales | {"residual_multiplier": 1.0, "logits_scaling": 1.0}

    def tensors(self, config: Config, given: Given, take: Take) -> Iterator[tuple[str, Tensor]]:
        of_sublayers, of_logits = self._factors(given)
        for name, tensor in super().tensors(config, given, take):
            if (
                name.endswith(
                    (".attention.output.weight", ".attention.output.bias", ".down.weight")
                )
                and of_sublayers != 1
            ):
                yield name, tensor.float() * of_sublayers
            elif name == "head.final_norm.weight" and of_logits != 1:
                yield name, tensor.float() / of_logits
            else:
                yield name, tensor

    def stored_tensors(self, tensors: Iterator[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
        """Stacked, as the files of this family are."""
        experts: dict[int, dict[str, list[Tensor]]] = {}
        for name, tensor in tensors:
            if (expert := self.expert(name)) is None:
                yield name, tensor
            else:
                experts.setdefault(expert.block, {kind: [] for kind in KINDS})[expert.kind].append(
                    tensor
                )
        for block, each in experts.items():
            gate, up, down = (torch.stack(each[kind]) for kind in KINDS)
            for name, stack in zip(
                self.stacks[0], (torch.cat((gate, up), dim=1), down), strict=True
            ):
                yield f"model.layers.{block}.{name}", stack
