"""Byte-pair encoding (Sennrich et al. 2016, arXiv:1508.07909): learned here, GPT-2's own, or from a
tokenizer.json.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from copy import copy
from itertools import groupby, islice, pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gptviz.machine import progress
from gptviz.machine.bounded import SURROGATE, TooMuchError, read_regular
from gptviz.text.visible_form import make_visible

from .base import Encoding, Ids, Tokenizer, Unknown, parse_object, unused_label
from .bounds import check_sizes, slow_pattern, slow_work
from .growth import check_growth
from .merging import Merge, Merging, replay_merges
from .reading_outside import ReadingOutside, TokenPlaces

if TYPE_CHECKING:
    import tokenizers

StrPath = str | PathLike[str]
# A place in the text (start, end) → index of the token there, and what is read instead ("" if
# nothing).
_Gaps = dict[tuple[int, int], tuple[int, str]]

_END_OF_TEXT: Final = "<|endoftext|>"
_PARTIAL: Final = re.compile("([\udc80-\udcff]+)")
_BYTE_FALLBACK: Final = re.compile("<0x([0-9A-F]{2})>")
# No token of GPT-2's pattern reaches from other characters into white space, so a text can be cut
# before it.
_SAFE_CUT: Final = re.compile(r"(?<=\S)(?=[ \n])")
MOST_IDS: Final = 4_000_000  # of a vocabulary, with those that no token has
LONGEST_FILE: Final = 64 * 2**20  # bytes: about twice the largest that are published
_CHUNK = 1 << 16
_READ_AT_A_TIME: Final = 1 << 12  # characters: the trainer asks for 256 such pieces at once
_WAYS: Final = {"BPE": "merges", "WordPiece": "longest pieces", "Unigram": "likeliest pieces"}
_CHUNKS_AT_A_TIME: Final = 16


class BPETokenizer(Tokenizer):
    """Tokens merged from the frequent pairs of a corpus; the work is done by the `tokenizers`
    library.

    Byte-level (learned here, GPT-2): any text is a sequence of known bytes, so decoding returns it
    exactly; only lone surrogates, which are not text, are read as U+FFFD and reported. A
    `tokenizer.json` from elsewhere may lack characters: they are read as its unknown token or not
    at all, and reported in both cases. Its truncation, padding and dropout are off: the ids depend
    only on the text.

    Many tokenizers put a token before a text, such as Llama's `<s>`, or one after it. They are
    among the ids here too, but not a second time if the text has them already, as a text from a
    chat template has.

    Args:
        backend: a tokenizer of the `tokenizers` library, of any model.
        outside: what reads texts with it where it may take any time; `backend` then lacks the
            stages that it has.

    Raises:
        ValueError: its vocabulary is empty, two tokens have one id, a token around texts is none of
            them, or as in `growth.check_growth`.
    """

    kind = "bpe"

    def __init__(
        self, backend: "tokenizers.Tokenizer", outside: ReadingOutside | None = None
    ) -> None:
        backend.no_truncation()
        backend.no_padding()
        if getattr(backend.model, "dropout", None) is not None:
            backend.model.dropout = None
        vocabulary = backend.get_vocab()
        # of a piece that a Unigram has twice, the vocabulary has only the id that texts are read as
        tokens = [
            backend.id_to_token(place) if token is None else token
            for place, token in enumerate(by_id(vocabulary))
        ]
        fields = _fields(backend) | (outside.stages if outside else {})
        check_growth(fields)
        if outside is None and (reason := slow_work(fields)) is not None:
            with as_value_error("this tokenizer cannot be opened"):
                outside = ReadingOutside(backend.to_str(), reason)
        model = fields["model"]
        self._backend = backend
        self._outside = outside
        self._reader: tokenizers.Tokenizer | ReadingOutside = outside or backend
        self.before, self.after = _frame(fields["post_processor"])
        # Whether spaces are written as SentencePiece does: as ▁. If not, only the library knows how
        # tokens become a text.
        self._spaces = "▁" in json.dumps(
            (fields["pre_tokenizer"], fields["normalizer"], fields["decoder"]), ensure_ascii=False
        )
        # Whether the tokens are written in GPT-2's alphabet of bytes.
        self._byte_level = any(
            '"ByteLevel"' in json.dumps(fields[part]) for part in ("pre_tokenizer", "normalizer")
        )
        self._bytes = _token_bytes(
            tokens, fields, "▁" if self._spaces else " ", byte_level=self._byte_level
        )
        self.vocab_size = len(tokens)
        self.unused_ids = [place for place, token in enumerate(tokens) if token is None]
        self.check_ids([*self.before, *self.after])
        # Backwards, so that of two tokens for the same text the first is found.
        self._ids = {
            self._bytes[place]: place
            for place, token in reversed(list(enumerate(tokens)))
            if token is not None and vocabulary[token] == place
        }
        self._cuttable = _splits_as_gpt2(fields)
        # Whether a space is put before every piece between added tokens, not only before the text.
        normalizer = json.dumps(fields["normalizer"])
        before = json.dumps(fields["pre_tokenizer"])
        self._prepends = '"Prepend"' in normalizer or '"prepend_scheme": "always"' in before
        self._added = frozenset(token["id"] for token in fields["added_tokens"])
        self._special = frozenset(
            [token["id"] for token in fields["added_tokens"] if token["special"]] + self.unused_ids
        )
        self._goes_on = model.get("continuing_subword_prefix") or ""
        self.way = _WAYS.get(model["type"], "words")
        self._missing_bytes = frozenset(
            byte for byte in range(256) if bytes([byte]) not in self._ids
        )
        self.unknown_id = model.get("unk_id", vocabulary.get(model.get("unk_token")))
        # A model of characters lacks characters; one of words (WordPiece, WordLevel) lacks words.
        self._lacks_characters = model["type"] in ("BPE", "Unigram")
        self.is_spaced = not self._lacks_characters

    @classmethod
    def learn(cls, text: str, vocab_size: int = 2000) -> "BPETokenizer":
        """A byte-level vocabulary of the 256 bytes and the most frequent merges in `text`, split as
        GPT-2 splits.

        It stays smaller than `vocab_size` if the text has no more pairs to merge. It reports how
        much of the text was read, and can be stopped meanwhile; the merges, which take less time,
        are learned at once. A ValueError if the text is empty, or `vocab_size` is below 256.
        """
        from tokenizers import Tokenizer as Backend
        from tokenizers import models, pre_tokenizers, trainers

        if not text:
            raise ValueError("there is nothing to learn from: the text is empty")
        if vocab_size < 256:
            raise ValueError(
                f"a byte-level vocabulary has at least 256 tokens, one per byte, not {vocab_size}"
            )
        backend = Backend(models.BPE())
        _split_as_gpt2(backend)
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        backend.train_from_iterator(_report_chunks(text, _READ_AT_A_TIME), trainer)
        return cls(backend)

    @classmethod
    def from_gpt2(cls, encoder_json_path: StrPath, vocab_bpe_path: StrPath) -> "BPETokenizer":
        """GPT-2's tokenizer from OpenAI's two files, `encoder.json` (token → id) and `vocab.bpe`
        (merges, best first).

        As there, no space is put before the text; `<|endoftext|>` is one token.

        Source: Radford et al. 2019, and `encoder.py` in its released code.

        Raises:
            OSError: a file cannot be read.
            ValueError: the files are not a vocabulary and its merges.
        """
        from tokenizers import Tokenizer as Backend
        from tokenizers import models

        vocabulary: dict[str, Any] = parse_object(_read_file(encoder_json_path))
        lines = _read_file(vocab_bpe_path).split("\n")
        merges = [
            tuple(line.split(" ")) for line in lines if line and not line.startswith("#version")
        ]
        with as_value_error(
            f"{encoder_json_path} and {vocab_bpe_path} are not a vocabulary and its merges"
        ):
            backend = Backend(models.BPE(vocab=vocabulary, merges=merges))  # type: ignore[arg-type]
        _split_as_gpt2(backend)
        if _END_OF_TEXT in vocabulary:
            backend.add_special_tokens([_END_OF_TEXT])
        return cls(backend)

    @classmethod
    def from_file(cls, path: StrPath) -> "BPETokenizer":
        """The tokenizer in a Hugging Face `tokenizer.json`; an OSError if it cannot be read, a
        ValueError if it has none.
        """
        return cls.from_json(_read_file(path))

    @classmethod
    def from_json(cls, text: str) -> "BPETokenizer":
        """The tokenizer whose Hugging Face `tokenizer.json` has this content."""
        return cls.from_fields(parse_object(text), text)

    @classmethod
    def from_fields(cls, fields: dict[str, object], text: str | None = None) -> "BPETokenizer":
        """The same from the parsed content, and the content itself where it is at hand."""
        from tokenizers import Tokenizer as Backend

        if not isinstance(fields.get("model"), dict):
            raise ValueError("this is not a Hugging Face tokenizer.json: it has no 'model' object")
        with as_value_error("this tokenizer.json cannot be opened"):
            check_sizes(fields)
            content = json.dumps(fields) if text is None else text
            outside = None
            if (reason := slow_pattern(fields)) is not None:
                outside = ReadingOutside(content, reason)
                content = json.dumps(fields | dict.fromkeys(outside.stages))
            backend = Backend.from_str(content)
        return cls(backend, outside)

    def encode(self, text: str) -> Encoding:
        """The ids of a prompt, and the characters that the vocabulary lacks.

        Raises:
            ValueError: a `tokenizer.json` from elsewhere cannot read a character at all: it names
                an unknown token that its own vocabulary does not have.
        """
        clean = _without_surrogates(text)
        with as_value_error("this tokenizer cannot read the text"):
            read = self._reader.encode(clean, add_special_tokens=False)
            if self.unknown_id is None:
                gaps = self._left_out(clean)
            else:
                gaps = self._read_as_unknown(clean, read)
        ends = np.array([end for _, end in read.offsets])
        for match in SURROGATE.finditer(text):
            at = int(np.searchsorted(ends, match.start(), side="right"))
            gaps.setdefault((match.start(), match.end()), (at, "\ufffd"))
        before, after = self._missing_frame(read.ids)
        first = len(before)
        unknown = (
            Unknown.name_text(first + at, text[start:end], instead)
            for (start, end), (at, instead) in sorted(gaps.items())
        )
        return Encoding([*before, *read.ids, *after], tuple(unknown))

    def _missing_frame(self, ids: Sequence[int] | Ids) -> tuple[Sequence[int], Sequence[int]]:
        """The tokens that are put before and after these, unless they are there already."""
        text = self.text_slice(ids)
        return self.before[text.start :], self.after[len(ids) - text.stop :]

    def with_frame(self, before: Sequence[int], after: Sequence[int] = ()) -> "BPETokenizer":
        """The same tokenizer with these tokens before and after a text."""
        from tokenizers import processors

        around = self.check_ids([*before, *after]).tolist()
        single = [*(f"{place}" for place in before), "$A", *(f"{place}" for place in after)]
        tokens: list[Any] = [
            {"id": f"{place}", "ids": [place], "tokens": [self._backend.id_to_token(place)]}
            for place in around
        ]
        self._backend.post_processor = processors.TemplateProcessing(
            single=single, special_tokens=tokens
        )
        framed = copy(self)
        framed.before = tuple(before)
        framed.after = tuple(after)
        return framed

    def with_tokens(
        self, tokens: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]] = ()
    ) -> "BPETokenizer":
        """The same tokenizer with more tokens that are found in a text before it is cut, each as in
        the `added_tokens` of a `tokenizer.json`, without its id; those of the `others` are left out
        that are such tokens already.

        What the vocabulary has already keeps its id; the ids of all else go on behind it.
        """
        fields = json.loads(self.to_json())
        known = {token["content"]: token for token in fields["added_tokens"]}
        added = (
            {token["content"]: token for token in others}
            | known
            | {token["content"]: token for token in tokens}
        )
        size = self.vocab_size
        for content in [*dict.fromkeys(token["content"] for token in (*tokens, *others))]:
            place = self._id_of_written(content)
            added[content] = added[content] | {"id": size if place < 0 else place}
            size += place < 0
        if added == known:
            return self
        return BPETokenizer.from_fields(
            fields | {"added_tokens": sorted(added.values(), key=lambda token: token["id"])}
        )

    def without_added(self, first: int) -> "BPETokenizer":
        """The same tokenizer without the added tokens whose ids are at least `first`; tokens of the
        vocabulary itself stay.
        """
        fields = json.loads(self.to_json())
        kept = [token for token in fields["added_tokens"] if token["id"] < first]
        return BPETokenizer.from_fields(fields | {"added_tokens": kept})

    def encode_ids(self, text: str) -> Ids:
        """The ids of a corpus [n_tokens], in pieces that give the same tokens as the whole.

        A `tokenizer.json` from elsewhere that does not split as GPT-2 does reads the whole text at
        once, at 100 bytes a token.
        """
        chunks = _chunks(text) if self._cuttable else iter([text])
        pieces: list[Ids] = []
        while batch := [_without_surrogates(chunk) for chunk in islice(chunks, _CHUNKS_AT_A_TIME)]:
            with as_value_error("this tokenizer cannot read the text"):
                read = self._reader.encode_batch_fast(batch, add_special_tokens=False)
            pieces += [np.array(part.ids, np.int64) for part in read]
        ids = np.concatenate(pieces)
        before, after = self._missing_frame(ids)
        return np.concatenate((np.array(before, np.int64), ids, np.array(after, np.int64)))

    def decode(self, ids: Sequence[int] | Ids) -> str:
        """The text of these ids; bytes that are not whole characters of UTF-8 become U+FFFD."""
        checked = self.check_ids(ids).tolist()
        if self._byte_level:
            return self._join_tokens(checked)
        with as_value_error("this tokenizer cannot write these tokens"):
            if not self._prepends:
                return self._backend.decode(checked, skip_special_tokens=False)
            # A space was put before each part between added tokens, but the library removes it only
            # from the first part.
            return "".join(
                self._join_tokens(part) if is_added else self._backend.decode(list(part))
                for is_added, part in groupby(checked, self._added.__contains__)
            )

    def continuation(self, ids: Sequence[int] | Ids) -> str:
        """The text that these tokens add to another text: a space that the first of them begins
        with stays.
        """
        checked = self.check_ids(ids).tolist()
        if self._byte_level or self._spaces:
            return self._join_tokens(checked)
        return self.decode(checked)

    def _join_tokens(self, ids: Iterable[int]) -> str:
        return b"".join(self._bytes[i] for i in ids).decode("utf-8", "replace")

    def piece(self, id: int) -> str:
        """The text a token stands for; bytes that are not whole characters of UTF-8 become
        U+FFFD.
        """
        return self._bytes[int(self.check_ids([id])[0])].decode("utf-8", "replace")

    def id_of(self, piece: str) -> int | None:
        if SURROGATE.search(piece):
            return None
        return self._ids.get(piece.encode())

    def bytes_of(self, id: int) -> bytes:
        """The bytes of the text that a token stands for; without the mark of a piece that goes on
        with a word, WordPiece's ##.
        """
        return self._bytes[int(self.check_ids([id])[0])].removeprefix(self._goes_on.encode())

    def begins_apart(self, id: int) -> bool:
        return self.is_spaced and not (
            self._goes_on and self._bytes[id].startswith(self._goes_on.encode())
        )

    def is_special(self, id: int) -> bool:
        return id in self._special or super().is_special(id)

    def merges(self) -> list[tuple[str, str]]:
        """All merges, the best first, in the form in which the `tokenizers` library writes tokens;
        none for other models.
        """
        if self.way != "merges":
            return []
        # Older files have a merge as one text with a space in it.
        return [
            (left, right)
            for left, right in (
                merge.split(" ") if isinstance(merge, str) else merge
                for merge in self._model_fields()["merges"]
            )
        ]

    def with_merges(self, count: int) -> "BPETokenizer":
        """A tokenizer that was learned here, with only the first `count` of its merges; its tokens
        keep their ids.
        """
        from tokenizers import Tokenizer as Backend
        from tokenizers import models

        merges = self.merges()[:count]
        tokens = [
            *sorted(byte_alphabet(), key=self._id_of_written),
            *dict.fromkeys(left + right for left, right in merges),
        ]
        backend = Backend(
            models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges)
        )
        _split_as_gpt2(backend)
        return BPETokenizer(backend)

    def read_words(self, words: Sequence[str]) -> list[list[int]]:
        """The tokens of each of these words, written in the alphabet of bytes as `split_words`
        does.
        """
        from tokenizers import Tokenizer as Backend

        return [read.ids for read in Backend(self._backend.model).encode_batch_fast(list(words))]

    def written_tokens(self, ids: Sequence[int] | Ids) -> list[str]:
        """The tokens in the form in which the `tokenizers` library writes them."""
        return [self._backend.id_to_token(i) or "" for i in self.check_ids(ids).tolist()]

    def _id_of_written(self, token: str) -> int:
        """The id of a token in the form in which the library writes it, -1 if there is none."""
        token_id = self._backend.token_to_id(token)
        if token_id is None:
            return -1
        return token_id

    def scores(self) -> dict[str, float]:
        """For Unigram the logarithm of each piece's probability, by its text; empty for other
        models.
        """
        if self.way != "likeliest pieces":
            return {}
        return dict(self._model_fields()["vocab"])

    def _model_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = json.loads(self._backend.to_str())["model"]
        return fields

    def merging(self, ids: Sequence[int] | Ids) -> Merging | None:
        """The merges that made these tokens of a text; None for tokens that are not made by merges.

        Tokens that were added to the vocabulary, unknown ones and lone bytes of SentencePiece are
        not merged: each is a symbol.
        """
        if self.way != "merges":
            return None
        texts = self.written_tokens(ids)
        whole = self._added | {self.unknown_id}
        tokens = [
            [text]
            if i in whole or (not self._byte_level and _BYTE_FALLBACK.fullmatch(text))
            else [*text]
            for i, text in zip(ids, texts, strict=True)
        ]
        made = replay_merges(tokens, {pair: rank for rank, pair in enumerate(self.merges())})
        symbols = [symbol for token in tokens for symbol in token]
        known = tuple(map(self._id_of_written, symbols))
        merges = [
            Merge(start, middle, end, rank, self._id_of_written("".join(symbols[start:end])))
            for start, middle, end, rank in made
        ]
        merging = Merging(known, tuple(merges))
        # A tokenizer may look whole words up before it merges, and have words that no merges lead
        # to.
        if merging.after(len(merges)) == tuple(ids):
            return merging
        return None

    def label(self, id: int) -> str:
        """The visible form of a token; bytes that are not whole characters in hexadecimal: `<E2
        82>`.
        """
        checked = int(self.check_ids([id])[0])
        if id in self.unused_ids:
            return unused_label(id)
        return _label(self._bytes[checked])

    def labels(self) -> list[str]:
        labels = [_label(data) for data in self._bytes]
        for place in self.unused_ids:
            labels[place] = unused_label(place)
        return labels

    def to_json(self) -> str:
        """A Hugging Face `tokenizer.json`, which other programs open too."""
        content = self._backend.to_str()
        if self._outside is None:
            return content
        return json.dumps(json.loads(content) | self._outside.stages)

    def _read_as_unknown(self, text: str, read: "tokenizers.Encoding | TokenPlaces") -> _Gaps:
        """The places in `text` that the unknown token stands for, and those that no token
        covers.
        """
        instead = self.label(self.unknown_id or 0)
        own = self.piece(self.unknown_id or 0)
        gaps: _Gaps = {}
        covered = np.zeros(len(text), bool)
        for at, (token, (start, end)) in enumerate(zip(read.ids, read.offsets, strict=True)):
            covered[start:end] = True
            # The unknown token may also stand for a text: in an exported vocabulary of characters
            # it is the space.
            if token == self.unknown_id and start < end and text[start:end] != own:
                step = 1 if self._lacks_characters else end - start
                for place in range(start, end, step):
                    gaps.setdefault((place, place + step), (at, instead))
        ends = np.array([end for _, end in read.offsets])
        for place in map(int, np.flatnonzero(~covered)):
            # Tokenizers of words leave out white space on purpose, so only the rest is reported.
            if not text[place].isspace():
                gaps[place, place + 1] = (int(np.searchsorted(ends, place, side="right")), "")
        return gaps

    def _left_out(self, text: str) -> _Gaps:
        """The characters that a vocabulary without an unknown token leaves out as a whole or in
        part.
        """
        characters = [*set(text)]
        if self._byte_level:
            lacking = {
                character
                for character in characters
                if not self._missing_bytes.isdisjoint(character.encode())
            }
        else:
            ids = [
                read.ids
                for read in self._reader.encode_batch_fast(characters, add_special_tokens=False)
            ]
            lacking = {
                character
                for character, tokens in zip(characters, ids, strict=True)
                if not tokens and not character.isspace()
            }
        if not lacking:
            return {}
        places = [i for i, character in enumerate(text) if character in lacking]
        # The library's offsets are wrong after a character that it left out, so the tokens between
        # these are counted.
        edges = [0, *(edge for place in places for edge in (place, place + 1))]
        parts = [text[start:end] for start, end in pairwise(edges)]
        counts = [
            len(read.ids)
            for read in self._reader.encode_batch_fast(parts, add_special_tokens=False)
        ]
        return {
            (place, place + 1): (int(at), "")
            for place, at in zip(places, np.cumsum(counts)[0::2], strict=True)
        }


@contextmanager
def as_value_error(what: str) -> Iterator[None]:
    """Turn any error of the library into a `ValueError` that begins with `what`; a `TooMuchError`
    stays.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, TooMuchError):
        raise
    # it raises Exception itself, and a Rust panic as a BaseException
    except BaseException as error:
        raise ValueError(f"{what}: {error}") from None


def split_words(text: str) -> dict[str, int]:
    """The parts that GPT-2's rule splits a text into, in the alphabet of bytes, and how often each
    of them is there.
    """
    from tokenizers import pre_tokenizers

    split = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    return dict(
        Counter(word for part in _report_chunks(text) for word, _ in split.pre_tokenize_str(part))
    )


def _split_as_gpt2(backend: "tokenizers.Tokenizer") -> None:
    """Set GPT-2's byte-level splitting, without a space before the text, and its inverse."""
    from tokenizers import decoders, pre_tokenizers

    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    backend.decoder = decoders.ByteLevel()


def _splits_as_gpt2(fields: dict[str, Any]) -> bool:
    """Whether a text may be cut at `_SAFE_CUT`: it is split as GPT-2 splits, and nothing else reads
    across white space.
    """
    split = fields["pre_tokenizer"] or {}
    return (
        fields["normalizer"] is None
        and split.get("type") == "ByteLevel"
        and split.get("use_regex") is True
        and split.get("add_prefix_space") is False
        and not any(token["lstrip"] or token["rstrip"] for token in fields["added_tokens"])
        and not any(re.search(r"\s", token["content"]) for token in fields["added_tokens"])
    )


def _fields(backend: "tokenizers.Tokenizer") -> dict[str, Any]:
    """The JSON of the tokenizer, if possible without its vocabulary, which may have 300,000
    entries.
    """
    from tokenizers import models

    if not isinstance(backend.model, models.BPE):
        fields: dict[str, Any] = json.loads(backend.to_str())
        return fields
    vocabulary_of = backend.model
    backend.model = models.BPE()
    try:
        fields = json.loads(backend.to_str())
    finally:
        backend.model = vocabulary_of
    kept = ("unk_token", "byte_fallback", "continuing_subword_prefix", "end_of_word_suffix")
    fields["model"] = {"type": "BPE"} | {name: getattr(vocabulary_of, name) for name in kept}
    return fields


def _frame(processor: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tokens that are put before and after a text, from the post-processor of a
    `tokenizer.json`.
    """
    kind = (processor or {}).get("type")
    if kind == "Sequence":
        frames = [_frame(inner) for inner in processor["processors"]]
        return sum((before for before, _ in reversed(frames)), ()), sum(
            (after for _, after in frames), ()
        )
    if kind in ("BertProcessing", "RobertaProcessing"):
        return (processor["cls"][1],), (processor["sep"][1],)
    if kind != "TemplateProcessing":
        return (), ()
    sides: tuple[list[int], list[int]] = ([], [])
    side = 0
    for part in processor["single"]:
        if "Sequence" in part:
            side = 1
        else:
            sides[side].extend(processor["special_tokens"][part["SpecialToken"]["id"]]["ids"])
    return tuple(sides[0]), tuple(sides[1])


def by_id(ids: Mapping[str, int]) -> list[str | None]:
    """The tokens in the order of their `ids`, with None for an id that no token has. A ValueError
    if there are none, two have the same id, or an id is below 0 or beyond `MOST_IDS`.
    """
    if not ids:
        raise ValueError("the tokenizer's vocabulary is empty")
    odd = next((each for each in ids.values() if not 0 <= each < MOST_IDS), None)
    if odd is not None:
        raise ValueError(f"a token has the id {odd:,}; ids run from 0 to {MOST_IDS - 1:,} at most")
    tokens: list[str | None] = [None] * (max(ids.values()) + 1)
    for token, place in ids.items():
        if tokens[place] is not None:
            raise ValueError(f"two of the tokens have the id {place}: {tokens[place]!r:.40} too")
        tokens[place] = token
    return tokens


def _token_bytes(
    tokens: list[str | None], fields: dict[str, Any], space: str, *, byte_level: bool
) -> list[bytes]:
    """The bytes that each token stands for, by id, read from the form in which a `tokenizer.json`
    writes it; none for an id without a token.
    """
    has_bytes = bool(fields["model"].get("byte_fallback"))
    # From the letters of GPT-2's alphabet to the characters with the numbers of their bytes; a
    # character below 256 that is no letter of the alphabet becomes one that is no byte.
    letters = dict.fromkeys(range(256), 0x100) | {
        ord(letter): byte for letter, byte in byte_alphabet().items()
    }

    def bytes_of(token: str) -> bytes:
        if byte_level:
            try:
                return token.translate(letters).encode("latin-1")
            except UnicodeEncodeError:  # a character outside of the alphabet
                return token.encode()
        # SentencePiece writes lone bytes as <0xE2>
        if has_bytes and (byte := _BYTE_FALLBACK.fullmatch(token)):
            return bytes.fromhex(byte[1])
        return token.replace(space, " ").encode()

    of_tokens = [bytes_of(token or "") for token in tokens]
    for added in fields["added_tokens"]:
        if added["special"]:
            content = added["content"]
        else:
            content = added["content"].replace(space, " ")
        of_tokens[added["id"]] = content.encode()
    return of_tokens


def byte_alphabet() -> dict[str, int]:
    """The byte of each character in GPT-2's alphabet: printable ones stand for themselves, the
    others begin at U+0100.

    Source: `bytes_to_unicode` in `encoder.py` of OpenAI's GPT-2.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(256 + i): byte for i, byte in enumerate(others)
    }


def _label(data: bytes) -> str:
    """The visible form of a token's bytes; bytes that are not a whole character are in
    hexadecimal.
    """
    # surrogateescape keeps each undecodable byte as one lone surrogate; splitting puts runs of them
    # at odd places.
    parts = _PARTIAL.split(data.decode("utf-8", "surrogateescape"))
    parts[1::2] = [
        f"<{part.encode('utf-8', 'surrogateescape').hex(' ').upper()}>" for part in parts[1::2]
    ]
    parts[0::2] = map(make_visible, parts[0::2])
    return "".join(parts)


def _report_chunks(text: str, size: int | None = None) -> Iterator[str]:
    """The `_chunks` of a text without lone surrogates; each reports how much of the text was read
    before it.
    """
    # the library asks for them in threads of its own, which do not know who listens
    here = copy_context()

    def chunks() -> Iterator[str]:
        read = 0
        for chunk in _chunks(text, size):
            here.run(progress.report, read, len(text), "character")
            read += len(chunk)
            yield _without_surrogates(chunk)
        here.run(progress.report, read, len(text), "character")

    return chunks()


def _chunks(text: str, size: int | None = None) -> Iterator[str]:
    """`text` in pieces of about `size` characters (`_CHUNK` without one) that, split as GPT-2
    splits, have the same tokens.
    """
    start = 0
    size = size or _CHUNK
    while len(text) - start > size and (cut := _SAFE_CUT.search(text, start + size)):
        yield text[start : cut.start()]
        start = cut.start()
    yield text[start:]


def _without_surrogates(text: str) -> str:
    """`text` with lone surrogates, which UTF-8 cannot hold, as U+FFFD."""
    if text.isascii():
        return text
    return SURROGATE.sub("\ufffd", text)


def _read_file(path: StrPath) -> str:
    try:
        return read_regular(Path(path), LONGEST_FILE).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text (byte {error.start})") from None
