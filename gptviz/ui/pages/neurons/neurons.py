"""The neurons of a block, ranked, and one of them: how active it is, what it speaks for, what it changes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.figures.changing.before_after import before_after
from gptviz.figures.kit.format import brief, counted, percent
from gptviz.figures.units import neurons as figures
from gptviz.interp.units.activity import BINS, Activity
from gptviz.interp.units.unit import Unit, unit
from gptviz.labelled_array import LabelledArray
from gptviz.language_model import units
from gptviz.ui.shell.subject import Asked, Subject, ask
from gptviz.ui.views import edits
from gptviz.ui.views.where_most import ask_activity, largest_size, text_to_read
from gptviz.ui.widgets import Try, addresses, controls, in_quotes, picking, show_figure, theme
from gptviz.ui.widgets.figure import pixels
from gptviz.ui.widgets.picking import pick

NEURONS, EXPERTS = "Neurons", "Experts"
ABOUT = {
    NEURONS: "where each is active, and what it speaks for.",
    EXPERTS: "which of them the router chooses for each token.",
}
RANKINGS = {
    "largest": ("Largest", "The highest activation over the text."),
    "active": ("Active", "The share of tokens at which the activation is above 0."),
    "effect": ("Effect", "The mean length of the vector that the neuron adds to the stream."),
}
# The key in the address of the neuron that is shown.
CHOSEN = "unit"
# The values to set a neuron to, in multiples of the largest size that its activation has in the text.
TIMES = (-4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
_TABLE = "neurons table"
# How many neurons the table has.
MOST_ROWS = 200
HIGH = 380
# A neuron that is active at no more than this share of the tokens is rare.
RARE = 0.02
STRONG = 8.0


def view(subject: Subject) -> str:
    """The view that is chosen: always the neurons where a model has no experts."""
    if not subject.lm.model.config.experts:
        return NEURONS
    about = " ".join(f"{name}: {what}" for name, what in ABOUT.items())
    return controls.select("View", list(ABOUT), key="view", help=about, segmented=True)


def ask_neurons(subject: Subject) -> tuple[Asked[Activity], str]:
    """The controls of what is read, of the block, and of what its neurons are ranked by (`by`)."""
    config = subject.lm.model.config
    with st.container(horizontal=True, vertical_alignment="bottom"):
        how = text_to_read(subject, "the neurons")
        block = controls.whole(
            "Block", 0, config.n_layer - 1, key="block", default=config.n_layer // 2, help="The block whose MLP is looked at."
        )
        about = " ".join(f"{title}: {what[0].lower()}{what[1:]}" for title, what in RANKINGS.values())
        titles = {name: title for name, (title, _) in RANKINGS.items()}
        by = controls.select("Rank by", list(titles), key="by", help=about, format_func=titles.__getitem__, segmented=True)
    return ask_activity(subject, Unit("mlp", block).name, "Observing the neurons", **how), by


def chosen(subject: Subject, activity: Activity, first: int) -> Unit:
    """The neuron that the address asks for; `first` where it asks for none of this block."""
    usual = activity.unit(first)
    linked = controls.linked(CHOSEN, lambda asked: unit(asked, subject.lm.model.config), usual)
    return linked if linked.is_neuron and linked.block == activity.layer.block else usual


def ranked(activity: Activity, by: str, order: list[int], neuron: int) -> None:
    """The neurons that rank first; choosing a row, or one in the select box below, shows it in the place of `neuron`."""
    some = order[:MOST_ROWS]

    def choose(neuron: int) -> None:
        addresses.write(CHOSEN, activity.unit(neuron).name)

    columns = {title: getattr(activity, name)[some] for name, (title, _) in ({by: RANKINGS[by]} | RANKINGS).items()}
    number = st.column_config.NumberColumn
    config = {
        title: number(format="percent" if name == "active" else "%.3g", help=about) for name, (title, about) in RANKINGS.items()
    }
    picking.table(
        pd.DataFrame({"neuron": some} | columns),
        lambda row: choose(some[row]),
        key=_TABLE,
        height=pixels(HIGH),
        column_config=config,
        alt=f"Neurons of block {activity.layer.block}, ranked by {RANKINGS[by][0].lower()}",
    )
    values = getattr(activity, by)
    pick(
        "Neuron",
        some if neuron in some else [neuron, *some],
        neuron,
        choose,
        key="neurons pick",
        help="The neuron that is shown, the first of the ranking first. You can also click a row above.",
        format_func=lambda one: (
            f"neuron {one}: {percent(values[one])}" if by == "active" else f"neuron {one}: {brief(values[one])}"
        ),
    )
    rest = f"The first {MOST_ROWS} of {len(order):,} neurons. " if len(order) > MOST_ROWS else ""
    st.caption(f"{rest}Over {counted(activity.n_tokens, 'token')}. {RANKINGS[by][1]}")


def distribution(activity: Activity, neuron: int) -> None:
    """The histogram of its activations."""
    counts = activity.histogram(neuron)
    st.markdown("**How active it is**")
    show_figure(
        figures.histogram(counts, theme(), width=2 * float(activity.reach[neuron]) / BINS),
        key="neuron histogram",
        alt=f"Histogram of the activations of neuron {neuron}: from {brief(activity.smallest[neuron])} to "
        f"{brief(activity.largest[neuron])}, above 0 at {percent(activity.active[neuron])} of the tokens.",
    )
    scale = " The axis is logarithmic: a line up is ten times as many." if figures.is_logarithmic(counts) else ""
    st.caption(f"Above 0 at {percent(activity.active[neuron])} of the tokens.{scale}")


def speaks_for(subject: Subject, neuron: Unit) -> Asked[LabelledArray]:
    """The tokens that it promotes and suppresses."""
    asked = ask(subject.key, units.promoted, "Reading the weights", block=neuron.block, neuron=neuron.index)
    shown = asked.value
    st.markdown("**What it speaks for, and against**")
    half = len(shown.axes[0].labels) // 2
    show_figure(
        figures.promoted(shown, theme()),
        key="neuron promoted",
        alt=f"Tokens promoted: {', '.join(shown.axes[0].labels[:half])}; suppressed: {', '.join(shown.axes[0].labels[half:])}.",
    )
    st.caption("How much an activation of 1 raises each token's logit directly, up to the scale of the final norm.")
    return asked


def steer(subject: Subject, activity: Activity, neuron: Unit) -> Asked[LabelledArray]:
    """The guesses of the model if the neuron is set."""
    size = largest_size(activity, neuron.index or 0)
    st.markdown("**Set it, and see what changes**")
    about = (
        f"At every token of the prompt, in multiples of {brief(size)}, the largest size of its activation in the text. 0 is off."
    )
    times = float(
        controls.notch("Times its largest activation", TIMES, key="times", default=2.0, format_func="{:g}".format, help=about)
    )
    value = float(f"{times * size:.6g}")
    asked = ask_set(subject, neuron, value)
    shown = asked.value
    before, after = shown.values
    show_figure(
        before_after(shown, theme()),
        key="neuron steered",
        alt=f"The {shown.unit} as it is, and with {neuron.title} set to {brief(value)}: "
        + ", ".join(
            f"{label} {percent(a)} → {percent(b)}" for label, a, b in zip(shown.axes[1].labels, before, after, strict=True)
        ),
    )
    text = f"{neuron.name}={value:.6g}"
    st.button(
        f"Keep it at {brief(value)} on every page",
        icon=":material/push_pin:",
        key="keep neuron",
        on_click=edits.toggle,
        args=(text,),
        help=f"The edit `{text}`: it stands in the address of every page, and one click takes it away.",
    )
    return asked


def ask_set(subject: Subject, neuron: Unit, value: float) -> Asked[LabelledArray]:
    """The likeliest guesses as the model is, and with a neuron set to `value`."""
    return ask(subject, units.neuron_set, "Reading the prompt", block=neuron.block, neuron=neuron.index, value=value)


def tries(subject: Subject, activity: Activity) -> list[Try]:
    """The suggestions for these neurons."""
    most = activity.ranked("effect")[0]
    strongest = activity.unit(most)
    offers = [
        Try(
            "The one with the largest effect",
            f"Neuron {most} adds the longest vectors to the stream: it is above 0 at {percent(float(activity.active[most]))} of "
            "the tokens. Is it for something, or always there?",
            {"by": "effect"},
            {CHOSEN: strongest.name},
        ),
    ]
    rare = np.where((activity.active > 0) & (activity.active <= RARE), activity.largest, 0.0)
    if rare.max(initial=0.0) > 0:
        neuron = int(rare.argmax())
        notice = (
            f"Neuron {neuron} is above 0 at {percent(float(activity.active[neuron]))} of the tokens only, and then up to "
            f"{brief(activity.largest[neuron])}: what do its contexts have in common?"
        )
        offers.append(Try("A rare one", notice, {"by": "largest"}, {CHOSEN: activity.unit(neuron).name}))
    shown = ask_set(subject, strongest, float(f"{STRONG * largest_size(activity, most):.6g}")).value
    change = shown.values[1].astype(float) - shown.values[0].astype(float)
    at = int(np.abs(change).argmax())
    before, after = (percent(float(side[at])) for side in shown.values)
    token = in_quotes(shown.axes[1].labels[at])
    notice = f"Set to {STRONG:g} times its largest activation, neuron {most} takes {token} from {before} to {after}."
    return [*offers, Try("Turn it up", notice, {"times": STRONG}, {CHOSEN: strongest.name})]
