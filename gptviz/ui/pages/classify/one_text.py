"""What the Classify page shows of one text: its label, what each word adds to it, and who reads whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
import torch

from gptviz.figures.contributions import contributions
from gptviz.figures.format import percent
from gptviz.figures.labels import labels
from gptviz.interp.attention import strongest
from gptviz.interp.classification import Classified, Numbers
from gptviz.interp.classification import classify as classified
from gptviz.interp.decision import Decision, decision, left_out, runner_up, turning
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.text import words_of
from gptviz.ui.shell import pages
from gptviz.ui.shell.models import ModelKey, language_model, load_call
from gptviz.ui.shell.subject import Subject
from gptviz.ui.shell.theme import theme
from gptviz.ui.views import attention, encoder_decoder
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.markdown import escaped

from . import held_out

WORDS, ATTENTION, HELD_OUT, OWN = "Words", "Attention", "Held-out texts", "A file of yours"
VIEWS = (WORDS, ATTENTION, HELD_OUT, OWN)
LIKELIEST = "the likeliest"
NEXT, ALONE = "the next likeliest", "none: its logit alone"
MOST_LABELS = 5  # in sight
# A text is read once without each of its words: beyond so many that takes longer than a button is worth.
MOST_LEFT_OUT = 128

HOW = r"""
The head is linear in every word, so its share is exact, no approximation: $\text{logit}_k = b_k + \sum_t s_{t,k}$, and only
differences of logits decide, since $p_k = e^{\text{logit}_k} / \sum_j e^{\text{logit}_j}$. Between two labels
$p = 1 / (1 + e^{-m})$ with the margin $m = b_1 - b_0 + \sum_t (s_{t,1} - s_{t,0})$: a bar is one term of that sum. The
seed's head (“flatten”) makes a number of each word and weighs it by its place; “mean” weighs all places alike. The shares
are what the tap `shares` saw in the pass that gave the label (`gptviz/model/heads.py`; `classify` in
`gptviz/interp/classification.py`, `decision` in `gptviz/interp/decision.py`)."""
LIMITS = """A share belongs to a place, not to a word alone: by then the word has read all the others, so “not” may speak
through the bar of “good”. Take a word away to see what it does to the rest. A word the vocabulary lacks is read as ⟨unknown⟩;
what is longer than the context is cut off. A probability says how sure the model is, not that it is right: see its most
confident mistakes."""


@dataclass(frozen=True)
class Behind:
    """What stands folded behind a view: the arguments of `details`; one made by hand has its own numbers and code."""

    numbers: Callable[[], LabelledArray] | None = None
    code: str | None = None
    how: str = HOW
    limits: str = LIMITS


# Read-only, shared by all sessions.
@st.cache_resource(max_entries=64, show_spinner="Reading the text")
def found(key: ModelKey, ids: tuple[int, ...]) -> Classified:
    """What the model makes of the text `ids`."""
    lm = language_model(key)
    return classified(lm.model, torch.tensor(ids, device=lm.device))


@st.cache_resource(max_entries=64, show_spinner=False)
def _without(key: ModelKey, ids: tuple[int, ...]) -> Numbers:
    lm = language_model(key)
    return left_out(lm.model, torch.tensor(ids, device=lm.device))


def doubts(subject: Subject) -> None:
    """Say it where the model knows no word of the text; stop where there is none to read."""
    if not subject.seen:
        st.info("There is no word that this model reads. Type a word of two or more of the letters a to z above.")
        st.stop()
    unknown = getattr(subject.lm.tokenizer, "unknown", None)
    if all(token == unknown for token in subject.seen):
        st.warning(
            "The model knows no word of this text: it reads ⟨unknown⟩ for each, and the label says nothing about the text.",
            icon=":material/help:",
        )


def verdict(subject: Subject) -> None:
    """The label of the text, in a line."""
    read = found(subject.key, subject.seen)
    label, probability = subject.lm.labels[read.label], float(read.probabilities[read.label])
    st.markdown(f"The text above is **{escaped(label)}**: {percent(probability)}")


def words(subject: Subject) -> Behind:
    """The labels with their probabilities, and what each word adds to the decision."""
    read, names = found(subject.key, subject.seen), subject.lm.labels
    left, right = st.columns([5, 9], gap="medium")
    with left:
        _labels(read, names)
        chosen = _decision(read, names)
        _adds_up(chosen, names)
        if (said := held_out.on_card(subject.lm.card)) is not None:
            st.caption(said, help=held_out.ABOUT_BASELINE)
    shares = chosen.labelled(subject.labels)
    above, below = sides(chosen, names)
    most = int(np.abs(chosen.shares).argmax())
    with right:
        st.plotly_chart(
            contributions(shares, theme(), above=above, below=below),
            key="contributions",
            config={"displayModeBar": False},
            alt=f"What each of {len(subject.seen)} words adds to the decision, upwards for {above}; most is that of "
            f"“{subject.labels[most]}”, {chosen.shares[most]:+.2f}. All and the bias together: {chosen.sum:+.3f}.",
        )
    return Behind(lambda: shares, code(subject, chosen))


def sides(chosen: Decision, names: tuple[str, ...]) -> tuple[str, str]:
    """What a bar upwards speaks for, and what one downwards."""
    label = names[chosen.label]
    return label, f"not {label}" if chosen.against is None else names[chosen.against]


def _labels(read: Classified, names: tuple[str, ...]) -> None:
    """The likeliest labels as bars."""
    order = np.argsort(-read.probabilities, kind="stable")[:MOST_LABELS]
    shown = LabelledArray(read.probabilities[order], (Axis("label", tuple(names[i] for i in order)),), "probability")
    said = ", ".join(f"{names[i]} {percent(float(read.probabilities[i]))}" for i in order)
    st.plotly_chart(labels(shown, theme()), key="labels", config={"displayModeBar": False}, alt=f"The text is: {said}")


def _decision(read: Classified, names: tuple[str, ...]) -> Decision:
    """Two labels are held against each other, the second upwards; of more, the controls `label` and `against` choose."""
    if len(names) == 2:
        return decision(read, 1, 0)
    about = "Whose logit the words add to."
    chosen = controls.select("Label", [LIKELIEST, *names], key="label", default=LIKELIEST, help=about)
    about = "Only differences of logits decide: what speaks for one label and for another alike changes nothing."
    against = controls.select("Against", (NEXT, ALONE), key="against", default=NEXT, help=about)
    label = names.index(chosen) if chosen in names else read.label
    return decision(read, label, runner_up(read, label) if against == NEXT else None)


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


def attending(subject: Subject) -> Behind | None:
    """The attention between the words. None for a model without."""
    config = subject.lm.model.config
    if not config.n_layer:
        st.info("This model has no blocks, hence no attention: it counts words, each for itself.")
        return None
    attention.show(subject, encoder_decoder.DECODER, default=0)
    pages.link(pages.ATTENTION, "On a page of its own")
    return Behind(how=attention.HOW, limits=attention.LIMITS)


def many(subject: Subject, view: str) -> Behind:
    """Many texts at once: those held out where they are here, else a file of the reader's."""
    if view == HELD_OUT and (test := held_out.held_out(subject)) is not None:
        return Behind(lambda: test.confusion, held_out.code_held_out(subject), held_out.HOW, held_out.LIMITS)
    file, read = held_out.own_file(subject)
    return Behind(
        lambda: held_out.table(file, read, subject.lm.labels),
        held_out.code_file(subject, file.name),
        held_out.HOW,
        held_out.LIMITS,
    )


def to_try(subject: Subject) -> list[tuple[str, str, Mapping[str, Any]]]:
    """What to try with this model and text: title, what to notice, and the state that shows it."""
    tries: list[tuple[str, str, Mapping[str, Any]]] = []
    if _is_of_sentiment(subject.lm.labels):
        notice = "A reader takes it for praise. Does the model? Compare the bars of “never” and “dull”, then take “never” away."
        tries.append(("A negation", notice, {"prompt": "the film was never dull", "view": WORDS}))
    if 2 <= len(subject.seen) <= MOST_LEFT_OUT and (turned := _turning(subject)) is not None:
        tries.append(turned)
    if (wrong := held_out.worst(subject)) is not None:
        text, label, taken = wrong
        notice = (
            f"Its label is {escaped(label)}; the model, fully trained, takes it for {escaped(taken)}. Which words mislead it?"
        )
        tries.append(("A confident mistake", notice, {"prompt": text, "view": WORDS}))
    if subject.lm.model.config.n_layer and len(subject.seen) > 1:
        tries.append(_selective(subject))
    return tries


def _is_of_sentiment(names: tuple[str, ...]) -> bool:
    return sorted(name.lower()[:3] for name in names) == ["neg", "pos"]


def _turning(subject: Subject) -> tuple[str, str, Mapping[str, Any]] | None:
    """The text without the word on which its label hangs most; None where every word speaks against it."""
    read, without = found(subject.key, subject.seen), _without(subject.key, subject.seen)
    place, label = turning(read.probabilities, without)
    before, after = read.probabilities[read.label], without[place, read.label]
    if after >= before:
        return None
    texts, names = words_of(subject.prompt)[: len(subject.seen)], [escaped(name) for name in subject.lm.labels]
    word, title = texts.pop(place), "Without"
    outcome = f"{names[read.label]} falls from {percent(float(before))} to {percent(float(after))}"
    if label != read.label:
        outcome, title = f"{outcome}, and the label turns to {names[label]}", "Turned round: without"
    notice = f"Of all its words the label hangs most on this one: {outcome}."
    return f"{title} “{word}”", notice, {"prompt": " ".join(texts), "view": WORDS}


def _selective(subject: Subject) -> tuple[str, str, Mapping[str, Any]]:
    """The head whose rows rest on the fewest words."""
    facts = attention.view(subject.key, attention.read_by(subject, encoder_decoder.DECODER)).facts
    assert facts is not None  # there are two words
    block, head = strongest(-facts.spread)
    notice = (
        f"In block {block}, head {head} a word reads {facts.spread[block, head]:.1f} others on average, the fewest of all heads."
    )
    return "The pickiest head", notice, {"view": ATTENTION, **attention.ask(block=block, head=head)}


def code(subject: Subject, chosen: Decision) -> str:
    """The lines of `gptviz` that compute what each word adds."""
    return f"""import gptviz
from gptviz.interp.classification import classify
from gptviz.interp.decision import decision

lm = {load_call(subject.lm)}
found = classify(lm.model, lm.seen(lm.encode({subject.prompt!r})))
chosen = decision(found, {chosen.label}, {chosen.against})  # {", ".join(f"{i}: {n!r}" for i, n in enumerate(subject.lm.labels))}
chosen.bias, chosen.shares, chosen.total  # chosen.bias + chosen.shares.sum() = chosen.total"""
