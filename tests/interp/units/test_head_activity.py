"""How much heads do at each token, against loops over queries and keys."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from gptviz.interp.trace import run
from gptviz.interp.units.activity import observe
from gptviz.interp.units.head_activity import observable_heads
from gptviz.interp.units.head_weights import matrices
from gptviz.model import Config
from tests.tiny import families, scrambled, some_ids, tiny


@settings(max_examples=30)
@given(families(n_layer=2))
def test_a_head_does_as_much_as_what_it_adds_is_long_and_reads_as_much_as_it_attends_to_long_values(
    config: Config,
) -> None:
    model = scrambled(config)
    ids = some_ids(7, 2)
    trace = run(model, ids)
    for block in range(2):
        z, v, pattern = (
            trace[f"blocks.{block}.attention.{name}"] for name in ("z", "v", "pattern")
        )
        # [B, T, H] each
        added, read = (
            observable_heads(model, block, side).values(ids) for side in ("query", "key")
        )
        for row in range(2):
            for head, output in enumerate(matrices(model, block).output):
                kv = head // (config.n_head // config.key_heads)
                for place in range(7):
                    assert added[row, place, head] == pytest.approx(
                        float((output @ z[row, head, place]).norm()), rel=1e-4, abs=1e-5
                    )
                    attended = sum(float(pattern[row, head, query, place]) for query in range(7))
                    alone = float((output @ v[row, kv, place]).norm())
                    assert read[row, place, head] == pytest.approx(
                        attended * alone, rel=1e-4, abs=1e-5
                    )


def test_in_a_model_without_norms_the_heads_of_a_block_and_its_bias_add_what_the_attention_adds() -> (
    None
):
    """With one head and no bias, its number is the length of the output of the attention."""
    model = scrambled(tiny(n_head=1, n_kv_head=1, output_bias=False))
    ids = some_ids(7, 2)
    out = run(model, ids)["blocks.1.attention.out"]
    (*_, seen) = observe(observable_heads(model, 1), [*ids])
    assert seen.activity().effect == pytest.approx([float(out.norm(dim=-1).mean())], rel=1e-4)
