"""Byte-pair encoding that is learned from a text, as a film of its merges."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.figures.reading import tokens as figures
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.machine.errors import reason_of
from gptviz.text import CorpusUnavailableError, corpora, passages
from gptviz.text.tokenizers.learning import BYTES, Learned, learn_merges
from gptviz.text.tokenizers.pieces import Piece, pieces
from gptviz.ui.records.tokens import COMPARE, PAGE
from gptviz.ui.records.train import PAGE as TRAIN
from gptviz.ui.shell import frame
from gptviz.ui.shell.close import NOTHING, PageResult
from gptviz.ui.shell.subject import Subject
from gptviz.ui.shell.subject.asking import in_code
from gptviz.ui.views.texts import PASSAGES
from gptviz.ui.widgets import (
    addresses,
    controls,
    escape_markdown,
    in_quotes,
    jobs,
    show_figure,
    theme,
)
from gptviz.ui.widgets.figure import pixels
from gptviz.ui.widgets.playing import Player
from gptviz.ui.widgets.tables import show_table

from .cut import first_tokens, play_merges, strip, summary

OTHER = "other"
FROM = "learned_from"
MOST = "learn"
LEARNED: Final = "learned here, from a text"
LONGEST_OWN = 1_000_000
MERGES: Final = (50, 100, 200, 500, 1_000, 2_000, 5_000)
FEWEST_TO_TRAIN: Final = 44
PASTED: Final = "a text you paste"
OWN: Final = "A text of yours"
LONGEST_IN_CODE = 2_000  # characters
FILM = Player("film", "made", "Play the merges as they were learned; at the end, from the start.")


def learn(subject: Subject) -> PageResult:
    """Byte-pair encoding learned from a text, with a slider through its merges."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        try:
            text, name, most = to_learn()
        except CorpusUnavailableError as error:
            st.error(escape_markdown(f"{reason_of(error)}."))
            return NOTHING
    if not text.strip():
        st.info("There is no text to learn from: type or paste one above.")
        return NOTHING
    merging = learned_from(text, most)
    count = len(merging.merges)
    if not count:
        st.info("This text has no two neighbours that could be merged: type a longer one above.")
        return NOTHING
    about = "How many merges are made. The text, the pairs and the mark on the curve follow it."
    # Each of the first merges, then ever larger steps.
    options = sorted(
        {*range(min(20, count) + 1), *np.geomspace(1, count, 80).round().astype(int).tolist()}
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        made = play_merges(FILM, options, about)
    cut_text = cut_after(text, most, made, subject.prompt)
    strip(cut_text, merging.tokenizer, key="tokens strip", label=f"The prompt after {made} merges")
    st.caption(summary(cut_text, len(cut_text), subject.prompt))
    left, right = st.columns([3, 2], gap="medium")
    shrunk = LabelledArray(
        merging.bytes / merging.tokens,
        (Axis("merges", tuple(map(str, range(count + 1)))),),
        "bytes per token",
    )
    with left:
        show_figure(
            figures.shrinking(shrunk, theme(), height=300, chosen=made),
            key="shrinking",
            alt=f"How many bytes a token stands for, after 0 to {count:,} merges: "
            f"{shrunk.values[made]:.2f} after {made:,}.",
        )
        st.caption(
            f"The vocabulary has {BYTES} bytes and {made:,} merged tokens: {BYTES + made:,}. The "
            "text that is learned from has "
            f"{merging.bytes:,} bytes and is now {merging.tokens[made]:,} tokens long, "
            f"{shrunk.values[made]:.2f} bytes per token."
        )
    with right:
        _pairs(merging, text, most, made)
    _link_pages(name, text, most, count)
    return PageResult(lambda: shrunk, code(text, name, most))


def to_learn() -> tuple[str, str, int]:
    """The controls of what is learned: the text, its name, and the most merges.

    Raises:
        CorpusUnavailableError: the text cannot be read.
    """
    ready = [offer.name for offer in corpora() if offer.ready]
    hint = (
        "Merges are learned only from this text. A text of yours may have up to a million "
        "characters."
    )
    name = controls.select("Learn from", [*ready, PASSAGES, OWN], key=FROM, help=hint)
    if name == OWN:
        hint = "What the merges are learned from. Ctrl + Enter, or a click elsewhere, applies it."
        text = controls.text(
            "Your text",
            key="pasted",
            help=hint,
            longest=LONGEST_OWN,
            height=pixels(110),
            lasting=True,
        )
    else:
        text = passages() if name == PASSAGES else corpus_text(name)
    hint = "How many merges are learned at most: each adds one token to the vocabulary."
    most = controls.notch(
        "Merges to learn", MERGES, key=MOST, help=hint, default=1_000, format_func=str
    )
    return text, name, int(most)


@st.cache_resource(max_entries=2, show_spinner="Reading the text")
def corpus_text(name: str) -> str:
    """The text called `name`."""
    return next(offer for offer in corpora() if offer.name == name).open().text


@jobs.resource("Learning the merges", max_entries=4)
def learned_from(text: str, merges: int) -> Learned:
    """What byte-pair encoding learns from a text."""
    merging = learn_merges(text, merges)
    _ = merging.tokens
    return merging


@st.cache_data(max_entries=128, show_spinner=False)
def cut_after(text: str, merges: int, count: int, prompt: str) -> list[Piece]:
    """The tokens of the prompt after `count` merges."""
    tokenizer = learned_from(text, merges).tokenizer_after(count)
    return pieces(tokenizer, first_tokens(tokenizer.encode(prompt)))


def _pairs(merging: Learned, text: str, most: int, made: int) -> None:
    """The pairs that stand side by side most often, the first of which is merged next."""
    rows = pairs_after(text, most, made)
    show_table(
        pd.DataFrame(
            [{"left": left, "right": right, "side by side": times} for left, right, times in rows]
        ),
        hide_index=True,
        height=pixels(300),
    )
    if rows and made < len(merging.merges):
        left, right, times = rows[0]
        st.caption(
            f"Next: {in_quotes(left)} and {in_quotes(right)}, {times:,} times side by side, "
            "become one token."
        )
    elif rows:
        st.caption("All merges that were to be learned are made. These pairs would come next.")


@st.cache_data(max_entries=128, show_spinner=False)
def pairs_after(text: str, merges: int, count: int) -> list[tuple[str, str, int]]:
    """The pairs that are most frequent after `count` merges."""
    return learned_from(text, merges).pairs(count)


def _link_pages(name: str, text: str, most: int, count: int) -> None:
    """The links to what is done with these merges: a comparison with the tokenizer of the model,
    and a run on Train that learns the same ones from this text.
    """
    pasted = name in (PASSAGES, OWN)
    try:
        own = {"pasted": addresses.value_of(text)} if pasted else {}
    except OSError as error:
        st.caption(
            f"This text cannot be handed on ({escape_markdown(reason_of(error))}): paste it there."
        )
        return
    shared = frame.shared_state()
    learned = {OTHER: LEARNED, FROM: name, MOST: str(most)}
    with st.container(horizontal=True):
        if count < FEWEST_TO_TRAIN:
            st.caption(f"A model is trained with {FEWEST_TO_TRAIN} merges or more.")
        else:
            query = {"plan": "bpe", "data": PASTED if pasted else name, **own, "tokens": "bpe"}
            size = BYTES + count
            label = f"Train a model with these {size:,} tokens"
            frame.link(TRAIN, label, query={**shared, **query, "run_vocabulary": str(size)})
        own = own if name == OWN else {}
        frame.link(
            PAGE,
            "Beside the tokenizer of the model",
            query={**shared, "view": COMPARE, **learned, **own},
        )


def code(text: str, name: str, merges: int) -> str:
    """The lines of `gptviz` that learn merges from the text called `name`."""
    return f"""import gptviz
import gptviz.text
from gptviz.text.tokenizers.learning import learn_merges

found = learn_merges({text_expression(text, name)}, {merges})
found.tokens  # of the text, before the first merge and after each
found.pairs(0)  # the pairs that are most frequent before the first merge"""


def text_expression(text: str, name: str) -> str:
    """The expression that gives the text called `name`."""
    if name == PASSAGES:
        return in_code(text)
    if name == OWN:
        if len(text) <= LONGEST_IN_CODE:
            return repr(text)
        return 'open("your text.txt", encoding="utf-8").read()'
    return f"next(one for one in gptviz.text.corpora() if one.name == {name!r}).open().text"
