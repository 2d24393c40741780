"""The suggestions of the page Gradients."""

from __future__ import annotations

from gptviz.ui.widgets import Try

from .computed import DEFAULTS


def tries() -> list[Try]:
    """The suggestions, the same for every reader: the page is about no one model."""
    return [
        Try(
            "32 blocks",
            "With residual connections the gradient arrives at any depth. Without them and without norms (none), it becomes 0 in "
            "float32 long before the first block.",
            DEFAULTS | {"depth": 32},
        ),
        Try(
            "Large weights",
            "Without norms the stream grows from block to block, and the gradient with it: plain and none explode.",
            DEFAULTS | {"std": 0.32},
        ),
        Try(
            "On the edge",
            "With weights of exactly this size some of the gradient arrives even without residual connections: one step smaller, "
            "and it vanishes; one step larger, and it explodes.",
            DEFAULTS | {"std": 0.24},
        ),
        Try(
            "Not divided by depth",
            "Larger weights, whose size does not depend on the number of blocks: post-norm now loses a little of the gradient in "
            "most blocks, and plain explodes.",
            DEFAULTS | {"std": 0.12, "shrink": False},
        ),
    ]
