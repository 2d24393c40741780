"""The view of the cross-attention: what the output reads in the source."""

from __future__ import annotations

from gptviz.ui.records.attention import PAGE as ATTENTION
from gptviz.ui.shell import frame
from gptviz.ui.views import attention
from gptviz.ui.views.encoder_decoder import DECODER, ENCODER
from gptviz.ui.views.read import Read

from .translation import Translation


def show_attention(translation: Translation) -> None:
    """The attention of the output to the source, first as the mean of the last block's heads, which shows its path best."""
    config = translation.subject.lm.model.config
    read = Read(translation.decoded, translation.subject.seen, translation.written, attention.CROSS)
    start = {"block": config.n_layer - 1, "head": 0, "heads": "mean" if config.n_head > 1 else "one"}
    attention.explore(translation.subject, read, attention.code_of_two(translation.subject, read), start)


def links() -> None:
    """Links to the self-attention of the two stacks."""
    for stack, label in (
        (ENCODER, "What the source reads in itself"),
        (DECODER, "What the output reads in itself"),
    ):
        frame.link(ATTENTION, label, query={**frame.shared_state(), "stack": stack})
