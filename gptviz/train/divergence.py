"""Whether training has diverged, that is, made the model worse than a blind guess; and what to
change in that case.
"""

from __future__ import annotations

import math

from .recipe import Recipe

# Ten percent: the losses of the first steps and of small batches vary by less.
TOLERANCE = 1.1


class DivergedError(RuntimeError):
    """The loss or its gradient is no longer a finite number; the message says what to change."""


def has_diverged(
    before: float | None, training: float | None, validation: float, uniform: float
) -> bool:
    """Whether a run has diverged: the model is clearly worse than one that knows nothing, and than
    it was at its beginning.

    Both losses must be that high. A model that has learned its training data by heart can be worse
    than a guess on held-out data, but not on its training data; and the mean over the last steps
    may still contain a leap from which it has recovered.

    Args:
        before: the loss on held-out data before the first step, or None if it is not known; all
            losses are in nats.
        training: the mean training loss of the last steps, or None if it is not known.
        validation: the loss on held-out data now.
        uniform: the loss of a guess that gives all tokens (or labels) the same probability: the
            logarithm of their number.
    """
    now = validation if training is None else min(validation, training)
    if not math.isfinite(now):
        return True
    return now > TOLERANCE * max(uniform, uniform if before is None else before)


def advice(recipe: Recipe) -> str:
    """Suggested changes after a run with this recipe diverged, with the values it had."""
    if recipe.warmup:
        warmup = f"lengthen the warm-up ({recipe.warmup:.0%} of the run)"
    else:
        warmup = "begin with a warm-up (there was none)"
    if recipe.clip:
        clip = f"clip gradients at less ({recipe.clip:g})"
    else:
        clip = "clip gradients (they were not clipped)"
    return f"lower the learning rate ({recipe.learning_rate:g}), {warmup}, or {clip}"
