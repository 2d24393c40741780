"""Thumbnails: a figure of another page in a few kilobytes of SVG, drawn from the same arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..training.curves import Curve, colour
from .theme import Theme

WIDTH = 160
HEIGHT = 100


def curves(runs: Sequence[Curve], theme: Theme) -> str:
    """The validation losses of some runs over their steps, each with at least one; of a single run
    the training loss too.
    """
    strokes = [
        (run.validation_steps, run.validation, colour(place, theme), 1.0)
        for place, run in enumerate(runs)
    ]
    if len(runs) == 1 and runs[0].training is not None:
        strokes.append((runs[0].steps, runs[0].training, colour(0, theme), 0.4))
    longest = max(float(steps[-1]) for steps, *_ in strokes) or 1.0
    losses = np.concatenate([loss for _, loss, *_ in strokes])
    low = float(losses.min())
    extent = float(np.ptp(losses)) or 1.0
    lines = []
    for steps, loss, stroke, opacity in strokes:
        some = np.unique(np.linspace(0, len(steps) - 1, 100).astype(int))
        x = 4 + (WIDTH - 8) * steps[some] / longest
        y = HEIGHT - 6 - (HEIGHT - 12) * (loss[some] - low) / extent
        points = " ".join(f"{across:.1f},{down:.1f}" for across, down in zip(x, y, strict=True))
        lines.append(
            f'<polyline points="{points}" fill="none" stroke="{stroke}" stroke-width="2" '
            f'opacity="{opacity}"/>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH * 3}" height="{HEIGHT * 3}">'
        f"<title>loss over the steps of training</title>{''.join(lines)}</svg>"
    )
