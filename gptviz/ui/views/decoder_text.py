"""The text that a decoder reads, alone or beside an encoder: what the pages about its layers are about."""

from __future__ import annotations

from dataclasses import dataclass

from gptviz.text.tokenizers.special_tokens import SpecialTokensTokenizer
from gptviz.ui.shell.models import load_call
from gptviz.ui.shell.subject import Subject
from gptviz.ui.views import encoder_decoder


@dataclass(frozen=True)
class Read:
    """What the model reads.

    Attributes:
        ids: the tokens; of an encoder–decoder, those that its decoder reads: the start token and its own answer.
        source: what the encoder reads beside it; None where there is no encoder.
        following: the token that follows the last one, where it is known.
    """

    ids: tuple[int, ...]
    source: tuple[int, ...] | None = None
    following: int | None = None


def read_by(subject: Subject) -> Read:
    """What is read where the page is about `subject`."""
    if subject.kind != "encoder-decoder":
        return Read(subject.seen)
    ids = encoder_decoder.decoder_ids(subject.key, subject.seen)
    special = subject.lm.tokenizer
    if not isinstance(special, SpecialTokensTokenizer):
        return Read(ids, subject.seen)
    own = encoder_decoder.answer(subject.key, subject.seen, special.start, special.end)
    written = (*own.ids, special.end) if own.ended else own.ids
    return Read(ids, subject.seen, written[len(ids) - 1] if len(written) >= len(ids) else None)


def opening_code(subject: Subject, read: Read, *imports: str) -> str:
    """The lines of Python, after the `imports`, that open the model as `lm` and give `ids`; beside an encoder `source` too."""
    if read.source is None:
        ids = f"ids = lm.seen(lm.encode({subject.prompt!r})).tolist()"
    else:
        ids = f"ids = {list(read.ids)}  # what the decoder reads\nsource = {list(read.source)}  # what the encoder reads"
    return "\n".join(["import gptviz", *imports, "", f"lm = {load_call(subject.lm)}", ids])
