"""One pass over a text gives what is asked of it one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gptviz.interp.changing import corrupting
from gptviz.interp.changing.corrupting import one_token_changed
from gptviz.interp.compare import Side, distribution
from gptviz.interp.explaining.attribution import attribute
from gptviz.interp.reading.read_once import read_once
from tests.tiny import scrambled, some_ids, tiny


@pytest.mark.parametrize("changes", [{}, {"positions": "rotary", "d_head": 4}, {"mask": "causal", "n_layer": 0}])
def test_a_long_text_is_read_once_and_gives_what_is_computed_apart(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, ids = scrambled(tiny(context_length=40, **changes)), some_ids(33, batch=1)[0].tolist()
    with torch.no_grad():
        expected = model(torch.tensor([ids]))[0, -1].double().softmax(-1).numpy()
    prompts = one_token_changed(model, ids)
    heads = [part for part in attribute(model, ids).parts if ".head." in part.name]
    monkeypatch.setattr(corrupting, "AT_ONCE", 40)
    read: list[int] = []
    hook = model.embed.register_forward_pre_hook(lambda _part, args: read.append(args[0].numel()))
    found = read_once(model, ids)
    hook.remove()
    assert read.count(33) == 1
    assert max(read[1:]) == corrupting.MOST_PLACES
    np.testing.assert_allclose(found.distribution, expected, rtol=1e-4, atol=1e-6)
    assert list(found.changed) == prompts
    best = max(heads, key=lambda part: part.value, default=None)
    if best is None or best.value <= 0:
        assert found.strongest is None
    else:
        assert found.strongest.name == best.name
        assert found.strongest.value == pytest.approx(best.value, abs=1e-4)


@pytest.mark.parametrize("at_once", [2_048, 40])
def test_a_text_has_the_same_numbers_on_both_sides_to_the_last_digit(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, ids = scrambled(tiny(context_length=40, positions="rotary", d_head=4)), tuple(some_ids(33, batch=1)[0].tolist())
    monkeypatch.setattr(corrupting, "AT_ONCE", at_once)
    assert np.array_equal(read_once(model, ids).distribution, distribution(Side(model, ids, ())))
