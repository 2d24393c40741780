"""What is held out: against a loop over all rows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gptviz.interp.held_out import beginnings, split_lists, split_rows, support

ROWS = st.lists(st.integers(0, 6), min_size=1, max_size=40)


@given(ROWS, st.floats(0.1, 0.9))
def test_no_row_that_is_held_out_is_equal_to_one_that_is_fitted_to(
    rows: list[int], share: float
) -> None:
    fitted_to, held_out = split_rows(rows, share)
    assert sorted([*fitted_to, *held_out]) == list(range(len(rows)))
    assert not {rows[index] for index in fitted_to} & {rows[index] for index in held_out}
    distinct = len(set(rows))
    assert len({rows[index] for index in fitted_to}) == distinct - int(share * distinct)


@given(ROWS, ROWS)
def test_no_text_that_is_held_out_is_fitted_to_in_either_list(
    toward: list[int], away: list[int]
) -> None:
    parts = split_lists(toward, away, 0.25)
    known = {toward[i] for i in parts[0][0]} | {away[i] for i in parts[1][0]}
    assert not known & {toward[i] for i in parts[0][1]}
    assert not known & {away[i] for i in parts[1][1]}
    if len(toward) == len(away):
        assert parts[0] == parts[1]


def test_distinct_rows_are_split_in_their_order() -> None:
    assert split_rows("abcdefgh", 0.25) == ([0, 1, 2, 3, 4, 5], [6, 7])
    assert split_lists("abcd", "efgh", 0.25) == (([0, 1, 2], [3]),) * 2
    assert split_lists("abcd", "aefgh", 0.25)[0] == ([0, 1, 2], [3])


@given(st.lists(st.lists(st.integers(0, 2), max_size=6), max_size=8))
def test_tokens_have_one_number_where_all_up_to_them_is_equal(rows: list[list[int]]) -> None:
    numbers = beginnings(rows)
    every = [
        (number, row[: place + 1])
        for row, some in zip(rows, numbers, strict=True)
        for place, number in enumerate(some)
    ]
    assert all((a == b) == (x == y) for a, x in every for b, y in every)


def test_few_tokens_are_said_to_be_few() -> None:
    assert support(12_000, 20.81) == (
        "It was fitted to 12,000 tokens, 20.8 for each fitted number."
    )
    assert "below 10" in support(931, 1.61)
