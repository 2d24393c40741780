"""The computations of the page Next token, cached by model, text and position; the browser does all that follows the logits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st
import torch

from gptviz.components.kit.command import ViewCommand
from gptviz.components.sampling_ledger import SEEDS, Payload, payload
from gptviz.generate.sampling import uniform
from gptviz.interp.changing.before_after import rounding
from gptviz.interp.changing.edits import Inputs
from gptviz.interp.reading.next_token import perplexity, probabilities
from gptviz.model.precision import rounds
from gptviz.ui.shell.subject import ModelKey, language_model
from gptviz.ui.views.guesses import logits_after
from gptviz.ui.views.vocabulary import labels
from gptviz.ui.widgets import escaped, jobs

from .words import code

# How many tokens before a guess a sentence quotes.
WORDS_BEFORE = 12


@dataclass(frozen=True)
class _Guess:
    """The guess after one place of a text.

    Attributes:
        position: the place.
        before: the text up to it, its end alone, as Markdown.
        likeliest: the likeliest token, as Markdown.
        probability: of that token.
        perplexity: the model is as unsure as in a choice among this many equally likely tokens.
    """

    position: int
    before: str
    likeliest: str
    probability: float
    perplexity: float


@st.cache_data(max_entries=32, show_spinner=False)
def likeliest_guess(key: ModelKey, ids: tuple[int, ...], position: int) -> _Guess:
    label = language_model(key).tokenizer.label
    shares = probabilities(logits_after(key, ids, position))
    best = int(shares.argmax())
    text = "".join(label(i) for i in ids[max(0, position - WORDS_BEFORE) : position + 1])
    before = escaped(("…" if position > WORDS_BEFORE else "") + text)
    return _Guess(position, before, escaped(label(best)), float(shares[best]), perplexity(shares))


@jobs.data("Multiplying exactly", max_entries=32)
def rounding_of(key: ModelKey, ids: tuple[int, ...], position: int) -> tuple[float, float] | None:
    """How far the guess after a place is from that of exact products, in nats, and the largest difference of a logit; None for a
    model whose products are not rounded.
    """
    model = language_model(key).model
    if not rounds(model):
        return None
    change, logit = rounding(model, Inputs(torch.tensor([ids[: position + 1]], device=model.embed.weight.device)))
    return change.divergence, logit


# Kept for all sessions: what was packed of a large vocabulary takes a moment to make.
@st.cache_resource(max_entries=8, show_spinner=False)
def ledger_of(key: ModelKey, prompt: str, ids: tuple[int, ...], position: int, gone: int, command: ViewCommand) -> Payload:
    """The data of the ledger after `position` of `ids`, before which `gone` tokens of the prompt have left the window."""
    config, names = language_model(key).model.config, labels(key)
    is_last = position == len(ids) - 1
    tokens_before = gone + position + 1
    # At an earlier place Generate sees what the model saw here if no token has left the window and none was looked ahead to.
    same = is_last or (gone == 0 and config.mask == "causal")
    return payload(
        logits_after(key, ids, position),
        names,
        about=(key, prompt, position),
        title=f"{key.title}, the token after position {position}",
        prompt="".join(language_model(key).tokenizer.label(i) for i in ids[: position + 1]).replace("␣", " "),
        code=code(key, prompt, position, tokens_before),
        numbers=np.array([uniform(seed, tokens_before).item() for seed in range(SEEDS)]),
        true=None if is_last else ids[position + 1],
        takes=True,
        used=len(names) - len(language_model(key).tokenizer.unused_ids),
        note=", as on Generate with this seed" if same else "",
        command=command,
    )
