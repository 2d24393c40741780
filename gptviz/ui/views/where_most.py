"""The texts in which a unit does most: what is read, how far the reading is, and tokens tinted by
the numbers of the unit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import streamlit as st
import torch

from gptviz.components.token_strip import Token, token_strip
from gptviz.figures.kit.format import brief, format_count
from gptviz.interp.units.activity import SEGMENT, Activity
from gptviz.language_model import units
from gptviz.machine import job
from gptviz.machine.errors import reason_of
from gptviz.machine.job import Job
from gptviz.model.costs.effort import MOST, SOME, effort
from gptviz.settings.address_values import one_of
from gptviz.ui.shell.subject import AskedAnalysis, ModelKey, Subject, ask, language_model
from gptviz.ui.views import held_out
from gptviz.ui.views.texts import HELD_OUT, OWN, PASSAGES, PROMPT, text_of
from gptviz.ui.widgets import addresses, controls, escape_markdown, in_quotes, jobs

WRITTEN = "What it writes"
TOKENS = (1_024, 4_096, 16_384, 65_536)
# The number of tokens that the model writes itself, one after the other. To write one takes as long
# as to read `WRITING`.
MOST_WRITTEN = 512
WRITING = 10
# Seconds that the page waits for what takes longer.
SOON = 1.0
# How many tokens of a context are shown before the one at which the unit does most, and behind it;
# and how many contexts.
BEFORE = 24
BEHIND = 8
SHOWN = 6


class Context(NamedTuple):
    """The tokens around one at which a unit does very much, its number at each, and the place of
    that one.
    """

    labels: tuple[str, ...]
    numbers: tuple[float, ...]
    at: int


def text_to_read(subject: Subject, what: str) -> dict[str, Any]:
    """The controls of what is read, and how many tokens of it, as settings of `units.activity`.

    Args:
        what: what is observed, as in "the neurons".
    """
    kinds = [HELD_OUT] if held_out.is_here(subject.key) else []
    written = [WRITTEN] if subject.kind.continues else []
    # A large model would write for a long time: unless that is asked for, it reads the prompt.
    is_large = effort(subject.lm.model, WRITING * MOST_WRITTEN) > MOST
    kinds += [PROMPT, *written, OWN] if is_large else [*written, PROMPT, OWN]
    # what is found is shown while the rest is read: what takes about ten seconds is not waited for
    if subject.is_imported:
        kinds.insert(0 if effort(subject.lm.model, TOKENS[0]) <= 2 * MOST else 1, PASSAGES)
    hint = (
        f"What {what} are observed over: {held_out.describe_texts(subject.key)}, a text that the "
        "model "
        "writes itself, the prompt, "
        "or a text of yours; of a model from elsewhere, also passages of old books that come with "
        "gptviz."
    )
    kind = controls.select("Text", kinds, key="text", help=hint)
    if kind == WRITTEN:
        return {"most": TOKENS[1], "text": subject.default, "written": MOST_WRITTEN}
    if kind == HELD_OUT:
        return {"most": _how_many_tokens(TOKENS)}
    text = text_of(kind, subject.prompt)
    if kind == PROMPT:
        return {"most": TOKENS[1], "text": text}
    # No more tokens are offered than the text has.
    has = _count_tokens(subject.key, text)
    offered = [*(count for count in TOKENS if count < has), min(has, TOKENS[-1])]
    return {"most": _how_many_tokens(list(dict.fromkeys(offered))), "text": text}


def _how_many_tokens(offered: Sequence[int]) -> int:
    """The control `tokens`, of what is offered; no control where there is nothing to choose."""
    if len(offered) == 1:
        addresses.accept_values("tokens", one_of(list(map(_write_count, TOKENS))))
        return TOKENS[1]
    return int(
        controls.notch(
            "Tokens",
            offered,
            key="tokens",
            default=min(TOKENS[1], offered[-1]),
            format_func=_write_count,
            help="How many tokens of the text are read at most. More tokens take longer, and find "
            "rarer things.",
        )
    )


def _write_count(count: int) -> str:
    return f"{count:,}"


@st.cache_data(max_entries=32, show_spinner=False)
def _count_tokens(key: ModelKey, text: str) -> int:
    return len(language_model(key).tokenizer.encode(text).ids)


def ask_activity(subject: Subject, layer: str, title: str, **how: Any) -> AskedAnalysis[Activity]:
    """What the units of a layer do."""
    return ask(subject.key, units.activity, title, layer=layer, **how)


def observe_units(asked: AskedAnalysis[Activity]) -> Activity | None:
    """What the units of a layer do over the text: at once if that takes about a second; else so
    far, in a thread of the server, with a line on how far it is. Returns None as long as nothing is
    ready.
    """
    how = dict(asked.settings)
    # this many unless told otherwise
    if "written" in how:
        tokens = WRITING * MOST_WRITTEN
    else:
        tokens = how.get("most", TOKENS[2])
    if effort(language_model(asked.key).model, tokens) <= SOME:
        try:
            return asked.value
        except (ValueError, OSError) as error:
            st.error(f"{escape_markdown(reason_of(error))}. Choose another text above.")
            return None

    going: Job[Activity] | None = job.find_job(asked)
    if going is None:  # one that was stopped stays so
        going = job.begin(asked, asked.title, lambda: asked.value)
        going.wait(SOON)
    jobs.follow(going, f"activity {how.get('side', '')}")
    return going.value


def strips(subject: Subject, activity: Activity, unit: int, colour: str) -> None:
    """The texts in which a unit has its highest numbers, or its lowest: tokens tinted by the share
    of the most extreme one.
    """
    lowest = False
    if activity.smallest[unit] < -0.2 * largest_size(activity, unit):
        hint = (
            "A neuron of a gated MLP can be far below 0: then it adds the opposite of its vector "
            "to the stream."
        )
        lowest = (
            controls.select(
                "Contexts", ("Highest", "Lowest"), key="side", help=hint, segmented=True
            )
            == "Lowest"
        )
    pieces = tuple(
        (tuple(activity.rows[row].tolist()), at)
        for row, at in activity.places(unit, lowest=lowest)[:SHOWN]
    )
    extreme = float(activity.smallest[unit] if lowest else activity.largest[unit])
    shown = contexts(subject.key, activity.layer.layer, unit, pieces)
    for place, context in enumerate(shown):
        tokens = [
            Token(
                label,
                _share(value, extreme),
                note=f"{activity.number} {brief(value)}; as a share of {brief(extreme)}",
            )
            for label, value in zip(context.labels, context.numbers, strict=True)
        ]
        token_strip(
            tokens,
            key=f"context {place}",
            colour=colour,
            selected=context.at,
            label=f"Context {place + 1}: {activity.number} {brief(context.numbers[context.at])}",
            legend=f"{activity.number}, as a share of {brief(extreme)}" if place == 0 else "",
            spaced=subject.lm.tokenizer.is_spaced,
        )
    at = Counter(context.labels[context.at] for context in shown)
    often = ", ".join(
        f"{in_quotes(label)} {format_count(count, 'time')}" for label, count in at.most_common(3)
    )
    which = "Lowest" if lowest else "Highest"
    st.caption(
        f"{which} in the text: {activity.number}, at most one of every {SEGMENT} tokens. Outlined "
        "is the token that it is at: "
        f"here {often}."
    )


def largest_size(activity: Activity, unit: int) -> float:
    """The largest size that the number of a unit had; 1 for a unit that was never active."""
    return max(abs(float(activity.largest[unit])), abs(float(activity.smallest[unit]))) or 1.0


@st.cache_data(max_entries=128, show_spinner=False)
def contexts(
    key: ModelKey, layer: str, unit: int, pieces: tuple[tuple[tuple[int, ...], int], ...]
) -> list[Context]:
    """The `pieces` (a row of tokens and a place in it) as contexts; the numbers are computed again,
    over the whole row.
    """
    lm = language_model(key)
    of = units.observable(lm, layer)
    shown = []
    for row, at in pieces:
        values = of.values(torch.tensor([row]))[0, :, unit]
        some = slice(max(0, at - BEFORE), at + 1 + BEHIND)
        labels = tuple(map(lm.tokenizer.label, row[some]))
        shown.append(Context(labels, tuple(values[some].tolist()), at - some.start))
    return shown


def _share(value: float, extreme: float) -> float:
    """`value` as a share of `extreme`, between 0 and 1."""
    if extreme and math.isfinite(extreme):
        return min(max(value / extreme, 0.0), 1.0)
    return 0.0
