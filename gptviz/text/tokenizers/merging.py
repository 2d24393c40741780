"""Byte-pair encoding merge by merge: the merges that made the tokens of a text, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Merge:
    """One merge: two neighbours become one token.

    Attributes:
        start: the place of its first symbol among the symbols that the text begins as.
        middle: the place where its right part begins.
        end: the place after its last symbol.
        rank: its place in the tokenizer's list of merges, from 0: of all that are possible, the one with the lowest rank is next.
        id: the token that it makes.
    """

    start: int
    middle: int
    end: int
    rank: int
    id: int


@dataclass(frozen=True)
class Merging:
    """The way from symbols to tokens.

    Attributes:
        symbols: the tokens that the text begins as: bytes or characters.
        merges: in the order in which they are made.
    """

    symbols: tuple[int, ...]
    merges: tuple[Merge, ...]

    def after(self, count: int) -> tuple[int, ...]:
        """The tokens after the first `count` merges."""
        tokens: list[int | None] = list(self.symbols)
        for merge in self.merges[:count]:
            tokens[merge.start : merge.end] = [merge.id, *[None] * (merge.end - merge.start - 1)]
        return tuple(token for token in tokens if token is not None)


def needed(merges: Iterable[Sequence[str]], tokens: Iterable[str]) -> dict[tuple[str, str], int]:
    """Those of all `merges`, the best first, that can be a step on the way to one of these `tokens`, with their ranks."""
    parts = {token[start:end] for token in tokens for start in range(len(token)) for end in range(start + 2, len(token) + 1)}
    return {(left, right): rank for rank, (left, right) in enumerate(merges) if left + right in parts}


def replayed(tokens: Sequence[Sequence[str]], ranks: Mapping[tuple[str, str], int]) -> list[tuple[int, int, int, int]]:
    """The merges that make each of the `tokens` of its symbols: start, middle, end and rank, in their order.

    A merge across two tokens was never made, or they would not be two: so each is built as if it stood alone. The order is that
    of the text: of all pairs the one with the lowest rank is next, and of those the one that comes first.
    """
    texts = [symbol for token in tokens for symbol in token]
    token_of = [place for place, token in enumerate(tokens) for _ in token]
    starts, made = list(range(len(texts))), list[tuple[int, int, int, int]]()
    while True:
        possible = [
            (ranks[texts[left], texts[right]], left, right)
            for left, right in pairwise(starts)
            if token_of[left] == token_of[right] and (texts[left], texts[right]) in ranks
        ]
        if not possible:
            return made
        rank, left, right = min(possible)
        at = starts.index(right)
        end = starts[at + 1] if at + 1 < len(starts) else len(texts)
        made.append((left, right, end, rank))
        texts[left] += texts[right]
        del starts[at]
