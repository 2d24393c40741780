"""The neurons of a block, ranked, and one of them: where it is active, what it speaks for, what it changes."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import streamlit as st
import torch

from gptviz.components.token_strip import Token, token_strip
from gptviz.figures.kit.format import brief, counted, percent
from gptviz.figures.kit.theme import MLP
from gptviz.figures.units import neurons as figures
from gptviz.interp.units import neurons
from gptviz.interp.units.neurons import BINS, SEGMENT, Activity
from gptviz.interp.units.unit import Unit, unit
from gptviz.labelled_array import LabelledArray
from gptviz.language_model import units
from gptviz.machine import job, progress
from gptviz.machine.job import Results
from gptviz.model.costs.effort import MOST, SOME, effort
from gptviz.ui.shell.subject import Asked, ModelKey, Subject, ask, language_model
from gptviz.ui.views import edits, held_out
from gptviz.ui.views.texts import OWN, PASSAGES, text_of
from gptviz.ui.widgets import Try, addresses, controls, escaped, in_quotes, jobs, picking, show_figure, theme
from gptviz.ui.widgets.figure import pixels
from gptviz.ui.widgets.picking import pick

NEURONS, EXPERTS = "Neurons", "Experts"
ABOUT = {
    NEURONS: "where each is active, and what it speaks for.",
    EXPERTS: "which of them the router chooses for each token.",
}
HELD_OUT, WRITTEN, PROMPT = "Held-out data", "What it writes", "The prompt"
TOKENS = (1_024, 4_096, 16_384, 65_536)
# The number of tokens that the model writes itself, one after the other. To write one takes as long as to read `WRITING`.
MOST_WRITTEN, WRITING = 512, 10
RANKINGS = {
    "largest": ("Largest", "The highest activation over the text."),
    "active": ("Active", "The share of tokens at which the activation is above 0."),
    "effect": ("Effect", "The mean length of the vector that the neuron adds to the stream."),
}
# The key in the address of the neuron that is shown.
CHOSEN = "unit"
# The values to set a neuron to, in multiples of the largest size that its activation has in the text.
TIMES = (-4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
# Seconds that the page waits for what takes longer.
SOON = 1.0
# How many tokens of a context are shown before the one at which the neuron is active, and behind it.
BEFORE, BEHIND = 24, 8
_TABLE = "neurons table"
# How many neurons the table has, and how many contexts are shown.
MOST_ROWS, SHOWN = 200, 6
HIGH = 380
# A neuron that is active at no more than this share of the tokens is rare.
RARE = 0.02
STRONG = 8.0


class Context(NamedTuple):
    """The tokens around one at which a neuron is very active, its activation at each, and the place of that one."""

    labels: tuple[str, ...]
    activations: tuple[float, ...]
    at: int


def view(subject: Subject) -> str:
    """The view that is chosen: always the neurons where a model has no experts."""
    if not subject.lm.model.config.experts:
        return NEURONS
    about = " ".join(f"{name}: {what}" for name, what in ABOUT.items())
    return controls.select("View", list(ABOUT), key="view", help=about, segmented=True)


def ask_neurons(subject: Subject) -> tuple[Asked[Activity], str]:
    """The controls of what is read, of the block, and of what its neurons are ranked by (`by`)."""
    config = subject.lm.model.config
    kinds = [HELD_OUT] if held_out.is_here(subject.key) else []
    written = [WRITTEN] if subject.kind == "decoder" else []
    # A large model would write for a long time: unless that is asked for, it reads the prompt.
    is_large = effort(subject.lm.model, WRITING * MOST_WRITTEN) > MOST
    kinds += [PROMPT, *written, OWN] if is_large else [*written, PROMPT, OWN]
    if subject.is_imported:  # what is found is shown while the rest is read: what takes about ten seconds is not waited for
        kinds.insert(0 if effort(subject.lm.model, TOKENS[0]) <= 2 * MOST else 1, PASSAGES)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        about = (
            f"What the neurons are observed over: {held_out.said(subject.key)}, a text that the model writes itself, the prompt, "
            "or a text of yours; of a model from elsewhere, also passages of old books that come with gptviz."
        )
        kind = controls.select("Text", kinds, key="text", help=about)
        most = TOKENS[1]
        if kind in (HELD_OUT, PASSAGES, OWN):
            about = "How many tokens are read at most. More tokens take longer, and find rarer things."
            most = int(controls.notch("Tokens", TOKENS, key="tokens", default=most, format_func="{:,}".format, help=about))
        block = controls.whole(
            "Block", 0, config.n_layer - 1, key="block", default=config.n_layer // 2, help="The block whose MLP is looked at."
        )
        about = " ".join(f"{title}: {what[0].lower()}{what[1:]}" for title, what in RANKINGS.values())
        titles = {name: title for name, (title, _) in RANKINGS.items()}
        by = controls.select("Rank by", list(titles), key="by", help=about, format_func=titles.__getitem__, segmented=True)
    how: dict[str, Any] = {"block": block, "most": most}
    if kind == WRITTEN:
        how |= {"text": subject.default, "written": MOST_WRITTEN}
    elif kind != HELD_OUT:
        how["text"] = subject.prompt if kind == PROMPT else text_of(kind, subject.prompt)
    return ask(subject.key, units.neurons, "Observing the neurons", **how), by


def observed(asked: Asked[Activity]) -> Activity | None:
    """The activity of the block's neurons over the text: at once if that takes about a second; else so far, in a thread of the
    server, with a line on how far it is. Returns None as long as nothing is ready.
    """
    how = dict(asked.settings)
    tokens = WRITING * MOST_WRITTEN if "written" in how else how.get("most", TOKENS[2])  # this many unless told otherwise
    if effort(language_model(asked.key).model, tokens) <= SOME:
        try:
            return asked.value
        except (ValueError, OSError) as error:
            st.error(f"{escaped(str(error))}. Choose another text above.")
            return None

    def observe(results: Results) -> None:
        progress.report(0, 0, doing="getting the text")
        for so_far in units.observed(language_model(asked.key), **how):
            results["activity"] = so_far

    going = job.found(asked)
    if going is None:  # one that was stopped stays so
        going = job.begin(asked, asked.title, observe)
        going.wait(SOON)
    jobs.follow(going, "neurons")
    activity: Activity | None = going.results.get("activity")
    return activity


def chosen(subject: Subject, activity: Activity, first: int) -> Unit:
    """The neuron that the address asks for; `first` where it asks for none of this block."""
    usual = Unit("mlp", activity.block, first)
    linked = controls.linked(CHOSEN, lambda asked: unit(asked, subject.lm.model.config), usual)
    return linked if linked.is_neuron and linked.block == activity.block else usual


def ranked(activity: Activity, by: str, order: list[int], neuron: int) -> None:
    """The neurons that rank first; choosing a row, or one in the select box below, shows it in the place of `neuron`."""
    some = order[:MOST_ROWS]

    def choose(neuron: int) -> None:
        addresses.write(CHOSEN, Unit("mlp", activity.block, neuron).name)

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
        alt=f"Neurons of block {activity.block}, ranked by {RANKINGS[by][0].lower()}",
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


def strips(subject: Subject, activity: Activity, neuron: int) -> None:
    """The texts in which the neuron is most active, or least: tokens tinted by the share of its largest activation."""
    lowest = False
    if activity.smallest[neuron] < -0.2 * largest_activation(activity, neuron):
        about = "A neuron of a gated MLP can be far below 0: then it adds the opposite of its vector to the stream."
        lowest = controls.select("Contexts", ("Highest", "Lowest"), key="side", help=about, segmented=True) == "Lowest"
    pieces = tuple((tuple(activity.rows[row].tolist()), at) for row, at in activity.places(neuron, lowest=lowest)[:SHOWN])
    extreme = float(activity.smallest[neuron] if lowest else activity.largest[neuron])
    shown = contexts(subject.key, activity.block, neuron, pieces)
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
    often = ", ".join(f"{in_quotes(label)} {counted(count, 'time')}" for label, count in at.most_common(3))
    st.caption(
        f"The {which} activations in the text, at most one of every {SEGMENT} tokens; outlined: the token that it is at. "
        f"Here that is {often}."
    )


def largest_activation(activity: Activity, neuron: int) -> float:
    """The largest size that the activation of a neuron had; 1 for a neuron that never was active."""
    return max(abs(float(activity.largest[neuron])), abs(float(activity.smallest[neuron]))) or 1.0


@st.cache_data(max_entries=128, show_spinner=False)
def contexts(key: ModelKey, block: int, neuron: int, pieces: tuple[tuple[tuple[int, ...], int], ...]) -> list[Context]:
    """The `pieces` (a row of tokens and a place in it) as contexts; the activations are computed again, over the whole row."""
    lm = language_model(key)
    shown = []
    for row, at in pieces:
        values = neurons.activations(lm.model, torch.tensor([row]), block)[0, :, neuron]
        some = slice(max(0, at - BEFORE), at + 1 + BEHIND)
        labels = tuple(map(lm.tokenizer.label, row[some]))
        shown.append(Context(labels, tuple(values[some].tolist()), at - some.start))
    return shown


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
    size = largest_activation(activity, neuron.index or 0)
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
        figures.before_and_after(shown, theme()),
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
    strongest = Unit("mlp", activity.block, most)
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
        offers.append(Try("A rare one", notice, {"by": "largest"}, {CHOSEN: Unit("mlp", activity.block, neuron).name}))
    shown = ask_set(subject, strongest, float(f"{STRONG * largest_activation(activity, most):.6g}")).value
    change = shown.values[1].astype(float) - shown.values[0].astype(float)
    at = int(np.abs(change).argmax())
    before, after = (percent(float(side[at])) for side in shown.values)
    token = in_quotes(shown.axes[1].labels[at])
    notice = f"Set to {STRONG:g} times its largest activation, neuron {most} takes {token} from {before} to {after}."
    return [*offers, Try("Turn it up", notice, {"times": STRONG}, {CHOSEN: strongest.name})]
