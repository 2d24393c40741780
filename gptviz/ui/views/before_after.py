"""The model before and after its edits, side by side: its guess, its loss, and what it writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from threading import Lock
from typing import Any

import streamlit as st
import torch

from gptviz.figures.changing.before_after import before_after
from gptviz.figures.kit.format import brief, change_in_words, format_count, format_signed, percent
from gptviz.generate.budget import affordable
from gptviz.generate.generation import Generation, until_drawn, without_end
from gptviz.generate.sampling import Sampling
from gptviz.interp.changing.before_after import Change
from gptviz.labelled_array import LabelledArray
from gptviz.language_model import LanguageModel
from gptviz.language_model.answer_space import AnswerSpace
from gptviz.language_model.core import answer_space_of, end_tokens
from gptviz.language_model.writing import to_write
from gptviz.machine import job, progress
from gptviz.machine.job import Job
from gptviz.machine.memory import release_memory
from gptviz.model.costs.effort import LEAST
from gptviz.ui.records.generate import PAGE as GENERATE
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import ModelKey, Subject, edits, language_model, load_call
from gptviz.ui.widgets import in_quotes, jobs, show_figure, theme
from gptviz.ui.widgets.sampling import sampling_controls

from . import encoder_decoder
from .loss_texts import LossText, ask_guess, loss_of, unit_of

# How many tokens the figure shows of each of the two guesses, and how many are written.
MOST_SHOWN = 5
MOST_WRITTEN = 80
# One prompt is read at a time: of a long one, what a pass holds for a moment would else be in
# memory twice.
_reading = Lock()


# In what follows, `key` is the model after its edits, and `before` the one it is compared with:
# without any edit unless given.


@dataclass(frozen=True)
class GuessMove:
    """The guess before and after the edits of a model."""

    change: Change
    answers: AnswerSpace
    #: the code that gives both guesses, as `result` and `before`
    code: Callable[..., str]

    @property
    def likeliest(self) -> tuple[int, int]:
        """The likeliest token or label before and after."""
        return int(self.change.before.argmax()), int(self.change.after.argmax())

    @property
    def sentence(self) -> str:
        """How the likeliest one before moves, and what is likeliest now, as Markdown."""
        first, then = self.likeliest
        moves = change_in_words(self.change.before[first], self.change.after[first])
        if first == then:
            now = "is still the likeliest"
        else:
            label = in_quotes(self.answers.label(then))
            now = f"gives way to {label} ({percent(self.change.after[then])})"
        return f"{in_quotes(self.answers.label(first))} {moves} and {now}"

    def show(self) -> tuple[LabelledArray, str]:
        """Draw the likeliest tokens, or all labels, before and after. Returns the numbers shown,
        and the code that computes them.
        """
        if self.answers.noun == "token":
            ids = self.change.likeliest_tokens(MOST_SHOWN)
        else:
            ids = list(range(len(self.change.before)))
        labels = [self.answers.label(i) for i in ids]
        table = self.change.table(ids, labels, self.answers.noun)
        first, _ = self.likeliest
        moves = change_in_words(self.change.before[first], self.change.after[first])
        alt = f"The guess before and after: {self.answers.label(first)} {moves}."
        show_figure(before_after(table, theme()), key="before and after", alt=alt)
        st.caption(
            f"The guess has moved by {brief(self.change.divergence)} nats.",
            help="Kullback–Leibler divergence of the guess after from the one before: 0 is no "
            "change.",
        )
        code = self.code(
            f"Change(before.probabilities, result.probabilities).table({ids}, {labels}, "
            f"{self.answers.noun!r})  # [when, {self.answers.noun}]"
        )
        return table, code


def ask_guess_move(subject: Subject, key: ModelKey, before: ModelKey | None = None) -> GuessMove:
    """The guess after the prompt before and after the edits of `key`."""
    asked = ask_guess(key, subject.text)
    first = ask_guess(before or key.unedited, subject.text)
    change = Change(first.value.probabilities, asked.value.probabilities)
    release_memory()  # two texts are written meanwhile, each in a thread with its own heap
    if before is None or before == key.unedited:
        other = "lm.original"
    else:
        other = load_call(language_model(before))
    code = partial(
        asked.code,
        "from gptviz.interp.changing.before_after import Change",
        "",
        f"before = {other}.{first.call.removeprefix('lm.')}",
    )
    return GuessMove(change, answer_space_of(subject.lm), code)


def losses(subject: Subject, key: ModelKey, text: LossText, before: ModelKey | None = None) -> None:
    """The loss over the text without and with the edits of `key`."""
    first = loss_of(before or key.unedited, text)
    after = loss_of(key, text)
    unit = unit_of(subject.lm)
    moved = abs(after - first) >= 0.0005
    look: dict[str, Any] = {"delta_color": "off", "delta_arrow": "off"}
    if moved and after < first:
        look = {"delta_color": "green", "delta_arrow": "down"}
    elif moved:
        look = {"delta_color": "red", "delta_arrow": "up"}
    st.metric(
        f"Loss over {text.which}, {unit}",
        f"{first:.3f} → {after:.3f}",
        format_signed(after - first, 3) if moved else "unchanged",
        help="Before the edits and after them. The lower the loss, the less surprised the model is "
        "by what really comes.",
        **look,
    )


def texts(subject: Subject, key: ModelKey, before: ModelKey | None = None) -> None:
    """The texts that the model writes after the prompt without and with the edits of `key`, with
    the same random numbers.
    """
    if subject.kind.guesses == "label":
        return
    st.markdown("**What it writes**")
    sampling = sampling_controls(temperature=0.0)
    both = []
    for place, name, model in zip(
        st.columns(2, gap="medium"), ("Before", "After"), (before or key.unedited, key), strict=True
    ):
        with place:
            st.caption(name)
            both.append(written_text(model, subject.seen, sampling, name))
    first, after = both
    if first is not None and after is not None:
        same = next(
            (i for i, (a, b) in enumerate(zip(first, after, strict=False)) if a != b),
            min(len(first), len(after)),
        )
        if sampling.temperature == 0:
            how = "take the likeliest token each time"
        else:
            how = "draw with the same random numbers"
        # A space at the beginning is nothing that both texts say.
        some = format_count(same, "character")
        if first[:same].strip():
            begin = f"They begin with the same {some}"
        else:
            begin = "They differ from the beginning"
        alike = "Both texts are the same" if first == after else begin
        st.caption(f"{alike}. Both {how}.")
    if subject.kind.continues:
        query = frame.shared_state()
        if key != subject.key:
            query |= {edits.EDITS: ",".join(key.edits)}
        frame.link(GENERATE, "Go on with it as a branch, on Generate", query=query)


def written_text(key: ModelKey, ids: tuple[int, ...], sampling: Sampling, name: str) -> str | None:
    """The whole text that the model writes after the prompt, as many tokens as a moment allows, or
    an encoder–decoder's answer.

    The text of a large model is written while the rest of the page is there already: until it is
    whole, the page shows how far it is, and this returns None. `name` tells the texts on the page
    apart.
    """
    lm = language_model(key)
    text: str | None
    if not lm.kind.continues or affordable(lm.model, len(ids), MOST_WRITTEN, LEAST) == MOST_WRITTEN:
        text = _write_text(key, ids, sampling)
        is_whole = True
    else:
        # The computation of a text, which is begun at once, and how far it is.
        of = ("text", key, ids, sampling)
        title = f"Writing the text {name.lower()}"

        def begin() -> Job[str]:
            return job.begin(of, title, partial(_write, key, ids, sampling))

        writing = job.find_job(of) or begin()
        jobs.follow(writing, f"writing {name}")
        if writing.state in ("stopped", "failed"):
            jobs.begin_button(
                "Write it from the beginning", begin, icon=":material/replay:", key=f"write {name}"
            )
        text = writing.value
        is_whole = writing.state == "done"
    if text is not None:
        st.code(text or " ", language=None, wrap_lines=True)
    if is_whole:
        return text
    return None


@jobs.data("Writing", max_entries=64)
def _write_text(key: ModelKey, ids: tuple[int, ...], sampling: Sampling) -> str:
    lm = language_model(key)
    if (
        own := encoder_decoder.answer(key, ids, None if sampling.temperature == 0 else sampling)
    ) is not None:
        return lm.tokenizer.decode(own.ids)
    return _text_of(lm, list(_tokens(lm, ids, sampling, MOST_WRITTEN)))


def _write(key: ModelKey, ids: tuple[int, ...], sampling: Sampling) -> str:
    """The same of a large model, a token at a time; when it is stopped, what was written stays."""
    lm = language_model(key)
    tokens = list[int]()
    most = affordable(lm.model, len(ids), MOST_WRITTEN)
    drawn = _tokens(lm, ids, sampling, most)
    try:
        with progress.part(0, most, doing="reading the prompt"), _reading:
            tokens += islice(drawn, 1)
            release_memory()
        while len(tokens) < most:
            with progress.part(len(tokens), most, doing="writing"):
                token = next(drawn, None)
            if token is None:
                break
            tokens.append(token)
    finally:
        progress.show_so_far(_text_of(lm, tokens))
    return _text_of(lm, tokens)


def _tokens(
    lm: LanguageModel, ids: tuple[int, ...], sampling: Sampling, most: int
) -> Iterator[int]:
    grown = Generation(lm.model, torch.tensor(ids), sampling, never=lm.tokenizer.unused_ids)
    return (
        int(step.tokens[0])
        for step in until_drawn(islice(grown, to_write(lm, len(ids), most)), end_tokens(lm))
    )


def _text_of(lm: LanguageModel, tokens: list[int]) -> str:
    return lm.tokenizer.continuation(without_end(tokens, end_tokens(lm))[0])
