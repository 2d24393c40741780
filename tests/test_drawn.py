"""What is looked at in every figure that a test draws is found where it is wrong."""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go
import pytest

from gptviz.figures.kit.theme import LIGHT, themed_figure
from tests.drawn import looked_at


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: go.Figure(),
        lambda: themed_figure(LIGHT, height=300, xaxis={"tickfont": {"size": 11}}),
        lambda: themed_figure(
            LIGHT, height=300, title={"text": "<span style='font-size: 9px'>a</span>"}
        ),
        lambda: themed_figure(LIGHT, go.Heatmap(z=[[1]], texttemplate="%{z}"), height=300),
    ],
)
def test_a_figure_with_small_type_or_without_the_template_is_found(
    wrong: Callable[[], go.Figure],
) -> None:
    with pytest.raises(AssertionError), looked_at():
        wrong()
