"""A long text in several passes: the numbers of one pass, with fewer in memory."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
import torch

from gptviz.generate.generation import Generation
from gptviz.generate.sampling import Sampling
from gptviz.interp.next_token import places
from gptviz.model import Config, Watch, passes, read_in_passes
from tests.tiny import scrambled, some_ids, tiny

LONG: dict[str, Any] = {"context_length": 40, "n_layer": 3}
CONFIGS = {
    "learned": tiny(**LONG),
    "rotary, a window": tiny(**LONG, positions="rotary", d_head=4, window=5, window_pattern="fw"),
    "alibi": tiny(**LONG, positions="alibi"),
}


@pytest.mark.parametrize("multiple", [1, 4, 64])
def test_passes_follow_each_other_through_the_whole_text_and_have_few_scores(
    multiple: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = CONFIGS["learned"]
    assert passes(config, 40, multiple=multiple) == [slice(0, 40)]
    assert passes(tiny(mask="full"), 10**6) == [slice(0, 10**6)]
    monkeypatch.setattr("gptviz.model.long_texts.MOST_SCORES", 2_000)
    for length in (1, 16, 17, 39, 40):
        found = passes(config, length, batch=2, multiple=multiple)
        assert [token for at in found for token in range(at.start, at.stop)] == list(range(length))
        assert all((at.stop - at.start) % multiple == 0 for at in found[:-1])
        rows = max(at.stop - at.start for at in found)
        assert rows <= multiple or 2 * config.n_head * length * rows <= 2_000


@pytest.mark.parametrize("name", CONFIGS)
def test_several_passes_give_the_numbers_of_one_and_none_has_all_scores(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = scrambled(CONFIGS[name])
    ids = some_ids(37, 1)
    expected, whole = places(model, ids[0].tolist()), model(ids)[:, -1:]
    monkeypatch.setattr("gptviz.model.long_texts.MOST_SCORES", 700)
    sizes: list[int] = []
    logits = read_in_passes(model, ids, Watch(["*.scores"], lambda _name, scores: sizes.append(scores.numel())))
    torch.testing.assert_close(logits, whole, rtol=1e-4, atol=1e-4)
    assert len(sizes) > 2 * model.config.n_layer
    assert max(sizes) <= 700
    found = places(model, ids[0].tolist())
    torch.testing.assert_close(found.states, expected.states, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.surest, expected.surest, rtol=1e-4, atol=1e-4)


def written(config: Config, samples: int) -> torch.Tensor:
    grown = Generation(scrambled(config), some_ids(30, 1)[0], Sampling(seed=3), samples=samples, slide=4)
    for _ in islice(grown, 14):
        pass
    return grown.ids


@pytest.mark.parametrize("samples", [1, 3])
def test_a_long_prompt_is_read_in_several_passes_and_the_text_is_the_same(samples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    config = CONFIGS["rotary, a window"]
    expected = written(config, samples)
    monkeypatch.setattr("gptviz.model.long_texts.MOST_SCORES", 300)
    assert len(passes(config, 30, batch=samples)) > 5
    assert torch.equal(written(config, samples), expected)
