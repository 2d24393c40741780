"""A step of one token gives, bit by bit, what the pass gives that it stands for."""

from __future__ import annotations

from itertools import islice

import pytest
import torch
from torch import Tensor

from gptviz.generate.generation import Generation
from gptviz.model import Config, Tap, Transformer, one_token
from gptviz.model.builder import lay_out
from gptviz.model.one_token import FEW_BYTES, OneToken
from gptviz.model.packed import FourBitProduct, Packed
from gptviz.model.parts.attention import ROOM
from gptviz.model.parts.part import Linear
from gptviz.model.precision import PRECISIONS, place
from tests.examples import tried
from tests.model.test_packed import both_products, held, multiply_by
from tests.tiny import CONTEXT, NO_SHORTCUTS, families, scrambled, some_ids, tiny


@torch.inference_mode()
def steps(model: Transformer, length: int) -> list[tuple[Tensor, Tensor]]:
    """The logits of every token but the first by a step, and by a pass with a cache of its own."""
    ids = some_ids(length, batch=1)
    caches = [model.new_cache(room=1) for _ in range(2)]
    for cache in caches:
        model(ids[:, :1], cache=cache)
    step = OneToken.for_model(model, caches[0])
    assert step is not None
    found = []
    for position in range(1, min(length, step.limit)):
        one = ids[:, position : position + 1]
        found.append((step(one), model(one, cache=caches[1])))
        assert caches[0].length == caches[1].length == position + 1
    return found


@tried(40, 300, config=families(mask="causal", **NO_SHORTCUTS))
def test_it_gives_the_bits_of_a_pass_in_any_family(config: Config) -> None:
    if config.n_layer == 0:
        assert OneToken.for_model(scrambled(config), scrambled(config).new_cache()) is None
        return
    assert all(torch.equal(mine, whole) for mine, whole in steps(scrambled(config), CONTEXT))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_it_does_so_in_every_precision_and_while_the_cache_grows(precision: str) -> None:
    config = tiny(context_length=3 * ROOM, positions="rotary", mlp="gated", norm="rmsnorm")
    source = scrambled(config)
    short = (
        (name, weight.bfloat16() if weight.ndim == 2 else weight)
        for name, weight in source.named_parameters()
    )
    found = steps(place(lay_out(config).eval(), short, precision=precision), 3 * ROOM)
    assert len(found) == 3 * ROOM - 1
    assert all(torch.equal(mine, whole) for mine, whole in found)


@both_products
@pytest.mark.parametrize("bias", [False, True])
def test_it_does_so_with_matrices_at_the_bits_of_their_file(
    bias: bool, product: FourBitProduct, monkeypatch: pytest.MonkeyPatch
) -> None:
    multiply_by(monkeypatch, product)
    sizes = {
        "d_model": 64,
        "n_head": 4,
        "n_kv_head": 2,
        "d_mlp": 96,
        "vocab_size": 50,
        "tied": False,
    }
    config = tiny(
        **sizes,
        mlp="gated",
        norm="rmsnorm",
        positions="rotary",
        qkv_bias=bias,
        output_bias=bias,
        mlp_bias=bias,
    )
    laid = lay_out(config).eval()
    matrices = {
        f"{name}.weight": part.weight.shape
        for name, part in laid.named_modules()
        if isinstance(part, Linear)
    }

    def weight(name: str, drawn: Tensor, seed: int) -> Tensor:
        if name not in matrices:
            return drawn
        rows, width = matrices[name]
        # Rows of different kinds, as the values of Q4_K_M files have them; 8 bits are two layers of
        # 4.
        stacked = [
            Packed([held(some, width, bits, seed=seed)]) for some, bits in ((rows - 20, 4), (20, 8))
        ]
        return torch.cat(stacked)

    drawn = enumerate(scrambled(config).named_parameters())
    model = place(
        laid,
        [(name, weight(name, tensor, seed)) for seed, (name, tensor) in drawn],
        precision="stored",
    )
    assert isinstance(model.get_parameter("blocks.0.attention.qkv.weight"), Packed)
    assert all(torch.equal(mine, whole) for mine, whole in steps(model, CONTEXT))


class Doubled(Tap):
    """Keeps the patterns, and puts one in the place of each that looks twice as hard at the first
    token.
    """

    only_patterns = True

    def __init__(self) -> None:
        self.seen: dict[str, Tensor] = {}
        self.path = ""

    def for_part(self, part: str) -> Tap:
        inner = Doubled()
        inner.seen = self.seen
        inner.path = f"{self.path}{part}."
        return inner

    def __call__(self, name: str, value: Tensor) -> Tensor:
        if name != "pattern":
            return value
        self.seen[self.path + name] = value.clone()
        return torch.cat((2 * value[..., :1], value[..., 1:]), dim=-1)


def test_a_tap_sees_and_replaces_the_patterns_of_a_step_as_those_of_a_pass() -> None:
    model = scrambled(tiny(n_kv_head=1))
    ids = some_ids(4, batch=1)
    taps = (Doubled(), Doubled())
    caches = [model.new_cache() for _ in range(2)]
    with torch.inference_mode():
        for cache in caches:
            model(ids[:, :3], cache=cache)
        step = OneToken.for_model(model, caches[0])
        assert step is not None
        assert torch.equal(
            step(ids[:, 3:], taps[0]), model(ids[:, 3:], cache=caches[1], tap=taps[1])
        )
    assert list(taps[0].seen) == ["blocks.0.attention.pattern", "blocks.1.attention.pattern"]
    assert all(torch.equal(value, taps[1].seen[name]) for name, value in taps[0].seen.items())


def test_generation_takes_steps_where_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    real = OneToken.__call__
    monkeypatch.setattr(
        OneToken,
        "__call__",
        lambda step, ids, tap: taken.append(step.cache.length) or real(step, ids, tap),
    )
    model = scrambled(tiny(window=CONTEXT - 2))
    list(islice(Generation(model, some_ids(3, batch=1)[0]), 2 * CONTEXT))
    # the prompt is a pass; past the window, and past the context, so is every token
    assert taken == [3, 4, 5]
    list(islice(Generation(model, some_ids(3, batch=1)[0], use_cache=False), 2))
    assert taken == [3, 4, 5]


@pytest.mark.parametrize(("few", "expected"), [(FEW_BYTES, 1), (0, 3)])
def test_one_thread_reads_a_small_model_and_all_of_them_a_larger_one(
    few: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_token, "FEW_BYTES", few)
    seen: set[int] = set()
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        model = scrambled(tiny())
        tap = Counting(seen)
        with torch.inference_mode():
            cache = model.new_cache()
            model(some_ids(2, batch=1), cache=cache)
            step = OneToken.for_model(model, cache)
            assert step is not None
            step(some_ids(1, batch=1), tap)
        assert (seen, torch.get_num_threads()) == ({expected}, 3)
    finally:
        torch.set_num_threads(before)


class Counting(Tap):
    """Notes on how many threads what it sees was computed."""

    only_patterns = True

    def __init__(self, seen: set[int]) -> None:
        super().__init__()
        self.threads = seen

    def __call__(self, name: str, value: Tensor) -> Tensor:
        self.threads.add(torch.get_num_threads())
        return value
