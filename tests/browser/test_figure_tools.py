"""The pictures of plotly's figures: all that is on screen, under a heading, as text that stays
text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import plotly
import plotly.graph_objects as go
import pytest
from PIL import Image

from gptviz.components.figure_tools import payload
from gptviz.figures.kit import axes, heat
from gptviz.figures.kit.theme import DARK, LIGHT, themed_figure
from gptviz.figures.reading.labels import labels
from gptviz.figures.training.ladder import level_by_level
from gptviz.labelled_array import Axis, LabelledArray
from tests.browser.files import tool
from tests.browser.keyboard import check_pictures, to_start
from tests.browser.machinery import HOSTILE
from tests.browser.mounting import Mounted
from tests.browser.pictures import faults, keep_drawing, saved, unknown_to_svg_1_1, words

pytestmark = pytest.mark.browser

PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
HEADING = {
    "title": f"What it shows, {HOSTILE[0]}",
    "model": "mine, step 7",
    "prompt": HOSTILE[1],
    "settings": ["Heads"],
}
DRAW = """async (spec) => {
    const place = Object.assign(document.createElement('div'), { id: 'figure' });
    document.body.prepend(place);
    const { data, layout } = JSON.parse(spec);
    await Plotly.newPlot(place, data, layout, { displayModeBar: false });
    const { width, height } = place.querySelector('.main-svg').getBoundingClientRect();
    const texts = [...place.querySelectorAll('.main-svg text')].map((text) => text.textContent).filter((text) => text.trim());
    return { width, height, texts };
}"""

# The texts of a figure that lie on each other, and those that reach out of it.
TEXTS_THAT_MEET = """() => {
    const texts = [...document.querySelectorAll('#figure .main-svg text')].filter((text) => text.textContent.trim());
    const boxes = texts.map((text) => text.getBoundingClientRect());
    const meets = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
    const { left, right } = document.querySelector('#figure').getBoundingClientRect();
    return texts.map((text) => text.textContent).filter((_, i) => boxes[i].left < left || boxes[i].right > right
        || boxes.some((box, k) => k !== i && meets(boxes[i], box)));
}"""


def beside(
    mounted: Callable[..., Mounted], figure: go.Figure, **look: Any
) -> tuple[Mounted, dict[str, Any]]:
    """The tools below a figure that plotly has drawn, and what it shows."""
    sharp = all(trace.type not in ("scatter3d", "scattergl") for trace in figure.data)
    view = mounted("figure_tools", payload(1.0, HEADING, name="mine", sharp=sharp), **look)
    view.page.add_script_tag(path=PLOTLY)
    return view, view.page.evaluate(DRAW, figure.to_json())


def bars(dark: bool) -> go.Figure:
    shares = LabelledArray(
        np.array([0.7, 0.2, 0.1]),
        (Axis("label", (HOSTILE[0][:20], "**bold**", "good")),),
        "probability",
    )
    return labels(shares, DARK if dark else LIGHT)


def heatmap(dark: bool) -> go.Figure:
    tokens = Axis("token", ("<b>", "&lt;", "$x$", "O", "␣"))
    theme = DARK if dark else LIGHT
    pattern = np.tril(np.ones((5, 5), np.float32)) / np.arange(1, 6)[:, None]
    names = axes.token_names(tokens)
    drawn = heat.heatmap(pattern, 0, 1, theme, x=names, y=names, colorbar=heat.scale([0, 1]))
    room = {"l": axes.token_room(tokens), "r": 40, "t": 60, "b": axes.token_room(tokens)}
    along = axes.token_axis(tokens)
    down = axes.token_axis(tokens, down=True)
    return themed_figure(theme, drawn, height=400, margin=room, xaxis=along, yaxis=down)


@pytest.mark.parametrize(("made", "dark", "width"), [(bars, False, 390), (heatmap, True, 1280)])
def test_the_drawing_has_every_word_and_cell_of_the_figure_under_its_heading(
    mounted: Callable[..., Mounted], made: Callable[[bool], go.Figure], dark: bool, width: int
) -> None:
    view, seen = beside(mounted, made(dark), dark=dark, width=width)
    drawn = saved(view.page)
    said = words(drawn)
    assert seen["texts"]
    assert [text for text in said if text in seen["texts"]] == seen["texts"]
    heading = "".join(said).replace(" ", "")  # without the places where lines break
    assert heading.startswith(str(HEADING["title"]).replace(" ", ""))
    assert "Model: mine, step 7 · Heads" in said
    assert HOSTILE[1].replace(" ", "") in heading
    assert not re.search(r"<(script|img|foreignObject)\b", drawn)
    assert unknown_to_svg_1_1(drawn) == []
    assert not [fault for fault in faults(view.page, drawn) if "reaches out" in fault]
    assert ("data:image/png" in drawn) == (made is heatmap)
    assert view.page.title() != "pwned"


@pytest.mark.parametrize("width", [390, 1280])
def test_the_numbers_of_a_waterfall_stand_beside_its_names(
    mounted: Callable[..., Mounted], width: int
) -> None:
    rungs = "a bigram", "+ positions", "+ residual connections", "+ six blocks"
    levels = LabelledArray(
        np.array([2.482, 2.483, 2.2, 1.745]), (Axis("rung", rungs),), "loss (nats per token)"
    )
    view, seen = beside(mounted, level_by_level(levels, LIGHT), width=width)
    assert "−0.737" in seen["texts"]
    assert view.page.evaluate(TEXTS_THAT_MEET) == []


def test_the_pixels_are_at_least_as_many_as_on_screen(mounted: Callable[..., Mounted]) -> None:
    view, seen = beside(mounted, heatmap(False))
    tool(view.page, "PNG").focus()
    keep_drawing(view.page)
    with view.page.expect_download() as waiting:
        view.page.keyboard.press("Enter")
    wide, high = Image.open(waiting.value.path()).size
    assert wide >= seen["width"]
    assert high > seen["height"]


@pytest.mark.parametrize("kind", [go.Scattergl, pytest.param(go.Scatter3d, marks=pytest.mark.full)])
def test_what_is_drawn_in_pixels_has_a_png_alone_with_its_points(
    mounted: Callable[..., Mounted], kind: Any
) -> None:
    depth = {"z": [0, 1]} if kind is go.Scatter3d else {}
    view, _ = beside(
        mounted,
        go.Figure(
            kind(
                x=[0, 1], y=[0, 1], mode="markers", marker={"size": 40, "color": "#FF0000"}, **depth
            )
        ),
    )
    button = tool(view.page, "PNG")
    assert view.page.get_by_role("menuitem").count() == 1, "there is no SVG"
    assert "no SVG" in (button.get_attribute("title") or "")
    keep_drawing(view.page)
    with view.page.expect_download() as waiting:
        button.click()
    red, green, blue = np.moveaxis(
        np.asarray(Image.open(waiting.value.path()).convert("RGB")), -1, 0
    )
    assert ((red > 200) & (green < 120) & (blue < 120)).sum() > 500


@pytest.mark.full
def test_by_the_keyboard_alone_a_figure_is_saved(mounted: Callable[..., Mounted]) -> None:
    view, _ = beside(mounted, bars(dark=False))
    to_start(view.page)
    check_pictures(view.page)
