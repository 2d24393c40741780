"""What the output reads from the source, against loops over the model's own queries and keys, and
closed forms.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import torch

from gptviz.interp.reading import cross_attention
from gptviz.interp.reading.attention import Patterns
from gptviz.interp.reading.cross_attention import average_heads, hidden_by_mean, read_translation
from gptviz.interp.reading.next_token import logits_after
from gptviz.interp.trace import run
from tests.tiny import scrambled, tiny

SOURCE = (3, 1, 4, 1, 5, 9)
DECODED = (10, 2, 7, 2)


def model(**changes: object) -> torch.nn.Module:
    return scrambled(tiny(n_encoder_layer=1, positions="sinusoidal", **changes))


def softmax_by_loop(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """softmax(q k / √d) [query, key] of one head, by the formula in float64."""
    out = np.zeros((len(q), len(k)))
    for i, query in enumerate(q):
        each = [
            math.exp(
                sum(float(a) * float(b) for a, b in zip(query, key, strict=True))
                / math.sqrt(len(query))
            )
            for key in k
        ]
        out[i] = [one / sum(each) for one in each]
    return out


def test_cross_attention_is_the_softmax_of_the_outputs_queries_times_the_sources_keys() -> None:
    one = model()
    seen = read_translation(one, SOURCE, DECODED)
    trace = run(
        one, torch.tensor([DECODED]), ["*cross_attention.[qk]"], source=torch.tensor([SOURCE])
    )
    assert len(seen.cross.blocks) == one.config.n_layer == 2
    for block, values in enumerate(seen.cross.blocks):
        assert values.shape == (one.config.n_head, len(DECODED), len(SOURCE))
        for head in range(one.config.n_head):
            q, k = (
                trace[f"blocks.{block}.cross_attention.{name}"][0, head].numpy() for name in "qk"
            )
            np.testing.assert_allclose(values[head], softmax_by_loop(q, k), atol=1e-6)


def test_the_same_pass_gives_the_logits_that_the_decoder_gives_by_itself() -> None:
    one = model()
    expected = logits_after(one, DECODED, slice(None), SOURCE)
    np.testing.assert_allclose(read_translation(one, SOURCE, DECODED).logits, expected, atol=1e-5)


def test_an_average_is_the_mean_of_the_heads_it_stands_for_and_rows_still_sum_to_one() -> None:
    seen = read_translation(model(), SOURCE, DECODED).cross
    of_block = sum(seen.blocks[1][head].astype(float) for head in range(3)) / 3
    of_all = (
        sum(seen.blocks[block][head].astype(float) for block, head in product(range(2), range(3)))
        / 6
    )
    np.testing.assert_allclose(average_heads(seen, 1).blocks[0][0], of_block, atol=1e-6)
    np.testing.assert_allclose(average_heads(seen, None).blocks[0][0], of_all, atol=1e-6)
    np.testing.assert_allclose(average_heads(seen, None).blocks[0].sum(-1), 1, atol=1e-6)


def spotlights(*places: tuple[int, ...]) -> Patterns:
    """A block of heads for each argument, each of which reads one source token of 6 alone, at every
    one of 4 queries.
    """
    return Patterns(
        tuple(
            np.repeat(np.eye(6, dtype=np.float32)[list(block)][:, None], 4, axis=1)
            for block in places
        ),
        None,
    )


def test_what_an_average_hides_of_heads_that_read_one_token_each_is_closed_form() -> None:
    apart = hidden_by_mean(spotlights((0, 1, 2), (3, 4, 5)), None)
    assert (apart.heads, apart.spread, apart.alone) == pytest.approx((6, 6, 1))
    alike = hidden_by_mean(spotlights((2, 2, 2)), 0)
    assert (alike.heads, alike.spread, alike.alone) == pytest.approx((3, 1, 1))
    half = hidden_by_mean(spotlights((0, 0, 0), (1, 1, 4)), 1)
    assert half.spread == pytest.approx(math.exp(math.log(3) - 2 / 3 * math.log(2)))


def test_an_average_is_never_sharper_than_its_heads_and_the_sharpest_is_the_one_a_loop_finds() -> (
    None
):
    generator = np.random.default_rng(0)
    values = generator.random((3, 5, 4, 6)) ** 6
    values /= values.sum(-1, keepdims=True)
    seen = Patterns(tuple(values.astype(np.float32)), None)

    def spread(head: np.ndarray) -> float:
        return math.exp(sum(-float(p) * math.log(p) for row in head for p in row) / len(head))

    spreads = {
        (block, head): spread(values[block, head]) for block, head in product(range(3), range(5))
    }
    for block in (None, 0, 1, 2):
        found = hidden_by_mean(seen, block)
        mine = {at: one for at, one in spreads.items() if block in (None, at[0])}
        assert found.sharpest == min(mine, key=lambda at: mine[at])
        assert found.sharpest_spread == pytest.approx(min(mine.values()), rel=1e-5)
        assert found.alone == pytest.approx(math.prod(mine.values()) ** (1 / len(mine)), rel=1e-5)
        assert found.alone <= found.spread


def test_a_source_may_be_as_long_as_the_context() -> None:
    assert cross_attention.read_translation(model(), (1,) * 8, DECODED).cross.blocks[0].shape == (
        3,
        4,
        8,
    )
