"""Byte-pair encoding learned from a text, merge by merge: what each merge brought, and the
tokenizer after any number of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gptviz.machine import progress

from .bpe import BPETokenizer, split_words
from .merging import replay_merges

BYTES = 256
"""The tokens before the first merge: one for each byte."""
# Counting words takes about twice as long as learning, which uses all cores.
PASSES = 3


@dataclass(frozen=True, eq=False)
class Learned:
    """What byte-pair encoding has learned from a text."""

    tokenizer: BPETokenizer  #: after all merges
    #: the parts that merges stay within, written in the alphabet of bytes, and how often each
    #: stands in the text
    words: dict[str, int] = field(repr=False)

    @cached_property
    def merges(self) -> list[tuple[str, str]]:
        """The merges in the order in which they were learned, in the alphabet of bytes."""
        return self.tokenizer.merges()

    @cached_property
    def times(self) -> NDArray[np.int64]:
        """How often each merge is made in the text: [merge]."""
        ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        times = np.zeros(len(ranks), np.int64)
        used = Counter[int]()
        for count, ids in zip(self.words.values(), self._read_words(len(ranks)), strict=True):
            for token in ids:
                used[token] += count
        for written, count in zip(
            self.tokenizer.written_tokens([*used]), used.values(), strict=True
        ):
            for *_, rank in replay_merges([[*written]], ranks):
                times[rank] += count
        return times

    @cached_property
    def tokens(self) -> NDArray[np.int64]:
        """The tokens of the text before the first merge and after each: [merge + 1]. Each merge
        that is made takes one away.
        """
        return self.bytes - np.concatenate(([0], np.cumsum(self.times)))

    @cached_property
    def bytes(self) -> int:
        """How many bytes the text has."""
        return sum(len(word) * times for word, times in self.words.items())

    def tokenizer_after(self, count: int) -> BPETokenizer:
        """The tokenizer with the first `count` merges; its tokens have the same ids as in the whole
        one.
        """
        return self.tokenizer.with_merges(count)

    def pairs(self, count: int, most: int = 10) -> list[tuple[str, str, int]]:
        """The neighbours that stand side by side most often after `count` merges: both as they are
        shown, and how often.

        A pair may overlap itself: "aaa" has the pair of a and a twice, but only one of them can be
        merged.
        """
        pairs = Counter[tuple[int, int]]()
        for times, ids in zip(self.words.values(), self._read_words(count), strict=True):
            for pair in pairwise(ids):
                pairs[pair] += times
        label = self.tokenizer.label
        # Of two that are equally frequent the trainer takes the one with the smaller ids.
        best = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[:most]
        return [(label(left), label(right), times) for (left, right), times in best]

    def _read_words(self, count: int) -> list[list[int]]:
        """The tokens of each of the `words` after `count` merges."""
        return self.tokenizer_after(count).read_words([*self.words])


def learn_merges(text: str, merges: int) -> Learned:
    """Learn up to this many merges from a text: fewer if it has no more pairs.

    The trainer is that of the `tokenizers` library: see `BPETokenizer.learn`. The text is read
    twice, by the trainer and to count its words, and it is reported how much of it was read. A
    ValueError if the text is empty, or the number is below 0.
    """
    with progress.part(0, PASSES):
        tokenizer = BPETokenizer.learn(text, BYTES + merges)
    with progress.part(1, PASSES, PASSES - 1):
        return Learned(tokenizer, split_words(text))
