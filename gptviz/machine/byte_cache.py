"""A cache with a bound in bytes. `cachetools.cached(byte_cache(…), condition=Condition())` shares
one between threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cachetools import LRUCache


def byte_cache(
    size: Callable[[Any], int], most_bytes: int, most_items: int | None = None
) -> LRUCache[Any, Any]:
    """The values used last, up to `most_bytes` as `size` counts them; the least recently used go
    first, the newest always stays.

    With `most_items` there are no more values than that: each counts as at least its share of the
    bytes.
    """
    least = most_bytes // most_items if most_items else 0
    return LRUCache(most_bytes, lambda value: min(most_bytes, max(least, size(value))))
