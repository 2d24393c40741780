"""What the browser says of the size of the page is checked before figures are drawn by it."""

from __future__ import annotations

import pytest

from gptviz.components.figure_tools import told


@pytest.mark.parametrize(("value", "size"), [({"size": 1}, 1.0), ('{"size": 2.25}', 2.25), ({"size": 2.5}, 2.5)])
def test_a_size_is_taken(value: object, size: float) -> None:
    assert told(value) == size


@pytest.mark.parametrize("value", [None, {}, {"size": 0.5}, {"size": 1e9}, {"size": float("nan")}])
def test_what_is_no_size_is_refused(value: object) -> None:
    assert told(value) is None
