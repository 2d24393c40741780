"""The activations that a forward pass keeps in memory until its gradients are known, as a formula
of batch and context.

Nothing here says which tensors these are: autograd is asked, on torch's meta device, what it saves
for the backward pass. A tensor that several operations save is counted once, where it is saved
first; weights and fixed tables are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional as F

from ..builder import lay_out
from ..config import Config
from .operations import PARTS, part_of

# The batches and lengths that are followed. Bytes are a sum of products of B and T, at most B · T²:
# so these decide all numbers.
_BATCHES = (2, 3)
_LENGTHS = (2, 3, 4)
_LOSS = "loss"


@dataclass(frozen=True)
class KeptActivations:
    """The bytes that a step keeps of its forward pass, with every number in float32."""

    #: by part of the model (`costs.PARTS`), the bytes that belong to each product of powers of
    #: batch B and length T: (1, 2) → 4 means 4 · B · T². Only those above 0.
    terms: Mapping[str, Mapping[tuple[int, int], int]]

    def by_part(self, batch: int, tokens: int) -> dict[str, int]:
        """The bytes of each part for this many texts of this many tokens."""
        return {
            part: sum(number * batch**b * tokens**t for (b, t), number in terms.items())
            for part, terms in self.terms.items()
        }

    def total(self, batch: int, tokens: int) -> int:
        """The bytes of all parts."""
        return sum(self.by_part(batch, tokens).values())

    def formula(self, part: str) -> str:
        """The bytes of a part in letters, as in "1,536 · B · T + 16 · B · T²"."""
        powers = {0: "", 1: " · T", 2: " · T²"}
        written = [
            f"{number:,}{' · B' * b}{powers[t]}"
            for (b, t), number in sorted(self.terms[part].items(), reverse=True)
        ]
        return " + ".join(written) or "0"


@lru_cache(maxsize=256)
def _formulas(
    config: Config, batches: tuple[int, ...], lengths: tuple[int, ...]
) -> KeptActivations:
    """The numbers that are kept for any of these batches and lengths, and for all others between
    and beyond them.
    """
    counted = [[_by_part(config, batch, length) for length in lengths] for batch in batches]
    # [batch, power]
    powers_of_batch = torch.vander(torch.tensor(batches, dtype=torch.float64), increasing=True)
    # [length, power]
    powers_of_length = torch.vander(torch.tensor(lengths, dtype=torch.float64), increasing=True)
    terms = {}
    for part in PARTS:
        # [batch, length]
        rows = torch.tensor(
            [[kept.get(part, 0) for kept in row] for row in counted], dtype=torch.float64
        )
        numbers = (
            torch.linalg.solve(powers_of_length, torch.linalg.solve(powers_of_batch, rows).T)
            .T.round()
            .long()
            .tolist()
        )
        counts = {
            (b, t): int(number)
            for b, row in enumerate(numbers)
            for t, number in enumerate(row)
            if number
        }
        if counts:
            terms[part] = counts
    return KeptActivations(terms)


def kept_activations(config: Config, batch: int = 2, tokens: int = 2) -> KeptActivations:
    """The numbers that a step of training keeps, as formulas that hold for all batches and lengths
    like these.

    A mixture of experts is followed as if every token passed all of its experts: it keeps less than
    that. A single text, and texts of one token, have separate formulas, since torch then needs no
    copies of what it reads twice: any number above 1 of texts (`batch`) and of their `tokens` gives
    the same ones. An encoder is taken to read as many tokens as its decoder.
    """
    if tokens > 1:
        lengths = tuple(length for length in _LENGTHS if length <= config.context_length)
    else:
        lengths = (1,)
    return _formulas(config, _BATCHES if batch > 1 else (1,), lengths)


def _by_part(config: Config, batch: int, tokens: int) -> dict[str, int]:
    """The bytes of each part, from a step that is followed through as few blocks as show what every
    further block adds.
    """
    period = 1 if config.window is None else len(config.window_pattern)
    blocks = min(config.n_layer, period + 1)
    encoder_blocks = min(config.n_encoder_layer, 2)
    few = replace(config, n_layer=blocks, n_encoder_layer=encoder_blocks)
    more = {
        f"blocks.{blocks - 1}.": config.n_layer - blocks,
        f"encoder.blocks.{encoder_blocks - 1}.": config.n_encoder_layer - encoder_blocks,
    }
    sums: dict[str, int] = {}
    for path, size in _follow_saved(few, batch, tokens):
        part = "loss" if path == _LOSS else part_of(path)
        times = 1 + sum(further for last, further in more.items() if path.startswith(last))
        sums[part] = sums.get(part, 0) + times * size
    return sums


def _follow_saved(config: Config, batch: int, tokens: int) -> list[tuple[str, int]]:
    """The bytes of every tensor that autograd saves in a step, with the path of the module that
    saves it first.
    """
    with torch.device("meta"):
        model = lay_out(config).train()
        ids, source = (torch.zeros(batch, tokens, dtype=torch.long) for _ in range(2))
    inside = [_LOSS]
    for path, part in model.named_modules():
        if path:
            _watch(part, path, inside)
    saved = {_place(tensor): ("", 0) for tensor in (*model.parameters(), *model.buffers())}
    alive = []  # a place in memory is given to another tensor as soon as it is free

    def save(tensor: Tensor) -> Tensor:
        if tensor.dim() and _place(tensor) not in saved:
            saved[_place(tensor)] = inside[-1], tensor.untyped_storage().nbytes()
            alive.append(tensor)
        return tensor

    with saved_tensors_hooks(save, lambda tensor: tensor):
        logits = model(ids, source if config.n_encoder_layer else None)
        targets = torch.zeros(logits.shape[:-1], dtype=torch.long, device="meta")
        F.cross_entropy(logits.flatten(0, -2), targets.flatten())
    return [kept for kept in saved.values() if kept[1]]


def _watch(part: nn.Module, path: str, inside: list[str]) -> None:
    """Keep in `inside` the path of this part while it runs."""

    def enter(*_: object) -> None:
        inside.append(path)

    def leave(*_: object) -> None:
        inside.pop()

    part.register_forward_pre_hook(enter)
    part.register_forward_hook(leave)


def _place(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata
