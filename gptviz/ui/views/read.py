"""The tokens that a model reads on a page."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gptviz.interp.changing.edit import Inputs
from gptviz.ui.shell.subject import Subject
from gptviz.ui.views import encoder_decoder


@dataclass(frozen=True)
class PromptRead:
    """The tokens that a model, or one of its stacks, reads."""

    #: the tokens; in an encoder–decoder, those that its decoder reads: the start token and its own
    #: output
    ids: tuple[int, ...]
    #: the tokens that the encoder reads with them, if there is one
    source: tuple[int, ...] | None = None
    #: the output of an encoder–decoder: the token written after each of `ids`, as far as it is
    #: known
    written: tuple[int, ...] = ()
    #: the stack that reads `ids`, encoder or decoder, or the cross-attention between the two
    stack: str = encoder_decoder.DECODER

    def tensors(self, device: torch.device) -> Inputs:
        """The tokens as a batch of one."""
        if self.source:
            source = torch.tensor([self.source], device=device)
        else:
            source = None
        return Inputs(torch.tensor([self.ids], device=device), source)

    @property
    def next_id(self) -> int | None:
        """The token that follows the last one, if it is known."""
        if self.written and len(self.written) == len(self.ids):
            return self.written[-1]
        return None


def read_by(subject: Subject) -> PromptRead:
    """The tokens that are read on a page about `subject`."""
    if not subject.kind.has_source:
        return PromptRead(subject.seen)
    own = encoder_decoder.answer(subject.key, subject.seen)
    return PromptRead(
        encoder_decoder.decoder_ids(subject.key, subject.seen),
        subject.seen,
        () if own is None else own.written,
    )
