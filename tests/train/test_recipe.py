"""The recipe: its rate is its formula, its snapshots are dense at the start, and what is impossible
is named.
"""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from typing import Any

import pytest

from gptviz.settings.fields import field_info, field_infos
from gptviz.train.recipe import Recipe
from tests.small_runs import recipe


@pytest.mark.parametrize(("warmup", "final_rate"), [(0.05, 0.1), (0.5, 0.0), (0.0, 1.0)])
@pytest.mark.parametrize("schedule", ["cosine", "linear", "constant"])
def test_the_rate_rises_linearly_then_falls_along_its_curve(
    schedule: str, warmup: float, final_rate: float
) -> None:
    of = recipe(learning_rate=0.3, schedule=schedule, warmup=warmup, final_rate=final_rate)
    for hundredth in range(101):
        progress = hundredth / 100
        fallen = (progress - warmup) / (1 - warmup)
        if progress < warmup:
            expected = 0.3 * progress / warmup
        elif schedule == "cosine":
            expected = (
                0.3 * final_rate + 0.3 * (1 - final_rate) * math.cos(fallen * math.pi / 2) ** 2
            )
        else:
            expected = 0.3 - (0.3 - 0.3 * final_rate) * fallen if schedule == "linear" else 0.3
        assert of.rate(progress) == pytest.approx(expected, abs=1e-12)
    assert of.rate(warmup) == pytest.approx(0.3)
    assert of.rate(1) == pytest.approx(0.3 if schedule == "constant" else 0.3 * final_rate)


def test_a_run_begins_at_a_rate_of_zero_only_where_it_warms_up() -> None:
    assert recipe(warmup=0.1).rate(0) == 0
    assert recipe(warmup=0.0).rate(0) == recipe().learning_rate


@pytest.mark.parametrize("per_doubling", [1, 3, 10])
def test_snapshots_are_every_step_at_first_then_as_many_for_every_doubling(
    per_doubling: int,
) -> None:
    of = recipe(snapshots=per_doubling)
    kept = [step for step in range(2**12 + 1) if of.saves_snapshot(step)]
    # The definition: the whole numbers nearest to the powers of 2 ^ (1 / per_doubling).
    powers = {math.floor(2 ** (i / per_doubling) + 0.5) for i in range(12 * per_doubling + 1)}
    assert kept == sorted({0} | powers)
    assert kept[: per_doubling + 1] == list(range(per_doubling + 1))
    for doubling in range(6, 12):
        assert sum(2**doubling <= step < 2 ** (doubling + 1) for step in kept) == per_doubling
    assert [
        step
        for step in range(2**12 + 1)
        if recipe(snapshots=per_doubling, steps=10**9).saves_snapshot(step)
    ] == kept


def test_the_help_lists_the_first_snapshots_as_they_are() -> None:
    listed = ", ".join(
        str(step) for step in range(1, 14) if recipe(snapshots=3).saves_snapshot(step)
    )
    assert f"steps {listed} …" in field_info(Recipe, "snapshots").help


def test_no_snapshots_are_none_not_even_the_first() -> None:
    assert not any(recipe(snapshots=0).saves_snapshot(step) for step in range(100))


IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"steps": None}, "steps or of minutes, and not both"),
    ({"minutes": 1.0}, "steps or of minutes, and not both"),
    *(
        ({"steps": None, "minutes": value}, f"minutes is {value}")
        for value in (0.0, -1, math.nan, math.inf)
    ),
    *(
        ({name: 0}, f"{name} is 0; it must be a whole number from 1 to 1,000,000")
        for name in ("steps", "batch_size")
    ),
    ({"evaluations": 0}, "evaluations is 0"),
    ({"evaluations": 10_001}, "evaluations is 10001"),
    ({"snapshots": -1}, "snapshots is -1"),
    ({"snapshots": 65}, "snapshots is 65"),
    *(({"lora_rank": value}, f"lora_rank is {value}") for value in (-1, 10_001, 2.0, None)),
    ({"seed": -1}, "seed is -1"),
    ({"seed": 2**63}, "seed is 9223372036854775808"),
    ({"batch_size": 4.0}, r"batch_size is 4\.0; it must be a whole number"),
    ({"batch_size": 10**7}, "batch_size is 10000000"),
    *(
        ({name: None}, f"{name} is None")
        for name in ("batch_size", "evaluations", "snapshots", "seed")
    ),
    ({"steps": True}, "steps is True"),
    ({"steps": "10"}, "steps is '10'"),
    *(
        ({"learning_rate": value}, "learning_rate is")
        for value in (0.0, -1.0, math.nan, math.inf, 10**400, "high", None)
    ),
    *(
        ({name: value}, f"{name} is")
        for name in ("warmup", "beta1", "beta2", "label_smoothing")
        for value in (1.0, -0.1, math.nan, "x", None)
    ),
    *(
        ({name: value}, f"{name} is")
        for name in ("final_rate", "weight_decay", "clip", "expert_balance")
        for value in (-1e-9, math.nan, [])
    ),
    *(({"keep_weights": value}, "keep_weights is") for value in (0, -0.1, 1.5, math.nan, "few")),
    *(
        ({name: value}, f"{name} is .*; it must be one of ")
        for name in ("optimiser", "schedule")
        for value in ("x", 3, None, [])
    ),
    *(
        ({name: value}, f"{name} is .*; it must be one of auto")
        for name in ("precision", "compile")
        for value in ("x", True)
    ),
]


@pytest.mark.parametrize(("changes", "named"), IMPOSSIBLE, ids=str)
def test_an_impossible_setting_is_named_with_its_value(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named) as raised:
        recipe(**changes)
    assert len(str(raised.value)) < 250


def test_every_field_has_something_impossible_about_it_that_is_tested() -> None:
    assert {field.name for field in fields(Recipe)} == {
        name for changes, _ in IMPOSSIBLE for name in changes
    }


@pytest.mark.parametrize(
    "of", [recipe(), Recipe(minutes=2.5, optimiser="muon", seed=2**63 - 1, clip=0, final_rate=2)]
)
def test_a_recipe_survives_json(of: Recipe) -> None:
    assert Recipe.from_dict(json.loads(json.dumps(of.to_dict()))) == of


def test_an_unknown_setting_is_named_with_those_there_are() -> None:
    with pytest.raises(
        ValueError, match="unknown setting 'epochs'; there are batch_size, .*warmup"
    ):
        Recipe.from_dict({"steps": 3, "epochs": 2})


def test_help_says_a_sentence_about_exactly_the_settings_there_are() -> None:
    infos = field_infos(Recipe)
    assert list(infos) == [field.name for field in fields(Recipe)]
    assert all(
        info.help.endswith((".", "…")) and info.label[0].isupper() for info in infos.values()
    )


def test_a_field_has_an_effect_with_any_value_of_what_it_needs_but_none_or_with_those_that_it_names() -> (
    None
):
    info = field_info(Recipe, "steps")
    assert all(info.has_effect({"window": value}) for value in (None, 0))
    needs_any, needs_some = (replace(info, needs=("window", wanted)) for wanted in ((), (1, 2)))
    assert [needs_any.has_effect({"window": value}) for value in (None, 0, 3)] == [
        False,
        True,
        True,
    ]
    assert [needs_some.has_effect({"window": value}) for value in (None, 2, 3)] == [
        False,
        True,
        False,
    ]
    assert needs_any.has_effect({}), "nothing is known of what it needs"
