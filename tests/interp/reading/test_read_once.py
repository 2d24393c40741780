"""One pass over a text gives what is asked of it one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gptviz.interp.compare import Side, distribution
from gptviz.interp.explaining.attribution import attribute
from gptviz.interp.reading.read_once import read_once
from tests.tiny import scrambled, some_ids, tiny


@pytest.mark.parametrize(
    "changes", [{}, {"positions": "rotary", "d_head": 4}, {"mask": "causal", "n_layer": 0}]
)
def test_a_long_text_is_read_once_and_gives_what_is_computed_apart(
    changes: dict[str, Any],
) -> None:
    model = scrambled(tiny(context_length=40, **changes))
    ids = some_ids(33, batch=1)[0].tolist()
    with torch.no_grad():
        expected = model(torch.tensor([ids]))[0, -1].double().softmax(-1).numpy()
    heads = [part for part in attribute(model, ids).parts if ".head." in part.name]
    read: list[int] = []
    hook = model.embed.register_forward_pre_hook(lambda _part, args: read.append(args[0].numel()))
    found = read_once(model, ids)
    hook.remove()
    assert read == [33]
    np.testing.assert_allclose(found.distribution, expected, rtol=1e-4, atol=1e-6)
    best = max(heads, key=lambda part: part.value, default=None)
    if best is None or best.value <= 0:
        assert found.strongest is None
    else:
        assert found.strongest.name == best.name
        assert found.strongest.value == pytest.approx(best.value, abs=1e-4)


def test_a_text_has_the_same_numbers_on_both_sides_to_the_last_digit() -> None:
    model = scrambled(tiny(context_length=40, positions="rotary", d_head=4))
    ids = tuple(some_ids(33, batch=1)[0].tolist())
    assert np.array_equal(read_once(model, ids).distribution, distribution(Side(model, ids, ())))
