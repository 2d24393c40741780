"""Numbers in the cells of heatmaps: each can be read on the colour of its cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import plotly.graph_objects as go
import pytest

from gptviz.figures.kit.theme import DARK, LIGHT, Theme
from gptviz.figures.reading.confusion import confusion
from gptviz.labelled_array import Axis, LabelledArray
from tests.figures.contrast import contrast

NAMES = tuple("abcdefgh")


def square(values: np.ndarray) -> LabelledArray:
    return LabelledArray(values, (Axis("row", NAMES), Axis("column", NAMES)), "unit")


DRAWN: dict[str, Callable[[Theme], go.Figure]] = {
    "what was taken for what": lambda theme: confusion(
        square(np.array([[i * i * (j + 1) for j in range(8)] for i in range(8)])), theme
    ),
}


def written(figure: go.Figure) -> Iterator[tuple[float, str, str]]:
    """The number in each cell of a figure, its text, and the contrast to the colour of the cell,
    from straight lines between the colours of the scale.
    """
    heatmap = figure.data[0]
    (texts,) = (
        trace for trace in figure.data if isinstance(trace, go.Scatter) and trace.mode == "text"
    )
    places, colours = zip(*heatmap.colorscale, strict=True)
    rgb = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in colours])
    for x, y, text, colour in zip(texts.x, texts.y, texts.text, texts.textfont.color, strict=True):
        value = heatmap.z[y][x]
        share = (value - heatmap.zmin) / (heatmap.zmax - heatmap.zmin)
        ground = "#" + "".join(
            f"{round(np.interp(share, places, rgb[:, i])):02X}" for i in range(3)
        )
        yield value, text, contrast(colour, ground)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("name", DRAWN)
def test_every_number_can_be_read_on_its_cell(name: str, theme: Theme) -> None:
    figure = DRAWN[name](theme)
    found = list(written(figure))
    assert len(found) == np.isfinite(np.asarray(figure.data[0].z)).sum(), (
        "each cell but the blank ones has its number"
    )
    assert min(ratio for _, _, ratio in found) >= 4.5
    assert {text for value, text, _ in found if value == 0} <= {"0", "0<br>0.0%"}
