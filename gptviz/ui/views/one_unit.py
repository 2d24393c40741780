"""The units of a layer, ranked, and one of them: how active it is, what it speaks for, what changes
if it is set by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pandas as pd
import streamlit as st

from gptviz.figures.changing.before_after import before_after
from gptviz.figures.kit.format import brief, format_count, percent
from gptviz.figures.units import neurons as figures
from gptviz.interp.changing.edit import MOST_NUMBER
from gptviz.interp.units.activity import BINS, Activity
from gptviz.interp.units.unit import Unit
from gptviz.interp.units.unit import unit as named
from gptviz.labelled_array import Float64Array, LabelledArray
from gptviz.language_model import units
from gptviz.ui.shell.subject import AskedAnalysis, ModelKey, Subject, ask
from gptviz.ui.shell.subject.unit_titles import name_with, said_title, title_of
from gptviz.ui.views import edits
from gptviz.ui.views.where_most import SHOWN, largest_size
from gptviz.ui.widgets import (
    addresses,
    capitalise_text,
    controls,
    in_quotes,
    picking,
    show_figure,
    theme,
)
from gptviz.ui.widgets.figure import pixels
from gptviz.ui.widgets.picking import pick

RANKINGS = {
    "largest": ("Largest", "The highest activation over the text."),
    "active": ("Active", "The share of tokens at which the activation is above 0."),
    "effect": ("Effect", "The mean length of the vector that the unit adds to the stream."),
}
# The key in the address of the unit that is shown.
CHOSEN = "unit"
# The values to set a unit to, in multiples of the largest size that its activation has in the text.
TIMES = (-4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
# How many of the tokens at which a unit is most active are named.
ANSWERS = 3
# How many units the table has.
MOST_ROWS = 200
HIGH = 380


def chosen_unit(subject: Subject, activity: Activity, first: int) -> Unit:
    """The unit that the address asks for; `first` where it asks for none of this layer."""
    usual = activity.unit(first)
    linked = controls.linked_choice(
        CHOSEN, lambda asked: named(asked, subject.lm.model.config), usual
    )
    if linked.index is not None and linked.layer == activity.layer.layer:
        return linked
    return usual


def strongest_tokens(subject: Subject, activity: Activity, index: int) -> str:
    """The tokens at which a unit is most active, as Markdown; empty where it is never active."""
    if activity.largest[index] <= 0:
        return ""
    # of the places that are shown below
    shown = zip(activity.places(index)[:SHOWN], activity.highest[:, index], strict=False)
    highest = (int(activity.rows[row][place]) for (row, place), value in shown if value > 0)
    most = list(dict.fromkeys(highest))[:ANSWERS]
    return ", ".join(in_quotes(subject.lm.tokenizer.label(token)) for token in most)


def strongest_labels(subject: Subject, activity: Activity) -> Callable[[int], str]:
    """A function from the number of a unit to the token at which it is most active, as text; empty
    where it is never active.
    """

    def label(index: int) -> str:
        if activity.largest[index] <= 0:
            return ""
        row, place = activity.places(index)[0]
        return subject.lm.tokenizer.label(int(activity.rows[row][place]))

    return label


def answers_to(subject: Subject, activity: Activity, index: int) -> tuple[str, str]:
    """The tokens at which a unit is most active, and how often it is, in two sentences."""
    title = capitalise_text(said_title(subject.key, activity.unit(index)))
    tokens = strongest_tokens(subject, activity, index)
    if not tokens:
        return f"{title} is active at none of the {activity.n_tokens:,} tokens that were read.", ""
    share = percent(float(activity.active[index]))
    return (
        f"{title} is most active at {tokens}.",
        f"It is active at {share} of the tokens, up to {brief(activity.largest[index])}.",
    )


def show_ranked(
    key: ModelKey,
    activity: Activity,
    by: str,
    order: list[int],
    chosen: int,
    more: Mapping[str, Float64Array] = MappingProxyType({}),
    word: Callable[[int], str] | None = None,
) -> None:
    """The units that rank first; choosing a row, or one in the select box below, shows it in the
    place of `chosen`.

    Args:
        key: the model.
        activity: of the units.
        by: what they are ranked by, one of `RANKINGS`, or something else that is the first of
            `more`.
        order: all units, the first one first.
        chosen: the one that is shown.
        more: other numbers [unit] of each, by their title.
        word: the token at which a unit is most active, for a column of its own.
    """
    kind = activity.layer.kind
    some = order[:MOST_ROWS]

    def choose(index: int) -> None:
        addresses.write(CHOSEN, activity.unit(index).name)

    names = [by, *RANKINGS] if by in RANKINGS else [*RANKINGS]
    columns: dict[str, Any] = {} if word is None else {"Most at": list(map(word, some))}
    columns |= {title: values[some] for title, values in more.items()}
    columns |= {RANKINGS[name][0]: getattr(activity, name)[some] for name in names}
    number = st.column_config.NumberColumn
    config = {title: number(format="%.3g") for title in more} | {
        title: number(format="percent" if name == "active" else "%.3g", help=hint)
        for name, (title, hint) in RANKINGS.items()
    }
    picking.table(
        pd.DataFrame({kind: some} | columns),
        lambda row: choose(some[row]),
        key=f"{kind}s table",
        height=pixels(HIGH),
        column_config=config,
        alt=f"The {kind}s, the first of the ranking first",
    )
    if by in RANKINGS:
        values = getattr(activity, by)
    else:
        values = next(iter(more.values()))
    add_name = name_with(key)
    pick(
        capitalise_text(kind),
        some if chosen in some else [chosen, *some],
        chosen,
        choose,
        key=f"{kind}s pick",
        help=f"The {kind} that is shown, the first of the ranking first. You can also click a row "
        "above.",
        format_func=lambda one: (
            f"{add_name(activity.unit(one).name, f'{kind} {one}')}: "
            f"{percent(values[one]) if by == 'active' else brief(values[one])}"
        ),
    )
    if len(order) > MOST_ROWS:
        rest = f"The first {MOST_ROWS} of {len(order):,} {kind}s. "
    else:
        rest = ""
    columns_are = " ".join(f"{title}: {_begin_small(hint)}" for title, hint in RANKINGS.values())
    st.caption(f"{rest}Over {format_count(activity.n_tokens, 'token')}. {columns_are}")


def _begin_small(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def distribution(key: ModelKey, activity: Activity, unit: int) -> None:
    """The histogram of the activations of a unit of this model."""
    counts = activity.histogram(unit)
    st.markdown("**How active it is**")
    show_figure(
        figures.histogram(counts, theme(), width=2 * float(activity.reach[unit]) / BINS),
        key=f"{activity.layer.kind} histogram",
        alt=f"Histogram of the activations of {title_of(key, activity.unit(unit))}: from "
        f"{brief(activity.smallest[unit])} to "
        f"{brief(activity.largest[unit])}, above 0 at {percent(activity.active[unit])} of the "
        "tokens.",
    )
    if figures.is_logarithmic(counts):
        scale = " The axis is logarithmic: a line up is ten times as many."
    else:
        scale = ""
    st.caption(f"Above 0 at {percent(activity.active[unit])} of the tokens.{scale}")


def speaks_for(subject: Subject, unit: Unit) -> AskedAnalysis[LabelledArray]:
    """The tokens that it promotes and suppresses."""
    asked = ask(subject.key, units.promoted, "Reading the weights", name=unit.name)
    shown = asked.value
    st.markdown("**What it speaks for, and against**")
    half = len(shown.axes[0].labels) // 2
    show_figure(
        figures.promoted(shown, theme()),
        key=f"{unit.kind} promoted",
        alt=f"Tokens promoted: {', '.join(shown.axes[0].labels[:half])}; suppressed: "
        f"{', '.join(shown.axes[0].labels[half:])}.",
    )
    st.caption(
        "How much an activation of 1 raises each token's logit directly, up to the scale of the "
        "final norm."
    )
    return asked


def steer(subject: Subject, activity: Activity, unit: Unit) -> AskedAnalysis[LabelledArray]:
    """The guesses of the model if the unit is set."""
    size = largest_size(activity, unit.index or 0)
    st.markdown("**Set it, and see what changes**")
    hint = (
        f"At every token of the prompt, in multiples of {brief(size)}, the largest size of its "
        "activation in the text. 0 is off."
    )
    times = float(
        controls.notch(
            "Times its largest activation",
            TIMES,
            key="times",
            default=2.0,
            format_func="{:g}".format,
            help=hint,
        )
    )
    value = settable(times * size)
    asked = ask_set(subject, unit, value)
    shown = asked.value
    before, after = shown.values
    show_figure(
        before_after(shown, theme()),
        key=f"{unit.kind} steered",
        alt=f"The {shown.unit} as it is, and with {title_of(subject.key, unit)} set to {brief(value)}: "
        + ", ".join(
            f"{label} {percent(a)} → {percent(b)}"
            for label, a, b in zip(shown.axes[1].labels, before, after, strict=True)
        ),
    )
    text = f"{unit.name}={value:.6g}"
    st.button(
        f"Keep it at {brief(value)} on every page",
        icon=":material/push_pin:",
        key=f"keep {unit.kind}",
        on_click=edits.toggle,
        args=(text,),
        help=f"The edit `{text}`: it stands in the address of every page, and one click takes it "
        "away.",
    )
    return asked


def settable(value: float) -> float:
    """The nearest number that an edit can set a unit to: an edited one may be that large
    already.
    """
    return float(f"{min(max(value, -MOST_NUMBER), MOST_NUMBER):.6g}")


def ask_set(subject: Subject, unit: Unit, value: float) -> AskedAnalysis[LabelledArray]:
    """The likeliest guesses without an edit of a unit, and with the unit set to `value`."""
    settings = {"prompt": subject.text, "name": unit.name, "value": value}
    return ask(
        subject.key.without_edit(unit.name), units.unit_set, "Reading the prompt", **settings
    )
