"""What holds for every architecture the config can describe."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gptviz.model import GLOSSARY, Config, KVCache, Record, build
from gptviz.model.parts.norms import NORMS
from gptviz.model.parts.positions import POSITIONS
from gptviz.model.parts.residuals import RESIDUALS
from tests.tiny import CONTEXT, VOCAB, families, scrambled, some_ids, tiny

many = settings(max_examples=50)


@pytest.mark.parametrize("residual", RESIDUALS)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("mask", ["causal", "full"])
def test_every_residual_norm_position_and_mask_computes_logits(
    residual: str, norm: str, positions: str, mask: str
) -> None:
    model = scrambled(tiny(residual=residual, norm=norm, positions=positions, mask=mask))
    for length in (1, 5, CONTEXT):
        logits = model(some_ids(length))
        assert logits.shape == (2, length, VOCAB)
        assert logits.isfinite().all()


@many
@given(families(), st.integers(1, CONTEXT))
def test_any_combination_computes_logits(config: Config, length: int) -> None:
    logits = scrambled(config)(some_ids(length))
    assert logits.shape == (2, length, VOCAB)
    assert logits.isfinite().all()


@many
@given(families(mask="causal"), st.integers(1, CONTEXT - 1))
def test_a_future_token_cannot_change_the_past(config: Config, changed: int) -> None:
    model = scrambled(config)
    ids = some_ids()
    other = ids.clone()
    other[:, changed:] = (other[:, changed:] + 1) % VOCAB
    before = model(ids)
    after = model(other)
    # an expert multiplies its tokens together, and their number decides how a product is rounded
    if config.mlp == "experts":
        torch.testing.assert_close(before[:, :changed], after[:, :changed], rtol=1e-4, atol=1e-5)
    else:
        assert torch.equal(before[:, :changed], after[:, :changed])
    assert not torch.equal(before[:, changed], after[:, changed])


@pytest.mark.parametrize("residual", RESIDUALS)
@pytest.mark.parametrize("positions", POSITIONS)
def test_a_causal_model_sees_the_past_and_a_full_one_the_future_too(
    residual: str, positions: str
) -> None:
    ids = some_ids()
    first = ids.clone()
    last = ids.clone()
    first[:, 0] = (first[:, 0] + 1) % VOCAB
    last[:, -1] = (last[:, -1] + 1) % VOCAB
    for mask in ("causal", "full"):
        model = scrambled(tiny(residual=residual, positions=positions, mask=mask))
        plain = model(ids)
        assert not torch.isclose(plain[:, -1], model(first)[:, -1]).all()
        assert torch.equal(plain[:, 0], model(last)[:, 0]) == (mask == "causal")


@many
@given(families())
def test_a_run_that_is_watched_computes_the_same_bits(config: Config) -> None:
    model = scrambled(config)
    record = Record()
    watched = model(some_ids(), tap=record)
    assert torch.equal(watched, model(some_ids()))
    assert torch.equal(watched, record.values["logits"])


@many
@given(families(mask="causal"), st.lists(st.integers(1, CONTEXT), min_size=1))
@example(tiny(), [1] * CONTEXT)
@example(tiny(positions="rotary"), [3, 1, 4])
def test_a_cached_run_computes_the_logits_of_a_whole_one(config: Config, chunks: list[int]) -> None:
    model = scrambled(config).double()
    ids = some_ids()
    whole = model(ids)
    cache = KVCache(config, batch=2, dtype=torch.float64)
    for chunk in chunks:
        start = cache.length
        end = min(start + chunk, CONTEXT)
        if start == end:
            break
        fresh = model(ids[:, start:end], cache=cache)
        assert cache.length == end
        torch.testing.assert_close(fresh, whole[:, start:end], rtol=1e-9, atol=1e-9)


@many
@given(families(mask="causal", n_layer=2))
def test_a_truncated_cache_goes_on_as_if_the_tokens_had_never_been(config: Config) -> None:
    model = scrambled(config).double()
    ids = some_ids()
    others = some_ids(seed=1)
    cache = KVCache(config, batch=2, dtype=torch.float64)
    model(others, cache=cache)
    cache.truncate(0)
    model(torch.cat((ids[:, :5], others[:, 5:]), dim=1), cache=cache)
    cache.truncate(5)
    torch.testing.assert_close(
        model(ids[:, 5:], cache=cache), model(ids)[:, 5:], rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("room", [None, 3, 90])
def test_a_cache_has_little_more_room_than_its_text_needs_and_grows_with_it(
    room: int | None,
) -> None:
    model = scrambled(tiny(positions="rotary", context_length=100)).eval()
    ids = torch.randint(11, (2, 100), generator=torch.Generator().manual_seed(0))
    cache = model.new_cache(2, room)
    logits = []
    sizes = set()
    for length in range(1, 101):
        logits.append(model(ids[:, length - 1 : length], cache=cache))
        size = cache.layers[1].keys.shape[2]  # of room
        assert (
            length <= size == cache.layers[1].values.shape[2] <= 1.25 * max(length, room or 0) + 32
        )
        sizes.add(size)
    torch.testing.assert_close(torch.cat(logits, dim=1), model(ids), rtol=1e-4, atol=1e-4)
    assert len(sizes) <= 4


def test_a_pass_that_fails_on_the_way_leaves_the_cache_usable() -> None:
    model = scrambled(tiny())
    ids = some_ids()
    cache = KVCache(model.config, batch=2)
    model(ids[:, :3], cache=cache)

    class Broken(Record):
        def __call__(self, name: str, value: torch.Tensor) -> torch.Tensor:
            if name == "blocks.1.attention.q":
                raise RuntimeError
            return value

    with pytest.raises(RuntimeError):
        model(ids[:, 3:5], cache=cache, tap=Broken())
    torch.testing.assert_close(model(ids[:, 3:], cache=cache), model(ids)[:, 3:])


@many
@given(families(), st.integers(1, CONTEXT))
def test_logits_can_be_had_of_the_last_positions_alone(config: Config, last: int) -> None:
    model = scrambled(config).double()
    some = model(some_ids(), logits_at=slice(-last, None))
    torch.testing.assert_close(some, model(some_ids())[:, -last:], rtol=1e-12, atol=1e-12)


@many
@given(families())
def test_samples_in_a_batch_do_not_touch_each_other(config: Config) -> None:
    model = scrambled(config).double()
    ids = some_ids()
    torch.testing.assert_close(model(ids)[:1], model(ids[:1]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("residual", RESIDUALS)
@pytest.mark.parametrize(
    "place",
    [
        "dropout",
        "blocks.0.attention.dropout",
        "blocks.0.attention_residual.dropout",
        "blocks.0.mlp_residual.dropout",
    ],
)
def test_dropout_acts_on_the_embedding_the_attention_and_every_sublayer_in_training_alone(
    residual: str, place: str
) -> None:
    model = scrambled(tiny(residual=residual, n_layer=1))
    part = model.get_submodule(place)
    assert isinstance(part, torch.nn.Dropout)
    plain = model(some_ids())
    part.p = 0.5
    assert torch.equal(model(some_ids()), plain)
    model.train()
    assert not torch.equal(model(some_ids()), model(some_ids()))


def test_dropout_zeroes_its_share_of_each_sublayer_and_keeps_the_mean() -> None:
    model = build(tiny(dropout=0.25)).train()
    places = [
        module for module in model.modules() if isinstance(module, torch.nn.Dropout) and module.p
    ]
    assert len(places) == 1 + 2 * 2  # the embedding, and two sublayers in each of two blocks
    torch.manual_seed(0)
    for dropout in places:
        ones = dropout(torch.ones(20_000))
        assert ones.unique().tolist() == pytest.approx([0, 4 / 3])
        assert ones.mean().item() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(
    "changes", [{}, {"n_encoder_layer": 1}, {"mask": "full", "head": "mean", "n_label": 2}]
)
def test_dropout_on_attention_leaves_weights_out_at_its_rate_and_scales_the_others(
    changes: dict[str, Any],
) -> None:
    rate = 0.25
    record = Record(["*.pattern", "*.v", "*.z"])
    model = scrambled(tiny(attention_dropout=rate, **changes)).train()
    kept: dict[str, torch.Tensor] = {}
    for name, part in model.named_modules():
        if name.endswith("attention.dropout"):
            part.register_forward_hook(
                lambda module, given, made, name=name: kept.update(
                    {name.removesuffix(".dropout"): made}
                )
            )
    torch.manual_seed(0)
    ids = some_ids(batch=200)
    model(ids, ids if changes.get("n_encoder_layer") else None, tap=record)
    # self-attention of all three blocks, and two to cross
    assert len(kept) == (5 if changes.get("n_encoder_layer") else 2)
    for name, weights in kept.items():
        pattern, v, z = (record.values[f"{name}.{what}"] for what in ("pattern", "v", "z"))
        torch.testing.assert_close(
            pattern.sum(-1), torch.ones_like(pattern.sum(-1)), msg="what is recorded is whole"
        )
        seen = pattern > 0
        left_out = seen & (weights == 0)
        assert left_out.sum() / seen.sum() == pytest.approx(rate, abs=0.02)
        torch.testing.assert_close(
            weights[seen & ~left_out], pattern[seen & ~left_out] / (1 - rate)
        )
        torch.testing.assert_close(z, weights @ v)


def test_without_training_dropout_on_attention_changes_nothing() -> None:
    with_dropout, without = (scrambled(tiny(attention_dropout=rate)) for rate in (0.5, 0.0))
    records = Record(), Record()
    assert torch.equal(
        with_dropout(some_ids(), tap=records[0]), without(some_ids(), tap=records[1])
    )
    for name, value in records[1].values.items():
        assert torch.equal(records[0].values[name], value), name


def test_a_config_from_before_there_was_dropout_on_attention_has_none() -> None:
    content = {
        name: value for name, value in tiny().to_dict().items() if name != "attention_dropout"
    }
    assert Config.from_dict(content) == tiny()


def test_more_tokens_than_the_context_holds_are_refused_with_both_numbers() -> None:
    model = scrambled(tiny())
    with pytest.raises(
        ValueError, match=f"{CONTEXT + 1} tokens do not fit in a context of {CONTEXT}"
    ):
        model(some_ids(CONTEXT + 1))
    cache = KVCache(model.config, batch=2)
    model(some_ids(), cache=cache)
    with pytest.raises(ValueError, match=f"{CONTEXT + 1} tokens do not fit"):
        model(some_ids(1), cache=cache)


@many
@given(families())
def test_every_tapped_name_ends_in_a_word_of_the_glossary_and_has_the_shape_it_gives(
    config: Config,
) -> None:
    record = Record()
    scrambled(config)(some_ids(5), tap=record)
    sizes = {
        "B": 2,
        "T": 5,
        "H": config.n_head,
        "n_kv_head": config.key_heads,
        "d_head": config.head_size,
        "d_model": config.d_model,
        "d_mlp": config.mlp_size,
        "n_expert": config.n_expert,
        "expert": config.n_expert + (config.d_shared > 0),
        "vocab_size": config.vocab_size,
        "query": 5,
        "key": 5,
    }
    for name, value in record.values.items():
        meaning = GLOSSARY[name.rpartition(".")[2]]
        shape = meaning[meaning.index("[") + 1 : meaning.index("]")].split(", ")
        assert tuple(value.shape) == tuple(sizes[axis] for axis in shape), name
