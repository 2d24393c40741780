"""A long text in several passes, or in parts: the numbers of one pass, with fewer in memory."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from gptviz.generate.generation import Generation
from gptviz.generate.sampling import Sampling
from gptviz.interp.explaining.attribution import attribute
from gptviz.interp.reading.next_token import guesses
from gptviz.interp.trace import run
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
def test_several_passes_give_the_numbers_of_one_and_none_has_all_scores(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = scrambled(CONFIGS[name])
    ids = some_ids(37, 1)
    whole = model(ids)[:, -1:]
    monkeypatch.setattr("gptviz.model.long_texts.MOST_SCORES", 700)
    sizes: list[int] = []
    logits = read_in_passes(
        model, ids, Watch(["*.scores"], lambda _name, scores: sizes.append(scores.numel()))
    )
    torch.testing.assert_close(logits, whole, rtol=1e-4, atol=1e-4)
    assert len(sizes) > 2 * model.config.n_layer
    assert max(sizes) <= 700


@pytest.mark.parametrize("name", [*CONFIGS, "relative"])
def test_one_pass_over_a_long_text_has_few_scores_at_a_time(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = scrambled(CONFIGS.get(name, tiny(**LONG, positions="relative")))
    n_head = model.config.n_head
    ids = some_ids(37, 1)
    expected = run(model, ids)
    guessed = guesses(model, ids[0].tolist())
    monkeypatch.setattr("gptviz.model.parts.attention.MOST_SCORES", 700)
    parts: dict[str, list[torch.Tensor]] = {}
    watch = Watch(
        ["*.scores", "*.pattern"],
        lambda tap, value: parts.setdefault(tap, []).append(value),
        in_parts=True,
    )
    with torch.inference_mode():
        torch.testing.assert_close(model(ids, tap=watch), expected["logits"], rtol=1e-4, atol=1e-4)
    assert {tap.rpartition(".")[2] for tap in parts} == {"scores", "pattern"}
    for tap, rows in parts.items():
        assert len(rows) > 2
        assert max(part.numel() for part in rows) <= 700
        # [1, n_head, 37, 37]
        seen = torch.cat([F.pad(part, (0, 37 - part.shape[-1])) for part in rows], dim=2)
        assert seen.shape == (1, n_head, 37, 37)
        reached = torch.arange(37) <= torch.arange(37)[:, None]
        torch.testing.assert_close(
            seen[..., reached], expected[tap][..., reached], rtol=1e-4, atol=1e-4
        )
    # What nobody looks at is computed in parts too; what is asked for as a whole is given as a
    # whole.
    without = [tap for tap in expected if not tap.endswith((".scores", ".pattern"))]
    for asked in (without, ["*"]):
        trace = run(model, ids, asked)
        assert all(torch.allclose(trace[tap], expected[tap], rtol=1e-4, atol=1e-4) for tap in trace)
    cache = model.new_cache()
    model(ids[:, :20], cache=cache)
    torch.testing.assert_close(
        model(ids[:, 20:], cache=cache), expected["logits"][:, 20:], rtol=1e-4, atol=1e-4
    )
    found = guesses(model, ids[0].tolist())
    torch.testing.assert_close(found.states, guessed.states, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.surest, guessed.surest, rtol=1e-4, atol=1e-4)


def test_an_edit_of_a_pattern_gets_it_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    model = scrambled(CONFIGS["learned"])
    ids = some_ids(37, 1)
    even: dict[str, Any] = {
        "edits": {"blocks.1.attention.pattern": lambda pattern: pattern.flip(1)}
    }
    expected = run(model, ids, ["logits"], **even)["logits"]
    monkeypatch.setattr("gptviz.model.parts.attention.MOST_SCORES", 700)
    torch.testing.assert_close(
        run(model, ids, ["logits"], **even)["logits"], expected, rtol=1e-4, atol=1e-4
    )


def test_a_logit_is_the_same_sum_of_parts_where_patterns_come_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = scrambled(CONFIGS["rotary, a window"])
    ids = some_ids(37, 1)[0].tolist()
    expected = attribute(model, ids, position=30)
    monkeypatch.setattr("gptviz.model.parts.attention.MOST_SCORES", 700)
    found = attribute(model, ids, position=30)
    assert found.adds_up
    assert [part.name for part in found.parts] == [part.name for part in expected.parts]
    np.testing.assert_allclose(
        [part.value for part in found.parts], [part.value for part in expected.parts], atol=1e-4
    )
    assert found.sources.keys() == expected.sources.keys()
    for head, values in found.sources.items():
        np.testing.assert_allclose(values, expected.sources[head], atol=1e-4)


def test_the_end_of_a_trace_is_the_end_of_the_whole_one() -> None:
    model = scrambled(CONFIGS["learned"])
    ids = some_ids(37, 1)
    whole = run(model, ids)
    end = run(model, ids, last=5)
    assert list(whole) == list(end)
    assert all(torch.equal(end[tap], value[..., -5:, :]) for tap, value in whole.items())


def written(config: Config) -> torch.Tensor:
    grown = Generation(scrambled(config), some_ids(30, 1)[0], Sampling(seed=3), slide=4)
    for _ in islice(grown, 14):
        pass
    return grown.ids


def test_what_follows_a_long_prompt_is_the_same_where_it_is_read_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = CONFIGS["rotary, a window"]
    expected = written(config)
    monkeypatch.setattr("gptviz.model.parts.attention.MOST_SCORES", 300)
    assert torch.equal(written(config), expected)


def test_a_long_pass_gives_back_memory_after_every_block_and_a_short_one_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = scrambled(CONFIGS["learned"])
    given = list[int]()
    monkeypatch.setattr("gptviz.model.transformer.release_memory", given.append)
    monkeypatch.setattr("gptviz.model.transformer.LONG", 30)
    with torch.inference_mode():
        model(some_ids(29, 1))
        assert not given
        model(some_ids(30, 1))
    assert len(given) == model.config.n_layer
    model(some_ids(30, 1))  # what a derivative needs is not freed after a block
    assert len(given) == model.config.n_layer
