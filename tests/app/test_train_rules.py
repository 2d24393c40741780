"""The rules of the Train form: which run the choices describe, without any control."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from gptviz.data.text import TextSource
from gptviz.model import Config, change_config
from gptviz.model.kinds import Kind
from gptviz.runs import checkpoints
from gptviz.runs.experiments import PLANS
from gptviz.settings.fields import field_info
from gptviz.text import Corpus
from gptviz.train import estimate
from gptviz.train.recipe import Recipe
from gptviz.ui.pages.train.form import SIZES_IN_SIGHT
from gptviz.ui.pages.train.rules import (
    FRESH,
    LARGEST,
    NOT_CHOSEN,
    OWN,
    OWN_PLAN,
    ZERO,
    Choices,
    architecture_changes,
    architecture_values,
    limits,
    plan_named,
    planned_run,
    recipe_of,
    recipe_values,
    token_kinds,
    usual_vocabulary,
)
from gptviz.ui.views import planned_run as planned_run_view
from gptviz.ui.views.planned_run import time_needed
from tests.tiny import TinyModel

TEXT = TextSource(Corpus("a text", "to be or not to be that is the question\n" * 40), 0.9)


def choices(name: str, *, architecture: dict[str, Any] | None = None, **changes: Any) -> Choices:
    """The choices of the form as it opens on a plan, but for these changes."""
    plan = plan_named(name)
    source = None if plan.data == "tiny-shakespeare" else plan.source()
    values = architecture_values(plan.config) | (architecture or {})
    unchanged = Choices(
        name,
        plan,
        source,
        FRESH,
        plan.tokenizer,
        plan.config.vocab_size,
        values,
        recipe_values(plan.recipe),
        None,
    )
    return replace(unchanged, **changes)


@pytest.mark.parametrize(
    "name",
    [name for name, plan in PLANS.items() if plan.data != "tiny-shakespeare" and not plan.begin],
)
def test_a_form_that_nobody_touched_describes_the_experiment_itself(name: str) -> None:
    plan = PLANS[name]
    planned = planned_run(choices(name))
    assert planned.problem is None
    assert (planned.recipe, planned.changes, planned.begin) == (plan.recipe, {}, None)
    source = plan.source()
    assert planned.config == source.fit_config(plan.config, plan.learn_tokenizer(source))
    assert planned.is_as_published


@pytest.mark.parametrize(
    "name",
    [name for name, plan in PLANS.items() if plan.data == "tiny-shakespeare" and not plan.begin],
)
def test_without_its_text_an_experiment_has_the_sizes_it_was_planned_with(name: str) -> None:
    planned = planned_run(choices(name, problem="the text is not on this machine yet"))
    assert planned.config == PLANS[name].config
    assert planned.problem == "the text is not on this machine yet"


@pytest.mark.parametrize("name", PLANS)
def test_the_values_of_the_controls_mean_the_recipe_they_were_made_of(name: str) -> None:
    assert recipe_of(recipe_values(PLANS[name].recipe)) == PLANS[name].recipe
    assert architecture_changes(PLANS[name].config, architecture_values(PLANS[name].config)) == {}


def test_a_changed_size_takes_those_along_that_follow_from_it() -> None:
    planned = planned_run(choices("copy", architecture={"d_model": 32, "n_head": 4}))
    assert planned.changes == {"d_model": 32}
    assert planned.config is not None
    assert (planned.config.d_head, planned.config.d_mlp) == (8, 128)
    assert "train copy --name x --set d_model=32" in planned_run_view.command(planned, "x")
    assert not planned.is_as_published


def test_an_mlp_of_a_size_of_its_own_keeps_it_when_the_width_changes() -> None:
    config = change_config(PLANS["copy"].config, d_mlp=100)
    values = architecture_values(config) | {"d_model": 32}
    assert change_config(config, **architecture_changes(config, values)).d_mlp == 100


@pytest.mark.parametrize(
    ("changes", "has_config", "said"),
    [
        ({"architecture": {"n_head": 5}}, False, "does not divide into n_head 5"),
        ({"architecture": {"context_length": 8}}, True, "needs 31 or more"),
        (
            {"architecture": {"n_head": 5}, "source": None, "problem": "there is no text yet"},
            False,
            "there is no text yet",
        ),
    ],
)
def test_the_problem_is_what_does_not_go_together_the_data_before_the_sizes(
    changes: dict[str, Any], has_config: bool, said: str
) -> None:
    planned = planned_run(choices("copy", **changes))
    assert (planned.config is not None) == has_config
    assert said in str(planned.problem)


def test_minutes_count_instead_of_steps_where_there_are_any() -> None:
    values = recipe_values(PLANS["copy"].recipe)
    assert recipe_of(values | {"minutes": 3.0}).steps is None
    assert recipe_of(values | {"minutes": 3.0}).minutes == 3.0
    assert recipe_of(values | {"minutes": 0.0, "steps": 77}).steps == 77


def test_a_long_text_is_not_read_before_the_run_begins_but_counted_in_characters() -> None:
    def complain(*_: object) -> str:
        raise AssertionError("a text is read only when the run begins")

    planned = planned_run(choices(OWN, source=TEXT), complain=complain)
    assert planned.config is not None
    assert planned.config.vocab_size == len(set(TEXT.corpus.text))
    assert planned.vocabulary is None


def test_a_bpe_tokenizer_is_learned_only_when_the_run_begins() -> None:
    def learn(*_: object) -> Any:
        raise AssertionError("learning takes too long for a form")

    planned = planned_run(choices(OWN, source=TEXT, tokenizer="bpe", vocabulary=512), learn)
    assert planned.config is not None
    assert (planned.config.vocab_size, planned.vocabulary) == (512, 512)
    assert planned.plan.tokenizer == "bpe"


def test_a_run_that_begins_with_a_model_keeps_its_architecture(tiny_model: TinyModel) -> None:
    folder = tiny_model("base")
    planned = planned_run(choices(OWN, source=TEXT, begin="base", architecture={"d_model": 32}))
    assert planned.config == checkpoints.read_config(folder)
    assert (planned.begin, planned.changes, planned.vocabulary, planned.problem) == (
        "base",
        {},
        None,
        None,
    )


def test_data_that_bring_their_tokens_leave_no_choice_of_a_tokenizer() -> None:
    assert token_kinds("decoder", PLANS["copy"].source()) == ()
    assert token_kinds("encoder-decoder", PLANS["mirror"].source()) == ()
    assert token_kinds("decoder", TEXT) == token_kinds("decoder", None) == ("characters", "bpe")
    assert token_kinds("classifier", None) == ("words",)


def test_a_vocabulary_is_as_large_as_the_plan_says_where_that_learns_one() -> None:
    assert usual_vocabulary(PLANS["bpe"], "bpe") == PLANS["bpe"].config.vocab_size
    assert usual_vocabulary(OWN_PLAN, "bpe") == 1_000


def test_a_control_takes_no_number_that_its_field_refuses() -> None:
    described = [field_info(kind, one.name) for kind in (Config, Recipe) for one in fields(kind)]
    numbers = [info for info in described if info.kind in ("whole", "number")]
    assert {*LARGEST, *ZERO} <= {info.name for info in numbers}
    for info in numbers:
        low, high = limits(info)
        if info.name in ZERO:
            assert low == 0, info.name
        elif info.low is not None:
            assert low is not None, info.name
            assert low > info.low if info.low_excluded else low >= info.low, info.name
        if info.high is not None:
            assert high is not None, info.name
            assert high < info.high if info.high_excluded else high <= info.high, info.name


@pytest.mark.parametrize("name", PLANS)
def test_a_control_takes_the_numbers_of_every_experiment(name: str) -> None:
    plan = PLANS[name]
    chosen = {Config: architecture_values(plan.config), Recipe: recipe_values(plan.recipe)}
    for kind, values in chosen.items():
        for info in (field_info(kind, field) for field in values):
            if info.kind in ("whole", "number") and values[info.name] is not None:
                low, high = limits(info)
                assert low is None or low <= values[info.name], info.name
                assert high is None or values[info.name] <= high, info.name


@pytest.mark.parametrize("kind", ["decoder", "classifier", "encoder-decoder"])
def test_every_field_of_the_architecture_has_a_control_and_a_group_to_stand_in(kind: Kind) -> None:
    config = next(plan.config for plan in PLANS.values() if plan.config.kind == kind)
    assert {one.name for one in fields(Config)} == architecture_values(config).keys() | set(
        NOT_CHOSEN[kind]
    )
    in_sight = {*SIZES_IN_SIGHT, "n_encoder_layer"}
    assert not [
        name
        for name in architecture_values(config)
        if name not in in_sight and not field_info(Config, name).group
    ]


def test_whether_a_field_has_an_effect_follows_from_the_field_it_needs() -> None:
    base, pattern, head = (
        field_info(Config, name) for name in ("rotary_base", "window_pattern", "n_head")
    )
    assert [base.has_effect({"positions": kind}) for kind in ("rotary", "learned")] == [True, False]
    assert [pattern.has_effect({"window": size}) for size in (3, None)] == [True, False]
    assert head.has_effect({})


def test_on_a_busy_machine_a_run_takes_as_many_times_as_long_as_its_steps_do_now() -> None:
    speed = estimate.Speed(50e9, 4e9, 20e-6)
    alone = replace(
        estimate.estimate(PLANS["copy"].config, PLANS["copy"].recipe, speed),
        seconds=120.0,
        slowdown=1.0,
    )
    assert time_needed(alone) == time_needed(replace(alone, slowdown=1.4)) == "2 min"
    assert time_needed(replace(alone, slowdown=3.0)) == "2 min to 6 min"


def test_a_run_whose_files_do_not_fit_on_the_disk_is_refused_whatever_memory_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planned = planned_run(choices("copy"))
    expected = estimate.estimate(
        planned.plan.config, planned.recipe, estimate.Speed(50e9, 4e9, 20e-6)
    )
    for free, is_refused in ((expected.disk, True), (2 * expected.disk, False)):
        monkeypatch.setattr(planned_run_view, "free_disk", lambda _, free=free: free)
        said = planned_run_view.refusal(planned, expected, "never-there", "cpu") or ""
        assert ("of the disk" in said) == is_refused
    assert expected.memory > 2 * expected.disk


def test_an_adapter_needs_a_model_to_begin_with_and_no_adapter_has_one(
    tiny_model: TinyModel,
) -> None:
    values = recipe_values(plan_named("sums").recipe) | {"lora_rank": 2}
    assert "choose one to begin with" in str(planned_run(choices("sums", recipe=values)).problem)
    tiny_model("base")
    planned = planned_run(choices("sums", recipe=values, begin="base"))
    assert (planned.problem, planned.begin, planned.recipe.lora_rank) == (None, "base", 2)
    assert "--from base" in planned_run_view.command(planned, "x")
    assert "--lora-rank 2" in planned_run_view.command(planned, "x")
    expected = estimate.estimate(planned.config, planned.recipe, estimate.UNMEASURED)  # type: ignore[arg-type]
    assert f"{expected.trained:,} numbers trained beside them" in planned_run_view.summary(expected)
    again = planned_run(choices("sums", recipe=values, begin="finetune-lora"))
    assert "finetune-lora is an adapter itself, of pretrain" in str(again.problem)
