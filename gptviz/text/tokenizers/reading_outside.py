"""A tokenizer that may take any time for a text: another process reads with it, and is ended when
it takes too long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from gptviz.text.confined import MOST_SECONDS, Confined, EndedError

MEMORY: Final = 2**31  # bytes
PER_SECOND: Final = 100_000  # characters of a long text; those who are not hostile read a million


class TokenPlaces(NamedTuple):
    """The tokens of a text: their ids, and the place (start, end) of each."""

    ids: list[int]
    offsets: list[tuple[int, int]]


class ReadingOutside:
    """Reads texts as the `tokenizers` library does with this `tokenizer.json`, in which something
    may take any time: the `reason`, in words. A ValueError if the library cannot open it.
    """

    def __init__(self, content: str, reason: str) -> None:
        self._reason = reason
        self._process = Confined(MEMORY, {"work": "open", "content": content})
        self._ask_process("ids", [])
        #: what the tokenizer does to a text before it looks for tokens, as in a `tokenizer.json`
        self.stages: dict[str, Any] = self._process.first_result

    def encode(self, text: str, add_special_tokens: bool = False) -> TokenPlaces:
        """The tokens of a text, without those around it; a ValueError if it takes too long."""
        return TokenPlaces(*self._ask_process("read", [text])[0])

    def encode_batch_fast(
        self, texts: Sequence[str], add_special_tokens: bool = False
    ) -> list[TokenPlaces]:
        """The ids of several texts, likewise; the places are left out."""
        return [TokenPlaces(ids, []) for ids in self._ask_process("ids", list(texts))]

    def _ask_process(self, work: str, texts: list[str]) -> Any:
        characters = sum(map(len, texts))
        try:
            return self._process.ask(work, MOST_SECONDS + characters / PER_SECOND, texts=texts)
        except EndedError as error:
            raise ValueError(
                f"{error} with {characters:,} characters, because of {self._reason}: read a "
                "shorter text, or change that in "
                "tokenizer.json"
            ) from None
