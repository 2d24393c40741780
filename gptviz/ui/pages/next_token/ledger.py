"""The probabilities of every next token, and what sampling makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st
import torch

from gptviz.components.kit.command import NO_COMMAND, ViewCommand
from gptviz.components.sampling_ledger import SEEDS, Payload, address, payload, sampling_ledger
from gptviz.figures.kit.format import brief, percent
from gptviz.generate.sampling import Sampling, uniform
from gptviz.generate.sampling import ledger as stages
from gptviz.interp.changing.before_after import rounding
from gptviz.interp.changing.edit import Inputs
from gptviz.interp.reading.next_token import perplexity, probabilities
from gptviz.model.precision import describe_types, rounds
from gptviz.ui.shell.subject import ModelKey, Subject, language_model, opening
from gptviz.ui.views.append_token import append_token
from gptviz.ui.views.guesses import guesses, logits_after
from gptviz.ui.views.how_written import say_how_written
from gptviz.ui.views.text_position import END
from gptviz.ui.views.vocabulary import labels
from gptviz.ui.widgets import Try, addresses, escape_markdown, in_quotes, jobs, say_answer
from gptviz.ui.widgets.sampling import PLAIN

from .guessing import PLAYS, VIEW

# How many tokens before a guess a sentence quotes.
WORDS_BEFORE = 12
COMMAND = "ledger command"
# The sentence below the ledger says what these do to the likeliest token.
TEMPERATURES = 0.5, 2.0
# The settings of "Cut the tail".
CUT: dict[str, Any] = {"temperature": 1.5, "top_k": 10, "top_p": 0.8}


def ledger(subject: Subject, position: int) -> None:
    """The sampling ledger of the token after `position`; one that is taken joins the text up to
    there.
    """
    command: ViewCommand = st.session_state.get(COMMAND, NO_COMMAND)  # of the last "Try this"
    gone = len(subject.encoding.ids) - len(subject.seen)
    try:
        data = ledger_of(subject.key, subject.prompt, subject.seen, position, gone, command)
    except ValueError as error:
        st.error(
            escape_markdown(f"{subject.key.name}: {error}. Choose another model or step above.")
        )
        return
    ids = subject.encoding.ids[: gone + position + 1]
    addresses.takes_all(address(data.vocab_size, draws=True))
    sampling_ledger(data, key="ledger", on_take=lambda token: append_token(subject, ids, token))


# Kept for all sessions: what was packed of a large vocabulary takes a moment to make.
@st.cache_resource(max_entries=8, show_spinner=False)
def ledger_of(
    key: ModelKey, prompt: str, ids: tuple[int, ...], position: int, gone: int, command: ViewCommand
) -> Payload:
    """The data of the ledger after `position` of `ids`, before which `gone` tokens of the prompt
    have left the window.
    """
    config = language_model(key).model.config
    names = labels(key)
    is_last = position == len(ids) - 1
    tokens_before = gone + position + 1
    # Generate gives the same guess at an earlier place only if no token has left the window and the
    # mask is causal.
    same = is_last or (gone == 0 and config.mask == "causal")
    return payload(
        logits_after(key, ids, position),
        names,
        about=(key, prompt, position),
        title=f"{key.title}, the token after position {position}",
        prompt="".join(language_model(key).tokenizer.label(i) for i in ids[: position + 1]).replace(
            "␣", " "
        ),
        code=code(key, prompt, position, tokens_before),
        numbers=np.array([uniform(seed, tokens_before).item() for seed in range(SEEDS)]),
        true=None if is_last else ids[position + 1],
        takes=True,
        used=len(names) - len(language_model(key).tokenizer.unused_ids),
        note=", as on Generate with this seed" if same else "",
        command=command,
    )


def code(key: ModelKey, prompt: str, position: int, tokens_before: int) -> tuple[str, str]:
    """The lines of Python that compute the same stages and the same draw, before and after the
    settings.
    """
    lm = language_model(key)
    never = ", lm.tokenizer.unused_ids" if lm.tokenizer.unused_ids else ""
    imports = (
        "from gptviz.generate.sampling import Sampling, draw, ledger, uniform",
        "from gptviz.interp.reading.next_token import logits_after",
    )
    begin = f"""import torch

{opening(lm, *imports)}
ids = lm.seen(lm.encode({prompt!r})).tolist()
logits = torch.from_numpy(logits_after(lm.model, ids, slice({position}, {position + 1})))  # [1, vocab_size]
sampling = """
    end = f"""
stages = ledger(logits, sampling{never})
stages.before, stages.scaled, stages.in_top_k, stages.in_top_p, stages.after  # [1, vocab_size] each
# The random number depends only on the place and the seed.
token = draw(stages.after, uniform(sampling.seed, {tokens_before}))  # [1]"""
    return begin, end


def say_guess(subject: Subject, position: int) -> None:
    """The likeliest token after `position`, and what the temperature makes of it."""
    logits = torch.from_numpy(logits_after(subject.key, subject.seen, position))[None]
    if not logits.isfinite().all():
        return
    tokenizer = subject.lm.tokenizer
    usual, sharp, flat = (
        stages(logits, Sampling(temperature=temperature), tokenizer.unused_ids).after[0]
        for temperature in (1.0, *TEMPERATURES)
    )
    top = int(usual.argmax())
    say_answer(
        f"The likeliest token is {in_quotes(tokenizer.label(top))}, with "
        f"{percent(float(usual[top]))}.",
        f"At temperature "
        f"{TEMPERATURES[0]:g} it has {percent(float(sharp[top]))}, at {TEMPERATURES[1]:g} it has "
        f"{percent(float(flat[top]))}: "
        "move the temperature, and watch the bars.",
    )
    say_how_written(subject.lm.task)


def say_rounding(subject: Subject, position: int) -> None:
    """For a model whose products are rounded: how far its guess is from that of exact products."""
    lm = subject.lm
    if (
        lm.model.encoder is not None
        or (moved := rounding_of(subject.key, subject.seen, position)) is None
    ):
        return
    divergence, logit = moved
    st.caption(
        f"Weights: {escape_markdown(describe_types(lm.model))}. With exact products of the same "
        f"weights this guess would differ by {brief(divergence)} nats "
        f"(Kullback–Leibler divergence: 0 is no difference), and a logit by {brief(logit)} at most."
    )


@jobs.data("Multiplying exactly", max_entries=32)
def rounding_of(key: ModelKey, ids: tuple[int, ...], position: int) -> tuple[float, float] | None:
    """How far the guess after a place is from that of exact products, in nats, and the largest
    difference of a logit; None for a model whose products are not rounded.
    """
    model = language_model(key).model
    if not rounds(model):
        return None
    change, logit = rounding(
        model, Inputs(torch.tensor([ids[: position + 1]], device=model.embed.weight.device))
    )
    return change.divergence, logit


def tries(subject: Subject, position: int) -> list[Try]:
    """The suggestions for this model and text, the view being at `position`."""
    key = subject.key
    offers = list[Try]()
    logits = logits_after(key, subject.seen, position)
    if not np.isfinite(logits).all():
        return offers  # a damaged model, which the view names
    if subject.on_task:
        # For a model of a task: a token that can be known, and one that cannot.
        ids = tuple(subject.lm.tokenizer.encode(subject.default).ids)[
            -subject.lm.model.config.context_length :
        ]
        (end, share, _), (first, of_first, _) = (
            likeliest_guess(key, ids, at) for at in (len(ids) - 1, 0)
        )
        state = {"prompt": subject.default} | ledger_state()
        offers.append(
            Try(
                "The answer",
                f"After the example the model gives {end} {percent(share)}: is that right?",
                state,
                END,
            )
        )
        notice = (
            f"After the first token its likeliest guess is {first}, with {percent(of_first)}: is "
            "it possible to know more there?"
        )
        offers.append(Try("The first guess", notice, state, {"position": "0"}))
    elif len(subject.seen) > 1:
        # Where in the text on screen the model is least sure of the next token.
        # by how likely the likeliest token is at each position
        least = int(guesses(key, subject.seen).surest.argmin())
        likeliest, share, unsure = likeliest_guess(key, subject.seen, least)
        before = ("…" if least > WORDS_BEFORE else "") + "".join(
            subject.labels[max(0, least - WORDS_BEFORE) : least + 1]
        )
        notice = (
            f"After {in_quotes(before)} its likeliest token, {likeliest}, has {percent(share)}: "
            "the model is as unsure as in a "
            f"choice among {unsure:.1f} equally likely tokens. Set the temperature to 0.2 and to "
            "2 and see what changes."
        )
        offers.append(Try("An open question", notice, ledger_state(), {"position": str(least)}))
    # Sampling that cuts tokens, where there are some to cut.
    exact = torch.from_numpy(logits).double()[None]
    left = int((stages(exact, Sampling(**CUT), subject.lm.tokenizer.unused_ids).after > 0).sum())
    if left < len(logits):
        notice = (
            f"Temperature {CUT['temperature']} makes unlikely tokens more likely; top-k, then "
            "top-p cut them off (hatched). At "
            f"this place {left} of {len(logits):,} tokens {'stays' if left == 1 else 'stay'} in "
            "the draw."
        )
        offers.append(Try("Cut the tail", notice, ledger_state(**CUT)))
    if not subject.on_task:
        game = (
            "Ten characters of a text that the models have not seen: do you need more guesses "
            "than they do?"
        )
        offers.append(Try(VIEW, game, {PLAYS: True}))
    return offers


def likeliest_guess(key: ModelKey, ids: tuple[int, ...], position: int) -> tuple[str, float, float]:
    """The likeliest token after a place of a text, as Markdown, its probability, and the
    perplexity: the model is as unsure as if it chose among this many equally likely tokens.
    """
    shares = probabilities(logits_after(key, ids, position))
    best = int(shares.argmax())
    return (
        in_quotes(language_model(key).tokenizer.label(best)),
        float(shares[best]),
        perplexity(shares),
    )


def ledger_state(**choices: float) -> dict[str, Any]:
    """The state that sets the ledger to these choices, and all else so that it leaves the
    probabilities unchanged.
    """
    return {COMMAND: ViewCommand.new_command(PLAIN | choices)}
