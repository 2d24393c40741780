"""Marian's vocabularies learned from a few sentences: what its tokenizer is made of."""

from __future__ import annotations

import io
import json
from pathlib import Path

from sentencepiece import SentencePieceTrainer

ENGLISH = [
    "the small frog sleeps",
    "a frog and the bird",
    "the bird sings, a small song",
    "I see the frog.",
] * 4
GERMAN = [
    "der kleine Frosch schläft",
    "ein Frosch und der Vogel",
    "der Vogel singt, ein kleines Lied",
    "ich sehe den Frosch.",
] * 4
LANGUAGE = ">>deu<<"


def learned(texts: list[str], size: int) -> bytes:
    """The content of a vocabulary of SentencePiece, learned from these texts."""
    written = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=written,
        vocab_size=size,
        hard_vocab_limit=False,
        minloglevel=9,
    )
    return written.getvalue()


def write(folder: Path, *, lacking: int = 2) -> list[str]:
    """Write `source.spm`, `target.spm` and `vocab.json`; return the pieces by id. `lacking` pieces
    of the source have no id.
    """
    from sentencepiece import SentencePieceProcessor

    contents = {"source": learned(ENGLISH, 40), "target": learned(GERMAN, 44)}
    pieces = ["</s>", "<unk>", LANGUAGE]
    for name, content in contents.items():
        (folder / f"{name}.spm").write_bytes(content)
        vocabulary = SentencePieceProcessor(model_proto=content)
        own = [vocabulary.id_to_piece(place) for place in range(3, vocabulary.get_piece_size())]
        pieces += [
            piece for piece in own[lacking if name == "source" else 0 :] if piece not in pieces
        ]
    pieces.append("<pad>")
    (folder / "vocab.json").write_text(
        json.dumps({piece: place for place, piece in enumerate(pieces)})
    )
    return pieces
