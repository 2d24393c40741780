"""A corrupted prompt for a clean one: the change of one token that takes a model's answer away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from gptviz.model import KVCache, Transformer
from gptviz.model.costs.effort import SOME, effort

from ..reading.next_token import Logits, logits_after
from ..trace import one_row
from .patching import PromptPair

# How many tokens before the last one may change, and how many tokens are tried in the place of
# each.
MOST_PLACES = 24
EACH = 3
# Among this many that the model finds likeliest in its place.
LOOKED_AT = 50
# This many tokens are read in one pass.
AT_ONCE = 2_048
# How many changes are tried at least, however large the model is.
FEWEST_TRIED = 3


@torch.inference_mode()
def likeliest_answers(model: Transformer, pair: PromptPair) -> tuple[int, int]:
    """The likeliest answer to the clean prompt, and the likeliest other one to the corrupted one;
    `pair` may have others.
    """
    device = model.embed.weight.device
    logits = model(pair.ids(device), pair.sources(device), logits_at=slice(-1, None)).reshape(2, -1)
    right = int(logits[0].argmax())
    logits[1, right] = float("-inf")
    return right, int(logits[1].argmax())


class _Before(NamedTuple):
    """The results of a pass over a prompt that its changes need, so that they need not read the
    prompt again.
    """

    #: the logits [places, vocab_size] before each place that may change, and after the last token
    guesses: Logits
    #: keys and values of the prompt, where a change is read from the changed token on, or None if
    #: it is read as a whole
    cache: KVCache | None


def _read_prompt(model: Transformer, ids: Sequence[int]) -> _Before:
    config = model.config
    first = len(ids) - MOST_PLACES
    # The changes of a long prompt are read from the changed token on.
    is_long = (
        AT_ONCE // len(ids) < 2
        and first > 0
        and config.kind == "decoder"
        and config.mask == "causal"
    )
    cache = model.new_cache(1, len(ids)) if is_long else None
    logits = model(*one_row(model, ids), cache=cache, logits_at=slice(max(0, first - 1), len(ids)))[
        0
    ]
    return _Before(logits.float().cpu().numpy(), cache)


def one_token_changed(
    model: Transformer, ids: Sequence[int], fits: Callable[[int, int], bool] = lambda *_: True
) -> list[tuple[int, ...]]:
    """The prompts that differ from `ids` in one token, those that change the model's answer most
    first.

    Each of the last tokens is replaced by what the model found likely in its place, so that a
    changed prompt is still one that could be. How much the answer changes is measured between the
    likeliest tokens after both prompts. Changes of the very last token come after those that take
    the answer away from further off: that a model reads its last token is no discovery.

    Args:
        fits: whether the token at a place of `ids` may be replaced by this one.
    """
    with torch.inference_mode():
        before = _read_prompt(model, ids)
    first = max(0, len(ids) - MOST_PLACES)
    # Prompts that differ from `ids` in one token from `first` on, those that change a late token
    # first.
    likely: list[list[int]] = [
        (-logits).argsort()[:LOOKED_AT].tolist() for logits in before.guesses[:-1]
    ]
    # nothing stands before the first token: others of the prompt, or else any, take its place
    if not first:
        likely.insert(
            0, list(dict.fromkeys([*ids, *range(min(EACH + 1, model.config.vocab_size))]))
        )
    changes = []
    for place in [*reversed(range(first, len(ids) - 1)), len(ids) - 1]:
        others = [
            token for token in likely[place - first] if token != ids[place] and fits(place, token)
        ]
        changes += [(*ids[:place], token, *ids[place + 1 :]) for token in others[:EACH]]
    return _rank_some(model, ids, changes, before, first)


@torch.inference_mode()
def rank_changes(
    model: Transformer, ids: Sequence[int], changes: Sequence[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """The prompts `changes`, each as long as `ids`, in the order of `one_token_changed`; no more
    than may be tried.
    """
    return _rank_some(
        model,
        ids,
        changes,
        _Before(logits_after(model, ids, slice(len(ids) - 1, len(ids))), None),
        0,
    )


@torch.inference_mode()
def _rank_some(
    model: Transformer,
    ids: Sequence[int],
    changes: Sequence[tuple[int, ...]],
    before: _Before,
    first: int,
) -> list[tuple[int, ...]]:
    """The prompts `changes`, which differ from `ids` from the place `first` on."""
    device = model.embed.weight.device
    most = max(FEWEST_TRIED, int(SOME / effort(model, len(ids))))
    guesses, cache = before
    unchanged = torch.from_numpy(guesses[-1]).double()
    tried = changes[:most]
    right = int(unchanged.argmax())
    measured: list[tuple[int, float, tuple[int, ...]]] = []
    at_once = max(1, AT_ONCE // len(ids))
    for start in range(0, len(tried), at_once):
        rows = torch.tensor(tried[start : start + at_once], device=device)
        if cache is not None:
            cache.truncate(first)
        read = rows if cache is None else rows[:, first:]
        # [rows, vocab_size]
        after = model(read, cache=cache, logits_at=slice(-1, None))[:, -1].cpu().double()
        others = after.clone()
        others[:, right] = float("-inf")
        wrong = others.argmax(-1)
        # [rows]
        lost = (unchanged[right] - unchanged[wrong]) - (
            after[:, right] - after.gather(1, wrong[:, None])[:, 0]
        )
        # 0 where the answer stays
        flips = (after.argmax(-1) != right).int() * (2 - (rows[:, -1] != ids[-1]).int().cpu())
        measured += zip(flips.tolist(), lost.tolist(), tried[start : start + at_once], strict=True)
    return [changed for _, _, changed in sorted(measured, key=lambda one: one[:2], reverse=True)]
