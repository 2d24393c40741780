"""Families with attention and MLP side by side: GPT-NeoX (Pythia), GPT-J, Phi."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from gptviz.model import Config

from .base import Family, Given, Take, by_head, in_order, linear, norm, rotary, rotary_rows


class GPTNeoX(Family):
    """GPT-NeoX (Black et al. 2022) and Pythia (Biderman et al. 2023): rotary positions on a quarter of each head."""

    model_type, title = "gpt_neox", "GPT-NeoX"

    def config(self, given: Given) -> Config:
        turning = rotary(given)
        if given.optional("rope_parameters") is None:
            turning["rotary_base"] = given.number("rotary_emb_base", 10_000)
            turning["rotary_fraction"] = given.number("rotary_pct", 0.25)
        bias = given.switch("attention_bias", True)
        return Config(
            vocab_size=given.whole("vocab_size", 50_432),
            context_length=given.whole("max_position_embeddings", 2_048),
            d_model=given.whole("hidden_size", 6_144),
            n_layer=given.whole("num_hidden_layers", 44),
            n_head=given.whole("num_attention_heads", 64),
            d_mlp=given.whole("intermediate_size", 24_576),
            residual="parallel" if given.switch("use_parallel_residual", True) else "pre-norm",
            norm_eps=given.number("layer_norm_eps", 1e-5),
            activation=given.activation("hidden_act", "gelu"),
            positions="rotary",
            qkv_bias=bias,
            output_bias=bias,
            tied=given.switch("tie_word_embeddings", False),
            **turning,
        )

    def tensors(self, config: Config, given: Given, take: Take) -> Iterator[tuple[str, Tensor]]:
        yield "embed.weight", take("gpt_neox.embed_in.weight")
        order = rotary_rows(config)
        for index in range(config.n_layer):
            ours, theirs = f"blocks.{index}", f"gpt_neox.layers.{index}"
            yield from norm(f"{ours}.attention_residual.norm", f"{theirs}.input_layernorm", take, bias=True)
            for kind in ("weight", "bias") if config.qkv_bias else ("weight",):
                qkv = by_head(take(f"{theirs}.attention.query_key_value.{kind}"), config.n_head)
                yield f"{ours}.attention.qkv.{kind}", in_order(qkv, config, 2 * config.n_head, order)
            yield from linear(f"{ours}.attention.output", f"{theirs}.attention.dense", take, bias=config.output_bias)
            yield from norm(f"{ours}.mlp_residual.norm", f"{theirs}.post_attention_layernorm", take, bias=True)
            yield from linear(f"{ours}.mlp.up", f"{theirs}.mlp.dense_h_to_4h", take, bias=True)
            yield from linear(f"{ours}.mlp.down", f"{theirs}.mlp.dense_4h_to_h", take, bias=True)
        yield from norm("head.final_norm", "gpt_neox.final_layer_norm", take, bias=True)
        if not config.tied:
            yield "head.unembed.weight", take("embed_out.weight")


class GPTJ(Family):
    """GPT-J (Wang & Komatsuzaki 2021): one norm for attention and MLP, rotary positions turn neighbouring numbers."""

    model_type, title = "gptj", "GPT-J"

    def config(self, given: Given) -> Config:
        width, heads = given.whole("n_embd", 4_096), given.whole("n_head", 16)
        tied = given.switch("tie_word_embeddings", False)
        given.only("tie_word_embeddings", False)  # its unembedding has a bias, which a tied one has not
        return Config(
            vocab_size=given.whole("vocab_size", 50_400),
            context_length=given.whole("n_positions", 2_048),
            d_model=width,
            n_layer=given.whole("n_layer", 28),
            n_head=heads,
            d_mlp=given.optional("n_inner") or 4 * width,
            residual="parallel-one-norm",
            norm_eps=given.number("layer_norm_epsilon", 1e-5),
            activation=given.activation("activation_function", "gelu_new"),
            positions="rotary",
            rotary_fraction=given.whole("rotary_dim", 64) / (width // heads),
            qkv_bias=False,
            output_bias=False,
            unembed_bias=True,
            tied=tied,
        )

    def tensors(self, config: Config, given: Given, take: Take) -> Iterator[tuple[str, Tensor]]:
        yield "embed.weight", take("transformer.wte.weight")
        order = rotary_rows(config, neighbours=True)
        for index in range(config.n_layer):
            ours, theirs = f"blocks.{index}", f"transformer.h.{index}"
            qkv = torch.cat([take(f"{theirs}.attn.{one}_proj.weight") for one in "qkv"])
            yield from norm(f"{ours}.attention_residual.norm", f"{theirs}.ln_1", take, bias=True)
            yield f"{ours}.attention.qkv.weight", in_order(qkv, config, 2 * config.n_head, order)
            yield from linear(f"{ours}.attention.output", f"{theirs}.attn.out_proj", take, bias=False)
            yield from linear(f"{ours}.mlp.up", f"{theirs}.mlp.fc_in", take, bias=True)
            yield from linear(f"{ours}.mlp.down", f"{theirs}.mlp.fc_out", take, bias=True)
        yield from norm("head.final_norm", "transformer.ln_f", take, bias=True)
        yield from linear("head.unembed", "lm_head", take, bias=True)


class Phi(Family):
    """Phi 1 to 2 (Li et al. 2023): one norm for attention and MLP, rotary positions on a part of each head."""

    model_type, title = "phi", "Phi"

    def config(self, given: Given) -> Config:
        given.only("qk_layernorm", False)
        given.only("tie_word_embeddings", False)
        heads = given.whole("num_attention_heads", 32)
        keys = given.optional("num_key_value_heads")
        turning = rotary(given)
        if given.optional("rope_parameters") is None:
            turning["rotary_fraction"] = given.number("partial_rotary_factor", 0.5)
        return Config(
            vocab_size=given.whole("vocab_size", 51_200),
            context_length=given.whole("max_position_embeddings", 2_048),
            d_model=given.whole("hidden_size", 2_048),
            n_layer=given.whole("num_hidden_layers", 24),
            n_head=heads,
            n_kv_head=None if keys in (None, heads) else keys,
            d_mlp=given.whole("intermediate_size", 8_192),
            residual="parallel-one-norm",
            norm_eps=given.number("layer_norm_eps", 1e-5),
            activation=given.activation("hidden_act", "gelu_new"),
            positions="rotary",
            unembed_bias=True,
            **turning,
        )

    def tensors(self, config: Config, given: Given, take: Take) -> Iterator[tuple[str, Tensor]]:
        yield "embed.weight", take("model.embed_tokens.weight")
        order = rotary_rows(config)
        for index in range(config.n_layer):
            ours, theirs = f"blocks.{index}", f"model.layers.{index}"
            yield from norm(f"{ours}.attention_residual.norm", f"{theirs}.input_layernorm", take, bias=True)
            for kind in ("weight", "bias"):
                qkv = torch.cat([take(f"{theirs}.self_attn.{one}_proj.{kind}") for one in "qkv"])
                yield f"{ours}.attention.qkv.{kind}", in_order(qkv, config, config.n_head + config.key_heads, order)
            yield from linear(f"{ours}.attention.output", f"{theirs}.self_attn.dense", take, bias=True)
            yield from linear(f"{ours}.mlp.up", f"{theirs}.mlp.fc1", take, bias=True)
            yield from linear(f"{ours}.mlp.down", f"{theirs}.mlp.fc2", take, bias=True)
        yield from norm("head.final_norm", "model.final_layernorm", take, bias=True)
        yield from linear("head.unembed", "lm_head", take, bias=True)
