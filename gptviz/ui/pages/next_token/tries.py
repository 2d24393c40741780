"""The suggestions of the page Next token."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gptviz.components.kit.command import ViewCommand
from gptviz.figures.kit.format import percent
from gptviz.generate.sampling import Sampling
from gptviz.generate.sampling import ledger as stages
from gptviz.ui.shell.subject import ModelKey, Subject
from gptviz.ui.shell.subject.prompts import MENENIUS, SEA
from gptviz.ui.views.guesses import guesses, logits_after
from gptviz.ui.views.text_position import END
from gptviz.ui.widgets import Try
from gptviz.ui.widgets.sampling import PLAIN

from .computed import likeliest_guess
from .guessing import PLAYS
from .show import COMMAND

# The settings of "Cut the tail".
CUT: dict[str, Any] = {"temperature": 1.5, "top_k": 10, "top_p": 0.8}


def _sure_and_unsure(key: ModelKey, ids: tuple[int, ...]) -> tuple[int, int]:
    """The position in a text where the likeliest token has the highest probability, and the one where it has the lowest."""
    most = guesses(key, ids).surest
    return int(most.argmax()), int(most.argmin())


def tries(subject: Subject, position: int) -> list[Try]:
    """The suggestions for this model and text, the view being at `position`."""
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
        Try(
            "Guess it yourself",
            "Ten characters of a text that the models have not seen: do you need more guesses than they do?",
            {PLAYS: True},
        ),
    ]


def _examples(subject: Subject) -> list[Try]:
    """For a model of a task: a token that can be known, and one that cannot."""
    ids = tuple(subject.lm.tokenizer.encode(subject.default).ids)[-subject.lm.model.config.context_length :]
    end, first = likeliest_guess(subject.key, ids, len(ids) - 1), likeliest_guess(subject.key, ids, 0)
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
    sure, open_ = (likeliest_guess(subject.key, subject.seen, at) for at in _sure_and_unsure(subject.key, subject.seen))
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
    """The state that sets the ledger to these choices, and all else so that it leaves the probabilities unchanged."""
    return {COMMAND: ViewCommand.to(PLAIN | choices)}
