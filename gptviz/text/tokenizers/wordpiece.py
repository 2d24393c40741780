"""BERT's vocabularies of words and their pieces (WordPiece, Schuster & Nakajima 2012): from
`vocab.txt`, a token in each line.
"""

from __future__ import annotations

from .bpe import BPETokenizer, as_value_error
from .sentencepiece import MOST_PIECES


def from_wordpiece(
    content: str,
    *,
    small_letters: bool = True,
    without_accents: bool | None = None,
    splits_chinese: bool = True,
    special: tuple[str, str, str] = ("[UNK]", "[CLS]", "[SEP]"),
) -> BPETokenizer:
    """The tokenizer with the vocabulary in a `vocab.txt` with this content, which reads a text as
    `[CLS]`, its pieces, `[SEP]`.

    Args:
        small_letters: whether a text is read in small letters.
        without_accents: whether accents are left out; None leaves them out where it is read in
            small letters.
        splits_chinese: whether each Chinese character is a word.
        special: the token that is read for what is unknown, and those before and after a text.

    Raises:
        ValueError: it is no such vocabulary.
    """
    from tokenizers import BertWordPieceTokenizer
    from tokenizers import Tokenizer as Backend

    lines = content.removesuffix("\n").split("\n")
    # of two equal lines the last counts, as in `transformers`; no text is read as the first
    vocabulary = {line.rstrip("\r"): place for place, line in enumerate(lines)}
    if not 0 < len(vocabulary) <= MOST_PIECES:
        raise ValueError(
            f"it has {len(vocabulary):,} tokens; there must be from 1 to {MOST_PIECES:,}"
        )
    if missing := [token for token in special if token not in vocabulary]:
        raise ValueError(f"it lacks the token {missing[0]}")
    with as_value_error("this vocabulary of WordPiece cannot be opened"):
        whole = BertWordPieceTokenizer(
            vocabulary,
            *(special[0], special[2], special[1]),
            lowercase=small_letters,
            strip_accents=without_accents,
            handle_chinese_chars=splits_chinese,
        )
        return BPETokenizer(Backend.from_str(whole.to_str()))
