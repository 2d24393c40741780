"""A vocabulary with unused tokens at its end: many models have more rows in their embedding than
their tokenizer has tokens.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from .base import Encoding, Ids, Tokenizer, unused_label
from .merging import Merging

LARGEST = 10_000_000


class ExtendedTokenizer(Tokenizer):
    """The tokens of an inner tokenizer, then tokens that stand for no text and that no text is read
    as.
    """

    inner: Tokenizer  #: the tokenizer of the text

    @abstractmethod
    def name_of(self, id: int) -> str:
        """The visible form of a token after those of the inner tokenizer."""

    def encode(self, text: str) -> Encoding:
        return self.inner.encode(text)

    def encode_ids(self, text: str) -> Ids:
        return self.inner.encode_ids(text)

    def decode(self, ids: Sequence[int] | Ids) -> str:
        """The text of these ids; tokens that stand for none are left out."""
        checked = self.check_ids(ids)
        return self.inner.decode(checked[checked < self.inner.vocab_size])

    def piece(self, id: int) -> str:
        """The text a token stands for; those after the inner ones stand for none."""
        checked = int(self.check_ids([id])[0])
        if checked < self.inner.vocab_size:
            return self.inner.piece(checked)
        return ""

    def id_of(self, piece: str) -> int | None:
        return self.inner.id_of(piece)

    def bytes_of(self, id: int) -> bytes:
        if id >= self.inner.vocab_size:
            return b""
        return self.inner.bytes_of(id)

    def begins_apart(self, id: int) -> bool:
        return id >= self.inner.vocab_size or self.inner.begins_apart(id)

    def is_special(self, id: int) -> bool:
        return id >= self.inner.vocab_size or self.inner.is_special(id)

    def merging(self, ids: Sequence[int] | Ids) -> Merging | None:
        if max(ids, default=0) >= self.inner.vocab_size:
            return None
        return self.inner.merging(ids)

    def label(self, id: int) -> str:
        checked = int(self.check_ids([id])[0])
        if checked < self.inner.vocab_size:
            return self.inner.label(checked)
        return self.name_of(checked)

    def labels(self) -> list[str]:
        return [
            *self.inner.labels(),
            *map(self.name_of, range(self.inner.vocab_size, self.vocab_size)),
        ]


class PaddedTokenizer(ExtendedTokenizer):
    """The tokens of an inner tokenizer, then unused ones.

    Models have such rows to bring their vocabulary to a round size. They are kept because they take
    part in the softmax; none is ever drawn. A ValueError if the inner tokenizer has as many tokens
    already.
    """

    kind = "padded"

    def __init__(self, inner: Tokenizer, size: int) -> None:
        if isinstance(inner, PaddedTokenizer) or not inner.vocab_size < size <= LARGEST:
            raise ValueError(
                f"a vocabulary of {inner.vocab_size:,} tokens cannot be filled up to {size:,}"
            )
        self.inner = inner
        self.vocab_size = size
        self.unknown_id = inner.unknown_id
        self.padding = inner.padding
        self.before = inner.before
        self.after = inner.after
        self.is_spaced = inner.is_spaced
        self.way = inner.way
        self.unused_ids = [*inner.unused_ids, *range(inner.vocab_size, size)]

    @classmethod
    def parts(cls, fields: dict[str, object]) -> tuple[dict[str, Any], int]:
        """The parsed JSON of the inner tokenizer in that of the whole, and how many tokens there
        are.
        """
        inner = fields.get("inner")
        size = fields.get("size")
        if (
            not isinstance(inner, dict)
            or inner.get("kind") == cls.kind
            or isinstance(size, bool)
            or not isinstance(size, int)
        ):
            raise ValueError(
                "a padded tokenizer must have the object of another tokenizer as 'inner', and its "
                "'size'"
            )
        return inner, size

    def name_of(self, id: int) -> str:
        return unused_label(id)

    def continuation(self, ids: Sequence[int] | Ids) -> str:
        """The text that these tokens add to another text; unused tokens are left out."""
        checked = self.check_ids(ids)
        return self.inner.continuation(checked[checked < self.inner.vocab_size])

    def to_json(self) -> str:
        """`kind`, `size`, and `inner`, the JSON of the inner tokenizer."""
        return json.dumps(
            {"kind": self.kind, "size": self.vocab_size, "inner": json.loads(self.inner.to_json())}
        )
