"""The views of the Neurons page: the ranking, and of one neuron its contexts, histogram, tokens, and what setting it does."""

from __future__ import annotations

import math
from collections import Counter

import pandas as pd
import streamlit as st

from gptviz.components.token_strip import Token, token_strip
from gptviz.figures.kit.format import brief, counted, percent
from gptviz.figures.kit.theme import MLP
from gptviz.figures.units import neurons as figures
from gptviz.interp.units.neurons import BINS, SEGMENT, Activity
from gptviz.ui.shell.subject import Subject
from gptviz.ui.views import edits
from gptviz.ui.widgets import controls, in_quotes, picking, show_figure, theme
from gptviz.ui.widgets.figure import pixels
from gptviz.ui.widgets.picking import pick

from .choices import RANKINGS, TIMES, NeuronSetting, choose
from .computed import Seen, contexts, largest_activation, most_and_least, promoted, steered_guesses

_TABLE = "neurons table"
# How many neurons the table has, and how many contexts are shown.
MOST_ROWS, SHOWN = 200, 6
HIGH = 380


def ranked(setting: NeuronSetting, activity: Activity, by: str, order: list[int], neuron: int) -> None:
    """The neurons that rank first; choosing a row, or one in the select box below, shows it in the place of `neuron`."""
    some = order[:MOST_ROWS]
    columns = {title: getattr(activity, name)[some] for name, (title, _) in ({by: RANKINGS[by]} | RANKINGS).items()}
    number = st.column_config.NumberColumn
    config = {
        title: number(format="percent" if name == "active" else "%.3g", help=about) for name, (title, about) in RANKINGS.items()
    }
    picking.table(
        pd.DataFrame({"neuron": some} | columns),
        lambda row: choose(setting, some[row]),
        key=_TABLE,
        height=pixels(HIGH),
        column_config=config,
        alt=f"Neurons of block {setting.block}, ranked by {RANKINGS[by][0].lower()}",
    )
    values = getattr(activity, by)
    pick(
        "Neuron",
        some if neuron in some else [neuron, *some],
        neuron,
        lambda one: choose(setting, one),
        key="neurons pick",
        help="The neuron that is shown, the first of the ranking first. You can also click a row above.",
        format_func=lambda one: (
            f"neuron {one}: {percent(values[one])}" if by == "active" else f"neuron {one}: {brief(values[one])}"
        ),
    )
    rest = f"The first {MOST_ROWS} of {len(order):,} neurons. " if len(order) > MOST_ROWS else ""
    st.caption(f"{rest}Over {counted(activity.n_tokens, 'token')}. {RANKINGS[by][1]}")


def strips(subject: Subject, setting: NeuronSetting, seen: Seen, neuron: int) -> None:
    """The texts in which the neuron is most active, or least: tokens tinted by the share of its largest activation."""
    activity, lowest = seen.activity, False
    if activity.smallest[neuron] < -0.2 * largest_activation(activity, neuron):
        about = "A neuron of a gated MLP can be far below 0: then it adds the opposite of its vector to the stream."
        lowest = controls.select("Contexts", ("Highest", "Lowest"), key="side", help=about, segmented=True) == "Lowest"
    pieces = tuple((tuple(seen.rows[row].tolist()), at) for row, at in activity.places(neuron, lowest=lowest)[:SHOWN])
    extreme = float(activity.smallest[neuron] if lowest else activity.largest[neuron])
    shown = contexts(setting.key, setting.block, neuron, pieces)
    for number, context in enumerate(shown):
        tokens = [
            Token(label, _share(value, extreme), note=f"activation {brief(value)}; as a share of {brief(extreme)}")
            for label, value in zip(context.labels, context.activations, strict=True)
        ]
        token_strip(
            tokens,
            key=f"context {number}",
            colour=MLP,
            selected=context.at,
            label=f"Context {number + 1}: activation {brief(context.activations[context.at])}",
            legend=f"activation, as a share of {brief(extreme)}" if number == 0 else "",
            spaced=subject.lm.tokenizer.is_spaced,
        )
    which = "lowest" if lowest else "highest"
    at = Counter(context.labels[context.at] for context in shown)
    found = ", ".join(f"{in_quotes(label)} {counted(count, 'time')}" for label, count in at.most_common(3))
    st.caption(
        f"The {which} activations in the text, at most one of every {SEGMENT} tokens; outlined: the token that it is at. "
        f"Here that is {found}."
    )


def _share(value: float, extreme: float) -> float:
    """`value` as a share of `extreme`, between 0 and 1."""
    return min(max(value / extreme, 0.0), 1.0) if extreme and math.isfinite(extreme) else 0.0


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


def speaks_for(setting: NeuronSetting, neuron: int) -> None:
    """The tokens that it promotes and suppresses."""
    shown = most_and_least(setting.key, promoted(setting.key, setting.block, neuron))
    st.markdown("**What it speaks for, and against**")
    half = len(shown.axes[0].labels) // 2
    show_figure(
        figures.promoted(shown, theme()),
        key="neuron promoted",
        alt=f"Tokens promoted: {', '.join(shown.axes[0].labels[:half])}; suppressed: {', '.join(shown.axes[0].labels[half:])}.",
    )
    st.caption(
        "What an activation of 1 adds to each token's logit, straight to the end, but for one factor that norms divide by."
    )


def steer(subject: Subject, setting: NeuronSetting, activity: Activity, neuron: int) -> float:
    """The guesses of the model if the neuron is set; returns the value that it is set to."""
    size = largest_activation(activity, neuron)
    st.markdown("**Set it, and see what changes**")
    about = (
        f"At every token of the prompt, in multiples of {brief(size)}, the largest size of its activation in the text. 0 is off."
    )
    times = float(
        controls.notch("Times its largest activation", TIMES, key="times", default=2.0, format_func="{:g}".format, help=about)
    )
    value = float(f"{times * size:.6g}")
    shown = steered_guesses(setting.key, subject.seen, setting.block, neuron, value)
    before, after = shown.values
    name = setting.unit(neuron).title
    show_figure(
        figures.before_and_after(shown, theme()),
        key="neuron steered",
        alt=f"The {shown.unit} as it is, and with {name} set to {brief(value)}: "
        + ", ".join(
            f"{label} {percent(a)} → {percent(b)}" for label, a, b in zip(shown.axes[1].labels, before, after, strict=True)
        ),
    )
    text = f"{setting.unit(neuron).name}={value:.6g}"
    st.button(
        f"Keep it at {brief(value)} on every page",
        icon=":material/push_pin:",
        key="keep neuron",
        on_click=edits.toggle,
        args=(text,),
        help=f"The edit `{text}`: it stands in the address of every page, and one click takes it away.",
    )
    return value
