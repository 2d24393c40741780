"""The card: what old and damaged ones say is read as far as it makes sense, and nothing that was
written is lost.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.runs.card import Card, LossEntry

SHIPPED = sorted((Path(__file__).resolve().parents[2] / "checkpoints").glob("*/card.json"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.parent.name)
def test_a_shipped_card_is_read_whole_and_written_as_it_was(path: Path) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    card = Card.from_json(content)
    assert card.to_json() == content
    assert (card.plan, card.steps, card.validation_loss) == (
        content["preset"],
        content["steps"],
        content["validation_loss"],
    )
    assert [entry.to_json() for entry in card.losses] == content["losses"]
    assert card.engine is not None
    assert card.recipe == content["recipe"]


def test_an_old_card_names_its_plan_and_a_new_one_its_architecture_too() -> None:
    old = Card.from_json({"preset": "bpe"})
    of_another = Card.from_json({"preset": "pretrain"})
    assert (old.plan, old.architecture) == ("bpe", "bpe")
    assert (of_another.plan, of_another.architecture) == ("pretrain", None)
    new = Card.from_json({"preset": "pretrain", "architecture": "bpe"})
    assert (new.plan, new.architecture) == ("pretrain", "bpe")


NONSENSE: list[Any] = [
    None,
    True,
    [],
    {},
    "x",
    -1,
    float("nan"),
    float("inf"),
    10**400,
    [[1, 2], [3]],
    [None],
    {"step": "x"},
]
NONSENSE += [
    [[1, 2]],
    *([[1, value], [3, 4]] for value in (-2, 2.5, True, 10**30)),
    [1, 2],
    {"0": [1, 2], "1": [3, 4]},
]


@pytest.mark.parametrize("value", NONSENSE, ids=lambda value: repr(value)[:20])
def test_nonsense_in_every_field_is_no_obstacle_and_is_kept(value: Any) -> None:
    keys = [name for name in Card.__dataclass_fields__ if name not in ("values", "plan")]
    content = dict.fromkeys([*keys, "preset", "unknown"], value)
    card = Card.from_json(content)
    assert card.to_json() is not content
    assert card.to_json().keys() == content.keys()
    assert (card.steps, card.losses, card.engine) == (None, (), None)
    assert card.wall_seconds == 0
    assert card.accuracy is None
    assert not card.confusion


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([10**400, -(10**400)]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["step", "loss", "kind", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def numbers(value: object) -> Iterator[float]:
    """Every number in what a card says, by a walk through it."""
    if isinstance(value, int | float):
        yield value
    elif isinstance(value, Mapping):
        yield from (number for each in value.values() for number in numbers(each))
    elif isinstance(value, tuple | list):
        yield from (number for each in value for number in numbers(each))
    elif is_dataclass(value):
        yield from (number for one in fields(value) for number in numbers(getattr(value, one.name)))


@given(
    st.dictionaries(
        st.sampled_from(["preset", *Card.__dataclass_fields__]), JSON_VALUES, max_size=8
    )
)
def test_any_json_is_a_card_that_pages_can_compute_with_and_loses_nothing(
    content: dict[str, Any],
) -> None:
    card = Card.from_json(content)
    checked = [
        getattr(card, name)
        for name in Card.__dataclass_fields__
        if name not in ("values", "source")
    ]
    for number in numbers(checked):
        assert math.isfinite(float(number))
    assert repr(card.to_json()) == repr(content)


def test_an_entry_keeps_what_else_was_measured() -> None:
    written = {"step": 3, "validation": 1.5, "exact_match": 0.25}
    entry = LossEntry.from_json(written)
    assert entry == LossEntry(step=3, validation=1.5, others={"exact_match": 0.25})
    assert entry.to_json() == written


def test_what_changes_is_checked_too_and_the_rest_stays() -> None:
    card = Card.from_json({"steps": 1, "own": "note"}).change_values(steps=2, accuracy=0.5)
    assert (card.steps, card.accuracy, card.to_json()) == (
        2,
        0.5,
        {"steps": 2, "own": "note", "accuracy": 0.5},
    )
