"""Colours that stand in two languages are the same in both; type is large enough, and a figure
grows as a whole.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest

from gptviz.figures.kit.theme import DARK, LIGHT, Theme, enlarge_figure, themed_figure
from gptviz.figures.training.curves import COLOURS

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(("name", "theme"), [("light", LIGHT), ("dark", DARK)])
def test_figures_and_streamlit_have_one_theme(name: str, theme: Theme) -> None:
    with (ROOT / ".streamlit/config.toml").open("rb") as file:
        look = tomllib.load(file)["theme"][name]
    assert (look["backgroundColor"], look["textColor"], look["borderColor"]) == (
        theme.background,
        theme.text,
        theme.faint,
    )


def test_the_heads_of_the_explorer_have_the_colours_of_runs() -> None:
    scripts = "".join(
        file.read_text() for file in (ROOT / "gptviz/components/attention_explorer").glob("*.js")
    )
    lists = re.findall(r'\[((?:\s*"#[0-9A-F]{6}",?){2,})\s*\]', scripts)
    assert set(COLOURS) in [set(re.findall(r"#[0-9A-F]{6}", colours)) for colours in lists]


def test_a_figure_grows_as_a_whole_and_its_numbers_stay() -> None:
    points = go.Scatter(
        x=[1.0, 2.0],
        y=np.array([3.0, 4.0]),
        marker={"size": np.array([5, 6]), "line": {"width": 1}},
        line={"width": 2},
    )
    points.text = ["12", "b"]
    bars = go.Bar(x=[1, 2], y=[3, 4], width=0.5, textfont={"size": 12})
    note = {
        "text": "<span style='font-size: 12px'>a note</span>",
        "x": 0.5,
        "y": 1,
        "yshift": -4,
        "font": {"size": 13},
    }
    along = {"title": {"text": "t", "standoff": 4}, "range": [0, 9]}
    figure = themed_figure(LIGHT, points, bars, height=300, annotations=[note], xaxis=along)
    assert enlarge_figure(figure, 1) is figure
    large = enlarge_figure(figure, 2)
    for one, other in zip(figure.to_dict()["data"], large.to_dict()["data"], strict=True):
        assert (one["x"], one["y"]) == (other["x"], other["y"])
    assert large.data[1].width == 0.5, "measured along the axis"
    assert list(large.data[0].text) == ["12", "b"]
    assert list(large.data[0].marker.size) == [10, 12]
    widths = large.data[0].marker.line.width, large.data[0].line.width, large.data[1].textfont.size
    assert widths == (2, 4, 24)
    shape = large.layout
    shared = shape.template.layout
    assert (
        shape.height,
        shared.margin.l,
        shared.margin.t,
        shared.font.size,
        shared.xaxis.tickfont.size,
    ) == (600, 16, 56, 26, 24)
    assert shape.annotations[0].text == "<span style='font-size: 24px'>a note</span>"
    assert (
        shape.annotations[0].x,
        shape.annotations[0].yshift,
        shape.annotations[0].font.size,
    ) == (0.5, -8, 26)
    assert (shape.xaxis.title.standoff, shape.xaxis.range) == (8, (0, 9))
    assert (figure.layout.height, figure.data[0].line.width) == (300, 2), (
        "the figure itself stays as it was"
    )
