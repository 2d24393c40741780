"""The views of the page Next token: the sampling ledger."""

from __future__ import annotations

import streamlit as st
import torch

from gptviz.components.kit.command import NO_COMMAND, ViewCommand
from gptviz.components.sampling_ledger import address, sampling_ledger
from gptviz.figures.kit.format import brief, percent
from gptviz.generate.sampling import Sampling
from gptviz.generate.sampling import ledger as stages
from gptviz.model.precision import said
from gptviz.ui.shell.subject import Subject
from gptviz.ui.views.append_token import append_token
from gptviz.ui.views.guesses import logits_after
from gptviz.ui.widgets import addresses, escaped, in_quotes

from .computed import ledger_of, rounding_of

COMMAND = "ledger command"
# The sentence below the ledger says what these do to the likeliest token.
TEMPERATURES = 0.5, 2.0


def ledger(subject: Subject, position: int) -> None:
    """The sampling ledger of the token after `position`; one that is taken joins the text up to there."""
    command: ViewCommand = st.session_state.get(COMMAND, NO_COMMAND)  # of the last "Try this"
    gone = len(subject.encoding.ids) - len(subject.seen)
    try:
        data = ledger_of(subject.key, subject.prompt, subject.seen, position, gone, command)
    except ValueError as error:
        st.error(escaped(f"{subject.key.name}: {error}. Choose another model or step above."))
        return
    ids = subject.encoding.ids[: gone + position + 1]
    addresses.takes_all(address(data.vocab_size, draws=True))
    sampling_ledger(data, key="ledger", on_take=lambda token: append_token(subject, ids, token))


def say_guess(subject: Subject, position: int) -> None:
    """The likeliest token after `position`, and what the temperature makes of it."""
    logits = torch.from_numpy(logits_after(subject.key, subject.seen, position))[None]
    if not logits.isfinite().all():
        return
    tokenizer = subject.lm.tokenizer
    usual, sharp, flat = (
        stages(logits, Sampling(temperature=temperature), tokenizer.unused_ids).after[0] for temperature in (1.0, *TEMPERATURES)
    )
    top = int(usual.argmax())
    st.caption(
        f"The likeliest token is {in_quotes(tokenizer.label(top))}, with {percent(float(usual[top]))}. At temperature "
        f"{TEMPERATURES[0]:g} it has {percent(float(sharp[top]))}, at {TEMPERATURES[1]:g} it has {percent(float(flat[top]))}: "
        "move the temperature, and watch the bars."
    )


def say_rounding(subject: Subject, position: int) -> None:
    """For a model whose products are rounded: how far its guess is from that of exact products."""
    lm = subject.lm
    if lm.model.encoder is not None or (found := rounding_of(subject.key, subject.seen, position)) is None:
        return
    divergence, logit = found
    st.caption(
        f"Weights: {said(lm.model)}. With exact products of the same weights this guess would differ by {brief(divergence)} nats "
        f"(Kullback–Leibler divergence: 0 is no difference), and a logit by {brief(logit)} at most."
    )
