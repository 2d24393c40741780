"""What each head looks at, against loops over the model's own queries and keys."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from gptviz.interp.reading import attention
from gptviz.interp.reading.overview import overview_of
from gptviz.interp.trace import run
from tests.tiny import scrambled, tiny

IDS = (3, 1, 4, 1, 5, 9)


def test_masked_are_the_keys_after_the_query_and_the_rest_of_a_row_sums_to_one() -> None:
    seen = attention.patterns(scrambled(tiny()), IDS)
    head = attention.one_head(seen, 1, 2, [f"t{i}" for i in range(len(IDS))])
    assert [[bool(np.isnan(value)) for value in row] for row in head.values] == [
        [key > query for key in range(len(IDS))] for query in range(len(IDS))
    ]
    np.testing.assert_allclose(np.nansum(head.values, axis=1), 1, atol=1e-6)
    assert [axis.name for axis in head.axes] == ["query (reads)", "key (is read)"]
    assert head.axes[0].labels == head.axes[1].labels == tuple(f"t{i}" for i in range(len(IDS)))


def test_a_share_of_zero_that_the_mask_allows_is_not_masked() -> None:
    # so sharp that most shares underflow to exactly 0
    model = scrambled(tiny(positions="none"), std=40.0)
    seen = attention.patterns(model, IDS)
    zeros = sum(int((block[:, *np.tril_indices(len(IDS))] == 0).sum()) for block in seen.blocks)
    assert zeros > 0
    for block in range(len(seen.blocks)):
        assert (
            np.isnan(attention.one_head(seen, block, 0, "abcdef").values).sum()
            == len(IDS) * (len(IDS) - 1) / 2
        )


def test_one_head_is_a_copy_that_leaves_the_shared_patterns_alone() -> None:
    seen = attention.patterns(scrambled(tiny()), IDS)
    before = seen.blocks[0].copy()
    attention.one_head(seen, 0, 0, "abcdef").values[:] = 7
    np.testing.assert_array_equal(seen.blocks[0], before)


def test_a_single_token_has_a_pattern_of_one_and_no_facts() -> None:
    seen = attention.patterns(scrambled(tiny()), (2,))
    assert overview_of(seen, (2,)).facts is None
    np.testing.assert_array_equal(attention.one_head(seen, 0, 0, ("a",)).values, [[1]])
    np.testing.assert_array_equal(overview_of(seen, None).thumbnails.values, np.ones((2, 3, 1, 1)))


PADDING = 10


def test_the_patterns_of_an_encoder_are_those_of_the_pass_that_feeds_the_decoder() -> None:
    model = scrambled(tiny(n_layer=1, n_encoder_layer=2, padding=PADDING))
    source = (3, 1, 4, 1, 5)
    written = (2, 7, 1)
    trace = run(model, torch.tensor([written]), ["*.pattern"], source=torch.tensor([source]))
    assert model.encoder is not None
    encoder = attention.patterns(model.encoder, source)
    decoder = attention.patterns(model, written, source)
    assert (len(encoder.blocks), len(decoder.blocks)) == (2, 1)
    for block, values in enumerate(encoder.blocks):
        np.testing.assert_allclose(
            values, trace[f"encoder.blocks.{block}.attention.pattern"][0].numpy(), atol=1e-6
        )
    np.testing.assert_allclose(
        decoder.blocks[0], trace["blocks.0.attention.pattern"][0].numpy(), atol=1e-6
    )
    assert encoder.blocked is None
    np.testing.assert_array_equal(decoder.blocked, np.triu(np.ones((3, 3), bool), 1))


@pytest.mark.parametrize("mask", ["causal", "full"])
def test_padding_and_what_it_would_read_are_masked_and_the_rest_is_as_without_it(mask: str) -> None:
    model = scrambled(tiny(mask=mask, padding=PADDING))
    alone = attention.patterns(model, IDS)
    filled = attention.patterns(model, (*IDS, PADDING, PADDING))
    size = len(IDS)
    for block in range(2):
        one = attention.one_head(filled, block, 1, "abcdefgh").values
        assert np.isnan(one[size:]).all()
        assert np.isnan(one[:, size:]).all()
        np.testing.assert_allclose(
            one[:size, :size], attention.one_head(alone, block, 1, "abcdef").values, atol=1e-6
        )


@pytest.mark.parametrize("positions", ["learned", "rotary", "relative", "alibi", "none"])
@pytest.mark.parametrize("mask", ["causal", "full"])
def test_the_products_of_query_and_key_and_what_positions_add_are_the_scores_and_their_softmax_the_pattern(
    positions: str, mask: str
) -> None:
    model = scrambled(tiny(positions=positions, mask=mask, qk_norm=True))
    found = attention.read_attention(model, IDS)
    trace = run(model, torch.tensor([IDS]))
    assert (found.position is not None) == (positions in ("relative", "alibi"))
    for block in range(2):
        for head in range(3):
            expected = trace[f"blocks.{block}.attention.scores"][0, head].numpy()
            scores = found.scores(block, head)
            shares = found.pattern(block, head)
            for query in range(len(IDS)):
                visible = range(query + 1 if mask == "causal" else len(IDS))
                dots = []
                for key in visible:
                    q = found.q[block, head, query]
                    k = found.k[block, head, key]
                    dot = sum(float(a) * float(b) for a, b in zip(q, k, strict=True)) / math.sqrt(
                        len(q)
                    )
                    term = (
                        0.0
                        if found.position is None
                        else float(found.position[block, head, query, key])
                    )
                    dots.append(dot + term)
                np.testing.assert_allclose(dots, expected[query, : len(visible)], atol=1e-5)
                np.testing.assert_allclose(scores[query, : len(visible)], dots, atol=1e-5)
                total = sum(map(math.exp, dots))
                np.testing.assert_allclose(
                    shares[query, : len(visible)],
                    [math.exp(dot) / total for dot in dots],
                    atol=1e-6,
                )
                assert np.isnan(scores[query, len(visible) :]).all()


@pytest.mark.parametrize("pattern", ["fw", "w"])
def test_scales_caps_shared_keys_and_windows_are_those_of_the_pass(pattern: str) -> None:
    other = {"score_scale": 0.7, "score_cap": 2.0, "n_head": 4, "n_kv_head": 2}
    model = scrambled(tiny(window=2, window_pattern=pattern, **other))
    found = attention.read_attention(model, IDS)
    trace = run(model, torch.tensor([IDS]))
    small = overview_of(found.patterns, None).thumbnails.values
    for block in range(2):
        reach = 2 if pattern == "w" or block == 1 else len(IDS)
        for head in range(4):
            scores = trace[f"blocks.{block}.attention.scores"][0, head].numpy()
            shares = trace[f"blocks.{block}.attention.pattern"][0, head].numpy()
            own = attention.one_head(found.patterns, block, head, [str(i) for i in IDS]).values
            for query in range(len(IDS)):
                for key in range(len(IDS)):
                    seen = [
                        values[query, key]
                        for values in (found.scores(block, head), found.pattern(block, head), own)
                    ]
                    if 0 <= query - key < reach:
                        np.testing.assert_allclose(
                            seen, [scores[query, key], *[shares[query, key]] * 2], atol=1e-5
                        )
                    else:
                        assert np.isnan(seen).all()
                        assert shares[query, key] == 0
            np.testing.assert_array_equal(np.isnan(small[block, head]), np.isnan(own))


@pytest.mark.parametrize("sizes", [{}, {"d_head": 6}, {"output_bias": False, "mask": "full"}])
def test_value_weighted_is_the_length_of_what_each_key_adds_and_all_keys_and_heads_add_up_to_the_output(
    sizes: dict[str, Any],
) -> None:
    model = scrambled(tiny(**sizes))
    found = attention.read_attention(model, IDS)
    trace = run(model, torch.tensor([IDS]))
    for block in range(2):
        pattern, v = (
            trace[f"blocks.{block}.attention.{name}"][0].double() for name in ("pattern", "v")
        )
        linear = model.blocks[block].attention.output
        weight = linear.weight.detach().double()
        d_head = v.shape[-1]
        total = torch.zeros(len(IDS), weight.shape[0], dtype=torch.double)
        for head in range(3):
            part = weight[:, head * d_head : (head + 1) * d_head]
            weighted = found.value_weighted(block, head)
            for query in range(len(IDS)):
                for key in range(len(IDS)):
                    added = part @ (pattern[head, query, key] * v[head, key])
                    total[query] += added
                    if not np.isnan(weighted[query, key]):
                        assert weighted[query, key] == pytest.approx(
                            added.norm().item(), rel=1e-5, abs=1e-7
                        )
        bias = 0 if linear.bias is None else linear.bias.detach()
        np.testing.assert_allclose(
            total + bias, trace[f"blocks.{block}.attention.out"][0].numpy(), atol=1e-5
        )


@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm"])
@pytest.mark.parametrize("residual", ["double-norm", "branch-norm", "norm-only", "post-norm"])
def test_value_weighted_is_the_length_of_what_comes_out_of_the_norm_behind_attention(
    residual: str, norm: str
) -> None:
    """The norm is written out here as in its equation, and what it makes of all keys and of the
    stream adds up to the stream.
    """
    model = scrambled(tiny(residual=residual, norm=norm, output_bias=False))
    found = attention.read_attention(model, IDS)
    trace = run(model, torch.tensor([IDS]))
    for block in range(2):
        part = model.blocks[block]
        last = (
            part.attention_residual.norm_after
            if residual == "double-norm"
            else part.attention_residual.norm
        )
        weight, gain = (one.weight.detach().double() for one in (part.attention.output, last))
        before, out = (
            trace[f"blocks.{block}.{name}"][0].double() for name in ("resid_pre", "attention.out")
        )
        pattern, v = (
            trace[f"blocks.{block}.attention.{name}"][0].double() for name in ("pattern", "v")
        )
        entering = before + out if residual == "post-norm" else out
        for query in range(len(IDS)):
            centre = entering[query].mean() if norm == "layernorm" else 0.0
            size = ((entering[query] - centre).square().mean() + last.eps).sqrt()
            total = torch.zeros(12, dtype=torch.double)
            for head in range(3):
                for key in range(query + 1):
                    added = weight[:, 4 * head : 4 * head + 4] @ (
                        pattern[head, query, key] * v[head, key]
                    )
                    added = (added - (added.mean() if norm == "layernorm" else 0.0)) / size * gain
                    total += added
                    value = found.value_weighted(block, head)[query, key]
                    assert value == pytest.approx(added.norm().item(), rel=1e-4, abs=1e-6)
            bias = 0 if last.bias is None else last.bias.detach()
            rest = {
                "post-norm": (before[query] - (before[query].mean() if norm == "layernorm" else 0))
                / size
                * gain,
                "norm-only": 0,
            }
            after = trace[f"blocks.{block}.resid_mid"][0, query].double()
            np.testing.assert_allclose(
                total + bias + rest.get(residual, before[query]), after, atol=1e-4
            )


def test_behind_a_norm_a_single_block_and_cross_attention_are_read_as_all_are() -> None:
    model = scrambled(tiny(n_layer=2, n_encoder_layer=1, residual="post-norm"))
    source = (3, 1, 4)
    written = (2, 7, 1)
    for part in ("attention", "cross_attention"):
        whole = attention.read_attention(model, written, source, part)
        one = attention.read_attention(model, written, source, part, range(1, 2))
        np.testing.assert_allclose(one.value_weighted(1, 0), whole.value_weighted(1, 0), rtol=1e-6)
    trace = run(model, torch.tensor([written]), source=torch.tensor([source]))
    entering = trace["blocks.1.resid_self"][0] + trace["blocks.1.cross_attention.out"][0]
    scale = (entering.var(-1, correction=0) + model.blocks[1].cross_residual.norm.eps).rsqrt()
    np.testing.assert_allclose(whole.scaled[1], scale, rtol=1e-5)


@pytest.mark.parametrize("residual", ["pre-norm", "post-norm", "none"])
@pytest.mark.parametrize(("mask", "window"), [("causal", None), ("full", None), ("causal", 2)])
def test_rollout_follows_every_path_through_the_blocks(
    mask: str, window: int | None, residual: str
) -> None:
    model = scrambled(tiny(n_layer=3, mask=mask, window=window, residual=residual))
    found = attention.read_attention(model, IDS)
    size = len(IDS)
    steps = []
    for block in found.patterns.blocks:
        step = [
            [sum(float(head[i, j]) for head in block) / 3 / 2 + (i == j) / 2 for j in range(size)]
            for i in range(size)
        ]
        steps.append([[value / sum(row) for value in row] for row in step])
    for i in range(size):
        for j in range(size):
            paths = sum(
                steps[2][i][a] * steps[1][a][b] * steps[0][b][j]
                for a in range(size)
                for b in range(size)
            )
            value = found.rollout(2)[i, j]
            # through three windows
            is_reached = mask == "full" or (
                j <= i and (window is None or i - j <= 3 * (window - 1))
            )
            assert value == pytest.approx(paths, abs=1e-6) if is_reached else np.isnan(value)
    np.testing.assert_allclose(attention.rollout(found.patterns).sum(-1), 1, atol=1e-6)
    np.testing.assert_allclose(attention.rollout(found.patterns)[0], steps[0], atol=1e-6)


def test_cross_attention_reads_the_source_from_every_token_of_the_output() -> None:
    model = scrambled(tiny(n_layer=2, n_encoder_layer=1, padding=PADDING))
    source = (3, 1, 4, 1, 5, PADDING, PADDING)
    written = (2, 7, 1)
    found = attention.read_attention(model, written, source, "cross_attention")
    trace = run(model, torch.tensor([written]), source=torch.tensor([source]))
    for block in range(2):
        name = f"blocks.{block}.cross_attention"
        for head in range(3):
            shares = found.pattern(block, head)
            assert shares.shape == (3, 7)
            np.testing.assert_allclose(
                shares[:, :5], trace[f"{name}.pattern"][0, head, :, :5].numpy(), atol=1e-6
            )
            assert np.isnan(shares[:, 5:]).all()
            scores = found.scores(block, head)[:, :5]
            np.testing.assert_allclose(
                scores, trace[f"{name}.scores"][0, head, :, :5].numpy(), atol=1e-5
            )
            exps = np.exp(scores.astype(float))
            np.testing.assert_allclose(exps / exps.sum(1, keepdims=True), shares[:, :5], atol=1e-5)
            v = trace[f"{name}.v"][0, head, 2].double()
            part = (
                model.blocks[block]
                .cross_attention.output.weight.detach()
                .double()[:, 4 * head : 4 * head + 4]
            )
            assert found.value_weighted(block, head)[1, 2] == pytest.approx(
                float((part @ v).norm() * shares[1, 2]), rel=1e-5
            )
    pictures = overview_of(found.patterns, None).thumbnails
    assert pictures.values.shape == (2, 3, 3, 7)
    assert np.isnan(pictures.values[..., 5:]).all()


@pytest.mark.parametrize("mask", ["causal", "full"])
def test_in_place_of_a_head_stands_the_mean_of_those_of_its_block(mask: str) -> None:
    found = attention.read_attention(scrambled(tiny(mask=mask)), IDS)
    for block in range(2):
        for of in (found.pattern, found.value_weighted):
            by_loop = sum(of(block, head).astype(float) for head in range(3)) / 3
            np.testing.assert_allclose(of(block, None), by_loop, atol=1e-6)
