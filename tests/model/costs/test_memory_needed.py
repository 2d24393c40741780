"""The memory that a model needs by estimate, against the tensors that a pass makes and the numbers
that it holds.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gptviz.machine.memory import LEAST_WITHIN_A_PASS
from gptviz.model import Config, Transformer, build, preset
from gptviz.model.builder import lay_out
from gptviz.model.costs.memory_needed import MemoryNeeded, estimate_memory, refusal, to_read
from gptviz.train.estimate import Follow
from tests.tiny import tiny

WIDE: dict[str, Any] = {
    "n_head": 8,
    "n_kv_head": 2,
    "mlp": "gated",
    "positions": "rotary",
    "norm": "rmsnorm",
    "d_model": 256,
}
SHAPES = {
    "gpt2": (preset("gpt2"), (64, 1_024)),
    "many tokens": (preset("gpt2", vocab_size=200_000, n_layer=2), (16, 256)),
    "grouped and gated": (preset("gpt2", n_layer=4, **WIDE), (16, 512)),
    "no MLP": (preset("gpt2", n_layer=4, d_mlp=0), (512,)),
    "a long text": (preset("gpt2", n_layer=4, context_length=8_192, **WIDE), (2_048, 8_192)),
    "every token sees every token": (
        preset("gpt2", n_layer=2, mask="full", padding=0),
        (512, 1_024),
    ),
}


def without_content(config: Config) -> Transformer:
    """The model on the meta device, where tensors have a shape alone."""
    with torch.device("meta"):
        return lay_out(config).eval()


def most_at_once(model: Transformer, tokens: int, *, cached: bool = False) -> float:
    """The most bytes that a pass over `tokens` tokens has at once besides the model."""
    with torch.inference_mode(), Follow([*model.parameters(), *model.buffers()]) as follow:
        cache = model.new_cache(1, tokens) if cached else None
        model(
            torch.zeros(1, tokens, dtype=torch.long, device="meta"),
            cache=cache,
            logits_at=slice(-1, None),
        )
    return follow.peak


@pytest.mark.parametrize("name", SHAPES)
def test_a_text_takes_about_what_the_tensors_of_a_pass_take_at_once(name: str) -> None:
    config, lengths = SHAPES[name]
    model = without_content(config)
    largest = max(parameter.nbytes for parameter in model.parameters())
    for tokens in lengths:
        estimated = estimate_memory(config, tokens=tokens).working
        counted = most_at_once(model, tokens)
        cache = 8 * config.n_layer * tokens * config.key_heads * config.head_size
        assert max(counted, largest) <= estimated <= max(1.5 * counted + cache, largest)


@pytest.mark.parametrize("tokens", [2_048, pytest.param(8_000, marks=pytest.mark.full)])
def test_a_long_text_takes_no_more_than_is_estimated_and_not_much_less(tokens: int) -> None:
    config = preset("gpt2", **WIDE, context_length=8_192)
    counted = most_at_once(without_content(config), tokens, cached=True)
    assert counted <= to_read(config, tokens) <= 3 * counted + LEAST_WITHIN_A_PASS


def test_weights_take_as_many_bytes_as_their_numbers() -> None:
    config = tiny()
    assert estimate_memory(config).weights == sum(
        parameter.nbytes for parameter in build(config, seed=0).parameters()
    )
    assert estimate_memory(config, 2).weights == estimate_memory(config).weights / 2


def test_a_model_that_does_not_fit_is_refused_with_what_it_needs_and_what_is_free() -> None:
    needs = MemoryNeeded(weights=5 * 10**9, working=10**9, tokens=1_024, number=4)
    message = refusal(needs, 6 * 10**9)
    assert message is not None
    assert "about 6 GB of memory, 5 GB of it for its weights" in message
    assert "text of 1,024 tokens, and 6 GB is free" in message
    assert refusal(needs, 7 * 10**9) is None


def test_a_model_of_any_size_is_weighed_without_memory() -> None:
    assert (
        estimate_memory(
            Config(
                vocab_size=1_000_000, context_length=8_192, d_model=16_384, n_layer=200, n_head=64
            )
        ).total
        > 2e12
    )
