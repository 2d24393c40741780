"""What the Next token page computes, cached by model, text and position; what happens to the logits after that is computed in
the browser.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st
import torch

from gptviz.components.kit.command import NO_COMMAND, Command
from gptviz.components.sampling_ledger import SEEDS, Payload, address, payload, sampling_ledger
from gptviz.figures.format import percent
from gptviz.generate.sampling import Sampling, uniform
from gptviz.generate.sampling import ledger as stages
from gptviz.interp.next_token import Logits
from gptviz.ui.shell.models import ModelKey, language_model, load_call
from gptviz.ui.shell.prompts import MENENIUS, SEA
from gptviz.ui.shell.subject import Subject
from gptviz.ui.views.append_token import append_token
from gptviz.ui.views.guesses import guesses, logits_after
from gptviz.ui.views.text_position import END
from gptviz.ui.widgets import addresses
from gptviz.ui.widgets.markdown import escaped
from gptviz.ui.widgets.sampling import PLAIN
from gptviz.ui.widgets.tries import Try

# How many tokens before a guess a sentence quotes.
WORDS_BEFORE = 12
# What "Cut the tail" asks for.
CUT: dict[str, Any] = {"temperature": 1.5, "top_k": 10, "top_p": 0.8}

_COMMAND = "ledger command"

HOW = r"""The model gives every token of its vocabulary a *logit* $z_i$. Before and after sampling:

$$p_i = \frac{e^{z_i}}{\sum_j e^{z_j}} \qquad p'_i = \frac{e^{z_i / T}}{\sum_{j \text{ kept}} e^{z_j / T}}$$

The logits are divided by the temperature $T$; top-k keeps the $k$ likeliest tokens; of these, top-p keeps the fewest whose
probabilities together reach $p$; what is kept is scaled up to sum to 1. At $T = 0$ only the likeliest token is left. If two
tokens are equally likely, the one with the smaller number counts as likelier. Unused tokens stand for no text: they are rows of
the embedding beyond the tokens of the tokenizer. The model gives them probabilities, but they are taken out before the
temperature and never drawn; they come last.

The draw puts the kept tokens side by side, in the vocabulary's order, on the line from 0 to 1, each as wide as its probability,
and takes the token on which a random number falls. That number is computed from the seed and from how many tokens come before:
so one seed always gives the same text. “Draw 10,000” draws with 10,000 new random numbers; the test value is
$\chi^2 = \sum (\text{seen} - \text{expected})^2 / \text{expected}$, where tokens that are expected fewer than 5 times are
counted together.

Everything is computed over the whole vocabulary, in float64: `gptviz.generate.sampling.ledger` and `draw`. The model runs once
per text; your browser works on the logits it gave. Entropy is $H = -\sum_i p_i \ln p_i$ in nats (divide by $\ln 2$ for bits);
perplexity is $e^H$. The chips above show the probability of each token given those before it: `gptviz.interp.next_token`."""
LIMITS = """A probability says what the model expects, not why, and not whether it is right. Rank and probability of one token
say little about the model as a whole: its loss is the average over many."""


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
def _guess(key: ModelKey, ids: tuple[int, ...], position: int) -> _Guess:
    label = language_model(key).tokenizer.label
    shares = _shares(logits_after(key, ids, position))
    best = int(shares.argmax())
    text = "".join(label(i) for i in ids[max(0, position - WORDS_BEFORE) : position + 1])
    before = escaped(("…" if position > WORDS_BEFORE else "") + text)
    perplexity = float(np.exp(-(shares * np.log(np.maximum(shares, 1e-300))).sum()))
    return _Guess(position, before, escaped(label(best)), float(shares[best]), perplexity)


def _sure_and_unsure(key: ModelKey, ids: tuple[int, ...]) -> tuple[int, int]:
    """The position in a text where the likeliest token has the highest probability, and the one where it has the lowest."""
    most = guesses(key, ids).surest
    return int(most.argmax()), int(most.argmin())


def _shares(logits: Logits) -> npt.NDArray[np.float64]:
    exps = np.exp(logits.astype(np.float64) - logits.max(-1, keepdims=True))
    shares: npt.NDArray[np.float64] = exps / exps.sum(-1, keepdims=True)
    return shares


def to_try(subject: Subject, position: int) -> list[Try]:
    """What to try with this model and text, the view being at `position`."""
    if not np.isfinite(logits_after(subject.key, subject.seen, position)).all():
        return []  # a damaged model, which the view names
    if subject.on_task:
        return [*_examples(subject), *_a_cut(subject, position)]
    return [
        *(_places(subject) + _a_cut(subject, position)),
        Try("“sea”", "Three letters: does the word end here, or does it go on?", {"prompt": SEA} | ledger_state(), END),
        Try(
            "“What is gra”",
            "A line of the play Coriolanus, cut in the middle of a word.",
            {"prompt": MENENIUS} | ledger_state(),
            END,
        ),
    ]


def _examples(subject: Subject) -> list[Try]:
    """For a model of a task: a token that can be known, and one that cannot."""
    ids = tuple(subject.lm.tokenizer.encode(subject.default).ids)[-subject.lm.model.config.context_length :]
    end, first = _guess(subject.key, ids, len(ids) - 1), _guess(subject.key, ids, 0)
    known = f"After the example the model gives {end.likeliest} {percent(end.probability)}: is that right?"
    unknown = (
        f"After the first token its likeliest guess is {first.likeliest}, with {percent(first.probability)}: is it possible to "
        "know more there?"
    )
    return [
        Try("The answer", known, {"prompt": subject.default} | ledger_state(), END),
        Try("The first guess", unknown, {"prompt": subject.default} | ledger_state(), {"position": "0"}),
    ]


def _places(subject: Subject) -> list[Try]:
    """For the text on screen: where the model is surest of the next token, and where it is least sure."""
    if len(subject.seen) < 2:
        return []
    sure, open_ = (_guess(subject.key, subject.seen, at) for at in _sure_and_unsure(subject.key, subject.seen))
    if sure.position == open_.position:
        return []
    surest = (
        f"After “{sure.before}” it gives {sure.likeliest} {percent(sure.probability)}: this is where it is surest in this text."
    )
    question = (
        f"After “{open_.before}” its likeliest token, {open_.likeliest}, has {percent(open_.probability)}: the model is as "
        f"unsure as in a choice among {open_.perplexity:.1f} equally likely tokens. Set the temperature to 0.2 and to 2 and see "
        "what changes."
    )
    return [
        Try("Where it is surest", surest, ledger_state(), {"position": str(sure.position)}),
        Try("An open question", question, ledger_state(), {"position": str(open_.position)}),
    ]


def _a_cut(subject: Subject, position: int) -> list[Try]:
    """Sampling that cuts tokens at `position`, where there are some to cut."""
    logits = torch.from_numpy(logits_after(subject.key, subject.seen, position)).double()[None]
    left = int((stages(logits, Sampling(**CUT), subject.lm.tokenizer.unused_ids).after > 0).sum())
    size = logits.shape[-1]
    if left == size:
        return []
    tail = (
        f"Temperature {CUT['temperature']} makes unlikely tokens more likely; top-k, then top-p cut them off (hatched). At this "
        f"place {left} of {size:,} tokens {'stays' if left == 1 else 'stay'} in the draw."
    )
    return [Try("Cut the tail", tail, ledger_state(**CUT))]


def ledger_state(**choices: float) -> dict[str, Any]:
    """The state in which the ledger is asked for these choices; the other settings of sampling leave the probabilities
    unchanged.
    """
    return {_COMMAND: Command.to(PLAIN | choices)}


def _command() -> Command:
    """What the last "Try this" asks of the view."""
    command: Command = st.session_state.get(_COMMAND, NO_COMMAND)
    return command


# Kept for all sessions: the labels of a large vocabulary, and what was packed of it, take a moment to make.
@st.cache_resource(max_entries=3, show_spinner=False)
def _labels(key: ModelKey) -> tuple[str, ...]:
    return tuple(language_model(key).tokenizer.labels())


@st.cache_resource(max_entries=8, show_spinner=False)
def _payload(key: ModelKey, prompt: str, ids: tuple[int, ...], position: int, gone: int, command: Command) -> Payload:
    """What the ledger shows after `position` of `ids`, before which `gone` tokens of the prompt have left the window."""
    config, labels = language_model(key).model.config, _labels(key)
    is_last = position == len(ids) - 1
    tokens_before = gone + position + 1
    # At an earlier place Generate sees what the model saw here if no token has left the window and none was looked ahead to.
    same = is_last or (gone == 0 and config.mask == "causal")
    return payload(
        logits_after(key, ids, position),
        labels,
        about=(key, prompt, position),
        title=f"{key.title}, the token after position {position}",
        prompt="".join(language_model(key).tokenizer.label(i) for i in ids[: position + 1]).replace("␣", " "),
        code=code(key, prompt, position, tokens_before),
        numbers=np.array([uniform(seed, tokens_before).item() for seed in range(SEEDS)]),
        true=None if is_last else ids[position + 1],
        takes=True,
        used=len(labels) - len(language_model(key).tokenizer.unused_ids),
        note=", as on Generate with this seed" if same else "",
        command=command,
    )


def ledger(subject: Subject, position: int) -> None:
    """The sampling ledger of the token after `position`; one that is taken joins the text up to there."""
    gone = len(subject.encoding.ids) - len(subject.seen)
    try:
        data = _payload(subject.key, subject.prompt, subject.seen, position, gone, _command())
    except ValueError as error:
        st.error(escaped(f"{subject.key.name}: {error}. Choose another model or step above."))
        return
    ids = subject.encoding.ids[: gone + position + 1]
    addresses.takes_all(address(data.vocab_size, draws=True))
    sampling_ledger(data, key="ledger", on_take=lambda token: append_token(subject, ids, token))


def code(key: ModelKey, prompt: str, position: int, tokens_before: int) -> tuple[str, str]:
    """The lines of Python that compute the same stages and the same draw, before and after the settings."""
    lm = language_model(key)
    never = ", lm.tokenizer.unused_ids" if lm.tokenizer.unused_ids else ""
    begin = f"""import torch

import gptviz
from gptviz.interp.next_token import logits_after
from gptviz.generate.sampling import Sampling, draw, ledger, uniform

lm = {load_call(lm)}
ids = lm.seen(lm.encode({prompt!r})).tolist()
logits = torch.from_numpy(logits_after(lm.model, ids, slice({position}, {position + 1})))  # [1, vocab_size]
sampling = """
    end = f"""
stages = ledger(logits, sampling{never})
stages.before, stages.scaled, stages.in_top_k, stages.in_top_p, stages.after  # [1, vocab_size] each
# The random number depends only on the place and the seed.
token = draw(stages.after, uniform(sampling.seed, {tokens_before}))  # [1]"""
    return begin, end
