"""Masks: which keys a query must not look at. A mask is a value, so causal and full attention run
the same code.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from .part import ModelPart, is_after


class Mask(ModelPart):
    """Which keys are hidden from which queries."""

    #: whether it hides nothing but padding, so that a model without padding has no mask at all
    only_padding: ClassVar[bool] = False

    def forward(self, ids: Tensor, at: slice, padding: int | None) -> Tensor | None:
        """True where a query must not look at a key, to be broadcast to [B, H, queries, keys], or
        None if nothing is hidden.

        Args:
            ids: the tokens, [B, T].
            at: the positions that they hold. The queries are these, the keys are those from 0 to
                the end of `at`.
            padding: the token that fills up short texts.
        """
        raise NotImplementedError


class CausalMask(Mask):
    """Hides every key after the query."""

    title = "Causal"
    equation = "mask(scores)[query, key] = −∞ where the key is after the query, else scores"
    about = "Hides from every query the tokens after it."

    def forward(self, ids: Tensor, at: slice, padding: int | None) -> Tensor | None:
        # Padding stands at the end, after all tokens that could read it, and needs no mask; from a
        # single query at the end nothing is hidden.
        if at.stop - at.start == 1:
            return None
        return is_after(at, at.stop, ids.device)


class WindowMask(CausalMask):
    """Hides every key after the query, and those `window` or more tokens before it (Beltagy et al.
    2020).
    """

    title = "Causal, a window"
    equation = (
        "mask(scores)[query, key] = −∞ where the key is after the query or `window` or more "
        "before it, else scores"
    )
    about = "Hides from every query the tokens after it, and those too far before it."

    def __init__(self, window: int) -> None:
        """A mask under which a query sees itself and the `window` - 1 tokens before it."""
        super().__init__()
        self.window = window

    def forward(self, ids: Tensor, at: slice, padding: int | None) -> Tensor | None:
        if at.stop <= self.window:
            return super().forward(ids, at, padding)
        near = is_after(at, at.stop, ids.device, by=-self.window)  # [queries, keys]
        return is_after(at, at.stop, ids.device) | ~near


class FullMask(Mask):
    """Hides only padding."""

    title = "Full"
    equation = "mask(scores)[query, key] = −∞ where the key is padding, else scores"
    about = "Hides from every query the padding that fills up shorter texts."
    only_padding = True

    def forward(self, ids: Tensor, at: slice, padding: int | None) -> Tensor | None:
        # In a row of nothing but padding every key is hidden, and the softmax gives NaN: data must
        # not contain such rows.
        if padding is None:
            return None
        return (ids == padding)[:, None, None, :]


MASKS: dict[str, type[Mask]] = {"causal": CausalMask, "full": FullMask}
