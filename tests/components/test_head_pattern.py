"""The pattern of one head: what travels to the browser."""

from __future__ import annotations

import numpy as np

from gptviz.components.head_pattern import payload
from gptviz.components.kit import unpack
from gptviz.labelled_array import Axis, LabelledArray

HEADING = {"title": "The pattern of a head", "model": "mine", "prompt": "ab", "settings": []}


def pattern(n_tokens: int) -> LabelledArray:
    values = np.random.default_rng(0).random((n_tokens, n_tokens), np.float32)
    values[np.triu_indices(n_tokens, 1)] = np.nan
    labels = tuple("ab"[i % 2] for i in range(n_tokens))
    return LabelledArray(
        values, (Axis("query (reads)", labels), Axis("key (is read)", labels)), "share"
    )


def test_every_share_travels_with_the_tokens_of_both_sides() -> None:
    given = pattern(5)
    header, arrays = unpack(payload(given, HEADING, "code", "Head 1"))
    np.testing.assert_array_equal(arrays["pattern"], given.values)
    assert header["queries"] == header["keys"] == [*"ababa"]
    assert (header["reads"], header["isRead"]) == ("query (reads)", "key (is read)")
    assert (header["title"], header["code"], header["heading"]) == ("Head 1", "code", HEADING)


def test_a_large_head_travels_in_less_than_half_a_megabyte() -> None:
    assert len(payload(pattern(256), HEADING, "")) < 500_000
