"""Character tokens: the vocabulary is the characters of a text, sorted by code point."""

import json
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from .base import Encoding, Ids, Tokenizer, Unknown

MOST_CHARACTERS = 65_536
# Characters looked up at a time: the intermediate arrays stay at a few MB whatever the length of
# the text.
_CHUNK = 1 << 20


class CharTokenizer(Tokenizer):
    """One token per character.

    A character the vocabulary lacks is read as the `unknown` symbol. If the vocabulary lacks that
    symbol too, it gets a row after the others (65 characters become 66 tokens). Without a symbol no
    row is added, and the space is read instead, or the first character if there is no space.

    Args:
        characters: those of the vocabulary in any order, or a text that has them; repeats are
            ignored.
        unknown: one character, or None.

    Raises:
        ValueError: there are no characters or more than `MOST_CHARACTERS`, or an item is not one
            character.
    """

    kind = way = "characters"

    def __init__(self, characters: Iterable[str], unknown: str | None = None) -> None:
        distinct = set(characters)
        if not distinct:
            raise ValueError("there are no characters to make a vocabulary of: the text is empty")
        if len(distinct) > MOST_CHARACTERS:
            raise ValueError(
                f"{len(distinct):,} distinct characters are too many: at most {MOST_CHARACTERS:,}"
            )
        for item in (*distinct, *([] if unknown is None else [unknown])):
            if len(item) != 1:
                raise ValueError(
                    f"a token of this vocabulary must be one character, not {item!r:.80}"
                )
        rows = sorted(distinct)
        if unknown is not None and unknown not in distinct:
            rows.append(unknown)
        #: the symbol read for a character that the vocabulary lacks, or None if there is none
        self.unknown = unknown
        self.characters = "".join(rows)  #: the vocabulary in the order of the ids
        self.vocab_size = len(rows)
        self._n_sorted = len(distinct)
        #: the id that is read for a character that the vocabulary lacks
        self.stand_in = max(0, self.characters.find(" " if unknown is None else unknown))
        self._code_points = _code_points(self.characters)
        # The last entry, past the highest character, serves all characters above it; -1 stands for
        # "not in the vocabulary".
        self._table = np.full(int(self._code_points.max()) + 2, -1, np.int32)
        self._table[self._code_points] = np.arange(len(rows))

    @classmethod
    def from_fields(cls, fields: dict[str, object]) -> "CharTokenizer":
        """The tokenizer whose parsed JSON this is."""
        characters = fields.get("characters")
        unknown = fields.get("unknown")
        if not isinstance(characters, list) or not all(
            isinstance(item, str) for item in characters
        ):
            raise ValueError("the tokenizer's 'characters' must be a list of single characters")
        if unknown is not None and not isinstance(unknown, str):
            raise ValueError("the tokenizer's 'unknown' must be one character or null")
        tokenizer = cls(characters, unknown)
        # Sorting a list that was not sorted would silently give the model's rows to other
        # characters.
        if characters != list(tokenizer.characters[: len(characters)]):
            raise ValueError("the tokenizer's 'characters' must be sorted by code point, each once")
        return tokenizer

    def encode(self, text: str) -> Encoding:
        ids = self._look_up(text)
        instead = self.label(self.stand_in)
        unknown = tuple(
            Unknown.name_text(int(i), text[i], instead) for i in np.flatnonzero(ids < 0)
        )
        return Encoding([self.stand_in if i < 0 else i for i in ids.tolist()], unknown)

    def encode_ids(self, text: str) -> Ids:
        """The ids of a corpus [n_characters]; takes 8 bytes per character and a few MB."""
        ids = np.empty(len(text), np.int64)
        for start in range(0, len(text), _CHUNK):
            ids[start : start + _CHUNK] = self._look_up(text[start : start + _CHUNK])
        ids[ids < 0] = self.stand_in
        return ids

    def decode(self, ids: Sequence[int] | Ids) -> str:
        return self._code_points[self.check_ids(ids)].tobytes().decode("utf-32-le", "surrogatepass")

    def piece(self, id: int) -> str:
        return self.characters[int(self.check_ids([id])[0])]

    def id_of(self, piece: str) -> int | None:
        """The id of a character, None for one the vocabulary lacks or for a longer text."""
        row = int(self._look_up(piece)[0]) if len(piece) == 1 else -1
        if row < 0:
            return None
        return row

    def to_json(self) -> str:
        """`kind`, `unknown` and `characters`, which are a list: in one JSON string two lone
        surrogates would become a pair.
        """
        characters = list(self.characters[: self._n_sorted])
        return json.dumps({"kind": self.kind, "unknown": self.unknown, "characters": characters})

    def _look_up(self, text: str) -> NDArray[np.int32]:
        """Ids [n_characters], -1 where the vocabulary lacks the character."""
        ids: NDArray[np.int32] = self._table[np.minimum(_code_points(text), len(self._table) - 1)]
        return ids


def _code_points(text: str) -> NDArray[np.uint32]:
    """The code points of a text [n_characters], lone surrogates among them."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(
        np.uint32, copy=False
    )
