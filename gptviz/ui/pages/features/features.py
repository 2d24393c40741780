"""The features of a dictionary, sorted, and one of them: what makes it active, what it speaks for,
and what writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from gptviz.figures.kit.format import duration, join_words, percent
from gptviz.figures.kit.theme import MLP
from gptviz.figures.units.neurons import promoted
from gptviz.interp.dictionaries.dictionary import Dictionary
from gptviz.interp.dictionaries.fitting import MASSIVE
from gptviz.interp.units.activity import MOST_BY_TOKEN, Activity
from gptviz.interp.units.unit import Unit
from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.language_model import dictionaries, units
from gptviz.model.costs.effort import A_SECOND, LONG
from gptviz.ui.records.features import FEATURES, PAGE
from gptviz.ui.shell.close import NOTHING, PageResult
from gptviz.ui.shell.subject import AskedAnalysis, Subject, ask
from gptviz.ui.shell.subject.bar import open_model
from gptviz.ui.shell.subject.unit_titles import name_with
from gptviz.ui.views import edits, held_out, one_unit
from gptviz.ui.views.dictionary_quality import ask_quality, show_beside, show_quality
from gptviz.ui.views.files import read_in
from gptviz.ui.views.fits import fit_button, show_fits, watched_fits
from gptviz.ui.views.notes import show_notes
from gptviz.ui.views.one_unit import CHOSEN, RANKINGS
from gptviz.ui.views.texts import text_to_fit
from gptviz.ui.views.vocabulary import tokens
from gptviz.ui.views.where_most import ask_activity, observe_units, strips, text_to_read
from gptviz.ui.widgets import (
    Try,
    controls,
    escape_markdown,
    in_quotes,
    say_answer,
    show_figure,
    theme,
)
from gptviz.ui.widgets.details import folded_part

TOKEN = "token"
PROMPT = "prompt"
SORTS = {name: title for name, (title, _) in RANKINGS.items()} | {
    TOKEN: "At a token",
    PROMPT: "On this text",
}
# How wide the control of the order is, in pixels.
NAME = 220
# The parts that are listed, those that add most.
PARTS = 10
# What a dictionary gives back.
TARGETS = {"stream": "stream", "MLP": "mlp"}
# A model that ships with a dictionary.
EXAMPLE = str(PAGE.opens_on)
# How many steps a dictionary is fitted for, and how many where these take long.
STEPS = (2_000, 500)
# How many features are named beside the one that is shown.
BESIDE = 2
# A feature that is active at no more than this share of the tokens is rare.
RARE = 0.02


def show(subject: Subject, row: Any) -> tuple[list[Try], PageResult]:
    """The whole view, with its controls in the container `row`; where the model has no dictionary
    yet, the way to one.
    """
    names = subject.lm.dictionaries()
    if not names:
        _fit(subject)
        return [], NOTHING
    with row:
        sorting = st.container(width=NAME)
        more = st.popover("More", help="The dictionary, and the text that its features read.")
    with more:
        hint = (
            "The dictionary whose features are shown, of the stream after a block or of an MLP: "
            "one "
            "that ships, or that was fitted or read on this machine."
        )
        if len(names) == 1:
            name = names[0]
        else:
            name = controls.select("Dictionary", names, key="dictionary", help=hint)
        how = text_to_read(subject, "the features")
    # The means at each token of a large vocabulary are not kept.
    few = (
        len(subject.lm.dictionary(name).encoder) * subject.lm.model.config.vocab_size
        <= MOST_BY_TOKEN
    )
    sorts = [one for one in SORTS if one != TOKEN or few]
    hint = (
        "Largest, active and effect as in the table; at a token: the mean activation where it "
        "stands; on the prompt above."
    )
    with sorting:
        by = controls.select(
            "Sort by", sorts, key="by", default=PROMPT, help=hint, format_func=SORTS.__getitem__
        )
        token = _token(subject) if by == TOKEN else 0
    asked = ask_activity(subject, f"dictionary.{name}", "Observing the features", **how)
    activity = observe_units(asked)
    if activity is None:
        return [], NOTHING
    read = subject.lm.dictionary(name)
    values = _values(subject, name, activity, by, token)
    order = [int(one) for one in np.argsort(-values, kind="stable")]
    feature = one_unit.chosen_unit(subject, activity, first_usual(order, activity.largest))
    calls = _show_feature(subject, read, activity, feature, (by, SORTS[by], order, values))
    with st.expander("How good is this dictionary?"):
        _measure(subject, read)
    if len(names) > 1:
        with st.expander("All dictionaries of this model, side by side"):
            key = subject.key.unedited
            show_beside(key, held_out.text_to_fit(key))
    if watched_fits(subject.key.name)[0] and (
        fold := folded_part("The fits of this model, with their curves", key="fits of this model")
    ):
        with fold:
            show_fits(subject.key.name, links=False)
    with st.expander("Another dictionary"):
        _read_folder(subject)
    code = asked.code(
        f"result.histogram({feature.index})", *calls, "result.labelled()  # [feature, number]"
    )
    return _tries(activity), PageResult(activity.labelled, code, FEATURES)


def first_usual(order: Sequence[int], largest: Float64Array) -> int:
    """The first feature of an order that is not for massive vectors: see
    `gptviz.interp.dictionaries.fitting`.
    """
    most = MASSIVE * float(np.median(largest[largest > 0])) if (largest > 0).any() else 0.0
    return next((feature for feature in order if largest[feature] <= most), order[0])


def _show_feature(
    subject: Subject,
    read: Dictionary,
    activity: Activity,
    feature: Unit,
    ranking: tuple[str, str, list[int], Float64Array],
) -> list[str]:
    """The list and one feature; returns the calls that compute what is shown of it."""
    number = feature.index or 0
    by, title, order, values = ranking
    if tokens := one_unit.strongest_tokens(subject, activity, number):
        often = percent(float(activity.active[number]))
        name = escape_markdown(name_with(subject.key)(feature.name, f"feature {number}"))
        noticed = [f"{tokens} ({name})", *_noticed_beside(subject, activity, number, order)]
        say_answer(
            f"It notices {join_words(noticed)}.",
            f"There each feature is most active; feature {number} is active at {often} of the tokens.",
        )
    else:
        say_answer(*one_unit.answers_to(subject, activity, number))
    left, right = st.columns([5, 4], gap="medium")
    with left:
        st.markdown(f"**Feature {number}: where it is most active**")
        strips(subject, activity, number, MLP)
        one_unit.distribution(subject.key, activity, number)
    with right:
        more = {} if by in RANKINGS else {title: values}
        one_unit.show_ranked(
            subject.key,
            activity,
            by,
            order,
            number,
            more,
            one_unit.strongest_labels(subject, activity),
        )
        st.caption(f"The dictionary {read.name} has {escape_markdown(read.said)}.")
        edits.switch(subject.key, feature, key="switch feature")
    left, middle, right = st.columns(3, gap="large")
    with left:
        writes = _bars(
            ask(subject, units.written_by, "Reading the prompt", name=feature.name),
            "What writes it, in the prompt",
        )
        near = _bars(
            ask(subject.key, units.nearest_features, "Comparing features", name=feature.name),
            "Features that write alike",
        )
    with middle:
        speaks = one_unit.speaks_for(subject, feature)
    with right:
        put = one_unit.steer(subject, activity, feature)
    show_notes(subject, feature)
    return [one.call for one in (near, speaks, writes, put)]


def _noticed_beside(
    subject: Subject, activity: Activity, number: int, order: list[int]
) -> list[str]:
    """What the first other features of the order notice, one token each, none named twice, as
    Markdown.
    """
    label = one_unit.strongest_labels(subject, activity)
    named = {label(number)}
    said = list[str]()
    for other in order:
        if len(said) == BESIDE or activity.largest[other] <= 0:
            break
        if other == number or label(other) in named:
            continue
        named.add(label(other))
        said.append(f"{in_quotes(label(other))} ({other})")
    return said


def _measure(subject: Subject, read: Dictionary) -> None:
    """A button that measures the dictionary, and then how good it is."""
    key = subject.key.unedited
    asked = ask_quality(key, read.name, held_out.text_to_fit(key))
    measuring, say_how_far = asked.on_demand(begins=False)
    if measuring is not None and measuring.value is not None:
        show_quality(read, measuring.value)
    say_how_far(
        "Measure it",
        "Measure it again",
        "quality",
        "The loss of the model that goes on with what the features give back.",
    )


def _bars(asked: AskedAnalysis[LabelledArray], title: str) -> AskedAnalysis[LabelledArray]:
    """The largest numbers of a list as bars."""
    values = asked.value
    most = np.argsort(-np.abs(values.values), kind="stable")[:PARTS]
    names = tuple(values.axes[0].labels[i] for i in most)
    # a column is narrow: the token stands in the title
    unit, _, at = values.unit.partition(", at ")
    st.markdown(f"**{title}" + (f", at {in_quotes(at)}**" if at else "**"))
    shown = LabelledArray(values.values[most], (Axis(values.axes[0].name, names),), unit)
    show_figure(
        promoted(shown, theme(), longest=18),
        key=f"feature {asked.analysis}",
        alt=f"{title}: {', '.join(names)}.",
    )
    return asked


def _token(subject: Subject) -> int:
    """The control for a token."""
    names = tokens(subject.key).names
    last = names[subject.seen[-1]]
    chosen = controls.select(
        "Token",
        list(names[:200]),
        key="at",
        default=last,
        help="The token at which features are active.",
        other=names.__contains__,
    )
    return names.index(chosen)


def _values(subject: Subject, name: str, activity: Activity, by: str, token: int) -> Float64Array:
    """What the features are sorted by, [feature]."""
    if by == TOKEN:
        return activity.by_token[:, token]
    if by in RANKINGS:
        return np.asarray(getattr(activity, by))
    active = ask(subject, dictionaries.features, "Reading the prompt", dictionary=name).value
    values = np.zeros(len(activity.largest))
    values[[int(one) for one in active.axes[1].labels]] = active.values.mean(0)
    return values


def _fit(subject: Subject) -> None:
    """Say that there is no dictionary, with the way to one."""
    n_layer = subject.lm.model.config.n_layer
    top = st.container(gap="small")
    # what is fitted, below the sentence and its buttons
    of_block, of_what, of_text = st.columns(3)
    hint = "The block after which the stream is read."
    with of_block:
        block = controls.whole_number(
            "Block", 0, n_layer - 1, key="block", default=n_layer // 2, help=hint
        )
    hint = "What the features give back: the stream after the block, or what its MLP gives."
    with of_what:
        target = controls.select("Of what", list(TARGETS), key="target", help=hint)
    with of_text:
        text = text_to_fit(subject)
    # of a wide model fewer steps, so that it takes minutes
    work = {
        steps: dictionaries.effort_of_dictionary(subject.lm, steps=steps, text=text)
        for steps in STEPS
    }
    steps = next((one for one in STEPS if work[one] <= LONG), STEPS[-1])
    takes = duration(work[steps] / A_SECOND)
    with top:
        say_answer(
            f"This model has no list of patterns yet. Make one here (about {takes}), or look at "
            f"the patterns of {escape_markdown(EXAMPLE)}.",
            "Such a list is a dictionary of features. It is kept for later.",
        )
        st.button(
            f"Patterns of {escape_markdown(EXAMPLE)}",
            on_click=open_model,
            args=(EXAMPLE,),
            icon=PAGE.icon,
            key="patterns of the example",
        )
        fit_button(
            subject.key.unedited,
            block=block,
            size=None,
            steps=steps,
            text=text,
            target=TARGETS[target],
        )
    show_fits(subject.key.name, links=False)
    _read_folder(subject)


def _read_folder(subject: Subject) -> None:
    """Where the folder of a dictionary that others have fitted is dropped."""
    hint = (
        "A folder that SAELens wrote, with cfg.json and sae_weights.safetensors, for the stream "
        "after a block of this model, or for its MLP (a transcoder). It is kept in your folder; "
        "nothing in it is run."
    )

    def read_folder(folder: Path) -> None:
        st.session_state["dictionary"] = subject.lm.read_dictionary(folder).name

    read_in("Or a folder of SAELens", None, read_folder, key="folder of SAELens", help=hint)


def _tries(activity: Activity) -> list[Try]:
    """The suggestions for these features."""
    rare = np.where((activity.active > 0) & (activity.active <= RARE), activity.largest, 0.0)
    notice = (
        "The features that add the longest vectors to the stream, on average over the text, come "
        "first."
    )
    offers = [Try("Of the largest effect", notice, {"by": "effect"})]
    if rare.max(initial=0.0) > 0:
        feature = int(rare.argmax())
        share = percent(float(activity.active[feature]))
        notice = (
            f"Feature {feature} is active at {share} of the tokens only: what have they in common?"
        )
        offers.append(Try("A rare one", notice, {}, {CHOSEN: activity.unit(feature).name}))
    return offers
