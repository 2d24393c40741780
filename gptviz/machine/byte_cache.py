"""A cache with a bound in bytes, and one that several threads share."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class ByteCache(Generic[K, V]):
    """The values used last, up to a number of bytes; the least recently used go first. The newest always stays.

    Args:
        size: how many bytes a value takes.
        most_bytes: the most bytes all values may take together.
        most_items: the most values there may be; None for no such bound.

    Attributes:
        bytes: how many bytes all values take.
    """

    def __init__(self, size: Callable[[V], int], most_bytes: int, most_items: int | None = None) -> None:
        self.size, self.most_bytes, self.most_items = size, most_bytes, most_items
        self.bytes = 0
        self._values: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[K]:
        """The keys, the least recently used first."""
        return iter(self._values)

    def peek(self, key: K) -> V | None:
        """The value of `key`, or None if there is none. It does not count as used."""
        return self._values.get(key)

    def get(self, key: K) -> V | None:
        """The value of `key`, or None if there is none. It is now the one used last."""
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def put(self, key: K, value: V) -> None:
        """Add a value, or replace that of `key`; older ones are removed if there is no more room."""
        self.remove(key)
        self._values[key] = value
        self.bytes += self.size(value)
        while len(self) > 1 and self._is_over():
            self.remove(next(iter(self)))

    def remove(self, key: K) -> None:
        """Remove the value of `key`, if there is one."""
        value = self._values.pop(key, None)
        if value is not None:
            self.bytes -= self.size(value)

    def _is_over(self) -> bool:
        return self.bytes > self.most_bytes or (self.most_items is not None and len(self) > self.most_items)


class SharedCache(Generic[K, V]):
    """A `ByteCache` for several threads that makes each value once: another thread that needs it meanwhile waits.

    Args:
        size: how many bytes a value takes.
        most_bytes: the most bytes all values may take together.
    """

    def __init__(self, size: Callable[[V], int], most_bytes: int) -> None:
        self._values: ByteCache[K, V] = ByteCache(size, most_bytes)
        self._lock = Lock()
        self._making: dict[K, Lock] = {}

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            for key in list(self._values):
                self._values.remove(key)

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of `key`, made by `make` if it is not here. Treat it as read-only."""
        with self._lock:
            if (value := self._values.get(key)) is not None:
                return value
            making = self._making.setdefault(key, Lock())
        with making:
            with self._lock:
                if (value := self._values.get(key)) is not None:
                    return value
            try:
                value = make()
                with self._lock:
                    self._values.put(key, value)
            finally:
                with self._lock:
                    self._making.pop(key, None)
        return value
