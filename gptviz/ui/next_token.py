"""What the Next token page computes, cached by model, text and position: a slider of sampling never runs the model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import streamlit as st

from gptviz.components.token_strip import Token, token_strip
from gptviz.figures.bars import percent
from gptviz.interp.next_token import Prediction, entropy, found, logits_after
from gptviz.labelled import Labelled
from gptviz.learn.sampling import Sampling

from . import controls, snapshots
from .cache import ModelKey, call, language_model
from .frame import DEFAULT_PROMPT, Subject
from .literal import literal

# Logits of every position are kept up to this many numbers (16 MB); beyond, those of the positions asked for.
MOST_NUMBERS = 4_000_000
SHOWN = 20
# Up to this vocabulary all tokens can be shown at once.
SMALL_VOCABULARY = 200
STRIP_HEIGHT = 92
ORDERS = (f"{SHOWN} likeliest", "All, by probability", "All, by vocabulary")

_WANTED, _SLIDER = "wanted position", "position slider"

Logits = npt.NDArray[np.float32]


# Shared by all sessions: read-only.
@st.cache_resource(max_entries=4, show_spinner="Reading the prompt")
def _everywhere(key: ModelKey, ids: tuple[int, ...]) -> Logits:
    return logits_after(language_model(key).model, ids, slice(None))


@st.cache_resource(max_entries=64, show_spinner="Reading the prompt")
def _at(key: ModelKey, ids: tuple[int, ...], position: int) -> Logits:
    return logits_after(language_model(key).model, ids, slice(position, position + 1))[0]


def _is_small(subject: Subject) -> bool:
    return len(subject.seen) * subject.lm.model.config.vocab_size <= MOST_NUMBERS


def logits(subject: Subject, position: int) -> Logits:
    """The logits [vocab_size] of the token after `position` of the text the model sees."""
    if _is_small(subject):
        return _everywhere(subject.key, subject.seen)[position]
    return _at(subject.key, subject.seen, position)


@st.cache_resource(max_entries=8, show_spinner=False)
def _chips(key: ModelKey, ids: tuple[int, ...], small: bool) -> tuple[Token, ...]:
    tokenizer = language_model(key).tokenizer
    if not small:
        return tuple(Token(tokenizer.label(i)) for i in ids)
    seen = found(_everywhere(key, ids), ids)

    def chip(place: int) -> Token:
        label, probability = tokenizer.label(ids[place]), float(seen.probability[place])
        if math.isnan(probability):
            return Token(label, note="the first token: nothing to guess it from")
        likely = zip(seen.likely[place], seen.likely_probability[place], strict=True)
        return Token(label, probability, tuple((tokenizer.label(int(i)), float(p)) for i, p in likely))

    return tuple(chip(place) for place in range(len(ids)))


def position(subject: Subject) -> int:
    """The control `position`: after which token of the text the next one is guessed; the last by default.

    Not bound to the link as other controls are: its range is the text's length, and with a new range Streamlit would take
    the value of the link as it was before, whatever a "Try this" or a new text asks for.
    """
    last = len(subject.seen) - 1
    asked = st.query_params.get("position", "")
    if (wanted := st.session_state.pop(_WANTED, None)) is not None:
        asked = str(wanted)
    possible = asked.isdecimal() and len(asked) < 10 and int(asked) <= last
    chosen = int(asked) if possible else last
    if asked not in ("", "-1") and not possible and _SLIDER not in st.session_state:
        st.warning(
            f"The link asks for position = “{literal(asked[:80])}”, which is not to be had here; showing {last}.",
            icon=":material/link_off:",
        )
    go_to(chosen if chosen < last else None)
    st.session_state[_SLIDER] = chosen
    if last:
        st.slider(
            "Position",
            0,
            last,
            key=_SLIDER,
            on_change=lambda: go_to(st.session_state[_SLIDER]),
            help="The guess is the one made after this token, counted from 0. Or click a token above.",
        )
    return chosen


def go_to(position: int | None) -> None:
    """Put `position` into the link; None, the last, leaves the link without one."""
    if position is not None:
        st.query_params["position"] = str(position)
    elif "position" in st.query_params:
        del st.query_params["position"]


def end_of(subject: Subject, prompt: str) -> dict[str, Any]:
    """The state that shows the guess after the last token of `prompt`."""
    ids = subject.lm.tokenizer.encode(prompt).ids
    return {"prompt": prompt, _WANTED: min(len(ids), subject.lm.model.config.context_length) - 1}


def to_try(subject: Subject) -> list[tuple[str, str, dict[str, Any]]]:
    """What to try with this model: title, what to notice, and the state that shows it."""
    if subject.on_task:
        known = "The last token of an example can be known from those before it. Is the model sure, and right?"
        first = "After the first token nothing is known yet: whatever comes is drawn at random, and a good model says so."
        return [
            ("The answer", known, end_of(subject, subject.default)),
            ("Not to be known", first, {"prompt": subject.default, _WANTED: 0}),
        ]
    chanc = "Nearly everything stands on one letter: the model knows the word. Then click a space above: any word may follow."
    question = "A speech may begin with many a capital: high entropy. Move the temperature to 0.2 and to 2 and see what it does."
    tail = (
        "Temperature 1.5 lifts the unlikely; top-k, then top-p cut them off (hatched); what is left shares all the probability."
    )
    cut = {"temperature": 1.5, "top_k": 10, "top_p": 0.8}
    return [
        ("How chanc…", chanc, end_of(subject, DEFAULT_PROMPT)),
        ("An open question", question, end_of(subject, "ROMEO:\n")),
        ("Cut the tail", tail, end_of(subject, "ROMEO:\n") | cut),
    ]


def strip(subject: Subject, position: int) -> None:
    """The text as chips, tinted by how likely the model found each; a click sets `position`."""
    small = _is_small(subject)
    token_strip(
        _chips(subject.key, subject.seen, small),
        key="tokens strip",
        selected=position,
        on_pick=go_to,
        label="The tokens of the prompt; choose one to see the guess made after it",
        legend="how likely the model found each token; outlined: the guess below comes after it" if small else "",
        height=STRIP_HEIGHT,
        spaced=subject.lm.tokenizer.kind == "symbols",
    )


def order(vocab_size: int) -> str:
    """The control `tokens`: which tokens are shown, and in which order."""
    if vocab_size > SMALL_VOCABULARY:
        return ORDERS[0]
    return controls.select(
        "Tokens shown",
        ORDERS,
        key="tokens",
        label_visibility="collapsed",
        help="The likeliest tokens, or the whole vocabulary sorted by probability or by token number.",
    )


def tokens(prediction: Prediction, order: str) -> npt.NDArray[np.int64]:
    """The ids of the tokens to show, in the order chosen."""
    if order == ORDERS[2]:
        return np.arange(len(prediction.before))
    return prediction.order()[: SHOWN if order == ORDERS[0] else None]


def facts(subject: Subject, prediction: Prediction, true: int | None) -> None:
    """How sure the model is, before → after sampling, and how it found the token that really comes next."""
    before, after = entropy(prediction.before), entropy(prediction.after)
    # Numbers alone: text of the model never becomes Markdown.
    st.markdown(
        f"**Entropy** {before / math.log(2):.3f} → {after / math.log(2):.3f} bits  \n"
        f"= {before:.3f} → {after:.3f} nats  \n"
        f"**Perplexity** {math.exp(before):.2f} → {math.exp(after):.2f}  \n"
        f"**Tokens left** {len(prediction.cut):,} → {int((prediction.cut == '').sum()):,}",
        help="Before → after sampling. Perplexity: among how many equally likely tokens the model might as well be choosing.",
    )
    if true is None:
        st.text("Really next: unknown,\nthe text ends here")
    else:
        label = subject.lm.tokenizer.label(true)
        st.text(f"Really next: {label} (▲)\n{percent(prediction.before[true])}, rank {prediction.rank(true):,}")


def hold(figure: go.Figure, subject: Subject, log: bool) -> go.Figure:
    """Bars whose heights can be compared from step to step of training: the axis then ends at 100 %, else where they need it."""
    if not log and snapshots.steps(subject.key.name):
        figure.update_yaxes(range=[0, 1])
    return figure


def numbers(subject: Subject, prediction: Prediction) -> Labelled:
    """The probabilities of the whole vocabulary, the likeliest first: [token, stage]."""
    ids = prediction.order().tolist()
    labels = subject.lm.tokenizer.labels()
    return prediction.labelled(ids, [labels[i] for i in ids])


def code(subject: Subject, position: int, sampling: Sampling) -> str:
    """The lines of Python that compute the same prediction."""
    return f"""import gptviz
from gptviz.interp.next_token import logits_after, predict
from gptviz.learn.sampling import Sampling

lm = {call(subject.lm)}
ids = lm.seen(lm.encode({subject.prompt!r})).tolist()
logits = logits_after(lm.model, ids, slice({position}, {position + 1}))[0]
prediction = predict(logits, {sampling})
prediction.before, prediction.after, prediction.cut  # [vocab_size] each"""
