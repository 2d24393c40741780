"""What something is fitted to, and what it is tested on: rows that it was not fitted to.

A copy of a row that was fitted to tests nothing, so equal rows always stand on the same side.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

# With fewer tokens for each fitted number, a fit may show chance.
ENOUGH = 10.0


def split_rows(rows: Sequence[Hashable], share: float) -> tuple[list[int], list[int]]:
    """The indices of the rows that something is fitted to, and of those held out: the last `share`
    of the distinct rows, rounded down. Equal rows stand on the same side.
    """
    numbers: dict[Hashable, int] = {}
    order = [numbers.setdefault(row, len(numbers)) for row in rows]
    end = len(numbers) - int(share * len(numbers))
    fitted_to = [index for index, number in enumerate(order) if number < end]
    held_out = [index for index, number in enumerate(order) if number >= end]
    return fitted_to, held_out


def split_lists(
    toward: Sequence[Hashable], away: Sequence[Hashable], share: float
) -> tuple[tuple[list[int], list[int]], tuple[list[int], list[int]]]:
    """For each of two lists the indices that are fitted to, and those held out. Of equally long
    lists the texts at the same place are a pair, which stays together; nothing that is held out is
    equal to a text of either list that is fitted to.
    """
    lists = (toward, away)
    if len(toward) == len(away):
        pairs = split_rows(list(zip(toward, away, strict=True)), share)
        parts = [pairs, pairs]
    else:
        parts = [split_rows(each, share) for each in lists]
    known = {each[index] for each, part in zip(lists, parts, strict=True) for index in part[0]}
    new = [
        [index for index in part[1] if each[index] not in known]
        for each, part in zip(lists, parts, strict=True)
    ]
    if len(toward) == len(away):
        both = sorted(set(new[0]) & set(new[1]))
        new = [both, both]
    return (parts[0][0], new[0]), (parts[1][0], new[1])


def beginnings(rows: Iterable[Sequence[int]]) -> list[list[int]]:
    """For each token of each row a number that tells its beginning, the row up to this token, from
    all others: a decoder has the same stream at tokens with equal beginnings.
    """
    numbers: dict[tuple[int, int], int] = {}
    found = []
    for row in rows:
        numbered: list[int] = []
        before = -1
        for token in row:
            before = numbers.setdefault((before, token), len(numbers))
            numbered.append(before)
        found.append(numbered)
    return found


def support(tokens: int, per_number: float) -> str:
    """To how many tokens something was fitted, in a sentence, which warns where they are few."""
    said = f"It was fitted to {tokens:,} tokens, {per_number:.3g} for each fitted number"
    if per_number >= ENOUGH:
        return f"{said}."
    return f"{said}: below {ENOUGH:g}, much of what it shows may be chance. Give a longer text."
