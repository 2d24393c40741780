"""Every figure that a test of this folder draws is looked at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.drawn import looked_at


@pytest.fixture(autouse=True)
def _figures_are_looked_at() -> Iterator[None]:
    with looked_at():
        yield
