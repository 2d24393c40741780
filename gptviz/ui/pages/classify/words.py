"""The view of one text: its label, and what each word adds to the decision."""

from __future__ import annotations

import numpy as np
import streamlit as st
import torch

from gptviz.figures.contributions import contributions
from gptviz.figures.format import percent
from gptviz.figures.labels import labels
from gptviz.interp.classification import Classified, classify
from gptviz.interp.decision import Decision, decision, runner_up
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.ui.shell.models import ModelKey, language_model
from gptviz.ui.shell.subject import Subject
from gptviz.ui.shell.theme import theme
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.figure import show_figure
from gptviz.ui.widgets.markdown import escaped

from .card import on_card
from .evaluation import ABOUT_BASELINE

LIKELIEST = "the likeliest"
NEXT, ALONE = "the next likeliest", "none: its logit alone"
MOST_LABELS = 5  # in sight


# Read-only, shared by all sessions.
@st.cache_resource(max_entries=64, show_spinner="Reading the text")
def classified(key: ModelKey, ids: tuple[int, ...]) -> Classified:
    """What the model makes of the text `ids`."""
    lm = language_model(key)
    return classify(lm.model, torch.tensor(ids, device=lm.device))


def check_words(subject: Subject) -> None:
    """A warning where the model knows no word of the text; where there is no word to read, the page stops."""
    if not subject.seen:
        st.info("The text has no word that this model can read. Type one above: a word has two or more of the letters a to z.")
        st.stop()
    unknown = getattr(subject.lm.tokenizer, "unknown", None)
    if all(token == unknown for token in subject.seen):
        st.warning(
            "The model knows no word of this text: it reads ⟨unknown⟩ for each, and the label says nothing about the text.",
            icon=":material/help:",
        )


def verdict(subject: Subject) -> None:
    """The label of the text, in a line."""
    reading = classified(subject.key, subject.seen)
    label, probability = subject.lm.labels[reading.label], float(reading.probabilities[reading.label])
    st.markdown(f"The text above is **{escaped(label)}**: {percent(probability)}")


def words(subject: Subject) -> Decision:
    """The labels with their probabilities, and what each word adds to the decision, which is returned."""
    reading, names = classified(subject.key, subject.seen), subject.lm.labels
    left, right = st.columns([5, 9], gap="medium")
    with left:
        _labels(reading, names)
        chosen = _decision(reading, names)
        _adds_up(chosen, names)
        if (accuracy := on_card(subject.lm.card)) is not None:
            st.caption(accuracy, help=ABOUT_BASELINE)
    shares = chosen.labelled(subject.labels)
    above, below = sides(chosen, names)
    most = int(np.abs(chosen.shares).argmax())
    with right:
        show_figure(
            contributions(shares, theme(), above=above, below=below),
            key="contributions",
            config={"displayModeBar": False},
            alt=(
                f"What each of {len(subject.seen)} words adds to the decision, upwards for {above}; the largest share is that "
                f"of “{subject.labels[most]}”, {chosen.shares[most]:+.2f}. All shares and the bias together: {chosen.sum:+.3f}."
            ),
        )
    return chosen


def sides(chosen: Decision, names: tuple[str, ...]) -> tuple[str, str]:
    """What a bar upwards speaks for, and what one downwards."""
    label = names[chosen.label]
    return label, f"not {label}" if chosen.against is None else names[chosen.against]


def _labels(reading: Classified, names: tuple[str, ...]) -> None:
    """The likeliest labels as bars."""
    order = np.argsort(-reading.probabilities, kind="stable")[:MOST_LABELS]
    likeliest = LabelledArray(reading.probabilities[order], (Axis("label", tuple(names[i] for i in order)),), "probability")
    spelled_out = ", ".join(f"{names[i]} {percent(float(reading.probabilities[i]))}" for i in order)
    show_figure(labels(likeliest, theme()), key="labels", config={"displayModeBar": False}, alt=f"The text is: {spelled_out}")


def _decision(reading: Classified, names: tuple[str, ...]) -> Decision:
    """What is decided: of two labels, the second against the first; of more, the controls `label` and `against` choose."""
    if len(names) == 2:
        return decision(reading, 1, 0)
    about = "The label whose logit (its score) the words add to."
    chosen = controls.select("Label", [LIKELIEST, *names], key="label", default=LIKELIEST, help=about)
    about = "Only differences of logits decide: what adds the same to both labels changes nothing."
    against = controls.select("Against", (NEXT, ALONE), key="against", default=NEXT, help=about)
    label = names.index(chosen) if chosen in names else reading.label
    return decision(reading, label, runner_up(reading, label) if against == NEXT else None)


def _adds_up(chosen: Decision, names: tuple[str, ...]) -> None:
    """The sum of bias and words beside the logits the model gave."""
    label = escaped(names[chosen.label])
    model = f"logit of {label}" if chosen.against is None else f"{label} − {escaped(names[chosen.against])}"
    n = len(chosen.shares)
    rows = [
        ("bias", signed(chosen.bias)),
        (f"+ {n} word{'s' if n > 1 else ''}", signed(float(chosen.shares.sum()))),
        ("**= sum**", f"**{signed(chosen.sum)}**"),
        (f"the model’s {'own' if chosen.against is None else 'logits'}: {model}", signed(chosen.total)),
    ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    apart = abs(chosen.sum - chosen.total)
    st.markdown(
        f"| It adds up | logit |\n|:--|--:|\n{table}",
        help=f"The sum of the bars, and what the model computed: they differ by {apart:.1g}, which is rounding.",
    )


def signed(value: float) -> str:
    """A number with its sign, to three places."""
    return f"{value:+.3f}".replace("-", "−")
