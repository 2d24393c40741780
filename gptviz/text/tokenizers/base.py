"""What every tokenizer offers: text to token ids and back, and how a token is shown."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gptviz.text.visible import character_name, kind_of_text, visible

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Unknown:
    """A piece of the text that the vocabulary lacks, and what the model reads in its place."""

    position: int
    """Index of the token read instead; if nothing is read, of the token that follows (the number of ids at the end)."""
    character: str
    """The character; from a vocabulary of whole words, the word."""
    name: str
    """`U+20AC EURO SIGN`, or the code point alone where Unicode gives no name."""
    instead: str = ""
    """Visible form of what the model reads instead, empty if it reads nothing."""

    @classmethod
    def of(cls, position: int, text: str, instead: str) -> "Unknown":
        """The record for `text`, named by its Unicode name, or by itself where it is longer than a character."""
        name = character_name(text) if len(text) == 1 else f"the text “{visible(text)}”"
        return cls(position, text, name, instead)


@dataclass(frozen=True)
class Encoding:
    """A text as token ids, with a record of every place where the vocabulary fell short."""

    ids: list[int]
    unknown: tuple[Unknown, ...] = ()

    def unknown_sentence(self, at_most: int = 5) -> str:
        """
        One sentence for the reader: what the vocabulary lacks, each once, and what is read instead.

        Empty when nothing is unknown. Names `at_most` of the distinct ones and counts the rest.
        """
        if not self.unknown:
            return ""
        distinct = {unknown.character: unknown.name for unknown in self.unknown}
        names = [_quoted(character, name) for character, name in list(distinct.items())[:at_most]]
        if len(distinct) > at_most:
            names.append(f"and {len(distinct) - at_most} more")
        instead = " or ".join(dict.fromkeys(unknown.instead or "nothing" for unknown in self.unknown))
        return f"Not in the vocabulary: {', '.join(names)}; the model reads {instead} instead."


class Tokenizer(ABC):
    """
    A vocabulary of `vocab_size` tokens, numbered from 0, and the way from text to their ids and back.

    An id outside the vocabulary raises `ValueError`, in every method that takes one.
    """

    kind: ClassVar[str]
    """The sort of tokenizer: `characters`, `symbols`, `bpe`, `words` or `marked`."""

    padding: int | None = None
    """The token that fills up the shorter texts of a batch, None where there is none: then all must be of one length."""

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """How many tokens there are: the number of rows of the embedding."""

    @abstractmethod
    def encode(self, text: str) -> Encoding:
        """The ids of a prompt, with a record of every character that the vocabulary lacks."""

    @abstractmethod
    def encode_ids(self, text: str) -> Ids:
        """The same ids as `encode` as an array [n_tokens], in pieces, so that a corpus of 100 MB passes through."""

    @abstractmethod
    def decode(self, ids: Sequence[int] | Ids) -> str:
        """The text of a one-dimensional sequence of ids."""

    @abstractmethod
    def piece(self, id: int) -> str:
        """
        The text a token adds to a text that it is appended to, unchanged.

        Bytes that are not a whole character of UTF-8 are U+FFFD. Symbols bring the space that separates them.
        """

    @abstractmethod
    def id_of(self, piece: str) -> int | None:
        """The token that stands for exactly this text, None if there is none."""

    @abstractmethod
    def to_json(self) -> str:
        """The content of a checkpoint's `tokenizer.json`; `from_json` opens it."""

    def label(self, id: int) -> str:
        """The visible form of a token, as it stands on chips and axes; see `visible`."""
        return visible(self.piece(id))

    def labels(self) -> list[str]:
        """The visible forms of all tokens, by id."""
        return [self.label(i) for i in range(self.vocab_size)]

    def kind_of(self, id: int) -> str:
        """What sort of token it is, one of `TOKEN_KINDS`; see `kind_of_text`."""
        return kind_of_text(self.piece(id))

    def checked(self, ids: Sequence[int] | Ids) -> Ids:
        """`ids` as an array [n_tokens]; `ValueError` unless they are whole numbers inside the vocabulary."""
        array = np.asarray(ids)
        if array.size == 0:
            return np.empty(0, np.int64)
        if array.dtype.kind not in "iu" or array.ndim != 1:
            raise ValueError(f"ids must be one sequence of whole numbers, not {array.ndim}-D of type {array.dtype}")
        outside = array[(array < 0) | (array >= self.vocab_size)]
        if outside.size:
            raise ValueError(f"the id {outside[0]} is outside the vocabulary of {self.vocab_size} tokens")
        return array.astype(np.int64)


def from_json(text: str) -> Tokenizer:
    """
    The tokenizer that `to_json` wrote, or a Hugging Face `tokenizer.json` (recognised by its `model` key).

    Only data is read, no code is run. Anything else raises `ValueError` with a sentence that names what is wrong.
    """
    from .bpe import BPETokenizer
    from .characters import CharTokenizer
    from .special_tokens import SpecialTokensTokenizer
    from .symbols import SymbolTokenizer
    from .words import WordTokenizer

    fields = parse_object(text)
    if "model" in fields:
        return BPETokenizer.from_json(text)
    if fields.get("kind") == CharTokenizer.kind:
        return CharTokenizer.from_fields(fields)
    if fields.get("kind") == SymbolTokenizer.kind:
        return SymbolTokenizer.from_fields(fields)
    if fields.get("kind") == WordTokenizer.kind:
        return WordTokenizer.from_fields(fields)
    if fields.get("kind") == SpecialTokensTokenizer.kind:
        return SpecialTokensTokenizer.from_fields(fields)
    raise ValueError(
        f"the tokenizer's 'kind' is {fields['kind']!r:.80}, which is none that can be opened"
        if "kind" in fields
        else "this is not a tokenizer: it has neither a 'kind' nor the 'model' of a Hugging Face tokenizer.json"
    )


def parse_object(text: str) -> dict[str, object]:
    """The JSON object in `text`, `ValueError` if that is not what it holds."""
    try:
        fields = json.loads(text)
    except RecursionError:
        raise ValueError("the tokenizer is not readable JSON: it is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"the tokenizer is not readable JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError(f"the tokenizer must be a JSON object, not {type(fields).__name__}")
    return fields


def _quoted(character: str, name: str) -> str:
    """The character and its name, only the name where it says everything already."""
    shown = visible(character)
    return name if len(character) != 1 or shown.startswith("U+") else f"{shown} ({name})"
