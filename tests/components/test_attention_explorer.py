"""The attention explorer: what travels to the browser, in how many digits, and which requests
count.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gptviz.components import attention_explorer as explorer
from gptviz.components.attention_explorer import Heads, blocks_sent, payload
from gptviz.components.kit import unpack


def heads(
    n_block: int = 2,
    n_head: int = 3,
    queries: int = 5,
    keys: int | None = None,
    mask: str = "causal",
    **more: Any,
) -> Heads:
    keys = queries if keys is None else keys
    random = np.random.default_rng(0)

    def numbers(*shape: int) -> np.ndarray:
        return random.random(shape, np.float32)

    blocked = {
        "causal": np.triu(np.ones((queries, keys), bool), 1),
        "full": None,
        "padded": np.arange(keys)[None] >= keys - 1,
    }[mask]
    square = (queries, keys)
    rollout = numbers(n_block, *square) if queries == keys else None
    parts = {
        "patterns": tuple(numbers(n_head, *square) for _ in range(n_block)),
        "blocked": blocked,
        "q": numbers(n_block, n_head, queries, 4),
        "k": numbers(n_block, n_head, keys, 4),
        "moved": numbers(n_block, n_head, keys),
        "position": None,
        "rollout": rollout,
        "thumbnails": numbers(n_block, n_head, *square),
        "facts": {"spread": numbers(n_block, n_head)},
        "scale": 0.5,
    }
    return Heads(**parts | more)


def unpacked(values: np.ndarray, header: dict[str, Any], queries: int, keys: int) -> np.ndarray:
    """Squares as they were, from how they travelled, by a loop over their cells."""
    out = np.full((*values.shape[:-1], queries, keys), np.nan, np.float32)
    at = 0
    for query in range(queries):
        for key in range(query + 1 if header["triangle"] else keys):
            out[..., query, key] = values[..., at]
            at += 1
    assert at == values.shape[-1]
    return out


@pytest.mark.parametrize(
    ("mask", "keys"), [("causal", 5), ("full", 5), ("padded", 5), ("full", 7), ("padded", 7)]
)
def test_every_number_that_may_be_seen_travels_whole_and_the_masked_ones_do_not(
    mask: str, keys: int
) -> None:
    given = heads(keys=keys, mask=mask)
    header, arrays = unpack(payload(given, {"of": "x"}))
    assert header["triangle"] == (mask == "causal")
    assert (header["first"], header["count"], header["half"], header["of"]) == (0, 2, False, "x")
    blocked = (
        np.zeros((5, keys), bool)
        if given.blocked is None
        else np.broadcast_to(given.blocked, (5, keys))
    )
    found = unpacked(arrays["pattern"], header, 5, keys)
    np.testing.assert_array_equal(found, np.where(blocked, np.nan, np.stack(given.patterns)))
    for name in ("q", "k", "moved", "thumbnails"):
        np.testing.assert_array_equal(arrays[name], getattr(given, name))
    np.testing.assert_array_equal(arrays["fact spread"], given.facts["spread"])
    assert ("rollout" in arrays) == (keys == 5)


def test_a_rollout_reaches_beyond_the_window_of_every_block() -> None:
    seen = np.tri(5, dtype=bool)
    rolled = np.where(
        seen,
        np.random.default_rng(1).random((2, 5, 5), np.float32) + np.float32(0.1),
        np.float32(0),
    )
    _, arrays = unpack(
        payload(heads(blocked=~seen | np.tri(5, k=-2, dtype=bool), rollout=rolled), {"of": "x"})
    )
    np.testing.assert_array_equal(
        arrays["rollout"].reshape(2, 5, 5), np.where(seen, rolled, np.nan)
    )
    assert np.isnan(arrays["pattern"].reshape(2, 3, 5, 5)[..., 4, :3]).all()


def test_what_is_usual_is_what_the_page_asks_for_as_far_as_the_model_has_it() -> None:
    declared = unpack(payload(heads(2, 3), {"start": {"block": 9, "head": 9, "show": "value"}}))[0][
        "declared"
    ]
    usual = {key: each["usual"] for key, each in declared.items()}
    assert (usual["block"], usual["head"], usual["show"], usual["heads"], usual["query"]) == (
        1,
        2,
        "value",
        "one",
        None,
    )


def test_what_only_some_blocks_hide_is_blank_in_these_and_the_arithmetic_of_scores_travels() -> (
    None
):
    far = np.arange(5)[:, None] - np.arange(5) >= 2
    given = heads(hidden=[None, far], cap=50.0, sharing=3)
    header, arrays = unpack(payload(given, {}))
    assert (header["scale"], header["cap"], header["sharing"], header["triangle"]) == (
        0.5,
        50.0,
        3,
        True,
    )
    found = unpacked(arrays["pattern"], header, 5, 5)
    later = np.triu(np.ones((5, 5), bool), 1)
    np.testing.assert_array_equal(found[0], np.where(later, np.nan, given.patterns[0]))
    np.testing.assert_array_equal(found[1], np.where(later | far, np.nan, given.patterns[1]))


def test_what_positions_add_travels_where_there_is_such() -> None:
    term = np.random.default_rng(1).normal(size=(2, 3, 5, 5)).astype(np.float32)
    header, arrays = unpack(payload(heads(position=term), {}))
    found = unpacked(arrays["position"], header, 5, 5)
    np.testing.assert_array_equal(found, np.where(np.triu(np.ones((5, 5), bool), 1), np.nan, term))
    assert "position" not in unpack(payload(heads(), {}))[1]


def test_numbers_that_are_too_many_travel_in_three_digits_and_far_too_many_block_by_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = heads(n_block=4, queries=9)
    whole = payload(given, {})
    size = sum(
        array.nbytes
        for name, array in unpack(whole)[1].items()
        if name in ("pattern", "q", "k", "rollout")
    )
    assert size == 4 * 4 * given.size.numbers
    monkeypatch.setattr(explorer, "PRECISE_BYTES", size)
    assert unpack(payload(given, {}))[0]["half"] is False
    monkeypatch.setattr(explorer, "PRECISE_BYTES", size - 1)
    header, arrays = unpack(payload(given, {}))
    assert (header["half"], header["count"], arrays["pattern"].dtype) == (True, 4, np.float16)
    np.testing.assert_allclose(arrays["pattern"], unpack(whole)[1]["pattern"], rtol=1e-3)
    monkeypatch.setattr(explorer, "MOST_BYTES", size // 2)
    assert blocks_sent(given.size, 4, 2) == range(4)
    monkeypatch.setattr(explorer, "MOST_BYTES", size // 2 - 1)
    assert blocks_sent(given.size, 4, 2) == range(2, 3)


def test_of_one_block_only_the_thumbnails_and_averages_of_the_others_travel() -> None:
    given = heads(n_block=4, queries=9)
    part = {name: getattr(given, name)[2:3] for name in ("patterns", "q", "k", "moved", "rollout")}
    header, arrays = unpack(payload(replace(given, **part, first=2), {}))
    whole = unpack(payload(given, {}))[1]
    assert (header["n_block"], header["first"], header["count"], header["half"]) == (4, 2, 1, False)
    for name in ("pattern", "q", "k", "moved", "rollout"):
        np.testing.assert_array_equal(arrays[name], whole[name][2:3])
    np.testing.assert_array_equal(arrays["thumbnails"], whole["thumbnails"])


def test_the_default_model_on_a_full_context_is_sent_with_all_digits() -> None:
    header, _ = unpack(
        payload(
            heads(
                6,
                6,
                256,
                q=np.zeros((6, 6, 256, 32), np.float32),
                k=np.zeros((6, 6, 256, 32), np.float32),
            ),
            {},
        )
    )
    assert (header["half"], header["count"], header["triangle"]) == (False, 6, True)
