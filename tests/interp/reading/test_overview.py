"""All heads at a glance, against loops over their cells and closed forms; and what of a long text
is in memory.
"""

from __future__ import annotations

import math
import weakref

import numpy as np
import pytest
import torch

from gptviz.interp.reading import attention
from gptviz.interp.reading.overview import (
    _Looks,
    clearest_head,
    largest_head,
    overview,
    overview_of,
    read_most,
)
from gptviz.model.edited import EditedTransformer
from tests.interp.patterns import random_patterns
from tests.tiny import scrambled, tiny


@pytest.mark.parametrize(
    ("n_block", "n_head", "n_tokens"), [(1, 2, 5), (40, 3, 11), (5, 33, 20), (2, 33, 9)]
)
@pytest.mark.parametrize("causal", [True, False])
def test_a_cell_of_a_thumbnail_is_the_largest_it_stands_for(
    n_block: int, n_head: int, n_tokens: int, causal: bool
) -> None:
    seen = random_patterns(n_block, n_head, n_tokens, causal)
    seen_small = overview_of(seen, None)
    pool = seen_small.pooling
    pictures = seen_small.thumbnails
    starts = range(0, n_tokens, pool)
    assert pictures.values.shape == (n_block, n_head, len(starts), len(starts))
    for i, top in enumerate(starts):
        for j, left in enumerate(starts):
            cells = [
                (q, k)
                for q in range(top, min(top + pool, n_tokens))
                for k in range(left, min(left + pool, n_tokens))
                if k <= q or not causal
            ]
            for block, head in ((0, 0), (n_block - 1, n_head - 1)):
                value = pictures.values[block, head, i, j]
                if cells:
                    assert value == max(seen.blocks[block][head][cell] for cell in cells)
                else:
                    assert np.isnan(value)


def test_only_pictures_too_small_for_their_tokens_are_pooled_and_say_so() -> None:
    assert overview_of(random_patterns(3, 4, 64), None).pooling == 1
    assert overview_of(random_patterns(3, 4, 64), None).thumbnails.unit == attention.UNIT
    large = overview_of(random_patterns(12, 12, 256), None).thumbnails
    assert large.unit.endswith("largest of 12 × 12")
    assert large.axes[2].labels[:2] == ("0–11", "12–23")
    assert large.axes[2].labels[-1] == "252–255"


def test_the_facts_of_heads_that_look_at_one_token_are_closed_form() -> None:
    n_tokens = 7
    before, first, own, even = (np.zeros((n_tokens, n_tokens), np.float32) for _ in range(4))
    for i in range(n_tokens):
        before[i, max(i - 1, 0)] = first[i, 0] = own[i, i] = 1
        even[i, : i + 1] = 1 / (i + 1)
    seen = attention.Patterns(
        (np.stack([before, first]), np.stack([own, even])), np.triu(np.ones((7, 7), bool), 1)
    )
    facts = overview_of(seen, range(n_tokens)).facts
    harmonic = sum(1 / (i + 1) for i in range(1, n_tokens)) / (n_tokens - 1)
    # row 1: the token before is the first
    np.testing.assert_allclose(facts.previous, [[1, 1 / 6], [0, harmonic]], rtol=1e-6)
    np.testing.assert_allclose(facts.first, [[1 / 6, 1], [0, harmonic]], rtol=1e-6)
    np.testing.assert_allclose(facts.itself, [[0, 0], [1, harmonic]], rtol=1e-6)
    # e to the mean of ln 2 … ln 7
    spread = math.prod(range(2, n_tokens + 1)) ** (1 / (n_tokens - 1))
    np.testing.assert_allclose(facts.spread, [[1, 1], [1, spread]], rtol=1e-5)
    assert largest_head(facts.previous) == (0, 0)
    assert largest_head(facts.itself) == (1, 0)


def test_the_clearest_head_gives_most_to_one_token_but_the_first_and_itself() -> None:
    first, itself, near, even = (np.zeros((7, 7), np.float32) for _ in range(4))
    for i in range(7):
        first[i, 0] = itself[i, i] = 1
        near[i, [max(i - 2, 0), i]] += 0.5
        even[i, : i + 1] = 1 / (i + 1)
    blocked = np.triu(np.ones((7, 7), bool), 1)
    heads = (np.stack([even, first]), np.stack([near, itself]))
    seen = overview_of(attention.Patterns(heads, blocked), range(7))
    assert clearest_head(seen) == (1, 0)
    assert read_most(seen)[1, 0].argmax() == 4
    # where all heads rest, that is what they do
    seen = overview_of(attention.Patterns((np.stack([first, first]),), blocked), range(7))
    assert read_most(seen)[0, 0].argmax() == 0


def test_rows_are_spread_over_as_many_keys_as_the_entropy_says() -> None:
    even = np.full((2, 3, 4), 0.25, np.float32)
    one = np.zeros((2, 3, 4), np.float32)
    one[..., 1] = 1
    np.testing.assert_allclose(
        overview_of(attention.Patterns((even, one), None), None).spread, [[4, 4], [1, 1]], rtol=1e-6
    )


def test_what_followed_an_earlier_copy_of_the_token_is_counted_by_a_loop() -> None:
    ids = (5, 1, 2, 5, 5, 3, 1, 2)
    seen = random_patterns(2, 3, len(ids))
    look = overview_of(seen, ids)
    assert look.facts.followed is not None
    followers = {i: [j for j in range(1, i) if ids[j - 1] == ids[i]] for i in range(len(ids))}
    rows = {i: keys for i, keys in followers.items() if keys}
    # the query itself, behind a copy of its token, does not count
    assert rows == {3: [1], 4: [1], 6: [2], 7: [3]}
    for block in range(2):
        for head in range(3):
            by_loop = np.mean(
                [sum(seen.blocks[block][head, i, j] for j in keys) for i, keys in rows.items()]
            )
            assert look.facts.followed[block, head] == pytest.approx(by_loop, rel=1e-5)
    assert look.evenly == pytest.approx(np.mean([len(keys) / (i + 1) for i, keys in rows.items()]))


@pytest.mark.parametrize("causal", [True, False])
def test_even_shares_are_of_the_keys_that_the_mask_lets_a_query_read(causal: bool) -> None:
    ids = (2, 1, 0, 2, 2, 3, 1, 0)
    look = overview_of(random_patterns(1, 2, len(ids), causal), ids)
    followers = {i: [j for j in range(1, i) if ids[j - 1] == ids[i]] for i in range(len(ids))}
    may_read = [i + 1 if causal else len(ids) for i in range(len(ids))]
    assert look.evenly == pytest.approx(
        np.mean([len(keys) / may_read[i] for i, keys in followers.items() if keys])
    )
    assert look.alike == pytest.approx(np.mean([1 / many for many in may_read[1:]]))


def test_a_text_in_which_no_token_comes_back_has_no_earlier_copies() -> None:
    look = overview_of(random_patterns(1, 2, 4), (3, 1, 2, 0))
    assert look.facts.followed is None
    assert math.isnan(look.evenly)


@pytest.mark.parametrize("causal", [True, False])
def test_without_the_first_token_a_row_is_what_is_left_of_it_scaled_up_to_one(causal: bool) -> None:
    seen = random_patterns(1, 2, 6, causal)
    seen.blocks[0][1, 4] = np.eye(6)[0]  # rests on the first token: nothing is left to scale up
    left = overview_of(seen, range(6)).without_first
    assert np.isnan(left[..., 0]).all()
    assert np.isnan(left[0, 1, 4]).all()
    for head, query in ((0, 5), (0, 3), (1, 2), (1, 5)):
        row = seen.blocks[0][head, query]
        keys = range(1, query + 1 if causal else 6)
        total = sum(float(row[key]) for key in keys)
        np.testing.assert_allclose(
            [left[0, head, query, key] for key in keys],
            [row[key] / total for key in keys],
            rtol=1e-5,
        )


def test_however_few_rows_are_computed_with_at_a_time_an_overview_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = random_patterns(3, 2, 50)
    ids = [i % 7 for i in range(50)]
    whole = overview_of(seen, ids)
    monkeypatch.setattr("gptviz.interp.reading.overview.AT_ONCE", 1)
    part = overview_of(seen, ids)
    np.testing.assert_array_equal(part.thumbnails.values, whole.thumbnails.values)
    assert part.facts is not None
    assert whole.facts is not None
    for name, values in (vars(whole) | vars(whole.facts)).items():
        if isinstance(values, np.ndarray):
            found = getattr(
                part.facts if name in vars(whole.facts) and name != "spread" else part, name
            )
            expected = getattr(
                whole.facts if name in vars(whole.facts) and name != "spread" else whole, name
            )
            np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "sizes", [{}, {"window": 3, "window_pattern": "fw"}, {"mask": "full"}, {"n_kv_head": 1}]
)
def test_an_overview_made_while_the_model_runs_is_that_of_its_patterns(
    sizes: dict[str, object],
) -> None:
    model = scrambled(tiny(n_layer=3, **sizes))
    ids = (3, 1, 4, 1, 5, 9)
    found = overview(model, ids)
    expected = overview_of(attention.patterns(model, ids), ids)
    for name in ("without_first", "spread", "last"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_array_equal(found.thumbnails.values, expected.thumbnails.values)
    assert found.facts is not None
    assert expected.facts is not None
    for name, values in vars(expected.facts).items():
        np.testing.assert_array_equal(getattr(found.facts, name), values)


@pytest.mark.parametrize(
    "sizes", [{}, {"window": 3, "window_pattern": "fw"}, {"positions": "alibi"}, {"n_kv_head": 1}]
)
@pytest.mark.parametrize("held", [range(1), range(1, 3), range(3, 4)])
def test_a_reading_of_some_blocks_is_that_part_of_the_reading_of_all(
    sizes: dict[str, object], held: range
) -> None:
    model = scrambled(tiny(n_layer=4, **sizes))
    ids = (3, 1, 4, 1, 5, 9)
    part = attention.read_attention(model, ids, blocks=held)
    whole = attention.read_attention(model, ids)
    assert len(part.patterns.blocks) == len(held)
    for block in held:
        for name in ("pattern", "scores", "value_weighted"):
            np.testing.assert_array_equal(
                getattr(part, name)(block, 2), getattr(whole, name)(block, 2)
            )
        np.testing.assert_array_equal(part.rollout(block), whole.rollout(block))


def test_of_cross_attention_there_are_no_facts_but_thumbnails_and_spread() -> None:
    model = scrambled(tiny(n_encoder_layer=1, padding=10))
    source = (3, 1, 4, 1, 5, 10)
    written = (2, 7, 1)
    found = overview(model, written, source, "cross_attention")
    read = attention.read_attention(model, written, source, "cross_attention")
    assert found.facts is None
    assert found.without_first is None
    np.testing.assert_array_equal(found.thumbnails.values[1, 2], read.pattern(1, 2))
    np.testing.assert_array_equal(
        found.last, np.stack([block[:, -1] for block in read.patterns.blocks])
    )


def test_over_a_long_text_the_patterns_of_one_block_at_a_time_are_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tokens = 512
    blocks = 30
    model = scrambled(
        tiny(
            n_layer=blocks,
            n_head=9,
            n_kv_head=3,
            d_model=18,
            context_length=tokens,
            positions="rotary",
        )
    )
    ids = torch.randint(
        model.config.vocab_size, (tokens,), generator=torch.Generator().manual_seed(0)
    ).tolist()
    of_block = 9 * tokens**2 * 4
    seen: list[weakref.ref[object]] = []
    alive = []
    add = _Looks.add

    def counted(self: _Looks, block: attention.Patterns) -> None:
        seen.append(weakref.ref(block.blocks[0]))
        add(self, block)
        alive.append(sum(ref() is not None for ref in seen))

    monkeypatch.setattr(_Looks, "add", counted)
    found = overview(model, ids)
    assert (len(alive), max(alive)) == (blocks, 1)
    kept = [
        found.thumbnails.values,
        found.without_first,
        found.spread,
        found.last,
        *vars(found.facts).values(),
    ]
    assert sum(values.nbytes for values in kept if values is not None) < of_block
    one = attention.read_attention(model, ids, blocks=range(7, 8))
    held = [*one.patterns.blocks, one.rolled, one.q, one.k, one.moved]
    assert sum(values.nbytes for values in held if values is not None) < 1.5 * of_block


def test_the_pass_of_a_reading_ends_with_its_last_block() -> None:
    model = scrambled(tiny(n_layer=4))
    passed: list[int] = []
    for number, block in enumerate(model.blocks):
        block.mlp.register_forward_hook(lambda *_, number=number: passed.append(number))
    attention.read_attention(model, (3, 1, 4), blocks=range(2, 3))
    assert passed == [0, 1]


@pytest.mark.parametrize("head", [1, None])
def test_a_reading_without_the_first_token_is_what_the_thumbnails_show(head: int | None) -> None:
    model = scrambled(tiny())
    ids = (3, 1, 4, 1, 5, 9)
    found = attention.read_attention(model, ids).without_first(1, head)
    shares = attention.read_attention(model, ids).pattern(1, head)
    if head is not None:
        np.testing.assert_allclose(found, overview(model, ids).without_first[1, head], rtol=1e-5)
    assert np.isnan(found[:, 0]).all()
    np.testing.assert_allclose(found[4, 1:5], shares[4, 1:5] / shares[4, 1:5].sum(), rtol=1e-5)


@pytest.mark.parametrize(("room", "every"), [(6, 1), (3, 2), (1, 6), (0.5, 99)])
def test_another_block_is_read_from_midway_with_the_same_numbers(
    room: float, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = (3, 1, 4, 1, 5, 9, 2, 6)
    whole = scrambled(tiny(n_layer=6, positions="relative"))
    # Edits that are not the same when they are made twice.
    edits = {
        f"blocks.{block}.{name}": lambda value, _pass: 2 * value
        for block in range(6)
        for name in ("resid_pre", "resid_post")
    }
    model = EditedTransformer(whole, edits, {})
    monkeypatch.setattr(attention, "MOST_MIDWAY", int(room * 4 * len(ids) * (12 + len(ids))))
    midway = overview(model, ids).midway
    assert sorted(midway.streams) == list(range(every, 6, every))
    ran: list[int] = []
    for number, part in enumerate(whole.blocks):
        part.register_forward_hook(lambda *_, number=number: ran.append(number))
    for block in range(6):
        expected = attention.read_attention(model, ids, blocks=range(block, block + 1))
        ran.clear()
        found = attention.read_attention(model, ids, blocks=range(block, block + 1), midway=midway)
        # The block itself is left as soon as its pattern is there.
        assert ran == list(range(block // every * every, block))
        for name in ("q", "k", "position", "moved", "rolled"):
            np.testing.assert_array_equal(
                getattr(found, name), getattr(expected, name), err_msg=name
            )
        np.testing.assert_array_equal(found.patterns.blocks[0], expected.patterns.blocks[0])
