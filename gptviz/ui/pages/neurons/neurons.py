"""What the page asks of the neurons of a block, and what it suggests."""

from __future__ import annotations

import numpy as np
import streamlit as st

from gptviz.figures.kit.format import brief, format_count, percent
from gptviz.interp.units.activity import Activity
from gptviz.interp.units.unit import Unit
from gptviz.labelled_array import Float64Array
from gptviz.ui.shell.subject import AskedAnalysis, Subject
from gptviz.ui.shell.subject.unit_titles import said_title
from gptviz.ui.views.one_unit import CHOSEN, RANKINGS, answers_to, ask_set, settable
from gptviz.ui.views.where_most import SHOWN, ask_activity, largest_size, text_to_read
from gptviz.ui.widgets import Try, capitalise_text, controls, in_quotes

NEURONS = "Neurons"
EXPERTS = "Experts"
ABOUT = {
    NEURONS: "where each is active, and what it speaks for.",
    EXPERTS: "which of them the router chooses for each token.",
}
# A neuron that is active at no more than this share of the tokens is rare.
RARE = 0.02
STRONG = 8.0
# What neurons are ranked by at first: how many of the places that are shown have one or two tokens.
ALIKE = "alike"
FEW_TOKENS = "Few tokens"
ABOUT_ALIKE = (
    f"at how many of the {SHOWN} places where a neuron is most active its one or two commonest "
    "tokens stand."
)
BY = {ALIKE: (FEW_TOKENS, capitalise_text(ABOUT_ALIKE))} | RANKINGS


def view(subject: Subject) -> str:
    """The view that is chosen: always the neurons where a model has no experts."""
    if not subject.lm.model.config.experts:
        return NEURONS
    hint = " ".join(f"{name}: {what}" for name, what in ABOUT.items())
    return controls.select("View", list(ABOUT), key="view", help=hint, segmented=True)


def ask_neurons(subject: Subject) -> tuple[AskedAnalysis[Activity], str]:
    """The controls of what is read, of the block, and of what its neurons are ranked by (`by`)."""
    config = subject.lm.model.config
    with st.container(horizontal=True, vertical_alignment="bottom"):
        how = text_to_read(subject, "the neurons")
        block = controls.whole_number(
            "Block",
            0,
            config.n_layer - 1,
            key="block",
            default=config.n_layer // 2,
            help="The block whose MLP is looked at.",
        )
        hint = " ".join(f"{title}: {what[0].lower()}{what[1:]}" for title, what in BY.values())
        titles = {name: title for name, (title, _) in BY.items()}
        by = controls.select(
            "Rank by",
            list(titles),
            key="by",
            help=hint,
            format_func=titles.__getitem__,
            segmented=True,
        )
    return ask_activity(subject, Unit("mlp", block).name, "Observing the neurons", **how), by


def count_alike(activity: Activity) -> Float64Array:
    """At how many of the places that are shown of each neuron its one or two commonest tokens
    stand.
    """
    n_neuron = len(activity.largest)
    return np.array([activity.commonest(one, SHOWN)[1] for one in range(n_neuron)], float)


def order_neurons(subject: Subject, activity: Activity, by: str, alike: Float64Array) -> list[int]:
    """All neurons, the first of the ranking first. Where as many places are alike, those with a
    word or a number come before those with a sign, and then those with the largest activation.
    """
    if by != ALIKE:
        return activity.ranked(by)

    def rank(neuron: int) -> tuple[float, bool, float]:
        labels = map(subject.lm.tokenizer.label, activity.commonest(neuron, SHOWN)[0])
        is_sign = not any(map(str.isalnum, "".join(labels)))
        return -alike[neuron], is_sign, -activity.largest[neuron]

    return sorted(range(len(alike)), key=rank)


def answer(subject: Subject, activity: Activity, neuron: int) -> tuple[str, str]:
    """The one or two tokens that a neuron answers to, where most of the places that are shown have
    them; else the tokens at which it is most active.
    """
    tokens, times = activity.commonest(neuron, SHOWN)
    places = sum(value > 0 for value in activity.highest[:SHOWN, neuron])
    if 2 * times <= places or places < 2:
        sentence, then = answers_to(subject, activity, neuron)
        if places > 1:
            then += " These places have many tokens: what it is for is hard to say."
        return sentence, then
    title = capitalise_text(said_title(subject.key, activity.unit(neuron)))
    labels = [in_quotes(subject.lm.tokenizer.label(token)) for token in tokens]
    return (
        f"{title} answers most to {' and '.join(labels)}.",
        f"In {format_count(activity.n_tokens, 'token')}, {times} of the {places} places where it "
        f"is most active have {' or '.join(labels)}.",
    )


def tries(subject: Subject, activity: Activity) -> list[Try]:
    """The suggestions for these neurons."""
    most = activity.ranked("effect")[0]
    strongest = activity.unit(most)
    offers = [
        Try(
            "The one with the largest effect",
            f"Neuron {most} adds the longest vectors to the stream: it is above 0 at "
            f"{percent(float(activity.active[most]))} of "
            "the tokens. Is it for something, or always there?",
            {"by": "effect"},
            {CHOSEN: strongest.name},
        ),
    ]
    rare = np.where((activity.active > 0) & (activity.active <= RARE), activity.largest, 0.0)
    if rare.max(initial=0.0) > 0:
        neuron = int(rare.argmax())
        notice = (
            f"Neuron {neuron} is above 0 at {percent(float(activity.active[neuron]))} of the "
            "tokens only, and then up to "
            f"{brief(activity.largest[neuron])}: what do its contexts have in common?"
        )
        offers.append(
            Try("A rare one", notice, {"by": "largest"}, {CHOSEN: activity.unit(neuron).name})
        )
    value = settable(STRONG * largest_size(activity, most))
    shown = ask_set(subject, strongest, value).value
    change = shown.values[1].astype(float) - shown.values[0].astype(float)
    at = int(np.abs(change).argmax())
    before, after = (percent(float(side[at])) for side in shown.values)
    token = in_quotes(shown.axes[1].labels[at])
    notice = (
        f"Set to {STRONG:g} times its largest activation, neuron {most} takes {token} from "
        f"{before} to {after}."
    )
    return [*offers, Try("Turn it up", notice, {"times": STRONG}, {CHOSEN: strongest.name})]
