"""The rules that turn the choices of the form into a run, without any control."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import streamlit as st

from gptviz.data.registry import FROM_FILES
from gptviz.data.source import Source
from gptviz.model import Config, change_config
from gptviz.model.kinds import Kind
from gptviz.runs import checkpoints
from gptviz.runs.experiments import PLANS, Plan, TokenizerKind
from gptviz.runs.run import adapter_for
from gptviz.settings.address_values import ANY, ON_OR_OFF, real_number
from gptviz.settings.fields import FieldInfo, field_info, field_infos
from gptviz.text import Tokenizer
from gptviz.train.recipe import Recipe
from gptviz.ui.views.planned_run import PlannedRun
from gptviz.ui.widgets import addresses, controls
from gptviz.ui.widgets.details import folded_part

OWN = "my own"
FRESH = "fresh weights"
OWN_PLAN = Plan(
    "generator",
    "You choose every dimension yourself: open the model and the recipe below.",
    Recipe(steps=2_000, batch_size=32, learning_rate=2.5e-3),
    data="python-reference",
)
FEWEST_TOKENS = {"bpe": 300, "words": 3}  # in a vocabulary that is learned
USUAL_VOCABULARY = 1_000
# The fields of the architecture that the data decide, or that a model of this kind has no choice
# in.
NOT_CHOSEN: dict[Kind, tuple[str, ...]] = {
    "decoder": (
        "vocab_size",
        "padding",
        "n_label",
        "ordered",
        "token_dropout",
        "head",
        "n_encoder_layer",
    ),
    "classifier": (
        "vocab_size",
        "padding",
        "n_label",
        "ordered",
        "n_encoder_layer",
        "tied",
        "unembed_bias",
    ),
    "encoder-decoder": ("vocab_size", "padding", "n_label", "ordered", "token_dropout", "head"),
}
# The largest numbers the page offers, where the field itself allows more: enough for a laptop, and
# beyond what any lesson needs. The command line takes all that the field allows.
LARGEST: dict[str, float] = {
    "n_layer": 48,
    "n_encoder_layer": 48,
    "n_head": 64,
    "n_kv_head": 64,
    "window": 4_096,
    "d_model": 4_096,
    "context_length": 4_096,
    "d_head": 1_024,
    "d_mlp": 16_384,
    "steps": 1_000_000,
    "batch_size": 4_096,
    "evaluations": 1_000,
    "seed": 10**9,
    "lora_rank": 1_024,
    "minutes": 10_000,
    "learning_rate": 1_000,
    "final_rate": 10,
    "weight_decay": 100,
    "clip": 1_000,
}
# A control of Streamlit includes its limits. Where a field excludes one, its control ends this far
# from it.
ABOVE = 1e-7
BELOW = 1e-4
# The meaning of 0 in the control of a field that may also be left out.
ZERO = {"d_head": "0: width ÷ heads", "minutes": "0: steps"}
HEAD_WITHOUT_LABELS = "unembed"
# Where the buttons of a control begin to count if its field has no value of its own.
BEGIN = {
    "norm_eps": 1e-5,
    "score_scale": 1.0,
    "score_cap": 50.0,
    "logit_cap": 30.0,
    "window_rotary_base": 10_000.0,
}
NO_GROUP = "More"
Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Choices:
    """The choices made in the form."""

    plan_name: str
    plan: Plan
    source: Source | None  #: the data; None if there is none, and `problem` says why
    begin: str  #: the model whose weights the run begins with, or `FRESH`
    tokenizer: TokenizerKind  #: how a text becomes tokens
    vocabulary: int  #: how many tokens are learned, where they are learned
    #: the values of the fields of `Config` that have a control; none unless it begins with fresh
    #: weights
    architecture: Mapping[str, Any]
    #: the values of the fields of `Recipe`; 0 minutes mean that the steps count
    recipe: Mapping[str, Any]
    problem: str | None = None  #: why the data cannot be used; None if they can


def plan_named(name: str) -> Plan:
    """The experiment of this name, or the plan that a model of the user's own begins with."""
    if name == OWN:
        return OWN_PLAN
    return PLANS[name]


def complaint(source: Source, config: Config, tokenizer: Tokenizer) -> str | None:
    """Why these data do not go with a model of this config; None if they do."""
    try:
        source.data(tokenizer, config)
    except ValueError as error:
        return str(error)
    return None


def planned_run(
    choices: Choices,
    learn: Callable[[Source, str, int], Tokenizer] = lambda source, kind, vocab_size: (
        source.tokenizer(kind, vocab_size)
    ),
    complain: Callable[[Source, Config, Tokenizer], str | None] = complaint,
) -> PlannedRun:
    """The run that these choices describe, with its problem if they do not go together; the form
    passes functions that cache.
    """
    fresh = choices.begin == FRESH
    is_learned = (
        fresh
        and choices.tokenizer in FEWEST_TOKENS
        and bool(token_kinds(choices.plan.config.kind, choices.source))
    )
    plan = replace(choices.plan, tokenizer=choices.tokenizer, begin=None)
    recipe = plan.recipe
    config = None
    base = None
    problem = choices.problem
    changes: dict[str, object] = {}
    try:
        recipe = recipe_of(choices.recipe)
        if fresh:
            changes = architecture_changes(plan.config, choices.architecture)
            config, unsuited = _fit_config(plan, choices, changes, learn, complain)
            problem = problem or unsuited
        else:
            base = checkpoints.find(choices.begin)
            config = checkpoints.read_config(base)
        adapter_for(recipe, config, base)
    except ValueError as error:
        problem = problem or str(error)
    return PlannedRun(
        choices.plan_name,
        plan,
        choices.source,
        choices.vocabulary if is_learned else None,
        recipe,
        changes,
        config,
        None if fresh else choices.begin,
        problem,
    )


def token_kinds(kind: Kind, source: Source | None) -> tuple[str, ...]:
    """The ways in which these data can become tokens for a model of this kind; empty if they bring
    their own.
    """
    return (FROM_FILES[kind] if source is None else source).tokenizer_kinds


def recipe_of(values: Mapping[str, Any]) -> Recipe:
    """The recipe that the values of its controls say.

    Raises:
        ValueError: they do not go together; the message says what to change.
    """
    minutes = values["minutes"] or None
    return Recipe(**{**values, "minutes": minutes, "steps": None if minutes else values["steps"]})


def architecture_changes(config: Config, values: Mapping[str, Any]) -> dict[str, object]:
    """The fields whose values differ from those of `config`, as `change_config` takes them."""
    before = architecture_values(config)
    changes = {field: value for field, value in values.items() if value != before[field]}
    if changes.get("d_head") == 0:
        changes["d_head"] = None
    # The size of the MLP follows the width, unless the plan, or the user, chose another one.
    if (
        "d_model" in changes
        and "d_mlp" not in changes
        and config.expert_size not in (0, 4 * config.d_model)
    ):
        changes["d_mlp"] = config.expert_size
    return changes


def architecture_values(config: Config) -> dict[str, Any]:
    """The values that the controls of the architecture begin with; a size that follows from others
    is 0.
    """
    values = {
        field: value
        for field, value in config.to_dict().items()
        if field not in NOT_CHOSEN[config.kind]
    }
    if config.n_head * config.head_size == config.d_model:
        values["d_head"] = 0
    return values


def _fit_config(
    plan: Plan,
    choices: Choices,
    changes: Mapping[str, object],
    learn: Callable[[Source, str, int], Tokenizer],
    complain: Callable[[Source, Config, Tokenizer], str | None],
) -> tuple[Config, str | None]:
    """The plan's config with the sizes that the data and its tokens decide, then with `changes`;
    and why the data do not go with it.

    A long source is read only when the run begins, and a BPE tokenizer is learned only then: both
    take too long for a form.

    Raises:
        ValueError: the changes do not go together.
    """
    source = choices.source
    if source is None:
        return change_config(plan.config, **changes), None
    if plan.tokenizer == "bpe" and token_kinds(plan.config.kind, source):
        return change_config(replace(plan.config, vocab_size=choices.vocabulary), **changes), None
    tokenizer = learn(source, plan.tokenizer, choices.vocabulary)
    config = change_config(source.fit_config(plan.config, tokenizer), **changes)
    return config, None if source.is_long or plan.tokenizer == "bpe" else complain(
        source, config, tokenizer
    )


def field_controls(
    infos: Mapping[str, FieldInfo], values: Mapping[str, Any], in_sight: Sequence[str]
) -> dict[str, Any]:
    """A control for each field that has a value: those `in_sight` in two columns, the others folded
    under their groups, which cost a browser nothing until they are opened, or the address sets one
    of theirs.

    Args:
        infos: what there is to say about each field, by name and in order.
        values: what the controls begin with; a field without a value gets no control.
        in_sight: names of fields.
    """
    chosen = {}
    for left, right in zip(in_sight[::2], [*in_sight[1::2], None], strict=False):
        columns = st.columns(2, vertical_alignment="bottom")
        for column, name in zip(columns, (left, right), strict=True):
            if name is not None:
                with column:
                    chosen[name] = _control(infos[name], values[name])
    others = [info for name, info in infos.items() if name in values and name not in in_sight]
    for group in dict.fromkeys(info.group or NO_GROUP for info in others):
        inside = [info for info in others if (info.group or NO_GROUP) == group]
        icon = ":material/more_horiz:" if group == NO_GROUP else None
        is_asked = any(key_of(info.name) in st.query_params for info in inside)
        fold = folded_part(group, icon=icon, key=f"fields {inside[0].name}", is_needed=is_asked)
        with fold or nullcontext():
            for info in inside:
                value = values[info.name]
                has_effect = _has_effect(info, infos, chosen)
                chosen[info.name] = (
                    _default_value(info, value)
                    if fold is None
                    else _control(info, value, disabled=not has_effect)
                )
    return chosen


def _control(info: FieldInfo, value: Any, *, disabled: bool = False) -> Any:
    """The control of one field, beginning with `value`; what was chosen in it."""
    key = key_of(info.name)
    if info.name in ZERO:
        label = f"{info.label} ({ZERO[info.name]})"
    else:
        label = info.label
    if info.kind == "switch":
        addresses.accept_values(key, ON_OR_OFF)
        return st.toggle(
            label, value, key=key, help=info.help, bind="query-params", disabled=disabled
        )
    if info.kind == "choice":
        choices = [choice for choice in info.choices if choice != HEAD_WITHOUT_LABELS]
        return controls.select(
            label, choices, key=key, default=value, help=info.full_help, disabled=disabled
        )
    if info.kind == "text":
        addresses.accept_values(key, ANY)
        return st.text_input(
            label, value, key=key, help=info.help, bind="query-params", disabled=disabled
        )
    common: dict[str, Any] = {
        "key": key,
        "help": info.help,
        "bind": "query-params",
        "disabled": disabled,
    }
    if info.optional:
        common["placeholder"] = "as usual"
    low, high = limits(info)
    addresses.accept_values(
        key, real_number(-math.inf if low is None else low, math.inf if high is None else high)
    )
    if info.kind == "whole":
        return st.number_input(
            label, _as_number(int, low), _as_number(int, high), value, 1, **common
        )
    step = _notch(BEGIN.get(info.name, 0.0) if value is None else float(value))
    return st.number_input(
        label,
        _as_number(float, low),
        _as_number(float, high),
        _as_number(float, value),
        step,
        "%.6g",
        **common,
    )


def key_of(field: str) -> str:
    """The key of a field's control, which is also its name in the link."""
    return f"run_{field}"


def limits(info: FieldInfo) -> tuple[float | None, float | None]:
    """The least and the largest number that the control of a field takes, or None if there is no
    limit.
    """
    low = info.low
    high = LARGEST.get(info.name, info.high)
    if info.name in ZERO:
        low = 0
    elif info.name == "n_encoder_layer":  # only a model with an encoder has this control
        low = 1
    elif low is not None and info.low_excluded:
        low += ABOVE
    if high is not None and high == info.high and info.high_excluded:
        high -= BELOW
    return low, high


def _as_number(kind: type[Number], value: float | None) -> Number | None:
    if value is None:
        return None
    return kind(value)


def _notch(value: float) -> float:
    """By how much the buttons of a control change its number: about a tenth of it."""
    if value:
        return float(f"{value / 10:.0e}")
    return 0.1


def _has_effect(info: FieldInfo, infos: Mapping[str, FieldInfo], chosen: Mapping[str, Any]) -> bool:
    """Whether the field changes anything, given what was chosen for the fields before it."""
    return info.has_effect(chosen) and (
        info.needs is None or _has_effect(infos[info.needs[0]], infos, chosen)
    )


def _default_value(info: FieldInfo, value: Any) -> Any:
    """What the control of a field gives while nobody has changed it."""
    if info.kind == "number":
        return _as_number(float, value)
    return value


def usual_vocabulary(plan: Plan, tokenizer: str) -> int:
    """How many tokens are learned unless somebody chooses another number."""
    is_as_planned = tokenizer == plan.tokenizer and tokenizer in FEWEST_TOKENS
    if is_as_planned:
        return plan.config.vocab_size
    return USUAL_VOCABULARY


def recipe_values(recipe: Recipe) -> dict[str, Any]:
    """The values that the controls of the recipe begin with: steps even where minutes count,
    minutes 0 where steps do.
    """
    return recipe.to_dict() | {"minutes": recipe.minutes or 0.0, "steps": recipe.steps or 1_000}


def changes_of(planned: PlannedRun) -> str:
    """The differences from the experiment as it is planned, in words; empty if there are none."""
    recipe = planned.recipe.to_dict()
    usual = planned.plan.recipe.to_dict()
    differ = [
        (info.label, recipe[name], usual[name])
        for name, info in field_infos(Recipe).items()
        if recipe[name] != usual[name]
    ]
    before = planned.plan.config.to_dict()
    differ += [
        (field_info(Config, name).label, value, before[name])
        for name, value in planned.changes.items()
    ]
    return ", ".join(
        f"{label} {_format_value(value)} instead of {_format_value(other)}"
        for label, value, other in differ
    )


def _format_value(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:,g}"
    return str(value)
