"""Llama and the families with its RMSNorm, rotary positions and gated MLP: Mistral, Qwen, Gemma,
OLMo 2.
"""

from __future__ import annotations

from typing import Any, ClassVar

from gptviz.model import Config

from ..given import Given, ImportRefusedError
from .base import (
    Family,
    activation_name,
    layer_types,
    rotary,
    rotary_fields,
    window_pattern,
)


class Llama(Family):
    """Llama 1 to 3 (Touvron et al. 2023; Grattafiori et al. 2024), SmolLM, TinyLlama."""

    model_type = "llama"
    title = "Llama"
    architecture = "LlamaForCausalLM"
    parts: ClassVar = {
        "embed": "model.embed_tokens",
        "attention_residual.norm": "input_layernorm",
        "attention.qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        "attention.qk_norm.q": "self_attn.q_norm",
        "attention.qk_norm.k": "self_attn.k_norm",
        "attention.output": "self_attn.o_proj",
        "mlp_residual.norm": "post_attention_layernorm",
        **{f"mlp.{kind}": f"mlp.{kind}_proj" for kind in ("gate", "up", "down")},
        "head.final_norm": "model.norm",
        "head.unembed": "lm_head",
    }
    base: ClassVar[float] = 10_000.0  #: the base of rotary positions if the config has none
    #: the switches for biases that the family has; other switches in a config have no effect
    biases: ClassVar[tuple[str, ...]] = ("attention_bias", "mlp_bias")
    without_effect: ClassVar = {"it has no such biases": "attention_bias mlp_bias"}
    table: ClassVar = {
        "vocab_size": ("vocab_size", None),
        "context_length": ("max_position_embeddings", 2_048),
        "d_model": ("hidden_size", None),
        "n_layer": ("num_hidden_layers", None),
        "n_head": ("num_attention_heads", None),
        "d_mlp": ("intermediate_size", None),
        "norm_eps": ("rms_norm_eps", 1e-6),
        "activation": ("hidden_act", "silu"),
        "tied": ("tie_word_embeddings", False),
    }

    def config(self, given: Given) -> Config:
        return Config(**self.settings(given))

    def settings(self, given: Given) -> dict[str, Any]:
        """The fields of our config; families that differ change some of them."""
        given.allow_only("pretraining_tp", 1)
        read = self.read_config(given)
        heads = read["n_head"]
        keys = given.our_number("n_kv_head", "num_key_value_heads", needed=False)
        size = given.our_number("d_head", "head_dim", needed=False)
        has_bias = {name: given.switch(name, False) for name in self.biases}
        bias = has_bias.get("attention_bias", False)
        return {
            **read,
            "n_kv_head": None if keys in (None, heads) else keys,
            "d_head": size if size is not None else read["d_model"] // heads,
            "norm": "rmsnorm",
            "positions": "rotary",
            "mlp": "gated",
            "qkv_bias": bias,
            "output_bias": bias,
            "mlp_bias": has_bias.get("mlp_bias", False),
            **rotary(given, base=self.base),
        }

    def fields(self, config: Config) -> dict[str, Any]:
        biases = {
            "attention_bias": config.qkv_bias or config.output_bias,
            "mlp_bias": config.mlp_bias,
        }
        return self.write_config(config) | {
            "num_key_value_heads": config.key_heads,
            "head_dim": config.head_size,
            **{name: biases[name] for name in self.biases},
            **rotary_fields(config),
        }


class Mistral(Llama):
    """Mistral (Jiang et al. 2023): all blocks may see only a window."""

    model_type = "mistral"
    title = "Mistral"
    architecture = "MistralForCausalLM"
    biases = ()

    def settings(self, given: Given) -> dict[str, Any]:
        return super().settings(given) | {
            "window": given.our_number("window", "sliding_window", needed=False)
        }

    def fields(self, config: Config) -> dict[str, Any]:
        return super().fields(config) | {"sliding_window": config.window}


def chosen_windows(given: Given) -> dict[str, Any]:
    """The window of families that have one if `use_sliding_window` is true."""
    if not given.switch("use_sliding_window", False):
        return {}
    kinds = given.optional("layer_types")
    if kinds is None:
        first = given.whole_number("max_window_layers", 28)
        kinds = [
            "sliding_attention" if i >= first else "full_attention"
            for i in range(given.our_number("n_layer", "num_hidden_layers"))
        ]
    if not isinstance(kinds, list) or "sliding_attention" not in kinds:
        return {}
    return {
        "window": given.our_number("window", "sliding_window"),
        "window_pattern": window_pattern(kinds, "sliding_attention", "full_attention"),
    }


def fields_of_windows(config: Config) -> dict[str, Any]:
    """The inverse of `chosen_windows`."""
    if not any(config.has_window(block) for block in range(config.n_layer)):
        return {"use_sliding_window": False}
    kinds = layer_types(config, "sliding_attention", "full_attention")
    return {
        "use_sliding_window": True,
        "sliding_window": config.window,
        "layer_types": kinds,
        "max_window_layers": kinds.index("sliding_attention"),
    }


class Qwen2(Llama):
    """Qwen 2 and 2.5 (Yang et al. 2024): queries, keys and values have biases."""

    model_type = "qwen2"
    title = "Qwen 2"
    architecture = "Qwen2ForCausalLM"
    without_effect: ClassVar = Llama.without_effect | {
        "use_sliding_window is false": "sliding_window max_window_layers layer_types"
    }
    biases: ClassVar[tuple[str, ...]] = ()

    def settings(self, given: Given) -> dict[str, Any]:
        return (
            super().settings(given)
            | {"qkv_bias": True, "output_bias": False}
            | chosen_windows(given)
        )

    def fields(self, config: Config) -> dict[str, Any]:
        return super().fields(config) | fields_of_windows(config)


class Qwen3(Llama):
    """Qwen 3 (2025): queries and keys are normalised per head."""

    model_type = "qwen3"
    title = "Qwen 3"
    architecture = "Qwen3ForCausalLM"
    without_effect = Qwen2.without_effect
    biases = ("attention_bias",)

    def settings(self, given: Given) -> dict[str, Any]:
        size = given.our_number("d_head", "head_dim", needed=False) or 128
        return (
            super().settings(given)
            | {"qk_norm": "separate", "d_head": size}
            | chosen_windows(given)
        )

    def fields(self, config: Config) -> dict[str, Any]:
        return super().fields(config) | fields_of_windows(config)


class Gemma(Llama):
    """Gemma (2024): the embedding is multiplied by √d_model, and gains are stored as their distance
    from 1.
    """

    model_type = "gemma"
    title = "Gemma"
    plus_one = True
    architecture = "GemmaForCausalLM"
    biases = ("attention_bias",)
    names_activation: ClassVar[str] = "hidden_act"  #: the field that `transformers` reads
    without_effect: ClassVar = Llama.without_effect | {
        "only Gemma 2 and 3 read it": "hidden_activation"
    }

    def settings(self, given: Given) -> dict[str, Any]:
        named = given.optional(self.names_activation) or "gelu_pytorch_tanh"
        # what the first files called "gelu" is not exact
        if self.names_activation == "hidden_act" and named == "gelu":
            named = "gelu_pytorch_tanh"
        changed = given.change_fields({"head_dim": 256}, hidden_act=named)
        changed.allow_only("use_bidirectional_attention", False)
        settings = super().settings(changed)
        return settings | {
            "embed_scale": settings["d_model"] ** 0.5,
            "tied": given.switch("tie_word_embeddings", True),
        }

    def fields(self, config: Config) -> dict[str, Any]:
        return super().fields(config) | {"hidden_activation": activation_name(config)}


class Gemma2(Gemma):
    """Gemma 2 (2024): norms before and after each sublayer, windows in every other block, soft
    caps.
    """

    model_type = "gemma2"
    title = "Gemma 2"
    architecture = "Gemma2ForCausalLM"
    names_activation = "hidden_activation"
    parts: ClassVar = Gemma.parts | {
        "attention_residual.norm_after": "post_attention_layernorm",
        "mlp_residual.norm": "pre_feedforward_layernorm",
        "mlp_residual.norm_after": "post_feedforward_layernorm",
    }
    usual_caps: ClassVar[tuple[float | None, float | None]] = (50.0, 30.0)

    def settings(self, given: Given) -> dict[str, Any]:
        blocks = given.our_number("n_layer", "num_hidden_layers")
        kinds = given.optional("layer_types") or self.kinds(given, blocks)
        scores, logits = self.usual_caps
        return super().settings(given) | {
            "residual": "double-norm",
            "window": given.our_number("window", "sliding_window", 4_096),
            "window_pattern": window_pattern(kinds, "sliding_attention", "full_attention"),
            "score_scale": given.number("query_pre_attn_scalar", 256, low=1e-6) ** -0.5,
            "score_cap": given.our_number(
                "score_cap", "attn_logit_softcapping", scores, needed=False
            ),
            "logit_cap": given.our_number(
                "logit_cap", "final_logit_softcapping", logits, needed=False
            ),
        }

    def kinds(self, given: Given, blocks: int) -> list[str]:
        """The kind of each block if the config does not list them."""
        return ["full_attention" if index % 2 else "sliding_attention" for index in range(blocks)]

    def fields(self, config: Config) -> dict[str, Any]:
        return super().fields(config) | {
            "sliding_window": config.window or config.context_length,
            "layer_types": layer_types(config, "sliding_attention", "full_attention"),
            "query_pre_attn_scalar": round(config.scale**-2),
            "attn_logit_softcapping": config.score_cap,
            "final_logit_softcapping": config.logit_cap,
        }


class Gemma3(Gemma2):
    """Gemma 3, the part that reads text (2025): five of six blocks see a window, and have a
    different rotary base.
    """

    model_type = "gemma3_text"
    title = "Gemma 3"
    architecture = "Gemma3ForCausalLM"
    usual_caps = (None, None)

    def settings(self, given: Given) -> dict[str, Any]:
        tables = given.inner_table("rope_parameters")
        if not tables.fields:
            near = given.our_number("window_rotary_base", "rope_local_base_freq", 10_000)
            far = rotary(given, base=1e6)
        else:
            for name in ("sliding_attention", "full_attention"):
                if name not in tables.fields:
                    raise ImportRefusedError(
                        f"config.json: rope_parameters has no table {name}, which a {self.title} "
                        "model needs"
                    )
            windowed = tables.inner_table("sliding_attention")
            windowed.allow_only("rope_type", "default")
            windowed.allow_only("type", "default")
            near = rotary(given, windowed.fields)["rotary_base"]
            # a field of older files changes the newer ones
            whole = tables.table("full_attention") | given.table("rope_scaling")
            far = rotary(given, whole, base=1e6)
            tables.refuse_unread()
        plain = given.change_fields(rope_parameters=None, rope_scaling=None)
        return (
            super().settings(plain)
            | far
            # `transformers` reads a cap on scores, and does not use it
            | {"window_rotary_base": float(near), "qk_norm": "separate", "score_cap": None}
        )

    def kinds(self, given: Given, blocks: int) -> list[str]:
        every = given.whole_number("sliding_window_pattern", 6, low=1)
        return [
            "sliding_attention" if (index + 1) % every else "full_attention"
            for index in range(blocks)
        ]

    def fields(self, config: Config) -> dict[str, Any]:
        return super().fields(config) | {
            "rope_local_base_freq": config.window_rotary_base or config.rotary_base
        }


class Olmo2(Llama):
    """OLMo 2 (2024): norms on what sublayers add, and over all queries and keys of a token."""

    model_type = "olmo2"
    title = "OLMo 2"
    architecture = "Olmo2ForCausalLM"
    biases = ("attention_bias",)
    parts: ClassVar = Llama.parts | {
        "attention_residual.norm": "post_attention_layernorm",
        "mlp_residual.norm": "post_feedforward_layernorm",
    }

    def settings(self, given: Given) -> dict[str, Any]:
        settings = super().settings(given.change_fields({"rms_norm_eps": 1e-5}))
        return settings | {"residual": "branch-norm", "qk_norm": "whole"}
