"""Prompts with one token changed: they are what they are said to be, and the first of them takes
the answer away furthest.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from gptviz.interp.changing import corrupting
from gptviz.interp.changing.corrupting import likeliest_answers, one_token_changed
from gptviz.interp.changing.patching import PromptPair
from tests.tiny import VOCAB, scrambled, some_ids, tiny


def answer(ids: tuple[int, ...]) -> torch.Tensor:
    with torch.no_grad():
        return scrambled(tiny())(torch.tensor([ids]))[0, -1]


@pytest.mark.parametrize("length", [1, 2, 7])
def test_each_prompt_differs_in_one_token_and_no_two_are_the_same(length: int) -> None:
    ids = tuple(some_ids(length, batch=1)[0].tolist())
    found = one_token_changed(scrambled(tiny()), ids)
    assert len(found) == len(set(found)) > 0
    assert all(
        len(one) == length and sum(a != b for a, b in zip(one, ids, strict=True)) == 1
        for one in found
    )


def test_only_tokens_that_fit_take_the_place_of_others() -> None:
    ids = tuple(some_ids(7, batch=1)[0].tolist())

    def fits(place: int, token: int) -> bool:
        return place in (2, 4) and token % 2 == 0

    found = one_token_changed(scrambled(tiny()), ids, fits)
    changed = {
        (place, new)
        for one in found
        for place, (old, new) in enumerate(zip(ids, one, strict=True))
        if old != new
    }
    assert {place for place, _ in changed} == {2, 4}
    assert all(fits(place, token) for place, token in changed)


def test_the_first_prompt_takes_the_answer_away_furthest_and_the_last_token_stays_where_it_can() -> (
    None
):
    ids = tuple(some_ids(7, batch=1)[0].tolist())
    right = int(answer(ids).argmax())

    def rank(changed: tuple[int, ...]) -> tuple[bool, bool, float]:
        logits = answer(changed)
        others = logits.clone()
        others[right] = -torch.inf
        wrong = int(others.argmax())
        lost = (answer(ids)[right] - answer(ids)[wrong]) - (logits[right] - logits[wrong])
        flips = int(logits.argmax()) != right
        return flips, flips and changed[-1] == ids[-1], float(lost)

    ranks = [rank(changed) for changed in one_token_changed(scrambled(tiny()), ids)]
    assert ranks[0][0]
    for before, after in pairwise(ranks):
        assert before[:2] > after[:2] or (before[:2] == after[:2] and before[2] >= after[2] - 1e-4)


def test_of_a_long_text_the_beginning_is_read_once_and_the_prompts_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = scrambled(tiny(context_length=40))
    ids = some_ids(33, batch=1)[0].tolist()
    expected = one_token_changed(model, ids)
    monkeypatch.setattr(corrupting, "AT_ONCE", 40)
    read: list[int] = []
    hook = model.embed.register_forward_pre_hook(lambda _part, args: read.append(args[0].numel()))
    assert one_token_changed(model, ids) == expected
    hook.remove()
    assert read[0] == 33
    assert max(read[1:]) == corrupting.MOST_PLACES


def test_what_is_tried_is_bounded_by_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corrupting, "SOME", 1)
    ids = tuple(some_ids(7, batch=1)[0].tolist())
    assert len(one_token_changed(scrambled(tiny()), ids)) == corrupting.FEWEST_TRIED


def test_the_likeliest_answers_are_two_different_ones() -> None:
    model = scrambled(tiny())
    ids = tuple(some_ids(7, batch=1)[0].tolist())
    order = answer(ids).argsort(descending=True).tolist()
    assert likeliest_answers(model, PromptPair(ids, ids, 0, 0)) == (order[0], order[1])
    other = (*ids[:3], (ids[3] + 1) % VOCAB, *ids[4:])
    right, wrong = likeliest_answers(model, PromptPair(ids, other, 0, 0))
    assert right == order[0]
    assert wrong == next(
        token for token in answer(other).argsort(descending=True).tolist() if token != right
    )
