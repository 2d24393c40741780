"""A sequence that grows: with a cache and without, past the context, undone and taken again, it is
one and the same.
"""

from __future__ import annotations

from itertools import islice

import pytest
import torch
from torch import Tensor

from gptviz.generate.generation import Generation, window_start
from gptviz.generate.sampling import Sampling, choose_tokens
from gptviz.model import Record, Transformer
from gptviz.model.parts.positions import POSITIONS
from tests.tiny import CONTEXT, scrambled, some_ids, tiny

# (tokens in the prompt, how far the window slides): shorter than the context, filling it, longer.
CASES = [(prompt, slide) for prompt in (1, 3, CONTEXT, CONTEXT + 5) for slide in (1, 3, CONTEXT)]


def plain_loop(
    model: Transformer, ids: list[int], sampling: Sampling, count: int, slide: int = 1
) -> tuple[list[int], list[Tensor]]:
    """Generation as a reader would write it: every token from a whole pass over what the model
    sees.
    """
    ids = list(ids)
    all_logits = []
    for _ in range(count):
        start = 0
        while len(ids) - start > model.config.context_length:
            start += slide
        with torch.inference_mode():
            logits = model(torch.tensor([ids[start:]]))[:, -1]
        all_logits.append(logits)
        ids.append(int(choose_tokens(logits, sampling, len(ids))))
    return ids, all_logits


@pytest.mark.parametrize(("prompt", "slide"), CASES)
@pytest.mark.parametrize("use_cache", [True, False])
def test_every_step_has_the_logits_of_a_whole_pass_over_the_window(
    prompt: int, slide: int, use_cache: bool
) -> None:
    model = scrambled(tiny(positions="rotary"))
    ids = some_ids(prompt, batch=1)[0]
    count = 3 * CONTEXT
    sampling = Sampling(temperature=0.8, top_k=6, seed=4)
    expected_ids, expected_logits = plain_loop(model, ids.tolist(), sampling, count, slide)
    grown = Generation(model, ids, sampling, use_cache=use_cache, slide=slide)
    steps = list(islice(grown, count))
    assert grown.ids[0].tolist() == expected_ids
    assert [step.position for step in steps] == list(range(prompt, prompt + count))
    assert [step.tokens.item() for step in steps] == expected_ids[prompt:]
    for step, logits in zip(steps, expected_logits, strict=True):
        torch.testing.assert_close(step.logits, logits, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("positions", POSITIONS)
def test_the_cache_changes_nothing_for_any_kind_of_positions(positions: str) -> None:
    model = scrambled(tiny(positions=positions)).double()
    runs = [
        list(islice(Generation(model, some_ids(2)[0], use_cache=cache, slide=3), 20))
        for cache in (True, False)
    ]
    for cached, whole in zip(*runs, strict=True):
        assert torch.equal(cached.tokens, whole.tokens)
        torch.testing.assert_close(cached.logits, whole.logits, rtol=1e-9, atol=1e-9)


def test_a_cache_that_is_full_takes_more_room_and_can_be_written_to_in_every_mode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gptviz.model.parts.attention.ROOM", 3)
    model = scrambled(tiny(positions="rotary"))
    ids = some_ids(2, batch=1)[0]
    grown, whole = (
        Generation(model, ids, Sampling(temperature=0), use_cache=cache) for cache in (True, False)
    )
    rooms = []
    for step, expected in zip(islice(grown, 6), islice(whole, 6), strict=True):
        torch.testing.assert_close(step.logits, expected.logits, rtol=1e-4, atol=1e-4)
        rooms.append(grown.cache.layers[0].keys.shape[2])
    assert rooms == [3, 3, 6, 6, 6, 9]
    cache = model.new_cache(2, 3)
    rows = some_ids(7, batch=2)
    with torch.inference_mode():
        for at in range(7):
            model(rows[:, at : at + 1], cache=cache)
    before = cache.layers[0].keys[:, :, :7].clone()
    cache.reorder(torch.tensor([1, 0]))  # as a search with beams does, outside of inference
    assert torch.equal(cache.layers[0].keys[:, :, :7], before.flip(0))


@pytest.mark.parametrize(
    ("slide", "passes"),
    [
        (1, [3, 1, 1, 1, 1, 1, 8, 8, 8, 8, 8, 8]),
        (3, [3, 1, 1, 1, 1, 1, 6, 1, 1, 6, 1, 1]),
        (8, [3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
    ],
)
def test_with_the_cache_a_step_computes_its_own_token_alone_until_the_window_slides(
    slide: int, passes: list[int]
) -> None:
    model = scrambled(tiny())
    computed: list[int] = []
    model.embed.register_forward_pre_hook(lambda _, inputs: computed.append(inputs[0].shape[1]))
    list(islice(Generation(model, some_ids(3)[0], slide=slide), 12))
    assert computed == passes


def test_a_model_that_looks_ahead_is_run_whole_whatever_the_cache() -> None:
    model = scrambled(tiny(mask="full"))
    expected_ids, expected_logits = plain_loop(model, [1, 2], Sampling(), 12)
    grown = Generation(model, torch.tensor([1, 2]), use_cache=True)
    for step, logits in zip(islice(grown, 12), expected_logits, strict=True):
        torch.testing.assert_close(step.logits, logits)
    assert grown.ids[0].tolist() == expected_ids


@pytest.mark.parametrize("slide", [1, 3, CONTEXT])
def test_the_window_is_the_last_tokens_that_fit_and_moves_by_the_slide(slide: int) -> None:
    for length in range(1, 5 * CONTEXT):
        start = window_start(length, CONTEXT, slide)
        assert start % slide == 0
        assert 1 <= length - start <= CONTEXT
        assert start == 0 or length - (start - slide) > CONTEXT
    assert window_start(CONTEXT + 1, CONTEXT, slide) == slide


@pytest.mark.parametrize(("prompt", "slide"), CASES)
def test_undoing_restores_the_same_ids_and_the_same_bits_and_so_does_going_on_again(
    prompt: int, slide: int
) -> None:
    model = scrambled(tiny())
    grown = Generation(model, some_ids(prompt, batch=1)[0], Sampling(seed=1), slide=slide)
    past: dict[int, tuple[Tensor, Tensor]] = {}
    for _ in range(4 * CONTEXT):
        past[grown.ids.shape[1]] = (grown.ids, grown.logits)
        next(grown)

    def check() -> None:
        ids, logits = past[grown.ids.shape[1]]
        assert torch.equal(grown.ids, ids)
        assert torch.equal(grown.logits, logits)

    for steps, again in [
        (CONTEXT, 0),
        (1, 3),
        (5, 2),
        (2, 2),
        (CONTEXT + 3, 4),
        (1, 1),
        (10, 0),
        (100, 2 * CONTEXT),
    ]:
        grown.undo(steps)
        check()
        for _ in range(again):
            next(grown)
            check()


def test_the_prompt_cannot_be_undone_and_no_steps_are_none() -> None:
    grown = Generation(scrambled(tiny()), some_ids(3)[0])
    list(islice(grown, 2))
    logits = grown.logits
    for steps in (0, -1):
        grown.undo(steps)
        assert grown.ids.shape == (1, 5)
        assert torch.equal(grown.logits, logits)
    grown.undo(100)
    assert torch.equal(grown.ids[0], some_ids(3)[0])


@pytest.mark.parametrize("count", [4, 2 * CONTEXT])
def test_a_token_chosen_by_hand_leads_elsewhere_and_undoing_it_leads_back(count: int) -> None:
    model = scrambled(tiny())
    grown = Generation(model, some_ids(2)[0])
    list(islice(grown, count))
    ids = grown.ids
    logits = grown.logits
    drawn = next(grown).tokens
    grown.undo()
    other = (drawn + 1) % 11
    step = grown.take(other)
    assert step.position == count + 2
    assert torch.equal(step.logits, logits)
    assert torch.equal(grown.ids[:, -1], other)
    seen = grown.ids[:, grown.window]
    with torch.inference_mode():
        torch.testing.assert_close(grown.logits, model(seen)[:, -1], rtol=1e-4, atol=1e-4)
    grown.undo()
    assert torch.equal(grown.ids, ids)
    assert torch.equal(grown.logits, logits)
    assert torch.equal(next(grown).tokens, drawn)


def test_the_settings_can_change_on_the_way() -> None:
    grown = Generation(scrambled(tiny()), some_ids(2)[0])
    list(islice(grown, 5))
    likeliest = grown.logits.argmax(-1)
    grown.sampling = Sampling(temperature=0)
    assert torch.equal(next(grown).tokens, likeliest)


def test_a_context_of_one_token_slides_too() -> None:
    model = scrambled(tiny(context_length=1))
    expected, _ = plain_loop(model, [3], Sampling(), 10)
    grown = Generation(model, torch.tensor([3]))
    list(islice(grown, 10))
    assert grown.ids[0].tolist() == expected


@pytest.mark.parametrize(("prompt", "slide"), CASES)
def test_another_branch_has_the_bits_it_would_have_had_alone(prompt: int, slide: int) -> None:
    model = scrambled(tiny())
    ids = some_ids(prompt, batch=1)[0]
    moving = Generation(model, ids, slide=slide)
    branches = [some_ids(3 * CONTEXT, batch=1, seed=seed) for seed in (1, 2)]
    for start, length, which in [
        (0, 5, 0),
        (2, 9, 1),
        (1, 20, 0),
        (20, 24, 0),
        (3, 4, 0),
        (0, 24, 1),
        (24, 24, 1),
        (0, 0, 0),
    ]:
        start = min(start, moving.ids.shape[1] - prompt)
        moving.replace(prompt + start, branches[which][:, start:length])
        alone = Generation(model, ids, slide=slide)
        for token in moving.ids[0, prompt:]:
            alone.take(token[None])
        assert torch.equal(moving.ids, alone.ids)
        assert torch.equal(moving.logits, alone.logits)


def test_a_tap_sees_the_pass_that_gives_the_logits_and_no_other() -> None:
    model = scrambled(tiny())
    record = Record("logits")
    grown = Generation(model, some_ids(3)[0], tap=record)
    for _ in range(2 * CONTEXT):
        logits = grown.logits
        assert torch.equal(record.values.pop("logits")[:, -1], logits)
        assert not record.values
        next(grown)
        if grown.ids.shape[1] == 7:  # five tokens to compute again, of which the last counts
            grown.replace(3, some_ids(5, batch=1, seed=3))
