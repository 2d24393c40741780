"""The suggestions of the page Patching: pairs of prompts whose answers really differ, for the model on screen."""

from __future__ import annotations

import streamlit as st

from gptviz.interp.changing.corrupting import likeliest_answers
from gptviz.interp.changing.patching import PromptPair
from gptviz.language_model import LanguageModel
from gptviz.text.datasets.base import Contrast
from gptviz.ui.shell.subject import ModelKey, Subject, language_model
from gptviz.ui.views.contrasts import known_contrasts, since_when
from gptviz.ui.widgets import Try, escaped, in_quotes

from . import show
from .prompts import CORRUPTED, LIKELIEST, RIGHT, WRONG

# For models that read text by characters, and for sums: a title, a clean prompt, a corrupted one, and what to look for.
TEXTS = (
    (
        "Which duke?",
        "DUKE VINCENTIO:\nNo.\n\nLUCIO:\nYes.\n\nDUKE ",
        "DUKE OF EXETER:\nNo.\n\nLUCIO:\nYes.\n\nDUKE ",
        "The name follows from the first line alone. See in which block what stood there reaches the last position.",
    ),
    (
        "To be, or not to",
        "To be, or not to b",
        "To go, or not to g",
        "The word “be” and the last letter differ. See which of them the answer comes from.",
    ),
)
SUMS = (
    (
        "A digit of the ones",
        "123+456=",
        "123+451=",
        "The answer begins with its ones: the last digits of both numbers decide. See in which block they are read.",
    ),
    (
        "A carry",
        "128+456=4",
        "121+456=7",
        "In both sums the tens are 2 + 5, but only in the first do the ones carry. See where the carry comes from: from "
        "the digit, or from the first digit of the answer.",
    ),
)


def tries(subject: Subject) -> list[Try]:
    """The suggestions that hold for this model: those whose prompts have as many tokens and are answered differently."""
    if not subject.lm.model.config.n_layer:
        return []
    task = (subject.lm.card.source or {}).get("task")
    found = [_contrast(subject, one) for one in known_contrasts(subject.lm)]
    if task == "induction":
        found.append(_repeated(subject))
    texts = SUMS if task == "addition" else () if task is not None else TEXTS
    found += [_pair(subject.key, *text) for text in texts]
    return [one for one in found if one is not None]


def _state(clean: str, corrupted: str) -> dict[str, str]:
    return {"prompt": clean, CORRUPTED: corrupted, RIGHT: LIKELIEST, WRONG: LIKELIEST}


@st.cache_data(max_entries=64, show_spinner=False)
def _answers(key: ModelKey, clean: str, corrupted: str) -> tuple[str, str] | None:
    """The likeliest tokens after both prompts, or None if they are the same, or if the prompts do not fit."""
    lm = language_model(key)
    both = [lm.tokenizer.encode(text) for text in (clean, corrupted)]
    if any(one.unknown or len(one.ids) > lm.model.config.context_length for one in both) or len(both[0].ids) != len(both[1].ids):
        return None
    pair = PromptPair(tuple(both[0].ids), tuple(both[1].ids), 0, 0)
    right, wrong = likeliest_answers(lm.model, pair)
    # The likeliest after the corrupted prompt is the right answer again if the swapped pair has it first.
    turned, _ = likeliest_answers(lm.model, PromptPair(pair.corrupted, pair.clean, 0, 0))
    return (lm.tokenizer.label(right), lm.tokenizer.label(wrong)) if turned == wrong else None


def _pair(key: ModelKey, title: str, clean: str, corrupted: str, notice: str) -> Try | None:
    answers = _answers(key, clean, corrupted)
    if answers is None:
        return None
    said = f"The likeliest token is {escaped(answers[0])} after the one prompt and {escaped(answers[1])} after the other. "
    return Try(title, said + notice, _state(clean, corrupted), act=show.close_cell)


def _contrast(subject: Subject, contrast: Contrast) -> Try | None:
    """A pair of prompts with known answers, if the model knows them."""
    answers = _answers(subject.key, contrast.clean, contrast.corrupted)
    lm = subject.lm
    if answers is None or answers != (_label(lm, contrast.right), _label(lm, contrast.wrong)):
        return None
    block, head, share = _best_head(subject.key, contrast)
    notice = (
        f"{in_quotes(contrast.right)} or {in_quotes(contrast.wrong)}? {contrast.about} Computed exactly, head {head} of block "
        f"{block} alone restores {show.percents(share)}: is it where it looks, or what it takes from there?"
    )
    notice += since_when(subject.key, contrast, "head")
    return Try(contrast.title, notice, _state(contrast.clean, contrast.corrupted), act=show.close_cell)


def _label(lm: LanguageModel, word: str) -> str:
    """The visible form of the token that a word is read as."""
    return "".join(lm.tokenizer.label(token) for token in lm.tokenizer.encode(word).ids)


@st.cache_data(max_entries=64, show_spinner=False)
def _best_head(key: ModelKey, contrast: Contrast) -> tuple[int, int, float]:
    """The head whose output restores most: its block, its number, and the share."""
    lm = language_model(key)
    found = lm.patch(contrast.clean, contrast.corrupted, contrast.right, contrast.wrong, "attention.z")
    return show.largest(found, 1)[0]


def _repeated(subject: Subject) -> Try | None:
    """For a model of induction: a block of symbols that begins again, with another symbol after the one that is read last."""
    words = subject.default.split()
    again = words.index(words[0], 1) if words[0] in words[1:] else 0
    if again < 6:
        return None
    clean = words[: again + 3]
    others = [word for word in words if word not in clean[again - 1 :] and word != words[3]]
    corrupted = [*clean[:3], others[-1], *clean[4:]]
    notice = (
        "A block of symbols begins again. In the corrupted prompt another symbol follows where the last one stood before. Which "
        "head looks there, and at which position is the answer before that?"
    )
    return _pair(subject.key, "What came next before", " ".join(clean), " ".join(corrupted), notice)
