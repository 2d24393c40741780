"""Marian's tokens: a vocabulary of SentencePiece for the source and one for the answer, whose
pieces share one table of ids.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from gptviz.machine.bounded import SURROGATE
from gptviz.text.visible_form import make_visible

from .base import Encoding, Ids, Tokenizer, Unknown, unused_label
from .bpe import as_value_error
from .growth import check_growth
from .padded import LARGEST
from .sentencepiece import SPACE, model_in
from .special_tokens import NAMES, SpecialTokensTokenizer

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

# surrogates that are reported; for each of them the text before it is read again
MOST_LONE: Final = 20
# The language to write, for a model that writes several: the first token of a source, such as
# >>fr<<.
_LANGUAGE: Final = re.compile(">>.*?<<", re.DOTALL)


class MarianTokenizer(SpecialTokensTokenizer):
    """The pieces of a Marian model (Junczys-Dowmunt et al. 2018); its special tokens stand among
    them.

    The token that fills up short texts is also the one that answers begin with.

    Args:
        source: the vocabulary that sources are cut with, the content of `source.spm`.
        target: the one for answers, the content of `target.spm`.
        pieces: the pieces in the order of their ids.
        unknown: the piece that is read for one that the table lacks.
        end: the piece after a source and after an answer.
        padding: the piece that fills up short texts, and begins answers.
        unused: how many tokens there are after the pieces that stand for no text, as in
            `PaddedTokenizer`.

    Raises:
        ValueError: a vocabulary is damaged, two pieces are the same, a special piece is missing, or
            there are too many tokens.
    """

    kind = "marian"
    way = "likeliest pieces"

    def __init__(
        self,
        source: bytes,
        target: bytes,
        pieces: Sequence[str],
        unknown: str,
        end: str,
        padding: str,
        unused: int = 0,
    ) -> None:
        self.pieces = tuple(pieces)  #: by id, as the table of ids has them: a space is written as ▁
        self._ids = {piece: place for place, piece in enumerate(self.pieces)}
        if len(self._ids) != len(self.pieces):
            raise ValueError("two of the vocabulary's pieces are the same text")
        for piece in (unknown, end, padding):
            if piece not in self._ids:
                raise ValueError(f"the vocabulary lacks the piece {piece!r:.80}")
        if not len(self.pieces) <= len(self.pieces) + unused <= LARGEST:
            raise ValueError(f"there cannot be {unused:,} unused tokens")
        self.unused_ids = range(len(self.pieces), len(self.pieces) + unused)
        self.vocab_size = self.unused_ids.stop
        self._content = {"source": source, "target": target}
        self._source, self._target = (
            _open_vocabulary(content, name) for name, content in self._content.items()
        )
        self.unknown_id: int = self._ids[unknown]
        self.end = self._ids[end]
        self.padding = self._ids[padding]
        self.start = self.padding

    @classmethod
    def from_fields(cls, fields: dict[str, object]) -> MarianTokenizer:
        """The tokenizer whose parsed JSON this is."""
        pieces = fields.get("pieces")
        names = ("source", "target", "unknown", "end", "padding")
        unused = fields.get("unused", 0)
        source, target, unknown, end, padding = (str(fields.get(name)) for name in names)
        if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
            raise ValueError("the tokenizer's 'pieces' must be a list of texts")
        if isinstance(unused, bool) or not isinstance(unused, int):
            raise ValueError("the tokenizer's 'unused' must be a whole number")
        with as_value_error("the tokenizer's 'source' and 'target' must be vocabularies in base64"):
            contents = [base64.b64decode(text, validate=True) for text in (source, target)]
        return cls(contents[0], contents[1], pieces, unknown, end, padding, unused)

    def filled_up(self, size: int) -> MarianTokenizer:
        """The same tokenizer with unused tokens at its end, so that there are `size` of them."""
        special = self.special_pieces()
        content = self._content
        names = special["unknown"], special["end"], special["padding"]
        return MarianTokenizer(
            content["source"], content["target"], self.pieces, *names, size - len(self.pieces)
        )

    def encode(self, text: str) -> Encoding:
        """The ids of a source, without special tokens, and the pieces that the table of ids
        lacks.
        """
        return self._encode_text(text, self._source)

    def encode_answer(self, text: str) -> Encoding:
        """The ids of an answer, without special tokens, and the pieces that the table of ids
        lacks.
        """
        return self._encode_text(text, self._target)

    def _encode_text(self, text: str, vocabulary: SentencePieceProcessor) -> Encoding:
        pieces = _cut_text(text, vocabulary)
        unknown = [
            Unknown.name_text(
                place, piece.replace(SPACE, " ").strip() or " ", self.label(self.unknown_id)
            )
            for place, piece in enumerate(pieces)
            if piece not in self._ids
        ]
        lone = islice(SURROGATE.finditer(text), MOST_LONE)
        unknown += [
            Unknown.name_text(
                len(_cut_text(text[: surrogate.start()], vocabulary)), surrogate[0], ""
            )
            for surrogate in lone
        ]
        unknown.sort(key=lambda one: one.position)
        return Encoding([self._ids.get(piece, self.unknown_id) for piece in pieces], tuple(unknown))

    def encode_ids(self, text: str) -> Ids:
        return np.array(self.encode(text).ids, np.int64)

    def source_ids(self, text: str) -> list[int]:
        return [*self.encode(text).ids, self.end]

    def target_ids(self, text: str) -> list[int]:
        return [self.start, *self.encode_answer(text).ids, self.end]

    def decode(self, ids: Sequence[int] | Ids) -> str:
        """The text of these ids; special and unused tokens are left out."""
        return "".join(map(self.piece, self.check_ids(ids).tolist())).strip()

    def piece(self, id: int) -> str:
        """The text a token stands for, a space before a word; start, end and unused tokens stand
        for none.
        """
        place = int(self.check_ids([id])[0])
        stands_for_none = place in (self.end, self.padding) or place in self.unused_ids
        if stands_for_none:
            return ""
        return self.pieces[place].replace(SPACE, " ")

    def id_of(self, piece: str) -> int | None:
        """The token that stands for exactly this text, or None if there is none; a special token
        never does.
        """
        token = self._ids.get(piece.replace(" ", SPACE))
        if token in (self.end, self.padding):
            return None
        return token

    def label(self, id: int) -> str:
        """The visible form of a token; for start and end their names, `⟨start⟩`; for an unused one
        its number.
        """
        place = int(self.check_ids([id])[0])
        if place in self.unused_ids:
            return unused_label(place)
        return {self.start: NAMES[1], self.end: NAMES[2]}.get(place) or make_visible(
            self.piece(place)
        )

    # There is no inner tokenizer that has these.
    labels = Tokenizer.labels
    bytes_of = Tokenizer.bytes_of
    begins_apart = Tokenizer.begins_apart
    merging = Tokenizer.merging

    def is_special(self, id: int) -> bool:
        return id in (self.end, self.padding) or id in self.unused_ids

    def files(self) -> dict[str, bytes]:
        """The files that it is made of, by name: both vocabularies, and the ids of the pieces."""
        ids = json.dumps(self._ids, indent=2).encode("ascii")
        return {
            **{f"{name}.spm": content for name, content in self._content.items()},
            "vocab.json": ids,
        }

    def special_pieces(self) -> dict[str, str]:
        """The pieces that are special, by what they are for: `unknown`, `end` and `padding`."""
        return {
            "unknown": self.pieces[self.unknown_id],
            "end": self.pieces[self.end],
            "padding": self.pieces[self.padding],
        }

    def to_json(self) -> str:
        """`kind`, both vocabularies in base64, the `pieces` by their ids, which are special, and
        how many tokens are `unused`.
        """
        written = {
            name: base64.b64encode(content).decode("ascii")
            for name, content in self._content.items()
        }
        if self.unused_ids:
            unused = {"unused": len(self.unused_ids)}
        else:
            unused = {}
        return json.dumps(
            {"kind": self.kind, **written, "pieces": self.pieces, **self.special_pieces(), **unused}
        )


def _cut_text(text: str, vocabulary: SentencePieceProcessor) -> list[str]:
    """A text in pieces; lone surrogates, which are no text, are left out."""
    clean = SURROGATE.sub("", text)
    language = _LANGUAGE.match(clean)
    pieces: list[str] = vocabulary.encode(
        clean[language.end() :] if language else clean, out_type=str
    )
    if language:
        return [language[0], *pieces]
    return pieces


def _open_vocabulary(content: bytes, name: str) -> SentencePieceProcessor:
    """The vocabulary of SentencePiece in a file with this content."""
    from sentencepiece import SentencePieceProcessor

    with as_value_error(f"{name}.spm is no vocabulary of SentencePiece, or is cut short"):
        characters = base64.b64encode(
            model_in(content).normalizer_spec.precompiled_charsmap
        ).decode()
        check_growth({"normalizer": {"type": "Precompiled", "precompiled_charsmap": characters}})
        vocabulary = SentencePieceProcessor()
        vocabulary.LoadFromSerializedProto(content)
    return vocabulary
