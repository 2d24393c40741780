"""What plotly draws: the numbers of a figure, and what every figure promises."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from gptviz.figures.kit.scatter import SOLID_LETTERS
from gptviz.figures.kit.theme import FONT


def numbers(values: Any) -> np.ndarray[Any, Any]:
    """The numbers of a trace, which plotly writes as a list or as bytes with their type and
    shape.
    """
    if not isinstance(values, dict):
        return np.array(values, float)
    flat = np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])
    return flat.reshape([int(size) for size in str(values.get("shape", flat.size)).split(",")])


@contextmanager
def looked_at() -> Iterator[None]:
    """Looks at every figure that is made meanwhile, when all is drawn: each has the template of all
    figures, no type is below 12 pixels, and no heat map leaves the colour of the numbers in its
    cells to plotly, which takes one for all.
    """
    made: list[go.Figure] = []
    begin = go.Figure.__init__

    def noted(figure: go.Figure, *arguments: Any, **named: Any) -> None:
        begin(figure, *arguments, **named)
        made.append(figure)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(go.Figure, "__init__", noted)
        yield
    for figure in made:
        parts = figure.to_plotly_json()
        assert FONT in str(parts["layout"]["template"]), "made without `themed`"
        assert not [size for size in _type_sizes(parts) if size < 12]
        assert not [trace for trace in parts["data"] if "texttemplate" in trace]


def _type_sizes(part: Any) -> Iterator[float]:
    """The sizes of all type in this part of a figure, in pixels."""
    if isinstance(part, dict):
        is_mark = part.get("type") == "scatter3d" and set(part.get("text") or "a") <= set(
            SOLID_LETTERS.values()
        )
        for name, value in part.items():
            if name.endswith("font") and isinstance(value, dict) and not is_mark:
                yield from np.ravel(value.get("size", 12)).tolist()
            elif name == "text" and isinstance(value, str):
                yield from map(float, re.findall(r"font-size: ([\d.]+)px", value))
            else:
                yield from _type_sizes(value)
    elif isinstance(part, list | tuple):
        for one in part:
            yield from _type_sizes(one)
