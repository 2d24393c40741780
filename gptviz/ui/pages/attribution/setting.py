"""The subject of the Attribution page: which logit after which token, minus which other one; and its parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from gptviz.interp.explaining.attribution import Attribution, attributed, stream_at
from gptviz.interp.explaining.decomposition import Stream
from gptviz.text.datasets.base import Contrast
from gptviz.ui.shell.subject import ModelKey, Subject, language_model
from gptviz.ui.views import text_position
from gptviz.ui.views.contrasts import known_contrast
from gptviz.ui.views.read import Read
from gptviz.ui.views.vocabulary import tokens
from gptviz.ui.widgets import controls, jobs

LIKELIEST, NEXT, ALONE = "the likeliest", "the next likeliest", "none: its logit alone"
# The wrong answer where a prompt has a known one, else the next likeliest token.
RIVAL = "the rival answer"
# How many tokens are listed; any other one can be typed.
LISTED = 30
# How many tokens before a guess a sentence quotes.
QUOTED = 12


@dataclass(frozen=True)
class AttributionSetting:
    """A logit that the page takes apart.

    Attributes:
        subject: the model and the prompt.
        text: what the model reads.
        position: after which token; None for a classifier, whose labels are of the whole text.
        token: whose logit: a token or a label.
        against: whose logit is taken from it; None for the logit alone.
    """

    subject: Subject
    text: Read
    position: int | None
    token: int
    against: int | None

    def found(self, neurons_of: str | None = None) -> Attribution:
        """The amount that each part adds."""
        return _attributed(self.subject.key, self.text, self.token, self.position, self.against, neurons_of)

    def name(self, token: int) -> str:
        """The token or the label, as text."""
        return name(self.subject, token)

    @property
    def known(self) -> Contrast | None:
        """The prompt as one with a known answer, where the page is about that answer; else None."""
        if self.position != len(self.text.ids) - 1:
            return None
        return known_contrast(self.subject.lm, self.subject.prompt, self.token)

    @property
    def whole(self) -> str:
        """The sum of the parts."""
        alone = f"logit of {self.name(self.token)}"
        return alone if self.against is None else f"{self.name(self.token)} minus {self.name(self.against)}"

    @property
    def sides(self) -> tuple[str, str]:
        """The tokens that a part which adds, and a part which subtracts, speak for."""
        if self.against is None:
            return f"for {self.name(self.token)}", f"against {self.name(self.token)}"
        return f"for {self.name(self.token)}", f"for {self.name(self.against)}"

    def place_of(self, part: str) -> str:
        """In which text the head of this name reads, to be added to a position: of two texts the source has to be named."""
        return " of the source" if "cross_attention" in part else ""

    def read(self, part: str) -> tuple[str, ...]:
        """The visible forms of the tokens that the head of this name reads."""
        ids = self.text.source if "cross_attention" in part and self.text.source is not None else self.text.ids
        return tuple(map(self.subject.lm.tokenizer.label, ids))


def name(subject: Subject, token: int) -> str:
    """A token or, of a classifier, a label, as text."""
    return subject.lm.labels[token] if subject.kind == "classifier" else subject.lm.tokenizer.label(token)


# Shared by all sessions: read-only. An entry has the values of every block for every token of the text.
@jobs.resource("Reading the prompt", max_entries=4)
def _stream(key: ModelKey, text: Read, position: int | None) -> Stream:
    return stream_at(language_model(key).model, text.ids, position, text.source)


@st.cache_resource(max_entries=16, show_spinner=False)
def _attributed(
    key: ModelKey, text: Read, token: int, position: int | None, against: int | None, neurons_of: str | None
) -> Attribution:
    return attributed(_stream(key, text, position), token, against, neurons_of)


def likely(key: ModelKey, text: Read, position: int | None) -> tuple[int, ...]:
    """The likeliest tokens after a position, or labels of the text, the likeliest first."""
    logits = _stream(key, text, position).logits.float().cpu()
    return tuple(logits.argsort(descending=True, stable=True)[:LISTED].tolist())


def position_control(subject: Subject, text: Read, strip: Any, beside: Any) -> int | None:
    """The control `position` in the container `beside`, and the tokens, one of which can be clicked, in `strip`. A classifier has
    neither.
    """
    if subject.kind == "classifier":
        return None
    first = 0 if subject.kind == "encoder-decoder" else None  # the token after the start, whose guess is no end
    with beside:
        position = text_position.position(len(text.ids) - 1, first)
    with strip:
        if subject.kind == "decoder":
            text_position.strip(subject, position)
        else:
            labels = [subject.lm.tokenizer.label(i) for i in text.ids]
            about = (
                "The tokens that the decoder reads: the start token, then its own answer; choose one to see the guess after it"
            )
            text_position.plain_strip(labels, position, label=about, spaced=subject.lm.tokenizer.is_spaced)
    return position


def setting(subject: Subject, text: Read, position: int | None, of: Any, less: Any) -> AttributionSetting:
    """The controls `logit_of` and `minus` in the containers `of` and `less`."""
    names = subject.lm.labels if position is None else tokens(subject.key).names
    best = likely(subject.key, text, position)
    listed = [names[i] for i in best]
    what = "label" if position is None else "token"
    typed = (
        ""
        if len(names) <= LISTED
        else f" The {LISTED} likeliest are listed; any other one can be typed, as it is shown elsewhere."
    )
    other = None if len(names) <= LISTED else names.__contains__
    with of:
        about = f"Whose logit is taken apart: of the {what} that the model finds likeliest here, or of another one.{typed}"
        chosen = controls.select(f"Logit of the {what}", (LIKELIEST, *listed), key="logit_of", help=about, other=other)
    with less:
        about = (
            f"A {what} to compare with: its logit is taken from the other one. Only differences of logits count: what adds the "
            f"same to every {what} changes no probability. “{RIVAL.capitalize()}” is the wrong answer where the prompt is one "
            f"with a known answer, else the next likeliest {what}.{typed}"
        )
        options = (RIVAL, NEXT, ALONE, *listed) if len(best) > 1 else (ALONE,)
        minus = controls.select("Minus the logit of", options, key="minus", help=about, other=other)
    token = best[0] if chosen == LIKELIEST else names.index(chosen)
    if minus == ALONE:
        return AttributionSetting(subject, text, position, token, None)
    following = next(i for i in best if i != token) if minus in (RIVAL, NEXT) else names.index(minus)
    made = AttributionSetting(subject, text, position, token, following)
    known = made.known
    return replace(made, against=subject.lm.token(known.wrong)) if minus == RIVAL and known is not None else made


def quoted(setting: AttributionSetting, position: int) -> str:
    """The end of the text up to a position."""
    label, gap = setting.subject.lm.tokenizer.label, " " if setting.subject.lm.tokenizer.is_spaced else ""
    shown = gap.join(label(i) for i in setting.text.ids[max(0, position - QUOTED) : position + 1])
    return ("…" if position > QUOTED else "") + shown
