"""The list of experiments: what each is, what somebody published for it, what came out here, and the way to try it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import streamlit as st

from gptviz.figures.kit import thumbnail
from gptviz.figures.kit.format import brief, percent, small
from gptviz.figures.training.curves import perplexity_in_words
from gptviz.runs.experiments import GROUPS, PLANS, ExperimentGroup, Plan
from gptviz.ui.records.train import PAGE as TRAIN
from gptviz.ui.shell import frame
from gptviz.ui.views.entries import Entry
from gptviz.ui.widgets import escaped, theme
from gptviz.ui.widgets.details import folded

PER_ROW = 3
PICTURE = 90  # pixels
MOST_NAMED = 3


def results(plan: Plan, entry: Entry | None) -> str:
    """The number published for a plan, and the one that the model `entry` of its name reached here."""
    quantity = plan.target.quantity_name if plan.target else "loss"
    numbers = [f"published {plan.target.value:,g}"] if plan.target else []
    if entry is not None and entry.diverged:
        numbers.append("it diverged here")
    elif entry is not None and (math.isfinite(entry.best) or quantity == "parameters"):
        ours = {
            "loss": small(entry.best, 4),
            "perplexity": perplexity_in_words(entry.best),
            "parameters": f"{entry.parameters:,}",
        }
        numbers.append(f"here {ours[quantity]}")
    if not numbers:
        return "not trained here yet"
    accuracy = f", {percent(entry.accuracy)} right" if entry is not None and entry.accuracy is not None else ""
    return f"{quantity}: {', '.join(numbers)}{accuracy}"


def experiments(entries: Mapping[str, Entry]) -> None:
    """A card for each group: the losses of its models among `entries` and, folded, each result and a link to train it."""
    state = frame.shared_state()
    for start in range(0, len(GROUPS), PER_ROW):
        for group, column in zip(GROUPS[start : start + PER_ROW], st.columns(PER_ROW), strict=False):
            known = [entries[name] for name in group.plans if name in entries and entries[name].has_curve]
            with column.container(border=True, gap="xsmall"):
                with st.container(horizontal=True, vertical_alignment="center"):
                    _picture(group, known)
                    with st.container(width="stretch", gap="xsmall"):
                        st.markdown(f"**{group.title}**")
                        st.caption(escaped(reached(known)), help="The lowest loss of each experiment, in nats per token.")
                if fold := folded(f"{len(group.plans)} experiments", key=f"experiments {group.title}"):
                    with fold:
                        for name in group.plans:
                            _row(name, PLANS[name], entries.get(name), {**state, "plan": name})


def _picture(group: ExperimentGroup, known: Sequence[Entry]) -> None:
    """The curves of the models of a group as a small picture."""
    curves = [entry.curve for entry in known if entry.curve is not None]
    if curves:
        alt = f"{group.title}: validation loss over the steps of training of {', '.join(entry.name for entry in known)}"
        st.image(thumbnail.curves(curves, theme()), alt=alt, width=PICTURE)


def reached(known: Sequence[Entry]) -> str:
    """The lowest loss of each model of a group; of many the first and the last."""
    trained = [entry for entry in known if entry.diverged or math.isfinite(entry.best)]
    each = [f"{entry.name} {'diverged' if entry.diverged else brief(entry.best, 4)}" for entry in trained]
    if not each:
        return "not trained here yet"
    return ", ".join(each) if len(each) <= MOST_NAMED else f"{each[0]} … {each[-1]}"


def _row(name: str, plan: Plan, entry: Entry | None, link: dict[str, str]) -> None:
    st.markdown(f"**{name}** · {plan.sentence}")
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.caption(results(plan, entry), width="content")
        st.page_link(
            TRAIN.path,
            label="Train it",
            icon=":material/model_training:",
            help=f"Opens the page Train, set to {name}.",
            query_params=link,
        )
