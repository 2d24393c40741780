"""What is computed in the few numbers of a head, against the whole matrices [d_model, d_model] and
[vocab_size, vocab_size].
"""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from gptviz.interp.units.head_weights import HeadInput, by_chance, composition, copying, matrices
from gptviz.model import Config, Transformer
from gptviz.model.parts.residuals import RESIDUALS
from tests import hand_built
from tests.tiny import families, scrambled, tiny


def whole_matrices(model: Transformer, block: int, head: int) -> tuple[Tensor, Tensor]:
    """W_QK and W_OV of a head, [d_model, d_model] each."""
    of = matrices(model, block)
    return of.query[head].T @ of.key[head], of.output[head] @ of.value[head]


@settings(max_examples=25)
@given(families(d_mlp=20, final_norm=True))
def test_a_head_reads_and_writes_as_the_model_does_where_a_norm_is_its_linear_part(
    config: Config,
) -> None:
    """A norm of a vector is its linear part but for the vector's size: so values are, with a bias
    taken away.
    """
    if not config.n_layer:
        return
    model = scrambled(replace(config, norm_bias=False, qkv_bias=False, output_bias=False))
    block = model.blocks[0]
    x = torch.randn(1, 1, config.d_model, generator=torch.Generator().manual_seed(0))
    seen: dict[str, Tensor] = {}

    def sublayer(read: Tensor) -> Tensor:
        # [n_kv_head, d_head]
        seen["v"] = block.attention.heads(block.attention.qkv(read))[0, -config.key_heads :, 0]
        return block.attention.output(
            torch.cat([*seen["v"].repeat_interleave(config.n_head // config.key_heads, 0)])[
                None, None
            ]
        )

    residual = block.attention_residual
    added = residual.branch(x, sublayer) if hasattr(residual, "branch") else residual(x, sublayer)
    of = matrices(model, 0)
    value = of.value @ x[0, 0]  # [n_head, d_head]
    expected = seen["v"].repeat_interleave(config.n_head // config.key_heads, 0)
    assert torch.nn.functional.cosine_similarity(value.flatten(), expected.flatten(), dim=0) > 0.999
    if "post" in config.residual:
        return  # the sum is normed, not what the head adds
    steps = RESIDUALS[config.residual].steps
    if "add" in steps and not hasattr(residual, "branch"):
        added = added - x
    written = torch.einsum("hde,he->d", of.output, expected)
    assert torch.nn.functional.cosine_similarity(written, added[0, 0], dim=0) > 0.999


@settings(max_examples=15)
@given(families(head="unembed", n_label=0))
def test_copying_is_that_of_the_whole_matrix_of_the_vocabulary(config: Config) -> None:
    model = scrambled(config)
    tokens = model.embed.weight.detach().double()
    guesses = model.head.unembed.weight.detach().double()
    guesses = guesses - guesses.mean(0)
    if model.embed_norm is not None:
        tokens = linear_part(model.embed_norm, tokens)
    found = copying(model)
    assert found.shape == (config.n_layer, config.n_head)
    for block in range(config.n_layer):
        for head in range(config.n_head):
            # [vocab_size, d_model]
            written = tokens @ whole_matrices(model, block, head)[1].double().T
            if model.head.final_norm is not None:
                written = linear_part(model.head.final_norm, written)
            values = torch.linalg.eigvals(written @ guesses.T)
            expected = float(values.real.sum() / values.abs().sum())
            assert found[block, head] == pytest.approx(expected, abs=2e-4)
            assert -1 <= expected <= 1


def linear_part(norm: torch.nn.Module, rows: Tensor) -> Tensor:
    """What a norm does to `rows` [n, d_model] but for their size and its bias: through its matrix,
    column by column.
    """
    gain = torch.ones(rows.shape[1]) if norm.weight is None else norm.weight.detach()
    away = (
        torch.full((rows.shape[1],) * 2, 1 / rows.shape[1])
        if type(norm).__name__ == "LayerNorm"
        else 0
    )
    return rows @ (torch.diag(gain) @ (torch.eye(rows.shape[1]) - away)).double().T


def test_a_head_that_says_what_it_reads_copies_and_its_opposite_does_the_contrary() -> None:
    model = hand_built.hand_built(
        (
            hand_built.copy(),
            hand_built.copy(-1.0),
            hand_built.nothing(),
            hand_built.previous_token(),
        )
    )
    copies, opposite, nothing, elsewhere = copying(model)[0]
    assert copies == pytest.approx(1)
    assert opposite == pytest.approx(-1)
    assert np.isnan(nothing), "it writes nothing"
    assert np.isnan(elsewhere), "the unembedding does not read what it writes"


@settings(max_examples=15)
@given(families())
def test_composition_is_that_of_the_whole_matrices(config: Config) -> None:
    model = scrambled(replace(config, n_layer=3))
    readers = {"key": lambda qk, ov: qk, "query": lambda qk, ov: qk.T, "value": lambda qk, ov: ov}
    adds = "add" in RESIDUALS[config.residual].steps
    for reads in get_args(HeadInput):
        found = composition(model, reads).values.reshape(3, config.n_head, 3, config.n_head)
        for later, h, earlier, g in np.ndindex(found.shape):
            reaches = later > earlier if adds else later == earlier + 1 and config.d_mlp == 0
            assert np.isnan(found[later, h, earlier, g]) != reaches
            if reaches and g == 0:
                reader = readers[reads](*whole_matrices(model, later, h))
                writer = whole_matrices(model, earlier, g)[1]
                expected = float((reader @ writer).norm() / (reader.norm() * writer.norm()))
                assert found[later, h, earlier, g] == pytest.approx(expected, rel=1e-3)


def test_a_writer_that_is_turned_at_random_composes_by_chance() -> None:
    model = scrambled(tiny(n_layer=2, n_head=1, d_head=4, residual="plain"))
    reader = whole_matrices(model, 1, 0)[0]
    writer = whole_matrices(model, 0, 0)[1]
    generator = torch.Generator().manual_seed(0)
    turns = [torch.linalg.qr(torch.randn(12, 12, generator=generator)).Q for _ in range(4000)]
    squares = [
        float((reader @ turn @ writer).norm() / (reader.norm() * writer.norm())) ** 2
        for turn in turns
    ]
    assert np.mean(squares) ** 0.5 == pytest.approx(by_chance(model), rel=0.03)


def test_in_the_induction_circuit_the_key_alone_composes() -> None:
    model = hand_built.induction_circuit()
    for reads in get_args(HeadInput):
        found = composition(model, reads)
        strong = [
            (found.axes[0].labels[i], found.axes[1].labels[j])
            for i, j in np.argwhere(np.nan_to_num(found.values) > 0)
        ]
        assert strong == ([("1.2", "0.1")] if reads == "key" else [])
