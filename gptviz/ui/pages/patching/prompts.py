"""The two prompts, their answers, and where they differ."""

from __future__ import annotations

import html
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import streamlit as st

from gptviz.figures.kit.format import format_signed, percent
from gptviz.interp.changing.patching import PromptPair, is_difference
from gptviz.interp.reading.next_token import Logits, probabilities
from gptviz.machine.memory import FLOAT32
from gptviz.model import Config
from gptviz.model.costs.activations import kept_activations
from gptviz.ui.shell.subject import Subject
from gptviz.ui.shell.subject.bar import longest_prompt, shorten_prompt
from gptviz.ui.shell.subject.reading import encode_text
from gptviz.ui.views.contrasts import suggestion
from gptviz.ui.views.guesses import logits_after
from gptviz.ui.views.which_logit import names
from gptviz.ui.widgets import controls, escape_markdown, in_quotes

CORRUPTED = "corrupted"
RIGHT = "right"
WRONG = "wrong"
LIKELIEST = "the likeliest"
# How many of the likeliest tokens after either prompt are offered as answers.
MOST_ANSWERS = 50
# The most bytes that are kept of the passes over both prompts, and the number of tokens that are
# read of any model.
MOST_BYTES = 320 * 2**20
FEWEST_TOKENS = 64
# The key of the session's state: the corrupted prompt that was suggested last.
_SUGGESTED = "corrupted prompt suggested last"


@dataclass(frozen=True)
class Prompts:
    """The two prompts on screen, of one length."""

    pair: PromptPair  #: their ids and answers
    text: str  #: the corrupted prompt
    tokens: tuple[str, ...]  #: the visible forms of the clean prompt's tokens
    names: tuple[str, str]  #: those of both answers, the right one first
    #: the logits [vocab_size] after both prompts, the clean one first
    logits: tuple[Logits, Logits]

    @property
    def differing_positions(self) -> list[int]:
        """The positions at which the prompts differ."""
        both = zip(self.pair.clean, self.pair.corrupted, strict=True)
        return [at for at, (one, other) in enumerate(both) if one != other]

    def answer(self, which: int) -> float:
        """The logit of the right answer minus that of the wrong one, after the clean prompt (0) or
        the corrupted one (1).
        """
        logits = self.logits[which]
        return float(logits[self.pair.right]) - float(logits[self.pair.wrong])


def with_room(subject: Subject) -> Subject:
    """The subject, its prompt cut to what fits in memory: all that a pass of a decoder computes is
    held for the preview.
    """
    if not subject.kind.continues or len(subject.seen) <= FEWEST_TOKENS:
        return subject
    return shorten_prompt(
        subject,
        _with_room(subject.lm.model.config),
        "The preview holds in memory all that a pass computes",
    )


@lru_cache(maxsize=64)
def _with_room(config: Config) -> int:
    """How many tokens of both prompts fit into `MOST_BYTES`, with all that a pass keeps for
    derivatives and comparisons.
    """
    # Of each token, what a block of the clean run computed: queries and keys, z, and the product
    # that values are a part of; of both runs, the stream before the block and what attention and
    # MLP wrote.
    of_heads = (2 * config.n_head + config.key_heads) + (config.n_head + 2 * config.key_heads)
    of_token = FLOAT32 * config.n_layer * (of_heads * config.head_size + 2 * 3 * config.d_model)

    def is_too_long(tokens: int) -> bool:
        patterns = FLOAT32 * config.n_layer * config.n_head * tokens**2
        return kept_activations(config).total(1, tokens) + patterns + of_token * tokens > MOST_BYTES

    return max(
        FEWEST_TOKENS, bisect_left(range(config.context_length + 1), True, key=is_too_long) - 1
    )


def prompts(subject: Subject) -> Prompts | None:
    """The prompts and answers chosen in the controls, or None, with a message, if they cannot be
    patched.
    """
    if not subject.lm.model.config.n_layer:
        st.info(
            "This model has no blocks: between its embedding and its answer there is nothing to "
            "patch. Choose another above."
        )
        return None
    default = suggestion(subject)
    with st.container(key="one-line-patching"):
        text_box, of_right, of_wrong = st.columns([7, 4, 4])
    with text_box:
        # The control for the corrupted prompt. While nobody has typed one, it follows the
        # suggestion for the prompt.
        last = st.session_state.get(_SUGGESTED, default)
        st.session_state[_SUGGESTED] = default
        text = controls.text(
            "Second text",
            default,
            key=CORRUPTED,
            help=(
                "The corrupted prompt: a text with as many tokens as the prompt, but another answer. "
                "Best change "
                "one word: what differs is what "
                "the patches then tell apart. Ctrl + Enter, or a click elsewhere, applies it."
            ),
            longest=longest_prompt(),
            height=68,
            instead_of=(last,),
        )
    ids = ids_of(subject, text, default)
    if ids is None:
        return None
    both = answers(subject, ids, text, of_right, of_wrong)
    if both is None:
        return None
    if not is_difference(both.answer(0), both.answer(1)):
        verdict(both)
        st.info(
            "After both prompts the answer is the same number: there is nothing to restore, and "
            "no share of it is defined. "
            "Choose other answers, or change another word."
        )
        return None
    return both


def ids_of(subject: Subject, text: str, default: str) -> tuple[int, ...] | None:
    """The ids that the model reads of the corrupted prompt, or None, with a message, if it cannot
    be compared with the prompt.
    """
    if not text.strip():
        st.info(
            "Type a second text above: the prompt with one word changed, such as another "
            "name, country or number, so that "
            "the answer changes too. It needs as many tokens as the prompt."
        )
        _offer(default)
        return None
    encoding = encode_text(subject.lm, text, "type another second text")
    if encoding is None:
        return None
    if encoding.unknown:
        st.warning(
            f"Second text: {escape_markdown(encoding.unknown_sentence())}",
            icon=":material/help:",
        )
    clean = len(subject.encoding.ids)
    corrupted = len(encoding.ids)
    if clean != corrupted:
        many = abs(clean - corrupted)
        st.error(
            f"The prompt has {clean:,} tokens and the second text {corrupted:,}. What was computed "
            "at a place of the one is put into the same place of the other, so both need the same "
            f"number: make the second text {many:,} "
            f"{'token' if many == 1 else 'tokens'} {'longer' if clean > corrupted else 'shorter'}."
        )
        _offer(default)
        return None
    ids = tuple(encoding.ids[clean - len(subject.seen) :])
    if ids == subject.seen:
        st.info(
            "The model reads both texts as the same: there is nothing to restore. Change a word "
            "of the second."
        )
        _offer(default)
        return None
    return ids


def _offer(default: str) -> None:
    """A button that puts a prompt into the box that fits."""
    if default:
        st.button(
            "Change one token of the prompt instead",
            on_click=st.session_state.update,
            args=({CORRUPTED: default},),
            key="suggest corrupted",
            icon=":material/auto_fix_high:",
        )


def answers(
    subject: Subject, corrupted: tuple[int, ...], text: str, of_right: Any, of_wrong: Any
) -> Prompts | None:
    """The controls for both answers, and the prompts with them, or None, with a message, if they
    cannot be weighed.
    """
    key = subject.key
    clean = subject.seen
    logits = tuple(logits_after(key, ids, len(ids) - 1) for ids in (clean, corrupted))
    if not all(np.isfinite(one).all() for one in logits):
        st.error(
            escape_markdown(
                f"{key.name}: its logits are not all numbers. Choose another model or step above."
            )
        )
        return None
    likely = [
        int(token)
        for both in zip(*((-one).argsort()[:MOST_ANSWERS] for one in logits), strict=True)
        for token in both
    ]
    every = names(subject)
    label = subject.lm.tokenizer.label
    offered = {every[token]: token for token in likely}
    options = [LIKELIEST, *offered]
    hint = "A token; unless chosen, the likeliest after the prompt."
    likeliest = int(logits[0].argmax())
    with of_right:
        right = _answer("Right answer", RIGHT, options, every[likeliest], hint)
    hint = (
        "A token; unless chosen, the likeliest after the second text that is not the right answer."
    )
    right_id = offered.get(right, likeliest)
    others = np.where(np.arange(len(logits[1])) == right_id, -np.inf, logits[1])
    rival = int(others.argmax())
    with of_wrong:
        wrong = _answer("Wrong answer", WRONG, options, every[rival], hint)
    wrong_id = offered.get(wrong, rival)
    if right_id == wrong_id:
        st.info(
            f"Right and wrong answer are both {in_quotes(label(right_id))}: choose another token "
            "for one of them."
        )
        return None
    pair = PromptPair(clean, corrupted, right_id, wrong_id)
    return Prompts(
        pair, text, subject.labels, (label(right_id), label(wrong_id)), (logits[0], logits[1])
    )


def _answer(label: str, key: str, options: list[str], likeliest: str, hint: str) -> str:
    """The control for an answer, which shows the likeliest token by its name."""
    return controls.select(
        label,
        options,
        key=key,
        default=LIKELIEST,
        help=hint,
        format_func=lambda option: f"{likeliest}, likeliest" if option == LIKELIEST else option,
    )


STYLE = """<style>
.both > div { display: flex; flex-wrap: wrap; gap: 0.15rem; align-items: center; font-family: monospace; font-size: 0.85rem;
  direction: ltr; padding-block: 1px; }
[data-testid="stElementContainer"]:has(.both) { margin-block: -0.4rem -0.6rem; }
.both bdi { background: rgba(128, 128, 128, 0.14); border-radius: 3px; padding: 0 0.2rem; text-align: center; white-space: pre;
  box-sizing: content-box; }
.both span { color: light-dark(#5b5f6b, #a8adb8); font: 0.8125rem sans-serif; width: 4.75rem; }
.both .apart { outline: 2px solid currentColor; font-weight: 700; margin: 2px; }
</style>"""


def strips(subject: Subject, prompts: Prompts) -> None:
    """The tokens of both texts, one above the other; where they differ they are framed. Each token
    is as wide as the one below or above it, so they stand in columns where there is room.
    """
    label = subject.lm.tokenizer.label
    both = list(zip(subject.seen, prompts.pair.corrupted, strict=True))
    rows = []
    for which, name in enumerate(("first text", "second text")):
        chips = [f"<span>{name}</span>"]
        for pair in both:
            look = ' class="apart"' if pair[0] != pair[1] else ""
            width = max(len(label(one)) for one in pair)
            token = html.escape(label(pair[which]))
            chips.append(f'<bdi{look} style="min-width: {width}ch">{token}</bdi>')
        rows.append(f'<div role="group" aria-label="{name}">{"".join(chips)}</div>')
    st.html(f'{STYLE}<div class="both">{"".join(rows)}</div>')


def verdict(prompts: Prompts) -> None:
    """How likely both answers are after both prompts, and the number that patches bring back."""
    right, wrong = map(escape_markdown, prompts.names)
    answers = [prompts.pair.right, prompts.pair.wrong]
    shares = [
        [percent(share) for share in probabilities(logits)[answers].tolist()]
        for logits in prompts.logits
    ]
    clean = prompts.answer(0)
    corrupted = prompts.answer(1)
    st.caption(
        f"After the first text: **{right}** {shares[0][0]}, **{wrong}** {shares[0][1]}; after the "
        f"second: **{right}** "
        f"{shares[1][0]}, **{wrong}** {shares[1][1]}. The logit of {right} minus that of {wrong} "
        f"is **{format_signed(clean, 2)}** and **{format_signed(corrupted, 2)}** points: a piece "
        f"that makes it {format_signed(clean, 2)} again, a patch, brings 100 % back.",
        help="A logit is the score of a token before softmax. A difference of two logits says by "
        "how much one token is preferred "
        "to the other, whatever becomes of all others.",
    )
