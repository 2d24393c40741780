"""SentencePiece's vocabularies (Kudo & Richardson 2018, arXiv:1808.06226): from `tokenizer.model`,
or from a GGUF header.

The file is read by the library's description of its format, and becomes a tokenizer of the
`tokenizers` library. The ids are those of SentencePiece, with three rare exceptions: `tokenizers`
lets a Unigram vocabulary read the characters `<0x0A>` as the byte that they name, breaks a tie
between two rows of pieces in its own way, and replaces a return and its newline as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, Final

from gptviz.machine.bounded import TooMuchError

from .bounds import MOST_CHARACTERS, check_tokens
from .bpe import BPETokenizer, as_value_error

if TYPE_CHECKING:
    import tokenizers

SPACE: Final = "▁"  # U+2581, which stands for a space
MOST_PIECES: Final = 1_000_000
# In a file, each piece takes at least one byte with this value; parsing takes a hundred times as
# much memory as an empty piece.
_TAG: Final = b"\n"


class PieceKind(IntEnum):
    """The type of a piece; the numbers are those of the file, and of GGUF."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class SpaceBefore(Enum):
    """Where a space is put before a text is cut; the values are those of `Metaspace`, except the
    last.
    """

    NOTHING = "never"
    TEXT = "first"  # before a text that does not begin with one
    PARTS = "always"  # before each part between special tokens that does not begin with one
    EVERY_PART = "prepended"  # the same whatever it begins with, as SentencePiece does


@dataclass(frozen=True)
class Pieces:
    """A vocabulary of SentencePiece."""

    texts: Sequence[str]  #: the pieces, by id; a space is written as ▁
    #: the merge whose piece has the highest score is made first; with `unigram`, logarithms of
    #: probabilities
    scores: Sequence[float]
    kinds: Sequence[int]  #: see `PieceKind`
    #: whether a text is cut into the likeliest row of pieces; otherwise pieces are merged
    unigram: bool = False
    space_before: SpaceBefore = SpaceBefore.EVERY_PART  #: where a space is put
    #: whether several spaces are read as one, and those around the text are left out
    single_spaces: bool = False
    #: a table of characters that are replaced first, in the library's own format; empty for none
    characters: bytes = field(default=b"", repr=False)
    start: int | None = None  #: the token before a text, or None
    end: int | None = None  #: the token after a text, or None


def from_sentencepiece(
    content: bytes,
    *,
    start: bool = True,
    end: bool = False,
    space_before: SpaceBefore | None = None,
) -> BPETokenizer:
    """The tokenizer in a `tokenizer.model` with this content; a ValueError if it is damaged, or
    gptviz does not read its kind.

    Args:
        start: whether the token for the beginning of a text, if there is one, is put before a text.
        end: the same for the token after a text.
        space_before: where a space is put; None for as the file says.
    """
    model = model_in(content)
    trained = model.trainer_spec
    normal = model.normalizer_spec
    kinds = {trained.BPE: False, trained.UNIGRAM: True}
    if trained.model_type not in kinds:
        raise ValueError(
            "it cuts a text into words or characters; gptviz reads those of the kinds BPE and "
            "unigram"
        )
    if trained.treat_whitespace_as_suffix:
        raise ValueError("it writes a space after a word, which gptviz does not read")
    if not normal.escape_whitespaces:
        raise ValueError("it does not write a space as ▁, which gptviz does not read")
    if space_before is None:
        if normal.add_dummy_prefix:
            space_before = SpaceBefore.EVERY_PART
        else:
            space_before = SpaceBefore.NOTHING
    spaced = (
        piece.piece
        for piece in model.pieces
        if piece.type == PieceKind.USER_DEFINED and SPACE in piece.piece
    )
    if space_before is not SpaceBefore.NOTHING and (piece := next(spaced, None)) is not None:
        raise ValueError(
            "it puts a space before a text and has user-defined pieces with a space "
            f"({piece!r:.40}), which gptviz does not read "
            "together: save the tokenizer as tokenizer.json too, as transformers' save_pretrained "
            "does"
        )
    texts = [piece.piece for piece in model.pieces]
    places = {text: place for place, text in reversed(list(enumerate(texts)))}
    return from_pieces(
        Pieces(
            texts,
            [piece.score for piece in model.pieces],
            [piece.type for piece in model.pieces],
            kinds[trained.model_type],
            space_before,
            normal.remove_extra_whitespaces,
            normal.precompiled_charsmap,
            places.get(trained.bos_piece) if start else None,
            places.get(trained.eos_piece) if end else None,
        )
    )


def model_in(content: bytes) -> Any:
    """The description of a model of SentencePiece in a file with this content, in the library's own
    form.
    """
    from sentencepiece import sentencepiece_model_pb2 as description

    if content.count(_TAG) > 4 * MOST_PIECES:
        raise TooMuchError(f"it has more than {MOST_PIECES:,} pieces")
    with as_value_error("it is no model of SentencePiece, or is cut short"):
        model: Any = description.ModelProto.FromString(content)  # type: ignore[attr-defined]
    check_tokens([piece.piece for piece in model.pieces], MOST_CHARACTERS)
    return model


def from_pieces(pieces: Pieces) -> BPETokenizer:
    """The tokenizer with these pieces.

    Tokens that the file calls user-defined are found in a text before anything else, and so are
    control tokens, such as `<s>`.
    """
    from tokenizers import Tokenizer as Backend

    # The pieces as they are written in the vocabulary: user-defined ones as `_add_tokens` looks for
    # them.
    count = len(pieces.texts)
    check_tokens(pieces.texts, MOST_CHARACTERS)
    if not 0 < count <= MOST_PIECES:
        raise ValueError(f"it has {count:,} pieces; there must be from 1 to {MOST_PIECES:,}")
    if len(pieces.scores) != count or len(pieces.kinds) != count:
        raise ValueError(
            f"it has {count:,} pieces, {len(pieces.scores):,} scores and {len(pieces.kinds):,} "
            "kinds of pieces"
        )
    texts = []
    known = set(PieceKind)
    for text, kind in zip(pieces.texts, pieces.kinds, strict=True):
        if kind not in known:
            raise ValueError(
                f"the piece {text!r:.80} is of the kind {kind}, which gptviz does not know"
            )
        if not text:
            raise ValueError("one of its pieces is empty")
        if kind == PieceKind.USER_DEFINED:
            if pieces.space_before is not SpaceBefore.NOTHING:
                text = text.replace(SPACE, " ")
            else:
                text = text.replace(" ", SPACE)
        texts.append(text)
    if len(set(texts)) != count:
        raise ValueError("two of its pieces are the same text")
    with as_value_error("this vocabulary of SentencePiece cannot be opened"):
        backend = Backend(_unigram(texts, pieces) if pieces.unigram else _merging(texts, pieces))
        _add_tokens(backend, texts, pieces)
        _normalise(backend, pieces)
        tokenizer = BPETokenizer(backend)
    before, after = ([] if place is None else [place] for place in (pieces.start, pieces.end))
    return tokenizer.with_frame(before, after)


def _merging(texts: list[str], pieces: Pieces) -> tokenizers.models.BPE:
    """A model that merges neighbours as long as it has a piece for both together; the highest score
    comes first.
    """
    from tokenizers import models

    normal = {
        text: place for place, text in enumerate(texts) if pieces.kinds[place] == PieceKind.NORMAL
    }
    order = sorted(normal.values(), key=lambda place: (-pieces.scores[place], place))
    merges = []
    for place in order:
        text = texts[place]
        # If two pairs make the same piece, their order hardly ever matters: it is that of their
        # first parts.
        pairs = [
            (text[:cut], text[cut:])
            for cut in range(1, len(text))
            if text[:cut] in normal and text[cut:] in normal
        ]
        merges += (
            sorted(pairs, key=lambda pair: (normal[pair[0]], normal[pair[1]]))
            if len(pairs) > 1
            else pairs
        )
    return models.BPE(
        vocab={text: place for place, text in enumerate(texts)},
        merges=merges,
        unk_token=texts[_unknown_piece(pieces)],
        fuse_unk=True,
        byte_fallback=_has_bytes(pieces),
    )


def _unigram(texts: list[str], pieces: Pieces) -> tokenizers.models.Unigram:
    """A model that cuts a text into the row of pieces with the highest sum of scores."""
    from tokenizers import models

    vocabulary = list(zip(texts, map(float, pieces.scores), strict=True))
    return models.Unigram(vocabulary, _unknown_piece(pieces), _has_bytes(pieces))


def _unknown_piece(pieces: Pieces) -> int:
    if PieceKind.UNKNOWN not in pieces.kinds:
        raise ValueError("none of its pieces is for what is unknown")
    return list(pieces.kinds).index(PieceKind.UNKNOWN)


def _has_bytes(pieces: Pieces) -> bool:
    return list(pieces.kinds).count(PieceKind.BYTE) == 256


def _add_tokens(backend: tokenizers.Tokenizer, texts: list[str], pieces: Pieces) -> None:
    """The tokens that are found in a text before anything else.

    User-defined ones are normally looked for after spaces were written as ▁. But if a space is put
    before a text, it would be put before them; then they are looked for in the text as it stands,
    as llama.cpp does, and a space is put after them.
    """
    from tokenizers import AddedToken

    special = []
    user_defined = []
    for text, kind in zip(texts, pieces.kinds, strict=True):
        if kind in (PieceKind.CONTROL, PieceKind.UNKNOWN):
            special.append(AddedToken(text, normalized=False, special=True))
        elif kind == PieceKind.USER_DEFINED:
            user_defined.append(
                AddedToken(
                    text, normalized=pieces.space_before is SpaceBefore.NOTHING, special=False
                )
            )
    backend.add_special_tokens(special)
    backend.add_tokens(user_defined)


def _normalise(backend: tokenizers.Tokenizer, pieces: Pieces) -> None:
    """The changes to a text before it is cut, which are undone after decoding."""
    from tokenizers import Regex, decoders, normalizers, pre_tokenizers

    steps: list[Any] = [normalizers.Precompiled(pieces.characters)] if pieces.characters else []
    if pieces.single_spaces:
        steps += [
            normalizers.Replace(Regex(" {2,}"), " "),
            normalizers.Replace(Regex(r"\A | \z"), ""),
        ]
    if pieces.space_before in (SpaceBefore.TEXT, SpaceBefore.PARTS):
        scheme: Any = pieces.space_before.value
        # it writes other spaces as ▁ too
        backend.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, scheme, split=False)
    else:
        steps += (
            [normalizers.Prepend(SPACE)] if pieces.space_before is SpaceBefore.EVERY_PART else []
        )
        steps.append(normalizers.Replace(" ", SPACE))
    backend.normalizer = normalizers.Sequence(steps)
    after: list[Any] = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    if pieces.space_before is not SpaceBefore.NOTHING:
        after.append(decoders.Strip(" ", 1, 0))
    backend.decoder = decoders.Sequence(after)
