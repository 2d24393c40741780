"""The texts in which a head does most, the tokens at which it does it, and those that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import streamlit as st

from gptviz.figures.kit.format import brief, format_count
from gptviz.figures.kit.theme import KEY, PATTERN, QUERY
from gptviz.figures.units.neurons import promoted
from gptviz.interp.units.activity import Activity
from gptviz.interp.units.unit import Unit
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.ui.records.heads import WHERE
from gptviz.ui.shell.close import NOTHING, PageResult
from gptviz.ui.shell.subject import Subject
from gptviz.ui.shell.subject.unit_titles import title_of, titles_of
from gptviz.ui.views.notes import show_notes
from gptviz.ui.views.where_most import ask_activity, observe_units, strips, text_to_read
from gptviz.ui.widgets import (
    addresses,
    capitalise_text,
    escape_markdown,
    in_quotes,
    show_figure,
    theme,
)
from gptviz.ui.widgets.picking import pick

from .does import CHOSEN

# The tokens that are listed; those that stand in the text less often are not, where others do.
LISTED = 10
OFTEN = 3


def show(subject: Subject, heads: Sequence[Unit], head: Unit) -> PageResult:
    """The whole view of one of the `heads`."""
    if subject.kind.has_source:
        st.info(
            "This model reads one text and writes another: the texts are found for the heads of "
            "models that read one."
        )
        return NOTHING
    with st.container(horizontal=True, vertical_alignment="bottom"):
        pick(
            "Head",
            heads,
            head,
            lambda one: addresses.write(CHOSEN, one.name),
            key="heads pick",
            help="The head that is shown; first the one that is most of its kind.",
            format_func=titles_of(subject.key),
        )
        how = text_to_read(subject, "the heads")
    asked = partial(ask_activity, subject, head.layer, "Observing the heads", **how)
    at_queries = observe_units(asked())
    at_keys = None if at_queries is None else observe_units(asked(side="key"))
    if at_queries is None or at_keys is None:
        return NOTHING
    number = head.index or 0
    sides = [_by_token(subject, one, number) for one in (at_queries, at_keys)]
    title = title_of(subject.key, head)
    st.markdown(_describe_activity(at_queries, head, sides, title))
    left, right = st.columns([3, 2], gap="large")
    with left:
        strips(subject, at_queries, number, PATTERN)
    with right:
        for title, values, colour in zip(
            ("It does most at", "It reads most from"), sides, (QUERY, KEY), strict=True
        ):
            st.markdown(f"**{title}**")
            show_figure(
                promoted(values, theme(), colour),
                key=f"heads {values.axes[0].name}",
                alt=f"{title}: {', '.join(values.axes[0].labels)}.",
            )
        st.caption("The mean over all places where the token stands.")
    show_notes(subject, head)
    return PageResult(
        at_queries.labelled,
        asked().code(f"result.tokens({number})  # token and mean", asked(side="key").call),
        WHERE,
    )


def _by_token(subject: Subject, activity: Activity, head: int) -> LabelledArray:
    """The tokens with the largest mean number of a head, [token]."""
    often = min(OFTEN, int(activity.seen.max()))
    tokens, means = zip(*activity.tokens(head, LISTED, often), strict=True)
    side = "query" if activity.number.startswith("length") else "key"
    return LabelledArray(
        np.array(means),
        (Axis(side, tuple(map(subject.lm.tokenizer.label, tokens))),),
        activity.number,
    )


def _describe_activity(
    activity: Activity, head: Unit, sides: Sequence[LabelledArray], title: str
) -> str:
    """What is seen of a head of this title, in a sentence."""
    query, key = (in_quotes(side.axes[0].labels[0]) for side in sides)
    mean, most = (brief(values[head.index or 0]) for values in (activity.effect, activity.largest))
    return (
        f"**{capitalise_text(escape_markdown(title))}** adds a vector of the mean length {mean} to "
        "the stream, of "
        f"up to {most}, over "
        f"{format_count(activity.n_tokens, 'token')}. It adds most at {query}, and reads most from "
        f"{key}."
    )
