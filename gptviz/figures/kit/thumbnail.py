"""Thumbnails: a figure of another page in a few kilobytes of SVG, drawn from the same arrays, for Home's cards."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from ..training.curves import Curve, colour
from .theme import OUTPUT, PATTERN, Theme, blend, diverging, sequential

WIDTH, HEIGHT = 160, 100


def _svg(theme: Theme, body: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH * 3}" height="{HEIGHT * 3}" '
        f'font-family="monospace" fill="{theme.text}">{body}</svg>'
    )


def _colours(values: npt.NDArray[Any], scale: list[list[Any]], background: str) -> npt.NDArray[np.uint8]:
    """RGB [rows, columns, 3] of values 0 … 1 on a plotly scale; NaN takes the background."""
    stops = np.array([stop for stop, _ in scale])
    rgb = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for _, colour in scale], dtype=float)
    blank = np.array([int(background[i : i + 2], 16) for i in (1, 3, 5)])
    mixed = np.stack([np.interp(np.nan_to_num(values), stops, rgb[:, channel]) for channel in range(3)], axis=-1)
    return np.where(np.isnan(values)[..., None], blank, mixed.round()).astype(np.uint8)


def _heat(rgb: npt.NDArray[np.uint8], theme: Theme, alt: str) -> str:
    file = io.BytesIO()
    Image.fromarray(rgb).save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    x = (WIDTH - HEIGHT) / 2
    place = f'x="{x}" y="0" width="{HEIGHT}" height="{HEIGHT}"'
    image = f'<image {place} image-rendering="pixelated" href="data:image/png;base64,{data}"/>'
    return _svg(theme, f"<title>{escape(alt)}</title>{image}")


def pattern(values: npt.NDArray[Any], theme: Theme) -> str:
    """An attention pattern [query, key], 0 … 1, NaN where masked."""
    return _heat(_colours(values, sequential(PATTERN, theme), theme.background), theme, "attention pattern of one head")


def signed(values: npt.NDArray[Any], theme: Theme) -> str:
    """A matrix of cosines, −1 … 1."""
    return _heat(_colours((values + 1) / 2, diverging(theme), theme.background), theme, "cosine similarity of positions")


def bars(labels: Sequence[str], values: npt.NDArray[Any], theme: Theme) -> str:
    """Up to seven probabilities as horizontal bars, the first on top; the axis ends at the largest."""
    rows = []
    top = float(values.max()) or 1.0
    for row, (label, value) in enumerate(zip(labels[:7], values[:7], strict=True)):
        y = 2 + row * 14
        rows.append(f'<text x="16" y="{y + 9}" font-size="9" text-anchor="end">{escape(label[:4])}</text>')
        rows.append(f'<rect x="20" y="{y}" height="11" width="{136 * value / top:.1f}" fill="{OUTPUT}"/>')
    return _svg(theme, "<title>next-token probabilities</title>" + "".join(rows))


def points(labels: Sequence[str], colours: Sequence[str], places: npt.NDArray[Any], theme: Theme) -> str:
    """Tokens at their places [tokens, 2] on a map; both axes keep one scale."""
    centred = places - (places.max(0) + places.min(0)) / 2
    extent = np.abs(centred).max(0)
    scale = min((WIDTH / 2 - 8) / max(extent[0], 1e-9), (HEIGHT / 2 - 8) / max(extent[1], 1e-9))
    dots = [
        f'<text x="{WIDTH / 2 + scale * x:.1f}" y="{HEIGHT / 2 - scale * y + 3:.1f}" font-size="9" text-anchor="middle" '
        f'fill="{colour}">{escape(label[:4])}</text>'
        for label, colour, (x, y) in zip(labels, colours, centred, strict=True)
    ]
    return _svg(theme, "<title>map of the token embeddings</title>" + "".join(dots))


def curves(runs: Sequence[Curve], theme: Theme) -> str:
    """The validation losses of some runs over their steps, each with at least one; of a single run the training loss too."""
    strokes = [(run.validation_steps, run.validation, colour(place, theme), 1.0) for place, run in enumerate(runs)]
    if len(runs) == 1 and runs[0].training is not None:
        strokes.append((runs[0].steps, runs[0].training, colour(0, theme), 0.4))
    longest = max(float(steps[-1]) for steps, *_ in strokes) or 1.0
    losses = np.concatenate([loss for _, loss, *_ in strokes])
    low, extent = float(losses.min()), float(np.ptp(losses)) or 1.0
    lines = []
    for steps, loss, stroke, opacity in strokes:
        some = np.unique(np.linspace(0, len(steps) - 1, 100).astype(int))
        x, y = 4 + (WIDTH - 8) * steps[some] / longest, HEIGHT - 6 - (HEIGHT - 12) * (loss[some] - low) / extent
        points = " ".join(f"{across:.1f},{down:.1f}" for across, down in zip(x, y, strict=True))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{stroke}" stroke-width="2" opacity="{opacity}"/>')
    return _svg(theme, "<title>loss over the steps of training</title>" + "".join(lines))


def text(labels: Sequence[str], strengths: npt.NDArray[Any], theme: Theme, *, title: str) -> str:
    """The first letters of labels in rows, each on a ground as strong as its share of 1."""
    columns, rows = 22, 8
    cells = []
    column = row = 0
    for label, strength in zip(labels, strengths, strict=True):
        if column == columns:
            column, row = 0, row + 1
        if row == rows:
            break
        x, y = 3 + column * 7, 2 + row * 12
        ground = blend(OUTPUT, theme.background, 0.55 * float(strength))
        cells.append(f'<rect x="{x}" y="{y}" width="7" height="11" fill="{ground}"/>')
        cells.append(f'<text x="{x + 3.5}" y="{y + 8.5}" font-size="9" text-anchor="middle">{escape(label[:1])}</text>')
        column, row = (0, row + 1) if label == "⏎" else (column + 1, row)
    return _svg(theme, f"<title>{title}</title>" + "".join(cells))
