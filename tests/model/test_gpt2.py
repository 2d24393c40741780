"""GPT-2: the logits of another library's implementation, from the same weights."""

from __future__ import annotations

import pytest
import torch

from gptviz.model import PRESETS, Config, build
from tests.tiny import some_ids

# Theirs → ours; they store matrices as [in, out].
PARTS = {
    "ln_1": "attention_residual.norm",
    "attn.c_attn": "attention.qkv",
    "attn.c_proj": "attention.output",
    "ln_2": "mlp_residual.norm",
    "mlp.c_fc": "mlp.up",
    "mlp.c_proj": "mlp.down",
}


def ours(theirs: dict[str, torch.Tensor], n_layer: int) -> dict[str, torch.Tensor]:
    """The weights of `transformers`' GPT2LMHeadModel under the names of our parts."""
    weights = {
        "embed.weight": theirs["transformer.wte.weight"],
        "positions.table.weight": theirs["transformer.wpe.weight"],
        "head.final_norm.weight": theirs["transformer.ln_f.weight"],
        "head.final_norm.bias": theirs["transformer.ln_f.bias"],
        "head.unembed.weight": theirs["lm_head.weight"],
    }
    for index in range(n_layer):
        for their_name, our_name in PARTS.items():
            weight = theirs[f"transformer.h.{index}.{their_name}.weight"]
            weights[f"blocks.{index}.{our_name}.weight"] = weight.T if weight.dim() == 2 else weight
            weights[f"blocks.{index}.{our_name}.bias"] = theirs[f"transformer.h.{index}.{their_name}.bias"]
    return weights


def test_our_gpt2_computes_the_logits_of_transformers_gpt2() -> None:
    transformers = pytest.importorskip("transformers")
    shape = {"vocab_size": 31, "n_layer": 3, "n_head": 2}
    theirs = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(n_embd=24, n_positions=16, attn_implementation="eager", **shape)
    ).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(0.0, 0.3, generator=generator)
    gpt2 = PRESETS["gpt2"].to_dict() | {"d_head": None, "d_mlp": None}
    model = build(Config.from_dict(gpt2 | shape | {"d_model": 24, "context_length": 16})).eval()
    model.load_state_dict(ours(theirs.state_dict(), 3))
    ids = some_ids(16, vocab=31)
    with torch.inference_mode():
        torch.testing.assert_close(model(ids), theirs(ids).logits, rtol=1e-4, atol=1e-4)
