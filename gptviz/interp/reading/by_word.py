"""Attention and sums of tokens, merged to those of the words that the tokens are parts of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from gptviz.labelled_array import Float32Array

from .attention import AttentionReading, Patterns, rollout

Number = TypeVar("Number", np.float32, np.float64)


def sum_by_word(values: npt.NDArray[Number], words: Sequence[range]) -> npt.NDArray[Number]:
    """What is added by each word: the sum over its tokens; [..., token] becomes [..., word]."""
    return np.asarray(np.add.reduceat(values, _word_starts(words), axis=-1), values.dtype)


def attention_of_words(shares: Float32Array, words: Sequence[range]) -> Float32Array:
    """The attention between words [..., word, word], from that between tokens [..., query, key].

    To a word: the sum over its tokens. From a word: the mean over its tokens. A row that sums to 1
    goes on to do so.
    """
    rows = np.add.reduceat(sum_by_word(shares, words), _word_starts(words), axis=-2)
    return np.asarray(
        rows / np.array([len(word) for word in words], np.float32)[:, None], np.float32
    )


def in_words(reading: AttentionReading, words: Sequence[range]) -> AttentionReading:
    """The same attention between words. A word has no query, no key and no value of its own: these
    arrays are empty.
    """
    patterns = reading.patterns
    starts = _word_starts(words)
    hidden = patterns.blocked
    # a word may look at another one if any of its tokens may look at any of the other's
    if hidden is not None:
        hidden = np.logical_and.reduceat(
            np.logical_and.reduceat(hidden, starts, axis=0), starts, axis=1
        )
    merged = Patterns(tuple(attention_of_words(block, words) for block in patterns.blocks), hidden)
    if reading.rolled is None:
        rolled = rollout(patterns)
    else:
        rolled = reading.rolled
    nothing = np.empty((*reading.q.shape[:2], len(words), 0), np.float32)
    return replace(
        reading,
        patterns=merged,
        q=nothing,
        k=nothing,
        position=None,
        moved=nothing[:, :, 0],
        rolled=attention_of_words(rolled, words),
        scaled=None,
    )


def _word_starts(words: Sequence[range]) -> list[int]:
    return [word.start for word in words]
