"""What Home computes: the guess at the next token, and a small picture of every other page from this model and prompt."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np
import streamlit as st

from gptviz.components.token_strip import Token
from gptviz.figures import thumbnail
from gptviz.figures.theme import KIND_COLOURS, Theme
from gptviz.interp import embeddings, next_token, positions
from gptviz.learn.generation import Generation
from gptviz.learn.sampling import Sampling
from gptviz.model import parameter_count
from gptviz.text import Encoding

from . import attention, runs, snapshots
from .cache import ModelKey, language_model

SHOWN = 8
# Beyond this many numbers (a GPT-2 vocabulary at every position) only the last position is unembedded.
MOST_LOGITS = 4_000_000


@dataclass(frozen=True)
class Glance:
    """A prompt and the guess at what follows: chips for the tokens, the likeliest next tokens and their ids."""

    tokens: tuple[Token, ...]
    guesses: tuple[Token, ...]
    guess_ids: tuple[int, ...]
    shape: str


@st.cache_data(max_entries=32, show_spinner=False)
def glance(key: ModelKey, ids: tuple[int, ...]) -> Glance:
    """What the model makes of `ids`."""
    lm = language_model(key)
    config = lm.model.config
    every = len(ids) * config.vocab_size <= MOST_LOGITS
    logits = next_token.logits_after(lm.model, ids, slice(None) if every else slice(-1, None))
    guess = next_token.predict(logits[-1], Sampling())
    order = guess.order()[:SHOWN].tolist()
    labels = [lm.tokenizer.label(i) for i in ids]
    if every:
        seen = next_token.found(logits, ids, n=1).probability.tolist()
        tokens = tuple(Token(label, None if np.isnan(p) else p) for label, p in zip(labels, seen, strict=True))
    else:
        tokens = tuple(map(Token, labels))
    guesses = tuple(Token(lm.tokenizer.label(i), float(guess.before[i])) for i in order)
    blocks = f"{config.n_layer} blocks of {config.n_head} heads" if config.n_layer else "no blocks: a bigram"
    shape = f"{config.vocab_size:,} tokens in the vocabulary, {blocks}, {parameter_count(config):,} parameters"
    return Glance(tokens, guesses, tuple(order), shape)


@st.cache_data(max_entries=16, show_spinner=False)
def pictures(key: ModelKey, ids: tuple[int, ...], theme: Theme) -> dict[str, str]:
    """An SVG for the card of each page, where this model has something to show there."""
    lm = language_model(key)
    model, tokenizer = lm.model, lm.tokenizer
    drawn = {"pages/generate.py": _text(key, ids, theme)}
    if model.config.n_layer:
        view = attention.view(key, ids)
        block = len(view.patterns.blocks) // 2
        drawn["pages/attention.py"] = thumbnail.pattern(view.thumbnails.values[block, 0], theme)
    guess = next_token.predict(next_token.logits_after(model, ids, slice(-1, None))[0], Sampling())
    likely = guess.order()[:7]
    drawn["pages/next_token.py"] = thumbnail.bars([tokenizer.label(int(i)) for i in likely], guess.before[likely], theme)
    kind = positions.own_kind(model)
    if kind in positions.WITH_VECTORS:
        drawn["pages/positions.py"] = thumbnail.signed(positions.similarity(positions.vectors(model, kind)).values, theme)
    rows = embeddings.vectors(model, "embedding")
    some = embeddings.sample(len(rows), 100, 0)
    # The finished model's axes: while training is played, nothing moves that did not change.
    finished = embeddings.vectors(language_model(snapshots.last(key)).model, "embedding")
    places, _ = embeddings.pca(rows, 2, finished)
    colours = [KIND_COLOURS[tokenizer.kind_of(int(i))] for i in some]
    labels = [tokenizer.label(int(i)) for i in some]
    drawn["pages/embeddings.py"] = thumbnail.points(labels, colours, places[some], theme)
    return drawn


def learning(name: str, theme: Theme) -> dict[str, str]:
    """An SVG for the cards of the pages about training: how the model `name` learned, and the models worth comparing."""
    entries = runs.entries()
    compared = [curve for other in runs.striking(entries) if (curve := entries[other].curve) is not None]
    if not compared:
        return {}
    own = entries[name].curve if name in entries and entries[name].has_curve else None
    return {
        "pages/train.py": thumbnail.curves([own or compared[0]], theme),
        "pages/runs.py": thumbnail.curves(compared, theme),
    }


def _text(key: ModelKey, ids: tuple[int, ...], theme: Theme) -> str:
    lm = language_model(key)
    grown = Generation(lm.model, lm.tensor(Encoding(list(ids))), Sampling(temperature=0.8))
    steps = list(islice(grown, 120))
    labels = [lm.tokenizer.label(int(step.tokens[0])) for step in steps]
    probabilities = [float(step.logits[0].softmax(-1)[step.tokens[0]]) for step in steps]
    return thumbnail.text(labels, np.array(probabilities), theme)
