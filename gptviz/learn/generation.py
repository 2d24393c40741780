"""Generation: a sequence that grows one token at a time, and can be stepped, undone and steered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from gptviz.model import KVCache, Transformer

from .sampling import Sampling, choose


def window_start(length: int, context_length: int, slide: int = 1) -> int:
    """The first of `length` tokens that the model sees: 0 while all fit, then as few multiples of `slide` as needed."""
    too_many = max(length - context_length, 0)
    return -(-too_many // slide) * slide


@dataclass(frozen=True)
class Step:
    """One generated token of each sample.

    Attributes:
        position: how many tokens came before it.
        tokens: [B], the token each sample took.
        logits: [B, vocab_size], what the model computed there.
    """

    position: int
    tokens: Tensor
    logits: Tensor


class Generation(Iterator[Step]):
    """An iterator over steps that never ends by itself (use `itertools.islice`): `ids` grows as it goes.

    Past `context_length` tokens the window slides: the model sees the last of them alone, their positions counted from
    0 again. Every key depends on the tokens that left, so a slid window is computed anew: the cache saves nothing
    there, unless the window slides by more than one token at a time (`slide`), at the price of a shorter memory.
    The logits are those of a full forward pass over the window, with the cache and without it.

    Args:
        ids: [T] token ids to start from, at least one.
        samples: how many sequences grow side by side, each with draws of its own.
        use_cache: keep keys and values instead of computing the window again at each step.

    Raises:
        ValueError: no token to start from.
    """

    def __init__(
        self,
        model: Transformer,
        ids: Tensor,
        sampling: Sampling | None = None,
        *,
        samples: int = 1,
        use_cache: bool = True,
        slide: int = 1,
    ) -> None:
        if ids.numel() == 0:
            raise ValueError("there is no token to start from: give a prompt of at least one character")
        self.model = model
        self.sampling = sampling or Sampling()
        self.slide = slide
        self.device = model.embed.weight.device
        self.ids = ids.to(self.device).expand(samples, -1)  # [B, T]
        self.prompt_length = self.ids.shape[1]
        self._cache = KVCache(model.config, samples, self.device, model.embed.weight.dtype) if use_cache else None
        self._cached_from = 0
        self._first_pass_end = 0
        self._logits: Tensor | None = None

    @property
    def window(self) -> slice:
        """The tokens the model sees when it computes the next one."""
        length = self.ids.shape[1]
        return slice(window_start(length, self.model.config.context_length, self.slide), length)

    @property
    def logits(self) -> Tensor:
        """[B, vocab_size]: the logits of the next token."""
        if self._logits is None:
            self._logits = self._forward()
        return self._logits

    @torch.inference_mode()
    def _forward(self) -> Tensor:
        window = self.window
        known = 0
        if self._cache is not None:
            if window.start != self._cached_from:
                self._cache.truncate(0)
                self._cached_from = window.start
            known = self._cache.length
        if known == 0:
            self._first_pass_end = window.stop
        fresh = self.ids[:, window.start + known : window.stop]  # [B, new tokens]
        return self.model(fresh, cache=self._cache, logits_at=slice(-1, None))[:, -1]

    def __next__(self) -> Step:
        return self.take(choose(self.logits, self.sampling, self.ids.shape[1]))

    def take(self, tokens: Tensor) -> Step:
        """Go on with `tokens` [B], drawn or chosen by hand."""
        step = Step(self.ids.shape[1], tokens, self.logits)
        self.ids = torch.cat((self.ids, tokens.to(self.device)[:, None]), dim=1)
        self._logits = None
        return step

    def undo(self, steps: int = 1) -> None:
        """Forget the last `steps` tokens, down to the prompt; ids and logits are then what they were before them."""
        length = max(self.ids.shape[1] - steps, self.prompt_length)
        if length == self.ids.shape[1]:
            return
        self.ids = self.ids[:, :length]
        self._logits = None
        if self._cache is not None:
            # The first pass took many tokens at once, each later one a single token: replaying the same passes, the same bits.
            kept = length - 1 - self._cached_from if length > self._first_pass_end else 0
            self._cache.truncate(min(max(kept, 0), self._cache.length))
