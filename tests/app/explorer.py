"""The payload of the attention explorer of a page."""

from __future__ import annotations

from typing import Any

import numpy as np
from streamlit.testing.v1 import AppTest

from gptviz.components.kit import unpack
from tests.app.opening import views


def sent(at: AppTest) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of the one explorer on the page."""
    (found,) = (unpack(one.proto.bytes) for one in views(at) if b'"thumbnails"' in one.proto.bytes)
    return found


def pattern(at: AppTest, block: int, head: int) -> np.ndarray:
    """The pattern of a head [query, key] as it was sent, NaN where it is masked."""
    header, arrays = sent(at)
    queries = len(header["queries"])
    keys = len(header["keys"])
    row = arrays["pattern"][block - header["first"], head]
    if not header["triangle"]:
        return row.reshape(queries, keys)
    square = np.full((queries, keys), np.nan, row.dtype)
    square[np.tril_indices(queries)] = row
    return square
