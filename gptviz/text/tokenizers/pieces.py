"""A text as a tokenizer cuts it: for each token its id, its bytes, and whether it is a whole word;
and what texts cost.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

from gptviz.text.visible_form import make_visible

from .base import Encoding, Tokenizer

KINDS: Final = ("whole word", "part of a word", "sign", "part of a character", "unknown", "special")
"""What a token can be: see `pieces`."""
# Letters, digits and their marks, with apostrophes between them: "don't" is one word.
_WORD: Final = re.compile(
    r"\w(?:[\w\u0300-\u036f\u064b-\u0652\u0900-\u0963\u200c\u200d]|['’](?=\w))*"
)
# Scripts that write no spaces between words: Chinese, Japanese, Thai.
_WITHOUT_SPACES: Final = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff]")


@dataclass(frozen=True)
class Piece:
    """A token of a text."""

    id: int  #: its number in the vocabulary
    label: str  #: its visible form
    data: bytes  #: the bytes of the text that it stands for, in UTF-8; none of a special token
    kind: str  #: one of `KINDS`
    word: int  #: the number of its word: tokens that are parts of one word have the same
    instead_of: str = ""  #: the text that it is read in place of, if the vocabulary lacks that


@dataclass(frozen=True)
class Cost:
    """What a text costs a tokenizer."""

    tokens: int  #: how many it is cut into
    bytes: int  #: of the text, in UTF-8
    #: runs of letters and digits; None for a text in a script that writes no spaces between words
    words: int | None
    lacking: int  #: how many tokens stand for something that the vocabulary lacks

    @property
    def tokens_per_word(self) -> float | None:
        """How many tokens a word takes, signs and spaces counted with it; None without words."""
        if self.words:
            return self.tokens / self.words
        return None

    @property
    def bytes_per_token(self) -> float:
        """How much text a token stands for: more is shorter."""
        if self.tokens:
            return self.bytes / self.tokens
        return 0.0


def cost(tokenizer: Tokenizer, text: str) -> Cost:
    """The cost of a text; the tokens that stand around every text are not counted."""
    encoding = tokenizer.encode(text)
    inside = tokenizer.text_slice(encoding.ids)
    if _WITHOUT_SPACES.search(text):
        words = None
    else:
        words = len(_WORD.findall(text))
    return Cost(
        inside.stop - inside.start,
        len(text.encode("utf-8", "surrogatepass")),
        words,
        len(encoding.unknown),
    )


def pieces(tokenizer: Tokenizer, encoding: Encoding) -> list[Piece]:
    """The tokens of a text, each with its kind.

    - `whole word`: perhaps with the space before it or a sign
    - `part of a word`: it begins or ends within a word
    - `sign`: no letters and digits: white space, punctuation, other signs
    - `part of a character`: bytes that are not whole characters
    - `unknown`: read in place of what the vocabulary lacks
    - `special`: no text, such as the token for the end of a text
    """
    ids = encoding.ids
    instead_of = {
        unknown.position: unknown.character for unknown in encoding.unknown if unknown.instead
    }
    is_text = [
        place not in instead_of and not tokenizer.is_special(token)
        for place, token in enumerate(ids)
    ]
    # Between tokens that stand apart in the text, and where a token is no text, a space ends the
    # word.
    gaps = [
        b"" if text and not tokenizer.begins_apart(token) else b" "
        for token, text in zip(ids, is_text, strict=True)
    ]
    data = [
        tokenizer.bytes_of(token) if text else b"" for token, text in zip(ids, is_text, strict=True)
    ]
    written = b"".join(part for pair in zip(gaps, data, strict=True) for part in pair)
    ends = list(accumulate(len(gap) + len(part) for gap, part in zip(gaps, data, strict=True)))
    starts = [end - len(part) for end, part in zip(ends, data, strict=True)]
    words, characters = _words(written)
    kinds = list[str]()
    numbers = list[int]()
    number = -1
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if place in instead_of:
            kind = "unknown"
        elif not is_text[place]:
            kind = "special"
        else:
            kind = _kind(written, start, end, words)
        goes_on = (
            numbers
            and is_text[place]
            and is_text[place - 1]
            and not gaps[place]
            and _is_within(start, words, characters)
        )
        number += not goes_on
        kinds.append(kind)
        numbers.append(number)
    return [
        Piece(token, tokenizer.label(token), part, kind, word, instead_of.get(place, ""))
        for place, (token, part, kind, word) in enumerate(
            zip(ids, data, kinds, numbers, strict=True)
        )
    ]


def words(tokenizer: Tokenizer, ids: Sequence[int]) -> list[range]:
    """The places in `ids` of the tokens that make one word, word after word; a sign, a space and a
    special token stand alone.
    """
    numbers = [piece.word for piece in pieces(tokenizer, Encoding(list(ids)))]
    starts = [
        place for place, number in enumerate(numbers) if place == 0 or number != numbers[place - 1]
    ]
    return [range(start, end) for start, end in pairwise([*starts, len(numbers)])]


def word_labels(tokenizer: Tokenizer, ids: Sequence[int], words: Sequence[range]) -> list[str]:
    """The visible form of each of the `words` of these tokens."""

    def label(word: range) -> str:
        if len(word) == 1:
            return tokenizer.label(ids[word.start])
        return make_visible(
            b"".join(tokenizer.bytes_of(ids[place]) for place in word).decode("utf-8", "replace")
        )

    return [label(word) for word in words]


def _words(written: bytes) -> tuple[list[tuple[int, int]], set[int]]:
    """The places in bytes of the words in a text, and of the beginnings of its characters and its
    end.
    """
    text = written.decode("utf-8", "surrogateescape")
    places = [
        0,
        *accumulate(len(character.encode("utf-8", "surrogateescape")) for character in text),
    ]
    return [(places[match.start()], places[match.end()]) for match in _WORD.finditer(text)], set(
        places
    )


def _kind(written: bytes, start: int, end: int, words: Sequence[tuple[int, int]]) -> str:
    try:
        written[start:end].decode("utf-8")
    except UnicodeDecodeError:
        return "part of a character"
    # the first word that ends behind the start
    first = bisect_right(words, start, key=lambda word: word[1])
    touched = [word for word in words[first:][:2] if word[0] < end]
    if not touched:
        return "sign"
    last = words[bisect_right(words, end - 1, key=lambda word: word[0]) - 1]
    if touched[0][0] >= start and last[1] <= end:
        return "whole word"
    return "part of a word"


def _is_within(place: int, words: Sequence[tuple[int, int]], characters: set[int]) -> bool:
    """Whether a place lies within a word or a character."""
    at = bisect_right(words, place, key=lambda word: word[1])
    return place not in characters or (at < len(words) and words[at][0] < place)
