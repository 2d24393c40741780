"""The suggestions of the page Context."""

from __future__ import annotations

import math

import numpy as np

from gptviz.figures.kit.format import percent
from gptviz.interp.explaining.context_use import How
from gptviz.text.datasets.base import Contrast
from gptviz.ui.shell.subject import Subject
from gptviz.ui.views.contrasts import known_contrasts
from gptviz.ui.widgets import Try, in_quotes

from .computed import MOST_TRIED, MeasuredText, losses_of, most_read, tokens_left_out, with_guess
from .show import named, tokens_in_words


def tries(subject: Subject, text: MeasuredText, how: How) -> list[Try]:
    """The suggestions for this model and text; every sentence is measured on this model."""
    if known := known_contrasts(subject.lm):
        return [_contrast(subject, contrast) for contrast in known]
    offers = [_other_way(subject, text, how)]
    if (repeated := _repeated(subject)) is not None:
        offers.append(repeated)
    return offers


def _contrast(subject: Subject, contrast: Contrast) -> Try:
    """For a model of sentences: what its guess after the prompt of one task loses without the word that decides."""
    lm = subject.lm
    ids = with_guess(subject.key, tuple(lm.tokenizer.encode(contrast.clean).ids))
    labels = tuple(map(lm.tokenizer.label, ids))
    other = tuple(map(lm.tokenizer.label, lm.tokenizer.encode(contrast.corrupted).ids))
    decide = [place for place, label in enumerate(other) if labels[place] == contrast.right or labels[place] != label]
    rise = tokens_left_out(subject.key, ids, "replaced", tuple(decide), 0).rise[-1]
    place, lost = decide[int(rise.argmax())], float(rise.max())
    before = float(losses_of(subject.key, ids)[-1])
    notice = (
        f"After this sentence the model's guess is {in_quotes(labels[-1])}, with {percent(math.exp(-before))}. Without "
        f"{named(MeasuredText(ids, labels, 0, 0), place)} its probability is {percent(math.exp(-before - lost))}: look along the "
        "last row."
    )
    return Try(contrast.part.capitalize(), notice, {"prompt": contrast.clean, "how": "replaced"})


def _other_way(subject: Subject, text: MeasuredText, how: How) -> Try:
    """The same text with tokens left out in the other way, and how much more or less the guesses lose on average."""
    other: How = "removed" if how == "replaced" else "replaced"
    places = range(text.kept, len(text.ids) - 1)[-MOST_TRIED:]
    now, then = (
        float(np.nanmean(np.abs(tokens_left_out(subject.key, text.ids, way, places, text.kept).rise)))
        if len(text.ids) > 2
        else 0.0
        for way in (how, other)
    )
    notice = (
        f"If a token is {other}, guesses after the last {tokens_in_words(len(places))} change by {then:.2f} nats on average; if "
        f"it is {how}, by {now:.2f}. Removing a token also moves all that follow."
    )
    return Try("Leave out in the other way", notice, {"how": other})


def _repeated(subject: Subject) -> Try | None:
    """The prompt twice, where it fits: whether the model uses the first time to guess the second."""
    text = subject.prompt.strip()
    gap = " " if subject.lm.tokenizer.is_spaced else "\n"
    twice = f"{text}{gap}{text}"
    ids = tuple(subject.lm.tokenizer.encode(twice).ids)
    config, length = subject.lm.model.config, len(subject.encoding.ids)
    if subject.encoding.unknown or not length >= 4 or len(ids) > min(config.context_length, most_read(subject.key)):
        return None
    loss = losses_of(subject.key, ids)
    first, second = float(np.mean(loss[1:length])), float(np.mean(loss[-length + 1 :]))
    notice = f"The first time the mean loss of this text is {first:.2f} nats, the second time {second:.2f}: " + (
        "it reads again what it has read." if second < 0.8 * first else "that it was there before hardly helps this model."
    )
    return Try("The same text twice", notice, {"prompt": twice})
