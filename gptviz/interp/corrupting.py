"""A corrupted prompt for a clean one: the change of one token that takes a model's answer away."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gptviz.model import Transformer

from .next_token import logits_after
from .patching import Pair

# How many tokens before the last one may change, and how many tokens are tried in the place of each.
MOST_PLACES, EACH = 24, 3
# What may be computed to find one, in multiplications: less than a second's work.
MOST_WORK, FEWEST_TRIED = 2e10, 6


@torch.inference_mode()
def likeliest_answers(model: Transformer, pair: Pair) -> tuple[int, int]:
    """The likeliest answer to the clean prompt, and the likeliest other one to the corrupted prompt: tokens, or labels. Those
    that `pair` has do not count.
    """
    device = model.embed.weight.device
    logits = model(pair.ids(device), pair.sources(device), logits_at=slice(-1, None)).reshape(2, -1)
    right = int(logits[0].argmax())
    logits[1, right] = float("-inf")
    return right, int(logits[1].argmax())


@torch.inference_mode()
def one_token_changed(model: Transformer, ids: Sequence[int]) -> list[tuple[int, ...]]:
    """The prompts that differ from `ids` in one token, those that change the model's answer most first.

    Each of the last tokens is replaced by what the model found likely in its place, so that a changed prompt is still one that
    could be. How much the answer changes is measured between the likeliest tokens after both prompts. Changes of the very last
    token come after those that take the answer away from further off: that a model reads its last token is no discovery.
    """
    device = model.embed.weight.device
    tried = _changes(model, ids)
    before = torch.from_numpy(logits_after(model, ids, slice(len(ids) - 1, len(ids)))[0]).double()
    right = int(before.argmax())
    found: list[tuple[int, float, tuple[int, ...]]] = []
    each = max(1, 2_048 // len(ids))
    for start in range(0, len(tried), each):
        rows = torch.tensor(tried[start : start + each], device=device)
        after = model(rows, logits_at=slice(-1, None))[:, -1].double().cpu()  # [rows, vocab_size]
        others = after.clone()
        others[:, right] = float("-inf")
        wrong = others.argmax(-1)
        lost = (before[right] - before[wrong]) - (after[:, right] - after.gather(1, wrong[:, None])[:, 0])  # [rows]
        flips = (after.argmax(-1) != right).int() * (2 - (rows[:, -1] != ids[-1]).int()).cpu()  # 0 where the answer stays
        found += zip(flips.tolist(), lost.tolist(), tried[start : start + each], strict=True)
    return [changed for _, _, changed in sorted(found, key=lambda one: one[:2], reverse=True)]


def _changes(model: Transformer, ids: Sequence[int]) -> list[tuple[int, ...]]:
    """Prompts that differ from `ids` in one token, as many as may be tried, those that change a late token first."""
    weights = sum(parameter.numel() for parameter in model.blocks.parameters()) + model.embed.weight.numel()
    most = max(FEWEST_TRIED, int(MOST_WORK / (weights * len(ids))))
    first = max(0, len(ids) - MOST_PLACES)
    # What the model guesses at a place follows from the tokens before it. Before the first there are none: others of the prompt,
    # or else any, take its place.
    likely: list[list[int]] = []
    if len(ids) > 1:
        guesses = logits_after(model, ids, slice(max(0, first - 1), len(ids) - 1))
        likely = [(-logits).argsort()[: EACH + 1].tolist() for logits in guesses]
    if not first:
        likely.insert(0, list(dict.fromkeys([*ids, *range(min(EACH + 1, model.config.vocab_size))])))
    changes = []
    for place in [*reversed(range(first, len(ids) - 1)), len(ids) - 1]:
        others = [token for token in likely[place - first] if token != ids[place]]
        changes += [(*ids[:place], token, *ids[place + 1 :]) for token in others[:EACH]]
    return changes[:most]
