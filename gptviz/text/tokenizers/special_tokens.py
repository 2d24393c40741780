"""Special tokens: padding, start and end, three tokens that stand for no text, after a vocabulary
that has none of them.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .base import Encoding, Ids, Tokenizer
from .padded import ExtendedTokenizer

NAMES: Final = ("⟨padding⟩", "⟨start⟩", "⟨end⟩")
"""The special tokens as they are shown, in the order of their ids."""


class SpecialTokensTokenizer(ExtendedTokenizer):
    """The tokens of an inner tokenizer, then padding, start and end: for models that read one text
    and write another.

    Encoding a text never gives a special token, and decoding leaves them out: `source_ids` and
    `target_ids` put them where they belong. A ValueError if the inner tokenizer has special tokens
    itself.
    """

    kind = "marked"  # the name that checkpoints know it by
    padding: int  #: the token that fills up the shorter texts of a batch

    def __init__(self, inner: Tokenizer) -> None:
        if isinstance(inner, SpecialTokensTokenizer):
            raise ValueError("the vocabulary has its special tokens already")
        self.inner = inner
        self.is_spaced = inner.is_spaced
        self.way = inner.way
        self.padding = inner.vocab_size
        #: the token before an answer, from which its first token is predicted
        self.start = inner.vocab_size + 1
        self.end = inner.vocab_size + 2  #: the token after a source, and after an answer
        self.vocab_size = inner.vocab_size + len(NAMES)

    @classmethod
    def inner_fields(cls, fields: dict[str, object]) -> dict[str, Any]:
        """The parsed JSON of the inner tokenizer in that of the whole."""
        inner = fields.get("inner")
        if not isinstance(inner, dict):
            raise ValueError("the tokenizer's 'inner' must be the object of another tokenizer")
        if inner.get("kind") == cls.kind:
            raise ValueError("the tokenizer's 'inner' has special tokens itself, which must not be")
        return inner

    def source_ids(self, text: str) -> list[int]:
        """The ids that an encoder reads for a text: its tokens, then the end."""
        return [*self.inner.encode_ids(text).tolist(), self.end]

    def target_ids(self, text: str) -> list[int]:
        """An answer as a decoder learns it: start, its tokens, end. It reads all but the last and
        predicts all but the first.
        """
        return [self.start, *self.source_ids(text)]

    def encode_answer(self, text: str) -> Encoding:
        """The ids of an answer, without special tokens, and what the vocabulary lacks."""
        return self.encode(text)

    def name_of(self, id: int) -> str:
        return NAMES[id - self.inner.vocab_size]

    def pad_rows(self, rows: Sequence[Sequence[int]]) -> Ids:
        """Rows of ids as one array [rows, tokens of the longest], the shorter rows filled up with
        padding at their ends.
        """
        ids = np.full((len(rows), max(map(len, rows), default=0)), self.padding, np.int64)
        for padded, row in zip(ids, rows, strict=True):
            padded[: len(row)] = row
        return ids

    def to_json(self) -> str:
        """`kind` and `inner`, the JSON of the inner tokenizer."""
        return json.dumps({"kind": self.kind, "inner": json.loads(self.inner.to_json())})
