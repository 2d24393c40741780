"""The form of the Train page: which experiment, on what, how, under which name, and what that will take."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from threading import Lock
from typing import Any, get_args, get_type_hints

import streamlit as st

from gptviz.data.registry import FROM_FILES, source_named
from gptviz.data.source import Source
from gptviz.data.text import TaskSource, TextSource
from gptviz.figures.format import duration
from gptviz.model import Config, changed, devices
from gptviz.model.kinds import Kind
from gptviz.runs import checkpoints, queue
from gptviz.runs.experiments import PLANS, Plan
from gptviz.runs.run import free_disk, free_name
from gptviz.text import PAIR_TASKS, TASKS, Corpus, Tokenizer, corpora, task, tiny_shakespeare
from gptviz.train import estimate
from gptviz.train.estimate import Estimate, Speed, size
from gptviz.train.recipe import HELP, Recipe
from gptviz.ui.shell import kinds
from gptviz.ui.views.settings import HELPS
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.markdown import escaped

OWN = "my own"
FRESH = "fresh weights"
PASTED, UPLOADED = "a text you paste", "a file of yours"
OPINIONS = "opinions"
DEFAULT_PLAN = "reversal"
MOST_PASTED = 1_000_000
OWN_PLAN = Plan(
    "generator",
    "Every dimension as you like it: open the model and the recipe below.",
    Recipe(steps=2_000, batch_size=32, learning_rate=2.5e-3),
    data="python-reference",
)

# What a file of the reader's holds for each kind of model, and under which key it is kept.
FILES: dict[Kind, tuple[str, str]] = {
    "decoder": ("uploaded", "Plain text in UTF-8."),
    "classifier": ("labelled", "A table (CSV) in UTF-8 with the columns text and label: two labels or more."),
    "encoder-decoder": ("pairs", "A source and its answer in each line, with a tab or a comma between them, in UTF-8."),
}
DATA: dict[Kind, str] = {
    "decoder": "Tasks make their own sequences, and it is known how well they can be predicted. A text is cut: its first part "
    "is trained on, the rest validates.",
    "classifier": "Opinions are made by a small grammar in which “not” and “never” turn a word round: counting words does not "
    "help. Of a table of yours nine texts in ten are trained on, the rest validates.",
    "encoder-decoder": "Tasks make pairs of a source and its answer, and hold some answers out. Of a file of yours nine "
    "sources in ten are trained on, the rest validates.",
}
# The fields of the architecture that the data decide, or that a model of this kind has no choice in.
GIVEN: dict[Kind, tuple[str, ...]] = {
    "decoder": ("vocab_size", "padding", "n_label", "head", "n_encoder_layer"),
    "classifier": ("vocab_size", "padding", "n_label", "n_encoder_layer", "tied", "unembed_bias"),
    "encoder-decoder": ("vocab_size", "padding", "n_label", "head"),
}
FEWEST = {"bpe": 300, "words": 3}  # tokens of a vocabulary that is learned
FEW_OF_MODEL = ("n_layer", "n_head", "d_model", "context_length")
FEW_OF_RECIPE = ("steps", "batch_size", "learning_rate")
# What a page offers of each size: enough for a laptop; the command line takes more.
SIZES = {
    "n_layer": (0, 48),
    "n_encoder_layer": (1, 48),
    "n_head": (1, 64),
    "d_model": (1, 4_096),
    "context_length": (1, 4_096),
    "d_head": (0, 1_024),
    "d_mlp": (0, 16_384),
}
LIMITS: dict[str, tuple[float, float]] = {
    "steps": (1, 1_000_000),
    "batch_size": (1, 4_096),
    "evaluations": (1, 1_000),
    "snapshots": (0, 64),
    "seed": (0, 10**9),
    "minutes": (0.0, 10_000.0),
    "learning_rate": (1e-7, 1_000.0),
    "warmup": (0.0, 0.99),
    "beta1": (0.0, 0.9999),
    "beta2": (0.0, 0.9999),
    "final_rate": (0.0, 10.0),
    "weight_decay": (0.0, 100.0),
    "clip": (0.0, 1_000.0),
    "dropout": (0.0, 0.99),
}
LABELS = {
    "n_layer": "Blocks",
    "n_encoder_layer": "Blocks of the encoder",
    "head": "How labels are told",
    "n_head": "Heads per block",
    "d_model": "Width (d_model)",
    "context_length": "Context (tokens)",
    "d_head": "Size of a head (0: width ÷ heads)",
    "d_mlp": "Neurons per MLP",
    "qk_norm": "Normalised queries and keys",
    "tied": "Tied embedding",
    "qkv_bias": "Bias of q, k, v",
    "steps": "Steps",
    "minutes": "Minutes instead (0: steps)",
    "batch_size": "Batch size",
    "beta1": "Beta 1",
    "beta2": "Beta 2",
    "clip": "Clip gradients at",
    "compile": "Compile",
    "snapshots": "Snapshots per doubling",
}
_PREPARING = Lock()
_BEGUN = "a run was begun"


@dataclass(frozen=True)
class Planned:
    """What the form says.

    Attributes:
        vocabulary: how many tokens are learned from the data, None where they are its characters or given.
        config: None where the form does not make sense.
        begin: the model whose weights it begins with.
        problem: why it cannot be trained, None if it can.
    """

    plan_name: str
    plan: Plan
    source: Source | None
    vocabulary: int | None
    recipe: Recipe
    changes: Mapping[str, object]
    config: Config | None
    begin: str | None
    problem: str | None


def form(notices: Any) -> tuple[Planned, str]:
    """The controls, the few above and the others folded, and the name that the run is to have."""
    name = controls.select(
        "What to train",
        [*PLANS, OWN],
        key="plan",
        default=DEFAULT_PLAN,
        help="Experiments, each with its model, data and recipe, all of which you may change; or a model of your own.",
        notices=notices,
    )
    plan = OWN_PLAN if name == OWN else PLANS[name]
    _follow(name, plan)
    about = f"Published: {plan.target}, by {plan.target.by}." if plan.target else None
    st.caption(plan.sentence, help=about)
    problem, source = None, None
    chosen = _choose_data(plan)
    asked = st.container()
    folded = st.container(horizontal=True, gap="xsmall")
    try:
        with asked:
            source = _data(chosen, plan, folded)
        if source is None:
            paste = ": paste one," if chosen == PASTED else ":"
            problem = f"there is no text yet{paste} choose a file, or take other data"
    except (ValueError, OSError) as error:
        problem = str(error)
    with folded:
        planned = _model_and_recipe(name, plan, source, problem)
    return planned, _name(OWN.replace(" ", "-") if name == OWN else name)


def _key(field: str) -> str:
    return f"run_{field}"


def _follow(name: str, plan: Plan) -> None:
    """Set every control to what another plan says, once it is chosen."""
    before = st.session_state.get("plan shown")
    st.session_state["plan shown"] = name
    if before in (None, name):
        return
    for field, value in (_defaults(plan.config) | plan.recipe.to_dict()).items():
        st.session_state[_key(field)] = 0.0 if field == "minutes" and value is None else value
    if plan.recipe.steps is None:
        st.session_state[_key("steps")] = 1_000
    st.session_state[_key("vocabulary")] = _usual(plan, plan.tokenizer)
    for key, value in (("data", plan.data), ("begin", plan.begin or FRESH), ("tokens", plan.tokenizer)):
        st.session_state[key] = value


def _defaults(config: Config) -> dict[str, Any]:
    """The fields of the architecture as its controls show them: sizes that follow from others as 0, without those `GIVEN`."""
    values = {field: value for field, value in config.to_dict().items() if field not in GIVEN[config.kind]}
    if config.n_head * config.head_size == config.d_model:
        values["d_head"] = 0
    return values


def _choose_data(plan: Plan) -> str:
    """The control `data`: what a model of the plan's kind can learn from."""
    texts = [*TASKS, *(offer.name for offer in corpora()), PASTED]
    offered = {"decoder": texts, "classifier": [OPINIONS], "encoder-decoder": [*PAIR_TASKS]}
    kind = plan.config.kind
    return controls.select("Data", [*offered[kind], UPLOADED], key="data", default=plan.data, help=DATA[kind])


def _data(chosen: str, plan: Plan, folded: Any) -> Source | None:
    """The data chosen, None where there is none yet; the settings of a task go to `folded`.

    Raises:
        ValueError: it cannot be used.
        OSError: it cannot be had.
    """
    if chosen in TASKS:
        with folded:
            return _task(chosen)
    if chosen == PASTED:
        text = st.text_area("Your text", key="pasted", height=110, max_chars=MOST_PASTED, persist_state="session")
        return TextSource(_kept(text), plan.fraction) if text else None
    if chosen == UPLOADED:
        key, about = FILES[plan.config.kind]
        file = st.file_uploader("Your file", help=about, key=key)
        return _uploaded(file.name, file.getvalue(), plan.config.kind, plan.fraction) if file else None
    if plan.config.kind != "decoder":
        return _made(chosen, plan.fraction)
    offer = next(offer for offer in corpora() if offer.name == chosen)
    if not offer.ready:
        _fetch(chosen, offer.description)
    return TextSource(_opened(chosen), plan.fraction)


def _task(name: str) -> Source:
    default = task(name)
    settings = {}
    with st.popover("Task"):
        st.caption(default.sentence)
        for field, (_, high) in default.limits().items():
            label = field.replace("_", " ").capitalize()
            settings[field] = st.number_input(label, 1, max(high, 9), getattr(default, field), key=f"{name} {field}")
    return TaskSource(task(name, **settings))


def _fetch(name: str, description: str) -> None:
    """The button that brings a text here; the page goes on once it is there."""
    st.caption(description)
    if st.button("Fetch it now", icon=":material/download:", key="fetch"):
        tiny_shakespeare()
        st.rerun()
    raise ValueError(f"{name} is not on this machine yet: fetch it, or take other data")


# Read-only, shared by all sessions: a text is held once.
@st.cache_resource(max_entries=4, show_spinner=False)
def _opened(name: str) -> Corpus:
    return next(offer for offer in corpora() if offer.name == name).open()


@st.cache_resource(max_entries=8, show_spinner=False)
def _kept(text: str) -> Corpus:
    return Corpus("pasted", text)


@st.cache_resource(max_entries=4, show_spinner="Reading the file")
def _uploaded(name: str, data: bytes, kind: Kind, fraction: float) -> Source:
    """A file for a model of this kind.

    Raises:
        ValueError: it holds nothing of the sort; the message says what is wrong with it.
    """
    return FROM_FILES[kind].from_bytes(data, Path(name).name[:80], fraction)


@st.cache_resource(max_entries=8, show_spinner=False)
def _made(name: str, fraction: float) -> Source:
    return source_named(name, fraction)


def _written(source: Source) -> str:
    """What tells one source from another, for caches."""
    return json.dumps(source.to_dict(), sort_keys=True)


@st.cache_resource(max_entries=8, show_spinner="Reading the data")
def _tokenizer(written: str, kind: str, vocab_size: int, _source: Source) -> Tokenizer:
    return _source.tokenizer(kind, vocab_size)


@st.cache_data(max_entries=64, show_spinner="Reading the data")
def _unsuited(written: str, config: Config, tokens: str, _source: Source, _tokenizer: Tokenizer) -> str | None:
    """Why the data does not go with a model of this config, None if it does."""
    try:
        _source.data(_tokenizer, config)
    except ValueError as error:
        return str(error)
    return None


def _kinds_of_tokens(kind: Kind, source: Source | None) -> tuple[str, ...]:
    """How the data may become tokens; empty where it brings its own."""
    return (FROM_FILES[kind] if source is None else source).tokenizer_kinds


def _usual(plan: Plan, tokens: str) -> int:
    """How many tokens are learned unless asked otherwise."""
    return plan.config.vocab_size if tokens == plan.tokenizer and tokens in FEWEST else 1_000


def _model_and_recipe(name: str, plan: Plan, source: Source | None, problem: str | None) -> Planned:
    wanted: Any = plan.tokenizer
    vocabulary = plan.config.vocab_size
    offered = _kinds_of_tokens(plan.config.kind, source)
    with st.popover("Model"):
        known = kinds.models_of(plan.config.kind)
        begin = controls.select(
            "Begin with",
            [FRESH, *known, *({plan.begin} - set(known) if plan.begin else ())],
            key="begin",
            default=plan.begin or FRESH,
            help="Weights drawn at random, or those of a model: then its architecture and its tokens are kept.",
        )
        given: dict[str, Any] = {}
        if begin == FRESH:
            few = (*FEW_OF_MODEL, "n_encoder_layer") if plan.config.n_encoder_layer else FEW_OF_MODEL
            given = _fields(Config, _defaults(plan.config), few, HELPS)
            if len(offered) > 1:
                about = "A token for each character, or tokens of some characters each, learned from the text (BPE)."
                wanted = controls.select("Tokens", offered, key="tokens", default=plan.tokenizer, help=about)
            if offered and wanted in FEWEST:
                about = "How many tokens are learned at most: of words, the most frequent."
                vocabulary = int(
                    st.number_input(
                        "Vocabulary", FEWEST[wanted], 60_000, _usual(plan, wanted), 100, key=_key("vocabulary"), help=about
                    )
                )
    with st.popover("Recipe"):
        recipe_given = _fields(Recipe, plan.recipe.to_dict(), FEW_OF_RECIPE, HELP)
    plan = replace(plan, tokenizer=wanted, begin=None)
    recipe, config, changes = plan.recipe, None, {}
    try:
        recipe = _recipe(recipe_given)
        if begin == FRESH:
            changes = _changes(plan.config, given)
            config = changed(_fitted(plan, source, vocabulary), **changes)
            problem = problem or _complaint(plan, source, vocabulary, config)
        else:
            config = checkpoints.read_config(checkpoints.find(begin))
    except ValueError as error:
        problem = problem or str(error)
    learned = vocabulary if wanted in FEWEST and offered and begin == FRESH else None
    return Planned(name, plan, source, learned, recipe, changes, config, None if begin == FRESH else begin, problem)


def _fields(kind: type, defaults: dict[str, Any], few: tuple[str, ...], means: Mapping[str, str]) -> dict[str, Any]:
    """A control for each field of a recipe or a config: few in sight, the others under "More"."""
    kinds = get_type_hints(kind)
    given = {}
    for left, right in zip(few[::2], [*few[1::2], None], strict=False):
        columns = st.columns(2, vertical_alignment="bottom")
        for column, field in zip(columns, (left, right), strict=True):
            if field is not None:
                with column:
                    given[field] = _field(field, kinds[field], defaults[field], means)
    with st.expander("More", icon=":material/more_horiz:"):
        for field in (field.name for field in fields(kind)):
            if field in defaults and field not in few:
                given[field] = _field(field, kinds[field], defaults[field], means)
    return given


def _field(field: str, kind: Any, default: Any, means: Mapping[str, str]) -> Any:
    label = LABELS.get(field, field.replace("_", " ").capitalize())
    about, key = means.get(field), _key(field)
    allowed = [value for value in get_args(kind) if value != "unembed"]  # the head of all who tell no labels
    if kind is bool:
        return st.toggle(label, default, key=key, help=about, bind="query-params")
    if allowed and isinstance(allowed[0], str):
        return controls.select(label, allowed, key=key, default=default, help=about or "")
    if kind is int or int in allowed:
        low, high = SIZES.get(field, LIMITS.get(field, (0, 10**9)))
        return st.number_input(label, int(low), int(high), default or int(low), 1, key=key, help=about, bind="query-params")
    low, high = LIMITS[field]
    value = float(default or 0.0)
    shown = "%.6g"
    return st.number_input(label, float(low), float(high), value, _notch(value), shown, key=key, help=about, bind="query-params")


def _notch(value: float) -> float:
    """By how much the buttons change a number: about a tenth of it."""
    return float(f"{value / 10:.0e}") if value else 0.1


def _recipe(given: Mapping[str, Any]) -> Recipe:
    minutes = given["minutes"] or None
    return Recipe(**{**given, "minutes": minutes, "steps": None if minutes else given["steps"]})


def _changes(config: Config, given: Mapping[str, Any]) -> dict[str, object]:
    """The fields that differ from the plan's."""
    defaults = _defaults(config)
    changes = {field: value for field, value in given.items() if value != defaults[field]}
    if changes.get("d_head") == 0:
        changes["d_head"] = None
    # Sizes that follow from others follow them, unless they were set.
    if "d_model" in changes and "d_mlp" not in changes and config.mlp_size not in (0, 4 * config.d_model):
        changes["d_mlp"] = config.mlp_size
    return changes


def _fitted(plan: Plan, source: Source | None, vocabulary: int) -> Config:
    """The plan's config with the sizes that the data and its tokens decide."""
    if source is None:
        return plan.config
    if plan.tokenizer == "bpe" and _kinds_of_tokens(plan.config.kind, source):
        return replace(plan.config, vocab_size=vocabulary)  # learning them takes too long for a form
    return source.fitted(plan.config, _tokenizer(_written(source), plan.tokenizer, vocabulary, source))


def _complaint(plan: Plan, source: Source | None, vocabulary: int, config: Config) -> str | None:
    """Why the data does not go with the config; a text is read only when the run begins."""
    if source is None or source.is_long or plan.tokenizer == "bpe":
        return None
    tokenizer = _tokenizer(_written(source), plan.tokenizer, vocabulary, source)
    return _unsuited(_written(source), config, f"{plan.tokenizer} {vocabulary}", source, tokenizer)


def _name(base: str) -> str:
    free = free_name(base)
    if st.session_state.pop(_BEGUN, False):
        st.session_state["save_as"] = ""
    asked = st.text_input(
        "Save as",
        placeholder=free,
        key="save_as",
        max_chars=400,  # one that is too long is told so
        persist_state="session",
        help="What the model is called: letters, digits, '-', '_' and '.'. Left empty, it gets the name in grey.",
    )
    return (asked or "").strip() or free


@st.cache_resource(max_entries=8, ttl=600, show_spinner="Measuring how fast this machine is")
def speed(device: str) -> Speed:
    """How fast `device` is now, for the estimate."""
    return estimate.measure(device)


@st.cache_data(max_entries=256, show_spinner=False)
def _estimated(config: Config, recipe: Recipe, fast: Speed, tokens: int, held_out: int) -> Estimate:
    return estimate.estimate(config, recipe, fast, tokens=tokens, held_out=held_out)


def estimated(planned: Planned, device: str) -> Estimate | None:
    """What the run will take, None where the form does not make sense yet."""
    if planned.config is None:
        return None
    tokens, held_out = planned.config.context_length, 0
    if planned.source is not None:
        tokens = min(planned.source.tokens(planned.config), tokens)
        held_out = planned.source.evaluation_tokens(planned.config, planned.plan.tokenizer)
    return _estimated(planned.config, planned.recipe, speed(device), tokens, held_out)


def refusal(planned: Planned, expected: Estimate | None, name: str, device: str) -> str | None:
    """Why this run cannot begin, None if it can."""
    if planned.problem:
        return planned.problem
    try:
        target = checkpoints.destination(name)
    except checkpoints.CheckpointError as error:
        return str(error)
    if target.exists():
        return f"there is a model named {name} already: choose another name, or leave the field empty"
    if expected is None:
        return None
    room = free_disk(target)
    if expected.disk > 0.9 * room:
        return f"the run would take about {size(expected.disk)} of the disk, and {size(room)} is free: keep fewer snapshots"
    return estimate.refusal(expected, estimate.available(device))


def said(expected: Estimate) -> str:
    """What a run will take, in a line."""
    return f"{expected.parameters:,} parameters, about {duration(expected.seconds)}, {size(expected.memory)} of memory"


def explained(expected: Estimate) -> str:
    """Where the numbers of `said` come from, and more of them."""
    a_step = f"{expected.seconds_per_step * 1e3:,.3g} ms a step of {expected.flops / 1e9:,.3g} billion operations"
    return (
        f"**Time**: {a_step}, on this machine as busy as it was when its speed was measured.\n\n"
        f"**Memory**: weights {size(expected.weights)}, optimiser {size(expected.optimiser)}, what a step keeps until its "
        f"gradients are known {size(expected.activations)}, of it logits {size(expected.logits)}; the rest is Python's, "
        "torch's, and what evaluating takes.\n\n"
        f"**Disk**: {size(expected.disk)}, {expected.snapshots} snapshots among it."
    )


def begin(planned: Planned, name: str, device: str) -> int:
    """Write the run down and put it in line; its place.

    Raises:
        ValueError: it cannot be trained, or too many wait; the message says what to do.
        OSError: its text cannot be had.
    """
    # One at a time: two browsers that save under one name at once must not both get it.
    with _PREPARING:
        own = queue.own_queue()
        if len(own.waiting()) >= own.most_waiting:
            raise queue.QueueFullError(f"{own.most_waiting} runs wait already, and no more may: try again later")
        plan, tokenizer = planned.plan, None
        if planned.vocabulary is not None and planned.source is not None:
            tokenizer = planned.source.tokenizer(plan.tokenizer, planned.vocabulary)
        if not _is_as_planned(planned):
            plan = replace(plan, target=None)  # the published number is of something else
        plan.prepare(
            name,
            source=planned.source,
            recipe=planned.recipe,
            changes=planned.changes,
            tokenizer=tokenizer,
            begin=planned.begin,
            about={"preset": planned.plan_name, "command": command(planned, name)},
        )
        return queue.submit(name, None if device == devices.devices()[0] else device)


def button(planned: Planned, name: str, device: str) -> None:
    """What the run will take, why it cannot begin if it cannot, and the button that begins it and turns to it."""
    expected = estimated(planned, device)
    refused = refusal(planned, expected, name, device)
    if expected is not None:
        st.caption(said(expected), help=explained(expected))
    if refused:
        st.error(escaped(refused))
    if st.button("Train", type="primary", icon=":material/model_training:", width="stretch", disabled=refused is not None):
        try:
            with st.spinner("Getting the data ready"):
                begin(planned, name, device)
        except (ValueError, OSError, MemoryError, RuntimeError) as error:
            st.error(escaped(str(error)) or "There is not enough memory for this model.")
        else:
            st.session_state["run"] = name
            st.session_state[_BEGUN] = True  # the name is taken now: the field goes back to the next free one
            st.rerun()


def _is_as_planned(planned: Planned) -> bool:
    plan = PLANS.get(planned.plan_name)
    same = plan is not None and not planned.changes and planned.recipe == plan.recipe and planned.begin == plan.begin
    return same and plan is not None and planned.source is not None and planned.source.title == plan.data


def command(planned: Planned, name: str) -> str:
    """The command that trains the same without a browser."""
    plan = PLANS.get(planned.plan_name, OWN_PLAN)
    words = ["python", "-m", "gptviz", "train", planned.plan_name if planned.plan_name in PLANS else plan.preset, "--name", name]
    if planned.source is not None and planned.source.title != plan.data:
        words += ["--corpus", planned.source.title]
    if planned.begin is not None and planned.begin != plan.begin:
        words += ["--from", planned.begin]
    for field, value in planned.changes.items():
        words += ["--set", f"{field}={str(value).lower() if isinstance(value, bool) else 'null' if value is None else value}"]
    usual = plan.recipe.to_dict() if planned.plan_name in PLANS else PLANS[plan.preset].recipe.to_dict()
    for field, value in planned.recipe.to_dict().items():
        if value != usual[field] and value is not None:
            words += [f"--{field.replace('_', '-')}", f"{value:g}" if isinstance(value, float) else str(value)]
    return shlex.join(words)
