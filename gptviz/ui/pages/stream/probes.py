"""What can be read from the stream after each layer by a linear probe."""

from __future__ import annotations

import streamlit as st

from gptviz.figures.kit.format import format_count, percent
from gptviz.figures.reading.lens import by_layer
from gptviz.interp.reading.probes import FROM_TEXT, MOST_TOKENS, TABLE, Probed
from gptviz.labelled_array import LabelledArray
from gptviz.language_model import fitted
from gptviz.language_model.data import effort_of_rows
from gptviz.language_model.fitted import probe_labels
from gptviz.machine.errors import reason_of
from gptviz.model.costs.effort import MOST
from gptviz.ui.shell.subject import AskedAnalysis, Subject, ask
from gptviz.ui.views.texts import text_to_fit
from gptviz.ui.widgets import controls, escape_markdown, say_answer, show_figure, theme

from . import steering

# Of more places in a row none is drawn by itself.
MOST_PLACES = 8
_HEIGHT = 380


def ask_probe(subject: Subject) -> AskedAnalysis[Probed]:
    """The controls, which label and over which text, and the probes of that."""
    labels = probe_labels(subject.lm)
    hint = (
        "What the probe has to tell only from the vector of a token. The labels of this model's "
        "task come first."
    )
    titles = list(labels.values())
    label = list(labels)[titles.index(controls.select("Label", titles, key="label", help=hint))]
    text = text_to_fit(subject) if label in FROM_TEXT else None
    if label == TABLE:
        hint = (
            "CSV with the columns text and label. A label is that of the last token of its text; "
            "20 texts are needed at least."
        )
        text = controls.text(
            "Table",
            key="table",
            help=hint,
            longest=100_000,
            height=160,
            placeholder="text,label\nthe king,one",
        )
    return ask(subject, fitted.probe, "Fitting probes", label=label, text=text)


def show(subject: Subject, asked: AskedAnalysis[Probed]) -> LabelledArray | None:
    """The accuracies as lines. Return the numbers of the picture; None while probes are not fitted
    yet, and after a message that none can be.
    """
    work = effort_of_rows(subject.lm, dict(asked.settings).get("text"), MOST_TOKENS)
    try:
        probed = asked.value if work <= MOST else asked.follow_value("Fit the probes", work)
    except (ValueError, OSError) as error:
        st.info(f"{escape_markdown(subject.key.name)}: {escape_markdown(reason_of(error))}.")
        return None
    if probed is None:
        return None
    shorts = [layer.short for layer in probed.layers]
    table = probed.labelled()
    places = probed.places()
    say_answer(escape_markdown(probed.said))
    show_figure(
        by_layer(table, shorts, theme(), height=_HEIGHT),
        key="probes",
        alt=f"How often a probe is right after each of {format_count(len(shorts), 'layer')}, and one "
        "of random labels.",
    )
    st.caption(
        f"How often a probe is right, of {format_count(len(probed.classes), 'label')}, on "
        f"{format_count(probed.tested_on, 'token')} that it was not fitted to: no text before one "
        "of "
        "them, itself included, is equal to one that it read. Control task: the same probe learns "
        "random labels, one for each token of the vocabulary; what it gets right there it knows by "
        "heart. Always saying the commonest label is right at "
        f"{percent(probed.commonest)} of the tokens. {probed.support}"
    )
    if 1 < len(places.axes[0].labels) <= MOST_PLACES:
        st.markdown("**The same probes at each place of the row**")
        show_figure(
            by_layer(places, shorts, theme(), height=_HEIGHT),
            key="probes by place",
            alt="How often the probe is right after each layer, at "
            f"{format_count(len(places.axes[0].labels), 'place')}.",
        )
    if subject.lm.model.config.n_layer:
        # The direction between the tokens of one label and all others, which acts on every page.
        block = 0 if probed.appears is None else probed.appears.block or 0
        hint = (
            "The difference of the means of the tokens with one label and of all others, after "
            f"block {block}, as an edit."
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            if controls.switch("Steer along a label", key="steer", help=hint):
                hint = "The label that the direction leads to; below 0 it leads away from it."
                value = controls.select(
                    "Toward", probed.classes, key="value", default=probed.classes[-1], help=hint
                )
                settings = dict(asked.settings) | {"value": value, "block": block}
                found = ask(
                    subject.key.unedited,
                    fitted.label_direction,
                    "Finding the direction",
                    **settings,
                )
                try:
                    steering.on_every_page(found.value)
                except (ValueError, OSError) as error:
                    st.info(f"{escape_markdown(reason_of(error))}.")
    return table


def code(asked: AskedAnalysis[Probed]) -> str:
    """The lines of `gptviz` that compute the numbers on screen."""
    return asked.code(
        "result.accuracy, result.control  # [layer]: the shares of tokens that probes get right",
        "result.by_place",
    )
