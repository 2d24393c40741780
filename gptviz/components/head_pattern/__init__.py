"""The pattern of one head: what each token of a text reads of each other one. All heads together
are in `attention_explorer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gptviz.components.kit import pack, register
from gptviz.labelled_array import LabelledArray

_mount = register(Path(__file__).parent)


def payload(shares: LabelledArray, heading: Mapping[str, Any], code: str, title: str = "") -> bytes:
    """The bytes that the browser gets: what each query gives each key, `shares` [query, key], NaN
    where it may not read it, with a `title` above, the `heading` of pictures as
    `figure_tools.payload` takes it, and the `code` that computes the shares.
    """
    queries, keys = shares.axes
    sides = {
        "queries": queries.labels,
        "keys": keys.labels,
        "reads": queries.name,
        "isRead": keys.name,
    }
    return pack(
        {**sides, "title": title, "code": code, "heading": dict(heading)},
        pattern=shares.values.astype(np.float32),
    )


def head_pattern(packed: bytes, *, key: str) -> None:
    """Show what `payload` packed; `key` tells the views of one page apart."""
    _mount(key=key, data=packed)
