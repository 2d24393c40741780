"""Byte-pair encoding merge by merge: the merges that made the tokens of a text, in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush


@dataclass(frozen=True)
class Merge:
    """One merge: two neighbours become one token."""

    start: int  #: the place of its first symbol among the symbols that the text begins as
    middle: int  #: the place where its right part begins
    end: int  #: the place after its last symbol
    #: its place in the tokenizer's list of merges, from 0: of all that are possible, the one with
    #: the lowest rank is next
    rank: int
    id: int  #: the token that it makes


@dataclass(frozen=True)
class Merging:
    """The way from symbols to tokens."""

    symbols: tuple[int, ...]  #: the tokens that the text begins as: bytes or characters
    merges: tuple[Merge, ...]  #: in the order in which they are made

    def after(self, count: int) -> tuple[int, ...]:
        """The tokens after the first `count` merges."""
        tokens: list[int | None] = list(self.symbols)
        for merge in self.merges[:count]:
            tokens[merge.start : merge.end] = [merge.id, *[None] * (merge.end - merge.start - 1)]
        return tuple(token for token in tokens if token is not None)


def replay_merges(
    tokens: Sequence[Sequence[str]], ranks: Mapping[tuple[str, str], int]
) -> list[tuple[int, int, int, int]]:
    """The merges that make each of the `tokens` of its symbols: start, middle, end and rank, in
    their order. `ranks` are those of merges, by the two texts that are merged.

    A merge across two tokens was never made, or they would not be two: so each is built as if it
    stood alone. The order is that of the text: of all pairs the one with the lowest rank is next,
    and of those the one that comes first.
    """
    texts = [symbol for token in tokens for symbol in token]
    token_of = [place for place, token in enumerate(tokens) for _ in token]
    count = len(texts)
    before = list(range(-1, count - 1))
    after = list(range(1, count + 1))
    possible = list[tuple[int, int, int]]()
    made = list[tuple[int, int, int, int]]()

    def note(left: int, right: int) -> None:
        if left >= 0 and right < count and token_of[left] == token_of[right]:
            rank = ranks.get((texts[left], texts[right]))
            if rank is not None:
                heappush(possible, (rank, left, right))

    for left in range(count):
        note(left, left + 1)
    while possible:
        rank, left, right = heappop(possible)
        if after[left] != right or ranks.get((texts[left], texts[right])) != rank:
            continue  # one of the two was merged with another one before
        end = after[right]
        made.append((left, right, end, rank))
        texts[left] += texts[right]
        after[left], after[right] = end, right
        if end < count:
            before[end] = left
        note(before[left], left)
        note(left, end)
    return made
