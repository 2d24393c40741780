"""The computations of the page Tokens, each once for all sessions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import streamlit as st

from gptviz.labelled_array import Axis, LabelledArray
from gptviz.machine.hosting import hosting
from gptviz.pretrained import opening
from gptviz.pretrained.places import stores
from gptviz.pretrained.places.stores import Place
from gptviz.runs import checkpoints
from gptviz.text import Encoding, Tokenizer, corpora
from gptviz.text.datasets.languages import FIRST, TRANSLATED, examples
from gptviz.text.tokenizers.learning import Learned, learned
from gptviz.text.tokenizers.merging import Merging
from gptviz.text.tokenizers.pieces import Cost, Piece, cost, pieces
from gptviz.ui.shell.subject import ModelKey, language_model
from gptviz.ui.widgets import jobs

# The tokens of a long text that are shown.
MOST_SHOWN = 2_000
# A tokenizer does not read a text of which it lacks a larger share of the tokens.
MOST_LACKING = 0.1


def first(encoding: Encoding) -> Encoding:
    """The first `MOST_SHOWN` tokens."""
    return Encoding(encoding.ids[:MOST_SHOWN], tuple(one for one in encoding.unknown if one.position < MOST_SHOWN))


@st.cache_data(max_entries=32, show_spinner=False)
def cut(key: ModelKey, prompt: str) -> list[Piece]:
    """The tokens of the prompt."""
    tokenizer = language_model(key).tokenizer
    return pieces(tokenizer, first(tokenizer.encode(prompt)))


@st.cache_data(max_entries=64, show_spinner=False)
def merging(key: ModelKey, ids: tuple[int, ...]) -> Merging | None:
    """The merges that made these tokens."""
    return language_model(key).tokenizer.merging(ids)


@st.cache_data(ttl=60, show_spinner="Looking for tokenizers on this machine")
def places() -> dict[str, Place]:
    """The tokenizers that other programs keep on this machine, by what the list calls them; none on a server that only shows
    models, whose readers are not to learn what is on it.
    """
    return {} if hosting().read_only else {f"{place.name} ({place.store})": place for place in stores.tokenizers()}


@st.cache_data(ttl=20, max_entries=8, show_spinner="Looking for tokenizers in the folder")
def places_inside(folder: Path) -> dict[str, Place]:
    """The tokenizers in a folder that the user names and below it, by their names there."""
    found = stores.inside(folder)
    return {place.name: place for place in (*found.tokenizers, *found.models)}


@st.cache_resource(max_entries=4, show_spinner="Reading the tokenizer")
def tokenizer_at(path: Path) -> Tokenizer:
    """The tokenizer of a model of another program, or of a folder with a tokenizer alone."""
    return opening.tokenizer_at(path)


@st.cache_resource(max_entries=8, show_spinner="Reading the tokenizer")
def _of_model(folder: Path, written: float) -> Tokenizer:
    return checkpoints.read_tokenizer(folder)


def tokenizer_named(name: str) -> Tokenizer:
    """The tokenizer of a model of gptviz.

    Raises:
        CheckpointError: there is no such model, or its tokenizer cannot be read.
        OSError: as above.
    """
    folder = checkpoints.find(name)
    return _of_model(folder, (folder / "tokenizer.json").stat().st_mtime)


def costs(tokenizer: Tokenizer) -> dict[str, Cost]:
    """What each of the examples, which are short, costs a tokenizer."""
    return {title: cost(tokenizer, text) for title, text in examples().items()}


def _ratio(text: Cost, usual: Cost) -> float:
    """How many times as many tokens a text takes as the `usual` one; NaN where the vocabulary lacks much of one of them."""
    is_read = all(one.tokens and one.lacking <= MOST_LACKING * one.tokens for one in (text, usual))
    return text.tokens / usual.tokens if is_read else np.nan


def times(found: dict[str, dict[str, Cost]]) -> LabelledArray:
    """How many times as many tokens as `FIRST` each language takes: [text, tokenizer]; of costs by tokenizer and text."""
    languages = tuple(examples())[:TRANSLATED]
    values = np.array([[_ratio(one[text], one[FIRST]) for one in found.values()] for text in languages])
    return LabelledArray(values, (Axis("text", languages), Axis("tokenizer", tuple(found))), f"tokens, {FIRST} = 1")


@st.cache_resource(max_entries=2, show_spinner="Reading the text")
def corpus_text(name: str) -> str:
    """The text called `name`."""
    return next(offer for offer in corpora() if offer.name == name).open().text


@jobs.resource("Learning the merges", max_entries=4)
def learned_from(text: str, merges: int) -> Learned:
    """What byte-pair encoding learns from a text."""
    found = learned(text, merges)
    _ = found.tokens
    return found


@st.cache_data(max_entries=128, show_spinner=False)
def pairs_after(text: str, merges: int, count: int) -> list[tuple[str, str, int]]:
    """The pairs that are most frequent after `count` merges."""
    return learned_from(text, merges).pairs(count)


@st.cache_data(max_entries=128, show_spinner=False)
def cut_after(text: str, merges: int, count: int, prompt: str) -> list[Piece]:
    """The tokens of the prompt after `count` merges."""
    tokenizer = learned_from(text, merges).after(count)
    return pieces(tokenizer, first(tokenizer.encode(prompt)))
