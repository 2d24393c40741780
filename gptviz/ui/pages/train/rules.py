"""The rules that turn the choices of the form into a run, without any control."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gptviz.data.registry import FROM_FILES
from gptviz.data.source import Source
from gptviz.model import Config, changed
from gptviz.model.kinds import Kind
from gptviz.runs import checkpoints
from gptviz.runs.experiments import PLANS, Plan, TokenizerKind
from gptviz.runs.run import adapter_for
from gptviz.settings.fields import field_info, field_infos
from gptviz.text import Tokenizer
from gptviz.train.recipe import Recipe
from gptviz.ui.views.planned_run import PlannedRun

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
# The fields of the architecture that the data decide, or that a model of this kind has no choice in.
NOT_CHOSEN: dict[Kind, tuple[str, ...]] = {
    "decoder": ("vocab_size", "padding", "n_label", "ordered", "token_dropout", "head", "n_encoder_layer"),
    "classifier": ("vocab_size", "padding", "n_label", "ordered", "n_encoder_layer", "tied", "unembed_bias"),
    "encoder-decoder": ("vocab_size", "padding", "n_label", "ordered", "token_dropout", "head"),
}


def plan_named(name: str) -> Plan:
    """The experiment of this name, or the plan that a model of the user's own begins with."""
    return OWN_PLAN if name == OWN else PLANS[name]


@dataclass(frozen=True)
class Choices:
    """The choices made in the form.

    Attributes:
        source: the data; None if there is none, and `problem` says why.
        begin: the model whose weights the run begins with, or `FRESH`.
        tokenizer: how a text becomes tokens.
        vocabulary: how many tokens are learned, where they are learned.
        architecture: the values of the fields of `Config` that have a control; none unless it begins with fresh weights.
        recipe: the values of the fields of `Recipe`; 0 minutes mean that the steps count.
        problem: why the data cannot be used; None if they can.
    """

    plan_name: str
    plan: Plan
    source: Source | None
    begin: str
    tokenizer: TokenizerKind
    vocabulary: int
    architecture: Mapping[str, Any]
    recipe: Mapping[str, Any]
    problem: str | None = None


def complaint(source: Source, config: Config, tokenizer: Tokenizer) -> str | None:
    """Why these data do not go with a model of this config; None if they do."""
    try:
        source.data(tokenizer, config)
    except ValueError as error:
        return str(error)
    return None


def planned_run(
    choices: Choices,
    learn: Callable[[Source, str, int], Tokenizer] = lambda source, kind, vocab_size: source.tokenizer(kind, vocab_size),
    complain: Callable[[Source, Config, Tokenizer], str | None] = complaint,
) -> PlannedRun:
    """The run that these choices describe, with its problem if they do not go together; the form passes functions that cache."""
    fresh = choices.begin == FRESH
    is_learned = fresh and choices.tokenizer in FEWEST_TOKENS and bool(token_kinds(choices.plan.config.kind, choices.source))
    plan = replace(choices.plan, tokenizer=choices.tokenizer, begin=None)
    recipe, config, base, problem = plan.recipe, None, None, choices.problem
    changes: dict[str, object] = {}
    try:
        recipe = recipe_of(choices.recipe)
        if fresh:
            changes = architecture_changes(plan.config, choices.architecture)
            config, unsuited = _fitted(plan, choices, changes, learn, complain)
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


def _fitted(
    plan: Plan,
    choices: Choices,
    changes: Mapping[str, object],
    learn: Callable[[Source, str, int], Tokenizer],
    complain: Callable[[Source, Config, Tokenizer], str | None],
) -> tuple[Config, str | None]:
    """The plan's config with the sizes that the data and its tokens decide, then with `changes`; and why the data do not go
    with it.

    A long source is read only when the run begins, and a BPE tokenizer is learned only then: both take too long for a form.

    Raises:
        ValueError: the changes do not go together.
    """
    source = choices.source
    if source is None:
        return changed(plan.config, **changes), None
    if plan.tokenizer == "bpe" and token_kinds(plan.config.kind, source):
        return changed(replace(plan.config, vocab_size=choices.vocabulary), **changes), None
    tokenizer = learn(source, plan.tokenizer, choices.vocabulary)
    config = changed(source.fitted(plan.config, tokenizer), **changes)
    return config, None if source.is_long or plan.tokenizer == "bpe" else complain(source, config, tokenizer)


def token_kinds(kind: Kind, source: Source | None) -> tuple[str, ...]:
    """The ways in which these data can become tokens for a model of this kind; empty if they bring their own."""
    return (FROM_FILES[kind] if source is None else source).tokenizer_kinds


def usual_vocabulary(plan: Plan, tokenizer: str) -> int:
    """How many tokens are learned unless somebody chooses another number."""
    is_as_planned = tokenizer == plan.tokenizer and tokenizer in FEWEST_TOKENS
    return plan.config.vocab_size if is_as_planned else USUAL_VOCABULARY


def architecture_values(config: Config) -> dict[str, Any]:
    """The values that the controls of the architecture begin with; a size that follows from others is 0."""
    values = {field: value for field, value in config.to_dict().items() if field not in NOT_CHOSEN[config.kind]}
    if config.n_head * config.head_size == config.d_model:
        values["d_head"] = 0
    return values


def recipe_values(recipe: Recipe) -> dict[str, Any]:
    """The values that the controls of the recipe begin with: steps even where minutes count, minutes 0 where steps do."""
    return recipe.to_dict() | {"minutes": recipe.minutes or 0.0, "steps": recipe.steps or 1_000}


def architecture_changes(config: Config, values: Mapping[str, Any]) -> dict[str, object]:
    """The fields whose values differ from those of `config`, as `changed` takes them."""
    before = architecture_values(config)
    changes = {field: value for field, value in values.items() if value != before[field]}
    if changes.get("d_head") == 0:
        changes["d_head"] = None
    # The size of the MLP follows the width, unless the plan, or the user, chose another one.
    if "d_model" in changes and "d_mlp" not in changes and config.expert_size not in (0, 4 * config.d_model):
        changes["d_mlp"] = config.expert_size
    return changes


def changes_of(planned: PlannedRun) -> str:
    """The differences from the experiment as it is planned, in words; empty if there are none."""
    recipe, usual = planned.recipe.to_dict(), planned.plan.recipe.to_dict()
    differ = [
        (info.label, recipe[name], usual[name]) for name, info in field_infos(Recipe).items() if recipe[name] != usual[name]
    ]
    before = planned.plan.config.to_dict()
    differ += [(field_info(Config, name).label, value, before[name]) for name, value in planned.changes.items()]
    return ", ".join(f"{label} {_said(value)} instead of {_said(other)}" for label, value, other in differ)


def _said(value: object) -> str:
    return "none" if value is None else f"{value:,g}" if isinstance(value, float) else str(value)


def recipe_of(values: Mapping[str, Any]) -> Recipe:
    """The recipe that the values of its controls say.

    Raises:
        ValueError: they do not go together; the message says what to change.
    """
    minutes = values["minutes"] or None
    return Recipe(**{**values, "minutes": minutes, "steps": None if minutes else values["steps"]})
