"""The methods of every tokenizer: text to token ids and back, and how a token is shown."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from gptviz.machine.bounded import parse_json
from gptviz.text.visible_form import character_name, kind_of_text, make_visible

from .merging import Merging

Ids = NDArray[np.int64]

MOST_NAMED = 5  # pieces that the vocabulary lacks, in a message
LONGEST_NAME = 40  # characters of a text that the vocabulary lacks, in a message
WAYS: Final = ("characters", "symbols", "words", "merges", "longest pieces", "likeliest pieces")
"""How a tokenizer finds the tokens of a text: the last three are byte-pair encoding, WordPiece, and Unigram."""
# of the JSON of a tokenizer: the largest that are published have 1.4 million
MOST_VALUES = 2_000_000


@dataclass(frozen=True)
class Unknown:
    """A piece of the text that the vocabulary lacks, and the token that the model reads in its
    place.
    """

    #: the index of the token read instead; if nothing is read, of the token that follows (at the
    #: end of the text, the number of tokens)
    position: int
    character: str  #: the character; from a vocabulary of whole words, the word
    #: `U+20AC EURO SIGN`, or only the code point if Unicode gives no name; of a word, the word or
    #: its beginning
    name: str
    #: the visible form of the token that the model reads instead, empty if it reads nothing
    instead: str = ""

    @classmethod
    def name_text(cls, position: int, text: str, instead: str) -> "Unknown":
        """The record for `text`, named by its Unicode name; if it is longer than a character, by
        itself or its beginning.
        """
        if len(text) <= LONGEST_NAME:
            begins = text
        else:
            begins = f"{text[: LONGEST_NAME - 1]}…"
        if len(text) == 1:
            name = character_name(text)
        else:
            name = f"the text “{make_visible(begins)}”"
        return cls(position, text, name, instead)


@dataclass(frozen=True)
class Encoding:
    """A text as token ids, with a record of every place that the vocabulary has no token for."""

    ids: list[int]
    unknown: tuple[Unknown, ...] = ()

    def unknown_sentence(self) -> str:
        """What the vocabulary lacks, at most `MOST_NAMED` of it, and what is read instead, in a
        sentence; empty for nothing.
        """
        if not self.unknown:
            return ""
        distinct = {unknown.character: unknown.name for unknown in self.unknown}
        names = list[str]()
        for character, name in list(distinct.items())[:MOST_NAMED]:
            # with its name, unless it cannot be seen or the name has it already
            form = make_visible(character)
            names.append(
                name if len(character) != 1 or form.startswith("U+") else f"{form} ({name})"
            )
        if len(distinct) > MOST_NAMED:
            names.append(f"and {len(distinct) - MOST_NAMED} more")
        instead = " or ".join(
            dict.fromkeys(unknown.instead or "nothing" for unknown in self.unknown)
        )
        return f"Not in the vocabulary: {', '.join(names)}; the model reads {instead} instead."


def unused_label(id: int) -> str:
    """The visible form of an unused token."""
    return f"⟨unused {id}⟩"


class Tokenizer(ABC):
    """A vocabulary of tokens, numbered from 0, and the conversion of text to their ids and back.

    Every method that takes ids raises a ValueError if one is outside the vocabulary; so do
    `from_fields` and its like where `to_json` could not have written what they are given.
    """

    #: its name in JSON: `characters`, `symbols`, `bpe`, `words`, `cased words` or `marked` (with
    #: special tokens)
    kind: ClassVar[str]
    #: how many tokens there are, also those that stand for no text: the number of rows of the
    #: embedding
    vocab_size: int
    #: the token that is read for what the vocabulary lacks, or None if there is no such token
    unknown_id: int | None = None
    way: str = "words"  #: what it does with a text, one of `WAYS`
    #: the end of a sentence about a text that is read as no token: what the text has, and what it
    #: would need
    without: ClassVar[str] = (
        "nothing that this model can read: it reads characters that are no white space"
    )
    #: the token that fills up the shorter texts of a batch, or None if there is none: then all
    #: texts of a batch must have one length
    padding: int | None = None
    #: whether tokens stand apart in a text, so that a view leaves a gap between any two
    is_spaced: bool = False
    before: tuple[int, ...] = ()  #: the tokens that are put before every text, such as [CLS]
    after: tuple[int, ...] = ()  #: those that are put after every text, such as [SEP]
    #: tokens that stand for nothing: ids that no token has, mostly at the end of the vocabulary;
    #: none of them is ever written
    unused_ids: Sequence[int] = ()

    @abstractmethod
    def encode(self, text: str) -> Encoding:
        """The ids of a prompt, with a record of every character that the vocabulary lacks."""

    @abstractmethod
    def encode_ids(self, text: str) -> Ids:
        """The same ids as `encode` as an array [n_tokens]; the text is read in pieces, so that 100
        MB fit into memory.
        """

    @abstractmethod
    def decode(self, ids: Sequence[int] | Ids) -> str:
        """The text of a one-dimensional sequence of ids."""

    def continuation(self, ids: Sequence[int] | Ids) -> str:
        """The text that these tokens add to another text. For most vocabularies this is what they
        decode to.
        """
        return self.decode(ids)

    @abstractmethod
    def piece(self, id: int) -> str:
        """The text that a token adds when it is appended to another text, unchanged.

        Bytes that are not a whole character of UTF-8 are U+FFFD. Symbols and words bring the space
        that separates them.
        """

    @abstractmethod
    def id_of(self, piece: str) -> int | None:
        """The token that stands for exactly this text, or None if there is none."""

    @abstractmethod
    def to_json(self) -> str:
        """The content of a checkpoint's `tokenizer.json`; `gptviz.text.from_json` opens it."""

    def bytes_of(self, id: int) -> bytes:
        """The bytes of the text that a token stands for, in UTF-8; without a space that only
        separates two tokens.
        """
        piece = self.piece(id)
        return (piece.removeprefix(" ") if self.is_spaced else piece).encode(
            "utf-8", "surrogatepass"
        )

    def begins_apart(self, id: int) -> bool:
        """Whether a token stands apart from the token before it."""
        return self.is_spaced

    def is_special(self, id: int) -> bool:
        """Whether a token stands for no text."""
        return id in (*self.before, *self.after)

    def merging(self, ids: Sequence[int] | Ids) -> Merging | None:
        """The merges that made these tokens of a text; None for tokens that are not made by
        merges.
        """
        return None

    def label(self, id: int) -> str:
        """The visible form of a token, for chips and axes; see `make_visible`."""
        return make_visible(self.piece(id))

    def labels(self) -> list[str]:
        """The visible forms of all tokens, by id."""
        return [self.label(i) for i in range(self.vocab_size)]

    def kind_of(self, id: int) -> str:
        """The kind of a token, one of `TOKEN_KINDS`; see `kind_of_text`."""
        return kind_of_text(self.piece(id))

    def beginning(self, ids: Sequence[int], most: int) -> list[int]:
        """The beginning of the `ids` of a text, at most `most` of them; the tokens that are put
        after a text stay.
        """
        if len(ids) <= most:
            return list(ids)
        return [*ids[: most - len(self.after)], *self.after]

    def text_slice(self, ids: Sequence[int] | Ids) -> slice:
        """The places of the text itself in `ids`: between the tokens that are put around every
        text, if these are there.
        """
        count = len(ids)
        if tuple(ids[: len(self.before)]) == self.before:
            first = len(self.before)
        else:
            first = 0
        if tuple(ids[max(count - len(self.after), 0) :]) == self.after:
            last = len(self.after)
        else:
            last = 0
        return slice(first, count - last)

    def check_ids(self, ids: Sequence[int] | Ids) -> Ids:
        """`ids` as an array [n_tokens]. A ValueError if they are not whole numbers inside the
        vocabulary.
        """
        array = np.asarray(ids)
        if array.size == 0:
            return np.empty(0, np.int64)
        if array.dtype.kind not in "iu" or array.ndim != 1:
            raise ValueError(
                f"ids must be one sequence of whole numbers, not {array.ndim}-D of type "
                f"{array.dtype}"
            )
        outside = array[(array < 0) | (array >= self.vocab_size)]
        if outside.size:
            raise ValueError(
                f"the id {outside[0]} is outside the vocabulary of {self.vocab_size} tokens"
            )
        return array.astype(np.int64)


def parse_object(text: str) -> dict[str, object]:
    """The JSON object in `text`; a ValueError if it holds anything else."""
    try:
        fields = parse_json(text, MOST_VALUES, exactly=True)
    except ValueError as error:
        raise ValueError(f"the tokenizer is not readable JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError(f"the tokenizer must be a JSON object, not {type(fields).__name__}")
    return fields
