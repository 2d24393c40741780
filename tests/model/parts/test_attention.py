"""Attention against loops over batch, head, query and key in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from gptviz.model import Config, Edit, Record
from gptviz.model.parts.attention import Attention
from gptviz.model.parts.norms import LayerNorm
from tests.tiny import scrambled, some_ids, tiny

Floats = NDArray[np.float64]


def normed(x: Floats, part: torch.nn.Module) -> Floats:
    """LayerNorm or RMSNorm of one vector, by its formula."""
    if isinstance(part, torch.nn.Identity):
        return x
    if isinstance(part, LayerNorm):
        mean = sum(x) / len(x)
        scaled = (x - mean) / math.sqrt(sum((x - mean) ** 2) / len(x) + 1e-5)
    else:
        scaled = x / math.sqrt(sum(x**2) / len(x) + 1e-6)
    weights = {name: parameter.detach().numpy() for name, parameter in part.named_parameters()}
    return scaled * weights.get("weight", 1.0) + weights.get("bias", 0.0)


def turned(x: Floats, position: int) -> Floats:
    """Each pair (i, i + half) turned by position / 10000^(2i / d), written with complex numbers."""
    half = len(x) // 2
    pairs = x[:half] + 1j * x[half:]
    angles = np.array([position * 10_000 ** (-2 * i / len(x)) for i in range(half)])
    rotated = pairs * np.exp(1j * angles)
    return np.concatenate((rotated.real, rotated.imag))


# The paper's slopes for three heads: two from two heads, then the first of four.
ALIBI_OF_3 = [2**-4, 2**-8, 2**-2]


def by_loops(attention: Attention, config: Config, x: Floats) -> tuple[Floats, Floats, Floats]:
    """Scores and pattern [B, H, T, T], and what attention adds to the stream [B, T, d_model]."""
    d = config.head_size
    h_count = config.n_head
    weight = attention.qkv.weight.detach().numpy()
    bias = attention.qkv.bias.detach().numpy() if config.qkv_bias else np.zeros(len(weight))
    out_weight = attention.output.weight.detach().numpy()
    batch, length = x.shape[:2]
    scores = np.full((batch, h_count, length, length), -np.inf)
    pattern = np.zeros_like(scores)
    out = np.zeros_like(x)
    for b in range(batch):
        for h in range(h_count):
            q, k, v = (
                [weight[rows] @ x[b, t] + bias[rows] for t in range(length)]
                for rows in (
                    slice((part * h_count + h) * d, (part * h_count + h + 1) * d)
                    for part in range(3)
                )
            )
            q, k = ([normed(one, attention.qk_norm) for one in many] for many in (q, k))
            if config.positions == "rotary":
                q, k = ([turned(one, t) for t, one in enumerate(many)] for many in (q, k))
            for t in range(length):
                for s in range(length):
                    score = q[t] @ k[s]
                    if config.positions == "relative":
                        table = attention.positions.table.detach().numpy()
                        score += q[t] @ table[h, :, t - s + config.context_length - 1]
                    score /= math.sqrt(d)
                    if config.positions == "alibi":
                        score -= ALIBI_OF_3[h] * abs(t - s)
                    scores[b, h, t, s] = score
                seen = [s for s in range(length) if config.mask == "full" or s <= t]
                weights = {s: math.exp(scores[b, h, t, s]) for s in seen}
                for s in seen:
                    pattern[b, h, t, s] = weights[s] / sum(weights.values())
                z = sum(pattern[b, h, t, s] * v[s] for s in seen)
                out[b, t] += out_weight[:, h * d : (h + 1) * d] @ z
    return (
        scores,
        pattern,
        out + (attention.output.bias.detach().numpy() if config.output_bias else 0.0),
    )


@pytest.mark.parametrize("positions", ["none", "learned", "rotary", "relative", "alibi"])
@pytest.mark.parametrize("mask", ["causal", "full"])
@pytest.mark.parametrize("norm", [None, "layernorm", "rmsnorm"])
def test_attention_is_what_loops_over_heads_queries_and_keys_compute(
    positions: str, mask: str, norm: str | None
) -> None:
    biases = norm is None
    config = tiny(
        n_layer=1,
        residual="plain",
        positions=positions,
        mask=mask,
        qk_norm=norm is not None,
        norm=norm or "layernorm",
        d_head=6,
        qkv_bias=biases,
        output_bias=biases,
    )
    model = scrambled(config).double()
    record = Record()
    model(some_ids(5), tap=record)
    x = record.values["blocks.0.resid_pre"].detach().numpy()
    scores, pattern, out = by_loops(model.blocks[0].attention, config, x)
    for name, expected in (("scores", scores), ("pattern", pattern), ("out", out)):
        got = record.values[f"blocks.0.attention.{name}"].detach().numpy()
        # Rotary angles are kept in float32.
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6, err_msg=name)


def test_a_head_without_z_is_a_head_without_its_part_of_the_output_projection() -> None:
    model = scrambled(tiny())
    ablated = scrambled(tiny())
    d = model.config.head_size
    for head in range(3):

        def without(z: torch.Tensor, head: int = head) -> torch.Tensor:
            return z.index_fill(1, torch.tensor([head]), 0.0)

        edited = model(some_ids(), tap=Edit({"blocks.1.attention.z": without}))
        weight = ablated.blocks[1].attention.output.weight
        with torch.no_grad():
            kept = weight.clone()
            weight[:, head * d : (head + 1) * d] = 0.0
            assert torch.equal(edited, ablated(some_ids()))
            assert not torch.equal(edited, model(some_ids()))
            weight.copy_(kept)
