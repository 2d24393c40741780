"""The view of the cross-attention: what the output reads in the source."""

from __future__ import annotations

from gptviz.ui.shell import pages
from gptviz.ui.views import attention
from gptviz.ui.views.encoder_decoder import DECODER, ENCODER

from .translation import Translation


def show_attention(translation: Translation) -> None:
    """What the output reads in the source: the mean of the last block's heads first, where the way through it shows best."""
    config = translation.subject.lm.model.config
    read = attention.Read(attention.CROSS, translation.decoded, translation.subject.seen, translation.written)
    start = {"block": config.n_layer - 1, "head": 0, "heads": "mean" if config.n_head > 1 else "one"}
    attention.explore(translation.subject, read, attention.code_of_two(translation.subject, read), start)


def links() -> None:
    """Links to the self-attention of the two stacks."""
    for stack, label in (
        (ENCODER, "What the source reads in itself"),
        (DECODER, "What the output reads in itself"),
    ):
        pages.link(pages.ATTENTION, label, query={**pages.shared_state(), "stack": stack})
