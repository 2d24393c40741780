"""The form of the Train page: which experiment, on which data, with which model and recipe, and the
button that begins it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, cast

import streamlit as st

from gptviz.data.registry import source_named
from gptviz.data.source import Source
from gptviz.machine.errors import reason_of
from gptviz.model import Config
from gptviz.runs.experiments import GROUPS, PLANS, Plan, TokenizerKind
from gptviz.runs.names import free_name
from gptviz.settings.address_values import whole_number
from gptviz.settings.fields import field_infos
from gptviz.text import corpora
from gptviz.train.recipe import Recipe
from gptviz.ui.shell.subject import hidden, kinds
from gptviz.ui.views.planned_run import (
    PlannedRun,
    estimate_of,
    explanation,
    has_begun,
    names_of,
    refusal,
    summary,
    time_needed,
)
from gptviz.ui.widgets import addresses, controls, escape_markdown, press_button, visit

from .data import (
    TWO,
    TWO_PLAN,
    data_button,
    data_control,
    known_complaint,
    learned_tokenizer,
    no_text,
    source_of,
    two_control,
)
from .rules import (
    FEWEST_TOKENS,
    FRESH,
    OWN,
    Choices,
    architecture_values,
    changes_of,
    field_controls,
    key_of,
    plan_named,
    planned_run,
    recipe_values,
    token_kinds,
    usual_vocabulary,
)
from .watched import watch_next

DEFAULT_PLAN = "sums"  # done within a minute on two processor cores
MOST_TOKENS = 60_000
SIZES_IN_SIGHT = ("n_layer", "n_head", "d_model", "context_length")
RECIPE_IN_SIGHT = ("steps", "batch_size", "learning_rate")
# a name too long for a model gets a message, which says more than a field that takes no more
LONGEST_NAME = 400
_SHOWN = "plan shown"
_STARTED = "a run was started"


def form(device: str) -> PlannedRun:
    """The controls, a few in sight and the others folded, and the run that they describe."""
    name = controls.select(
        "What to train",
        [*PLANS, OWN],
        key="plan",
        default=DEFAULT_PLAN,
        help="An experiment brings its model, data and recipe, and you may change all of them. Or "
        "train a model of your own.",
    )
    plan = plan_named(name)
    _follow(name, plan)
    st.caption(
        plan.sentence,
        help=f"Published: {plan.target}, by {plan.target.by}." if plan.target else None,
    )
    experiment_list(device)
    chosen = data_control(plan)
    above = st.container()
    if two_control(plan, partial(_begin_two, name)):
        other = data_control(plan, chosen)
    else:
        other = None
    below = st.container()
    folded = st.container(horizontal=True, gap="xsmall")
    with above:
        source, problem = _read_choice(chosen, plan, folded, twin=False)
    with folded:
        choices = _choices(name, plan, source, problem)
        planned = planned_run(choices, learned_tokenizer, known_complaint)
    if other is not None:
        with below:
            source, problem = _read_choice(other, plan, folded, twin=True)
        second = replace(choices, source=source, problem=problem)
        twin = planned_run(second, learned_tokenizer, known_complaint)
        if planned.source and twin.source and planned.source.to_dict() == twin.source.to_dict():
            same = "it is the same as the first: give it other data, or other settings of the task"
            twin = replace(twin, problem=same)
        planned = replace(planned, twin=twin)
    with folded:
        data_button(planned)
        if planned.twin is not None:
            data_button(planned.twin, "Look at the second")
    if changes := changes_of(planned):
        st.caption(f"Changed: {escape_markdown(changes)}.")
    return planned


def _begin_two(name: str) -> None:
    """Begin with the pair whose data are about nurses, where “Two texts” was turned on before an
    experiment was chosen.
    """
    if st.session_state[TWO] and name == DEFAULT_PLAN:
        st.session_state["plan"] = TWO_PLAN


def _read_choice(
    chosen: str, plan: Plan, folded: Any, *, twin: bool
) -> tuple[Source | None, str | None]:
    """The data that were chosen, or None and why there are none."""
    try:
        source = source_of(chosen, plan, folded, twin=twin)
    except (ValueError, OSError) as error:
        return None, reason_of(error)
    return source, no_text(chosen) if source is None else None


def _follow(name: str, plan: Plan) -> None:
    """Set every control to the values of the plan when another plan is chosen."""
    before = visit.remembered_value(_SHOWN)  # a link to this page has values of its own
    visit.remember(_SHOWN, name)
    if before in (None, name):
        return
    for field, value in (architecture_values(plan.config) | recipe_values(plan.recipe)).items():
        st.session_state[key_of(field)] = value
    st.session_state[key_of("vocabulary")] = usual_vocabulary(plan, plan.tokenizer)
    for key, value in (
        ("data", plan.data),
        ("begin", plan.begin or FRESH),
        ("tokens", plan.tokenizer),
    ):
        st.session_state[key] = value


def _choices(name: str, plan: Plan, source: Source | None, problem: str | None) -> Choices:
    """The folded controls of the model and the recipe, and all that was chosen."""
    tokenizer = plan.tokenizer
    vocabulary = plan.config.vocab_size
    architecture = dict[str, Any]()
    with st.popover("Model"):
        begin = _begin(plan)
        if begin == FRESH:
            in_sight = (
                (*SIZES_IN_SIGHT, "n_encoder_layer")
                if plan.config.n_encoder_layer
                else SIZES_IN_SIGHT
            )
            architecture = field_controls(
                field_infos(Config), architecture_values(plan.config), in_sight
            )
            # How a text becomes tokens, and how many of them are learned, by two controls as far as
            # the data leave a choice.
            offered = token_kinds(plan.config.kind, source)
            if len(offered) > 1:
                about = (
                    "One token for each character, or tokens of several characters each, learned "
                    "from the text (BPE, byte-pair "
                    "encoding)."
                )
                choice = controls.select(
                    "Tokens", offered, key="tokens", default=plan.tokenizer, help=about
                )
                tokenizer = cast(TokenizerKind, choice)
            if offered and tokenizer in FEWEST_TOKENS:
                about = (
                    "How many tokens are learned at most. If the tokens are words, the most "
                    "frequent ones are learned."
                )
                fewest = FEWEST_TOKENS[tokenizer]
                usual = usual_vocabulary(plan, tokenizer)
                key = key_of("vocabulary")
                addresses.accept_values(key, whole_number(fewest, MOST_TOKENS))
                look: dict[str, Any] = {"key": key, "help": about, "bind": "query-params"}
                vocabulary = int(
                    st.number_input("Vocabulary", fewest, MOST_TOKENS, usual, 100, **look)
                )
    with st.popover("Recipe"):
        recipe = field_controls(field_infos(Recipe), recipe_values(plan.recipe), RECIPE_IN_SIGHT)
    return Choices(name, plan, source, begin, tokenizer, vocabulary, architecture, recipe, problem)


def _begin(plan: Plan) -> str:
    """The control `begin`: fresh weights, or the model whose weights the run begins with."""
    known = kinds.models_of(plan.config.kind)
    of_plan = {plan.begin} - set(known) if plan.begin else set()
    hint = (
        "Start from random weights, or from the weights of a model: then its architecture and its "
        "tokens are kept."
    )
    begin = controls.select(
        "Begin with", [FRESH, *known, *of_plan], key="begin", default=plan.begin or FRESH, help=hint
    )
    hidden.say_what_hides([begin])
    return begin


def experiment_list(device: str) -> None:
    """A button that opens the list; a click on the name of an experiment sets the form to it."""
    with st.popover(
        "All experiments", icon=":material/list:", on_change="rerun", key="all experiments"
    ) as box:
        if not box.open:  # what each takes is worked out when somebody asks
            return
        for group in GROUPS:
            with st.container(border=True, gap="xsmall"):
                st.markdown(f"**{group.title}**")
                for name in group.plans:
                    st.button(
                        name,
                        key=f"choose {name}",
                        type="tertiary",
                        on_click=st.session_state.update,
                        args=({"plan": name},),
                    )
                    st.caption(f"{PLANS[name].sentence} About {time_of(name, device)}.")


@st.cache_data(max_entries=128, ttl=600, show_spinner="Working out how long each takes")
def time_of(name: str, device: str) -> str:
    """How long an experiment takes on `device`, as it is planned."""
    plan = PLANS[name]
    absent = {offer.name for offer in corpora() if not offer.ready}
    if plan.data in absent:
        source = None
    else:
        source = source_named(plan.data, plan.fraction)
    expected = estimate_of(
        PlannedRun(name, plan, source, None, plan.recipe, {}, plan.config, None, None), device
    )
    assert expected is not None
    return time_needed(expected)


def name_control(planned: PlannedRun) -> str:
    """The control `save_as`: the name of the model; left empty, the first free one."""
    if planned.plan_name == OWN:
        plain = OWN.replace(" ", "-")
    else:
        plain = planned.plan_name
    free = free_name(plain, ends=names_of(planned, ""))
    if st.session_state.pop(_STARTED, False):
        st.session_state["save_as"] = ""
    typed = st.text_input(
        "Save as",
        placeholder=free,
        key="save_as",
        max_chars=LONGEST_NAME,
        persist_state="session",
        help="What the model is called: letters, digits, '-', '_' and '.'. Left empty, it gets the "
        "name in grey. Of two "
        "models, “-a” and “-b” are put after it.",
    )
    return (typed or "").strip() or free


def train_button(planned: PlannedRun, name: str, device: str) -> None:
    """The time and memory that the run will take, or why it cannot begin, and the button that
    begins it.
    """
    expected = estimate_of(planned, device)
    refused = refusal(planned, expected, name, device)
    if expected is not None:
        st.caption(
            ("Two times " if planned.twin else "") + summary(expected), help=explanation(expected)
        )
    if refused:
        st.error(escape_markdown(refused))
    look = {"type": "primary", "icon": ":material/model_training:", "width": "stretch"}
    if press_button("Train", key="train", disabled=refused is not None, **look) and has_begun(
        planned, name, device
    ):
        watch_next(names_of(planned, name)[0])
        # the name is taken now: the field goes back to the next free one
        st.session_state[_STARTED] = True
        st.rerun()
