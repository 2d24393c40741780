"""The list of experiments: what each is, what somebody published for it, what came out here, and the way to try it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from gptviz.figures.curves import perplexity
from gptviz.runs.experiments import PLANS, Plan, groups
from gptviz.ui.shell import pages
from gptviz.ui.views.entries import Entry


def results(plan: Plan, entry: Entry | None) -> str:
    """What was published for a plan, and what came out of the model `entry` of its name here."""
    quantity = plan.target.quantity_name if plan.target else "loss"
    numbers = [f"published {plan.target.value:,g}"] if plan.target else []
    if entry is not None and (entry.has_curve or quantity == "parameters"):
        ours = {"loss": f"{entry.best:.4f}", "perplexity": perplexity(entry.best), "parameters": f"{entry.parameters:,}"}
        numbers.append(f"here {ours[quantity]}")
    if not numbers:
        return "not trained here yet"
    accuracy = f", {entry.accuracy:.1%} right" if entry is not None and entry.accuracy is not None else ""
    return f"{quantity}: {', '.join(numbers)}{accuracy}"


def experiments(entries: Mapping[str, Entry], choose: Callable[[list[str]], None]) -> None:
    """A row for each experiment, with the result of its model among `entries`; `choose` compares the curves of some."""
    state = pages.shared_state()
    for group in groups():
        with st.container(border=True, gap="xsmall"):
            here = [name for name in group if name in entries and entries[name].has_curve]
            for name in group:
                _row(name, PLANS[name], entries.get(name), {**state, "plan": name})
            if len(here) > 1:
                label = f"Compare the {len(here)} that are here"
                st.button(
                    label,
                    key=f"compare {group[0]}",
                    on_click=_compare,
                    args=(here, choose),
                    icon=":material/stacked_line_chart:",
                )


def _compare(names: list[str], choose: Callable[[list[str]], None]) -> None:
    choose(names)
    # The chart is far above the button.
    st.toast(f"The chart at the top compares {', '.join(names)} now.", icon=":material/stacked_line_chart:")


def _row(name: str, plan: Plan, entry: Entry | None, link: dict[str, str]) -> None:
    about, numbers, go = st.columns([6, 4, 2], vertical_alignment="center")
    about.markdown(f"**{name}** · {plan.sentence}")
    numbers.caption(results(plan, entry))
    with go:
        st.page_link(
            pages.TRAIN.path,
            label="Train it",
            icon=":material/model_training:",
            help=f"Opens the page Train, set to {name}.",
            query_params=link,
        )
