"""What exists for speed alone changes no results."""

from __future__ import annotations

import weakref

import pytest
import torch

from gptviz.model import Transformer, build
from gptviz.model.builder import lay_out
from gptviz.model.fast import HAS_LARGE_PAGES, LINE, Arena, ShortRMSNorm, make_fast, product
from gptviz.model.parts.norms import RMSNorm
from gptviz.model.parts.part import Linear
from gptviz.model.precision import place
from tests.tiny import scrambled, some_ids, tiny

RMS = tiny(norm="rmsnorm", mlp="gated", norm_bias=False)


def parts(model: Transformer) -> tuple[list[Linear], list[RMSNorm]]:
    linear = [part for part in model.modules() if isinstance(part, Linear)]
    return linear, [part for part in model.modules() if isinstance(part, RMSNorm)]


@pytest.mark.parametrize("gain", [True, False])
@pytest.mark.parametrize("tokens", [1, 5])
def test_a_model_that_is_made_fast_gives_the_logits_of_one_that_is_not(
    tokens: int, gain: bool
) -> None:
    config = tiny(norm="rmsnorm", norm_gain=gain, mlp="gated")
    plain = lay_out(config).eval()
    ids = some_ids(tokens, 1)
    plain.load_state_dict(scrambled(config).state_dict())
    fast = lay_out(config).eval()
    fast.load_state_dict(plain.state_dict())
    make_fast(fast)
    assert not any(isinstance(norm.normalise, ShortRMSNorm) for norm in parts(plain)[1])
    with torch.inference_mode():
        torch.testing.assert_close(fast(ids), plain(ids))


def test_a_model_that_is_built_or_opened_is_fast() -> None:
    built = build(RMS, seed=0)
    opened = place(lay_out(RMS), built.named_parameters(), precision="float32")
    for model in (built, opened):
        linear, norms = parts(model)
        assert len(linear) > 8
        assert len(norms) == 5
        assert all(part.multiply is product for part in linear)
        assert all(isinstance(norm.normalise, ShortRMSNorm) for norm in norms)


def test_weights_lie_side_by_side_in_few_pieces_that_are_given_back_with_the_last_of_them() -> None:
    arena = Arena(4_096)
    tensors = [
        arena.new_tensor(shape, torch.float32).fill_(index)
        for index, shape in enumerate([(3, 5), (7,), (40, 50), (0,), (2, 2)])
    ]
    # none lies on another
    assert [set(tensor.flatten().tolist()) for tensor in tensors] == [{0}, {1}, {2}, set(), {4}]
    assert [tuple(tensor.shape) for tensor in tensors] == [(3, 5), (7,), (40, 50), (0,), (2, 2)]
    assert all(tensor.data_ptr() % LINE == 0 for tensor in tensors)
    if HAS_LARGE_PAGES:
        piece = weakref.ref(arena._piece)
        del arena
        assert piece() is not None
        del tensors
        assert piece() is None
