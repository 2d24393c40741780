"""The cache with a bound in bytes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.machine.byte_cache import ByteCache, SharedCache


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.integers(1, 9), st.booleans())), st.integers(1, 20), st.integers(1, 4))
def test_the_values_used_last_stay_within_the_bounds(uses: list[tuple[str, int, bool]], most_bytes: int, most_items: int) -> None:
    cache: ByteCache[str, int] = ByteCache(lambda value: value, most_bytes, most_items)
    expected: list[tuple[str, int]] = []  # least recently used first
    for key, value, is_read in uses:
        found = dict(expected).get(key)
        rest = [entry for entry in expected if entry[0] != key]
        if is_read:
            assert cache.peek(key) == cache.get(key) == found
            expected = rest if found is None else [*rest, (key, found)]
        else:
            cache.put(key, value)
            expected = [*rest, (key, value)]
            while len(expected) > 1 and (sum(size for _, size in expected) > most_bytes or len(expected) > most_items):
                expected.pop(0)
        assert list(cache) == [entry[0] for entry in expected]
        assert cache.bytes == sum(size for _, size in expected)


def test_a_value_that_is_too_large_stays_alone_until_the_next() -> None:
    cache: ByteCache[str, bytes] = ByteCache(len, 4)
    cache.put("small", b"12")
    cache.put("large", b"123456")
    assert list(cache) == ["large"]
    cache.put("small", b"12")
    assert (list(cache), cache.bytes) == (["small"], 2)


def test_a_removed_value_frees_its_bytes_and_peeking_is_no_use() -> None:
    cache: ByteCache[str, bytes] = ByteCache(len, 4)
    cache.put("old", b"12")
    cache.put("new", b"34")
    assert cache.peek("old") == b"12"
    cache.put("newest", b"56")
    assert list(cache) == ["new", "newest"]
    cache.remove("new")
    cache.remove("never there")
    assert (cache.bytes, len(cache), cache.get("new")) == (2, 1, None)


def test_a_shared_value_is_made_once_however_many_ask_while_it_is_made() -> None:
    cache: SharedCache[str, list[int]] = SharedCache(len, 100)
    made, go_on = [], Event()

    def make() -> list[int]:
        made.append(1)
        go_on.wait()
        return [1, 2]

    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(cache.get, "a", make) for _ in range(8)]
        assert cache.get("b", lambda: [3]) == [3], "nobody waits for another value"
        go_on.set()
        assert len({id(one.result()) for one in asked}) == len(made) == 1


def test_a_shared_value_that_could_not_be_made_is_made_by_who_asks_next() -> None:
    cache: SharedCache[str, str] = SharedCache(len, 100)

    def fail() -> str:
        raise MemoryError

    with pytest.raises(MemoryError):
        cache.get("a", fail)
    assert cache.get("a", lambda: "made") == "made"
