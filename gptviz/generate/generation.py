"""Generation: a sequence that grows one token at a time, and can be stepped, undone and steered."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gptviz.model import IDENTITY, KVCache, Tap, Transformer
from gptviz.model.one_token import OneToken
from gptviz.settings.fields import check_number, whole_number

from .sampling import Sampling, choose_tokens


def window_start(length: int, context_length: int, slide: int = 1) -> int:
    """The first of `length` tokens that the model sees: 0 while all fit, then the smallest multiple
    of `slide` that is enough.
    """
    too_many = max(length - context_length, 0)
    return -(-too_many // slide) * slide


@dataclass(frozen=True)
class GenerationStep:
    """One generated token."""

    position: int  #: how many tokens came before it
    tokens: Tensor  #: [1], the token
    logits: Tensor  #: [1, vocab_size], the model's output there


@dataclass(frozen=True)
class Held:
    """The state of a generation at one time, in tensors that nothing changes later."""

    ids: Tensor  #: [1, T], the tokens
    cache: KVCache | None  #: the saved keys and values, or None if it has no cache
    cached_from: int  #: the position of the first of them
    #: [1, vocab_size], of the next token, or None if they have not been computed
    logits: Tensor | None

    @property
    def bytes(self) -> int:
        """How much memory its keys and values take."""
        if self.cache is None:
            return 0
        return sum(self.cache.bytes_by_block)


def until_drawn(steps: Iterable[GenerationStep], ends: Container[int]) -> Iterator[GenerationStep]:
    """The steps up to the first that takes one of the tokens `ends`; that step is the last."""
    for step in steps:
        yield step
        if int(step.tokens[0]) in ends:
            return


def without_end(tokens: list[int], ends: Container[int]) -> tuple[list[int], bool]:
    """The tokens of a text without the one that ends it, and whether there is such a token at its
    end.
    """
    ended = bool(tokens) and tokens[-1] in ends
    return tokens[:-1] if ended else tokens, ended


class Generation(Iterator[GenerationStep]):
    """An iterator over steps that never ends by itself (use `itertools.islice`); each step makes
    `ids` longer.

    Past `context_length` tokens the window slides: the model sees only the last tokens, with
    positions counted from 0 again. Every key depends on the tokens that left the window, so after a
    slide the whole window is computed again: the cache saves nothing there, unless the window
    slides by more than one token at a time (`slide`), and then the model sees fewer tokens. The
    logits are those of a full forward pass over the window, with the cache and without it. The same
    tokens give the same bits, whatever steps led to them: undoing steps and repeating them changes
    nothing.

    Args:
        model: in evaluation mode, else its dropout is on.
        ids: [T] token ids to start from, at least one.
        use_cache: keep keys and values instead of computing the window again at each step; a model
            that looks ahead (a full mask) cannot use them.
        slide: how many tokens leave the window at a time, from 1 to `context_length`.
        tap: receives the intermediates of the pass that computes the logits, for all its tokens;
            the last one is that of the step. Passes that only fill the cache again are not tapped.
        never: tokens that are never drawn, such as those that stand for nothing (`unused_ids` of a
            tokenizer).

    Raises:
        ValueError: no token to start from, or a slide the window cannot make.
    """

    def __init__(
        self,
        model: Transformer,
        ids: Tensor,
        sampling: Sampling | None = None,
        *,
        use_cache: bool = True,
        slide: int = 1,
        tap: Tap = IDENTITY,
        never: Sequence[int] = (),
    ) -> None:
        if ids.numel() == 0:
            raise ValueError(
                "there is no token to start from: give a prompt of at least one character"
            )
        check_number(whole_number(1, model.config.context_length), "slide", slide)
        self.model = model
        self.sampling = sampling or Sampling()
        self.slide = slide
        self.tap = tap
        self.never = never
        self.device = model.embed.weight.device
        self.ids = ids.to(self.device)[None]  #: [1, T], the tokens so far, on the model's device
        self.prompt_length = self.ids.shape[1]  #: how many of them are the prompt
        cached = use_cache and model.config.mask == "causal"
        # Memory for the whole prompt is taken at once: if it were taken block by block, while a
        # pass holds other values for a moment, gaps would remain that nothing else fits into.
        #: the saved keys and values, or None if it has no cache
        self.cache = model.new_cache(1, self.prompt_length + 1) if cached else None
        self._cached_from = 0
        self._step: OneToken | None = None
        self._logits: Tensor | None = None

    @property
    def window(self) -> slice:
        """The tokens the model sees when it computes the next one."""
        length = self.ids.shape[1]
        return slice(window_start(length, self.model.config.context_length, self.slide), length)

    @property
    def logits(self) -> Tensor:
        """The logits of the next token [1, vocab_size]."""
        if self._logits is None:
            self._logits = self._forward()
        return self._logits

    @torch.inference_mode()
    def _forward(self) -> Tensor:
        *filling, last = self._passes()
        for at in filling:
            self._pass(at, IDENTITY)
        return self._pass(last, self.tap)[:, -1]

    def _pass(self, at: slice, tap: Tap) -> Tensor:
        """The logits [1, 1, vocab_size] after the tokens `at`."""
        ids = self.ids[:, at]
        cache = self.cache
        if cache is not None and cache.length and ids.shape[1] == 1 and tap.only_patterns:
            if self._step is None or self._step.cache is not cache:
                self._step = OneToken.for_model(self.model, cache)
            if self._step is not None and cache.length < self._step.limit:
                return self._step(ids, tap)
        return self.model(ids, cache=cache, tap=tap, logits_at=slice(-1, None))

    def _passes(self) -> list[slice]:
        """The tokens of each forward pass that is still missing; the last pass gives the logits."""
        window = self.window
        cache = self.cache
        if cache is None:
            return [window]
        # These tokens fill the cache at once, and the others follow one by one. They depend on
        # nothing but the window, so that after an undo the same passes are repeated: other passes
        # would round differently.
        if window.start:
            slid = window.start + self.model.config.context_length - self.slide + 1
        else:
            slid = 0
        first = slice(window.start, max(slid, self.prompt_length))
        filling: list[slice] = []
        if window.start != self._cached_from or cache.length < first.stop - first.start:
            cache.truncate(0)
            self._cached_from = window.start
            filling = [first]
        done = first.stop if filling else window.start + cache.length
        return filling + [slice(position, position + 1) for position in range(done, window.stop)]

    def __next__(self) -> GenerationStep:
        return self.take(choose_tokens(self.logits, self.sampling, self.ids.shape[1], self.never))

    def take(self, tokens: Tensor) -> GenerationStep:
        """Append the token `tokens` [1], drawn or chosen by hand."""
        step = GenerationStep(self.ids.shape[1], tokens, self.logits)
        self.ids = torch.cat((self.ids, tokens.to(self.device)[:, None]), dim=1)
        self._logits = None
        return step

    def undo(self, steps: int = 1) -> None:
        """Remove the last `steps` tokens, but none of the prompt; ids and logits are then the same
        as before them.
        """
        length = max(self.ids.shape[1] - steps, self.prompt_length)
        if length < self.ids.shape[1]:
            self.replace(length, self.ids[:, :0])

    def replace(self, start: int, tokens: Tensor) -> None:
        """Put `tokens` [1, n] in place of all tokens from index `start` on: another branch with the
        same beginning.

        The results for the beginning are kept; the rest is computed when the logits are needed. A
        ValueError if the prompt would be changed, or there are fewer than `start` tokens.
        """
        check_number(whole_number(self.prompt_length, self.ids.shape[1]), "start", start)
        self.ids = torch.cat((self.ids[:, :start], tokens.to(self.device)), dim=1)
        self._logits = None
        if self.cache is not None:
            # The last token is always computed: its pass gives the logits.
            self.cache.truncate(max(min(start, self.ids.shape[1] - 1) - self._cached_from, 0))

    def current_state(self) -> Held:
        """Its state now."""
        return Held(self.ids, self.cache and self.cache.copy(), self._cached_from, self._logits)

    def hold(self, held: Held) -> None:
        """Go on from the state of a generation of the same model and prompt: nothing of it is
        computed again.
        """
        self.ids = held.ids
        self._cached_from = held.cached_from
        self._logits = held.logits
        self.cache = held.cache and held.cache.copy()
