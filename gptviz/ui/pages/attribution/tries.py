"""The suggestions of the Attribution page: every sentence is computed for the model and the text on screen."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from gptviz.figures.kit.format import brief, percent, signed
from gptviz.interp.explaining.attribution import Attribution, attribute
from gptviz.interp.units.unit import unit
from gptviz.ui.shell.subject import ModelKey, Subject, language_model
from gptviz.ui.views.contrasts import ContrastQuestion, answered, when_it_appeared
from gptviz.ui.views.guesses import guesses
from gptviz.ui.views.text_position import END
from gptviz.ui.widgets import Try, capitalised, escaped, in_quotes

from .setting import ALONE, LIKELIEST, NEXT, AttributionSetting, quoted

# A part that takes away less than this share of the largest is not worth a look.
WORTH = 0.02


def tries(setting: AttributionSetting, found: Attribution) -> list[Try]:
    """The suggestions for this logit."""
    if not found.adds_up:
        return []
    known = [_known(setting.subject, question) for question in answered(setting.subject.key)]
    when = when_it_appeared(setting.subject.key, setting.subject.prompt, lambda _: END)
    offers = [*known, when, _against(setting, found), _neurons(setting, found), _alone(setting, found), _surest(setting)]
    return [offer for offer in offers if offer is not None]


class Mover(NamedTuple):
    """The head that adds most to a right answer, as far ahead of a wrong one.

    Attributes:
        whole: the difference of the two logits.
        name: of the head.
        value: what the head adds to the difference.
        place: the position of the token by which it adds most.
        share: what it adds by that token.
    """

    whole: float
    name: str
    value: float
    place: int
    share: float


@st.cache_data(max_entries=64, show_spinner=False)
def _mover(key: ModelKey, question: ContrastQuestion) -> Mover | None:
    """The head that adds most to the right answer minus the wrong one, or None if no head adds anything, or no sum can be had."""
    try:
        found = attribute(language_model(key).model, question.ids, question.right, None, question.wrong)
    except ValueError:  # a part of the model lets no sum through
        return None
    name = max(found.sources, key=found.value_of, default=None)
    if name is None or not found.adds_up or not found.value_of(name) > 0:
        return None
    shares = found.sources[name]
    place = int(shares.argmax())
    return Mover(found.logit, name, found.value_of(name), place, float(shares[place]))


def _known(subject: Subject, question: ContrastQuestion) -> Try | None:
    """A prompt with a known answer: which head speaks most for it, and what that head reads."""
    found = _mover(subject.key, question)
    if found is None:
        return None
    lm, contrast = subject.lm, question.contrast
    right, wrong, read = map(lm.tokenizer.label, (question.right, question.wrong, question.ids[found.place]))
    notice = (
        f"After {in_quotes(contrast.clean)} the logit of {in_quotes(right)} is {brief(found.whole)} above that of "
        f"{in_quotes(wrong)}. Of all heads, {unit(found.name, lm.model.config).title} adds most to that: {signed(found.value)}, "
        f"of which {signed(found.share)} by what it reads at {in_quotes(read)} (position {found.place}). {contrast.about}"
    )
    state = {"prompt": contrast.clean, "logit_of": right, "minus": wrong, "part": found.name}
    return Try(contrast.title, notice, state, END)


def _largest(found: Attribution) -> float:
    return max(abs(part.value) for part in found.parts)


def _against(setting: AttributionSetting, found: Attribution) -> Try | None:
    """The head that speaks most against the token."""
    heads = [part for part in found.parts if part.name in found.sources]
    if not heads:
        return None
    least = min(heads, key=lambda part: part.value)
    if least.value > -WORTH * _largest(found):
        return None
    shares = found.sources[least.name]
    most = int(shares.argmin())
    token, place = escaped(setting.read(least.name)[most]), setting.place_of(least.name)
    notice = (
        f"{capitalised(least.title)} takes away {brief(abs(least.value))}. What it reads at “{token}” (position {most}{place}) "
        f"takes away most: {brief(abs(shares[most]))}."
    )
    return Try("A head that speaks against it", notice, {"part": least.name})


def _neurons(setting: AttributionSetting, found: Attribution) -> Try | None:
    """The MLP that adds most."""
    mlps = [part for part in found.parts if part.name.endswith(".mlp")]
    if not mlps:
        return None
    most = max(mlps, key=lambda part: abs(part.value))
    neurons = setting.found(most.name).neurons[most.name]
    best = int(abs(neurons).argmax())
    does = "adds" if neurons[best] >= 0 else "takes away"
    notice = (
        f"{capitalised(most.title)} adds {signed(most.value)}, the most of all MLPs in size. Its neuron {best} alone {does} "
        f"{brief(abs(neurons[best]))}: see the other ones of its {len(neurons):,} neurons."
    )
    return Try("Into an MLP", notice, {"part": most.name})


def _alone(setting: AttributionSetting, found: Attribution) -> Try | None:
    """The logit without the one that is taken from it, or the other way round."""
    if setting.against is None:
        kind = "label" if setting.position is None else "token"
        notice = f"What adds the same to two {kind}s changes nothing between them: take the logit of the next likeliest one away."
        return Try("A difference", notice, {"minus": NEXT})
    alone = AttributionSetting(setting.subject, setting.text, setting.position, setting.token, None).found()
    part = max(alone.parts, key=lambda each: abs(each.value))
    less = found.value_of(part.name)
    notice = (
        f"{capitalised(part.title)} adds {signed(part.value)} to the logit of “{escaped(setting.name(setting.token))}” alone, "
        f"and {signed(less)} to the difference: to the other logit it adds {signed(part.value - less)}."
    )
    return Try("The logit alone", notice, {"minus": ALONE})


def _surest(setting: AttributionSetting) -> Try | None:
    """The place of a text where the model is surest."""
    if setting.subject.kind != "decoder" or len(setting.text.ids) < 2:
        return None
    surest = guesses(setting.subject.key, setting.text.ids)
    at = int(surest.surest.argmax())
    if at == setting.position:
        return None
    last = {"position": str(at)}
    notice = (
        f"After “{escaped(quoted(setting, at))}” (position {at}) its likeliest token has {percent(float(surest.surest[at]))}: "
        "which parts make it so sure there?"
    )
    return Try("Where it is surest", notice, {"logit_of": LIKELIEST, "minus": NEXT}, last)
