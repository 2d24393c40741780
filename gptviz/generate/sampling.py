"""From logits to a token: temperature, top-k, top-p and the draw, over the whole vocabulary, with
every stage between.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Annotated

import torch
from torch import Tensor
from torch.nn import functional as F

from gptviz.settings.fields import check_numbers, real_number, whole_number

# A sum that is smaller than top-p only because of rounding has reached it, so that the order of the
# additions does not matter.
ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How the next token is chosen.

    Raises:
        ValueError: a setting is impossible; the message names it and its value.
    """

    #: logits are divided by it; 0 is greedy: always the likeliest token
    temperature: Annotated[float, real_number(0)] = 1.0
    #: keep this many of the likeliest tokens; None or a number larger than the vocabulary keeps all
    top_k: Annotated[int, whole_number(1)] | None = None
    #: of these, keep the fewest whose probabilities reach this sum; None or 1 keeps all
    top_p: Annotated[float, replace(real_number(0, 1), low_excluded=True)] | None = None
    seed: int = 0  #: decides the draw at every position: the same seed gives the same text

    def __post_init__(self) -> None:
        check_numbers(self)


@dataclass(frozen=True)
class Ledger:
    """Every stage from logits to the distribution of the draw; each tensor is [..., vocab_size], on
    the CPU, float64 or bool.
    """

    logits: Tensor  #: the model's output
    before: Tensor  #: softmax(logits)
    #: logits ÷ temperature (at temperature 0: 0 for the likeliest token, −∞ for the others); −∞ for
    #: tokens never drawn
    scaled: Tensor
    in_top_k: Tensor  #: whether top-k keeps the token
    in_top_p: Tensor  #: whether top-p keeps it too
    #: probabilities after temperature, normalised again over the tokens that are kept
    after: Tensor


def ledger(logits: Tensor, sampling: Sampling, never: Sequence[int] = ()) -> Ledger:
    """The stages for `logits` [..., vocab_size]. Ties are broken by token id, the smaller first.

    The tokens `never` are not drawn, since they stand for nothing. The model nevertheless gives
    them a probability (`before`); they are removed before the temperature, and top-k and top-p do
    not count them.
    """
    exact = _exact_logits(logits)
    possible = _forbid_tokens(exact, never)
    scaled = _scale(possible, sampling.temperature)
    order = possible.argsort(dim=-1, descending=True, stable=True)
    size = logits.shape[-1] - len(never)
    rank_kept_k = torch.arange(logits.shape[-1]) < min(sampling.top_k or size, size)
    by_rank = scaled.softmax(-1).gather(-1, order) * rank_kept_k
    by_rank = by_rank / by_rank.sum(-1, keepdim=True)
    reached_before = F.pad(by_rank.cumsum(-1)[..., :-1], (1, 0))  # the sum of all likelier tokens
    limit = 1.0 if sampling.top_p is None else sampling.top_p
    is_first = torch.arange(logits.shape[-1]) == 0
    # With a limit of 1 no token may be lost to rounding.
    rank_kept_p = rank_kept_k & ((reached_before < limit - ROUNDING) | is_first | (limit == 1.0))
    in_top_k = torch.empty_like(order, dtype=torch.bool).scatter_(
        -1, order, rank_kept_k.expand_as(order)
    )
    in_top_p = torch.empty_like(order, dtype=torch.bool).scatter_(-1, order, rank_kept_p)
    after = scaled.masked_fill(~in_top_p, float("-inf")).softmax(-1)
    return Ledger(exact, exact.softmax(-1), scaled, in_top_k, in_top_p, after)


def _exact_logits(logits: Tensor) -> Tensor:
    # On the CPU: not every accelerator has float64, and the draw must be the same on all of them.
    return logits.cpu().double()


def _forbid_tokens(logits: Tensor, never: Sequence[int]) -> Tensor:
    if never:
        return logits.index_fill(-1, torch.tensor(list(never), device=logits.device), -torch.inf)
    return logits


def _scale(logits: Tensor, temperature: float) -> Tensor:
    if temperature == 0:
        return torch.full_like(logits, float("-inf")).scatter_(
            -1, logits.argmax(-1, keepdim=True), 0.0
        )
    # Subtracting the largest first keeps a tiny temperature finite.
    return (logits - logits.amax(-1, keepdim=True)) / temperature


def uniform(seed: int, position: int, samples: int = 1) -> Tensor:
    """The random numbers in [0, 1) that decide the token at `position` [samples]; the same on every
    machine.

    Each is a hash of the seed, the position and the index of the sample, and depends on nothing
    else: a step that is undone and made again draws the same token, and a sample draws the same
    tokens whether it is alone or not.
    """
    hashes = (
        blake2b(f"{seed} {position} {sample}".encode(), digest_size=8).digest()
        for sample in range(samples)
    )
    # A float64 holds 53 bits.
    return torch.tensor(
        [(int.from_bytes(number, "big") >> 11) / 2**53 for number in hashes], dtype=torch.float64
    )


def draw(probabilities: Tensor, numbers: Tensor) -> Tensor:
    """The tokens [B] that the `numbers` [B] in [0, 1) stand for.

    The `probabilities` [B, vocab_size], laid end to end, divide the interval from 0 to 1; a number
    stands for the token whose part it falls in.
    """
    ends = probabilities.cumsum(-1)
    ends = ends / ends[..., -1:]
    return torch.searchsorted(ends, numbers[:, None], right=True)[:, 0]


def check_finite(logits: Tensor, position: int) -> None:
    """Refuse with a ValueError `logits` [B, vocab_size] of which a row's largest is infinite or not
    a number.
    """
    if not all(map(math.isfinite, logits.amax(-1).tolist())):
        raise ValueError(
            f"the model's logits at position {position} are not numbers: its weights or edits are "
            "so large that they overflow"
        )


def choose_tokens(
    logits: Tensor, sampling: Sampling, position: int, never: Sequence[int] = ()
) -> Tensor:
    """The next tokens [B], on the CPU, for `logits` [B, vocab_size] at `position`, the number of
    tokens before it.

    None of them is one of `never`: see `ledger`. A ValueError if the logits are not numbers.
    """
    logits = _forbid_tokens(logits, never)
    check_finite(logits, position)
    if sampling.temperature == 0:
        return logits.argmax(-1).cpu()
    exact = _exact_logits(logits)
    if sampling.top_k is None and sampling.top_p is None:
        probabilities = _scale(exact, sampling.temperature).softmax(-1)
    else:
        probabilities = ledger(exact, sampling, never).after
    return draw(probabilities, uniform(sampling.seed, position, len(logits)))
