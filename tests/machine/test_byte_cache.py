"""The cache with a bound in bytes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Condition, Event

import pytest
from cachetools import cached
from hypothesis import given
from hypothesis import strategies as st

from gptviz.machine.byte_cache import byte_cache


@given(
    st.lists(st.tuples(st.sampled_from("abcde"), st.integers(1, 9), st.booleans())),
    st.integers(1, 5),
    st.integers(1, 4),
)
def test_the_values_used_last_stay_within_the_bounds(
    uses: list[tuple[str, int, bool]], share: int, most_items: int
) -> None:
    most_bytes = share * most_items
    cache = byte_cache(lambda value: value, most_bytes, most_items)
    expected: list[tuple[str, int]] = []  # least recently used first
    for key, value, is_read in uses:
        found = dict(expected).get(key)
        rest = [entry for entry in expected if entry[0] != key]
        if is_read:
            assert cache.get(key) == found
            expected = rest if found is None else [*rest, (key, found)]
        else:
            cache[key] = value
            expected = [*rest, (key, value)]
            while len(expected) > 1 and sum(max(share, size) for _, size in expected) > most_bytes:
                expected.pop(0)
        # each is read in this order, which leaves the order as it is
        assert {name: cache.get(name) for name, _ in expected} == dict(expected)
        assert set(cache) == dict(expected).keys()
        assert len(cache) <= most_items
        assert sum(cache.values()) <= most_bytes or len(cache) == 1


def test_a_value_that_is_too_large_stays_alone_until_the_next() -> None:
    cache = byte_cache(len, 4)
    cache["small"] = "12"
    cache["large"] = "123456"
    assert list(cache) == ["large"]
    cache["small"] = "12"
    assert (list(cache), cache.currsize) == (["small"], 2)


def test_a_shared_value_is_made_once_however_many_ask_while_it_is_made() -> None:
    made = []
    go_on = Event()

    @cached(byte_cache(len, 100), condition=Condition())
    def make(name: str) -> list[str]:
        if name == "slow":
            made.append(1)
            go_on.wait()
        return [name]

    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(make, "slow") for _ in range(8)]
        assert make("quick") == ["quick"], "nobody waits for another value"
        go_on.set()
        assert len({id(one.result()) for one in asked}) == len(made) == 1


def test_a_shared_value_that_could_not_be_made_is_made_by_who_asks_next() -> None:
    fails = [True]

    @cached(byte_cache(len, 100), condition=Condition())
    def make() -> str:
        if fails.pop():
            raise MemoryError
        return "made"

    with pytest.raises(MemoryError):
        make()
    fails.append(False)
    assert make() == "made"
