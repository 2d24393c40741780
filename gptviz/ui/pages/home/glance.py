"""The model at a glance, and the pictures of the pages that Home leads to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

import numpy as np
import streamlit as st
import torch

from gptviz.components.model_map import HIDDEN, WHOLE_SHARE
from gptviz.components.token_strip import Token
from gptviz.figures.kit import thumbnail
from gptviz.figures.kit.format import counted, percent
from gptviz.figures.kit.theme import KIND_COLOURS, Theme
from gptviz.generate.budget import affordable
from gptviz.generate.generation import Generation
from gptviz.generate.sampling import Sampling
from gptviz.interp.reading import cross_attention, embeddings, next_token, positions
from gptviz.interp.reading.classification import judge
from gptviz.language_model import LanguageModel
from gptviz.model import Config, parameter_count
from gptviz.model.kinds import MODEL_KINDS
from gptviz.text import Encoding
from gptviz.ui.records.attention import PAGE as ATTENTION
from gptviz.ui.records.classify import PAGE as CLASSIFY
from gptviz.ui.records.embeddings import PAGE as EMBEDDINGS
from gptviz.ui.records.generate import PAGE as GENERATE
from gptviz.ui.records.next_token import PAGE as NEXT_TOKEN
from gptviz.ui.records.positions import PAGE as POSITIONS
from gptviz.ui.records.runs import PAGE as RUNS
from gptviz.ui.records.tokens import PAGE as TOKENS
from gptviz.ui.records.train import PAGE as TRAIN
from gptviz.ui.records.translate import PAGE as TRANSLATE
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import ModelKey, Subject, language_model, scrubber
from gptviz.ui.views import encoder_decoder, model_map
from gptviz.ui.views.entries import default_comparison, entries
from gptviz.ui.views.guesses import guesses, logits_after
from gptviz.ui.widgets import in_quotes

SHOWN = 8
# The tokens of the text on the card of Generate; with a large model, fewer. Of a long prompt the end is read for it.
MOST_WRITTEN, MOST_READ = 120, 512


@dataclass(frozen=True)
class Glance:
    """A prompt and what becomes of it.

    Attributes:
        tokens: a chip for each token that the model reads.
        guesses: the likeliest next tokens; of a classifier, labels; of an encoder–decoder, the tokens of its answer.
        guess_ids: the ids of next tokens, which can be taken; empty for other guesses.
        shape: the model's size in words.
    """

    tokens: tuple[Token, ...]
    guesses: tuple[Token, ...]
    guess_ids: tuple[int, ...]
    shape: str


@st.cache_data(max_entries=32, show_spinner=False)
def glance(key: ModelKey, ids: tuple[int, ...]) -> Glance:
    """The prompt `ids` and the guesses of the model for it."""
    lm = language_model(key)
    config, label = lm.model.config, lm.tokenizer.label
    shape = shape_of(config)
    if config.kind == "decoder":
        tokens, likely, guess_ids = _next(key, ids)
        return Glance(tokens, likely, guess_ids, shape)
    tokens = tuple(Token(label(i)) for i in ids)
    return Glance(tokens, _labels(lm, ids) if config.kind == "classifier" else _answer(key, ids), (), shape)


def shape_of(config: Config) -> str:
    """The size of a model in words."""
    stacks = f"{config.n_encoder_layer} + {config.n_layer}" if config.n_encoder_layer else f"{config.n_layer}"
    none = "no blocks: a bigram" if config.kind == "decoder" else "no blocks"
    heads = counted(config.n_head, "head")
    if config.key_heads < config.n_head:
        heads += f" over {counted(config.key_heads, 'key head')}"
    blocks = f"{stacks} block{'' if stacks == '1' else 's'} of {heads}" if stacks != "0" else none
    if windowed := sum(config.windowed(block) for block in range(config.n_layer)):
        which = "each" if windowed == config.n_layer else f"{windowed} of them"
        blocks += f", {which} with a window of {config.window:,} tokens (dashed)"
    return f"{config.vocab_size:,} tokens in the vocabulary, {blocks}, {parameter_count(config):,} parameters"


def _next(key: ModelKey, ids: tuple[int, ...]) -> tuple[tuple[Token, ...], tuple[Token, ...], tuple[int, ...]]:
    """The tokens of a text, tinted by how probable they were; and the likeliest next ones, with their ids."""
    label = language_model(key).tokenizer.label
    guess = next_token.predict(logits_after(key, ids, len(ids) - 1), Sampling())
    order = guess.order()[:SHOWN].tolist()
    seen = guesses(key, ids).tokens.probability.tolist()
    tokens = tuple(Token(label(i), None if np.isnan(p) else p) for i, p in zip(ids, seen, strict=True))
    return tokens, tuple(Token(label(i), float(guess.before[i])) for i in order), tuple(order)


def _labels(lm: LanguageModel, ids: tuple[int, ...]) -> tuple[Token, ...]:
    """The likeliest labels of a text."""
    probabilities = judge(lm.model, torch.tensor(ids, device=lm.device)).probabilities
    order = np.argsort(-probabilities, kind="stable")[:SHOWN].tolist()
    return tuple(Token(lm.labels[i], float(probabilities[i]), note=lm.labels[i]) for i in order)


def _answer(key: ModelKey, source: tuple[int, ...]) -> tuple[Token, ...]:
    """The tokens of the answer to a source, with how probable each was."""
    lm, decoded = language_model(key), encoder_decoder.decoder_ids(key, source)
    logits = next_token.logits_after(lm.model, decoded, slice(None), source)
    written = next_token.token_probabilities(logits, decoded, n=1).probability.tolist()
    return tuple(Token(lm.tokenizer.label(i), p) for i, p in zip(decoded[1:], written[1:], strict=True))


def say_guess(guesses: Sequence[Token]) -> None:
    """The likeliest next token of a decoder, and how much of all probability the list on the map has; nothing where the model's
    numbers are damaged.
    """
    shares = [guess.probability for guess in guesses if guess.probability is not None and math.isfinite(guess.probability)]
    if shares and len(shares) == len(guesses):
        st.caption(
            f"After this text {in_quotes(guesses[0].label)} is the likeliest next token, with {percent(shares[0])}. The "
            f"{counted(len(shares), 'token')} in the list have {percent(min(1.0, sum(shares)))} of all probability."
        )


def link_to_own_page(subject: Subject) -> None:
    """For a model that guesses no next token: what it does instead, and a link to the page that shows it."""
    if subject.kind == "decoder":
        return
    kind = MODEL_KINDS[subject.kind]
    st.caption(f"This model is {kind.with_article}: it {kind.does}; it does not continue a text.")
    page = frame.page_about(kind.name)
    frame.link(page, f"Look at it closely: {page.title}")


@st.cache_data(max_entries=16, show_spinner=False)
def pictures(key: ModelKey, ids: tuple[int, ...], theme: Theme) -> dict[str, str]:
    """An SVG for the card of each page by its name, where this model has something to show there."""
    lm = language_model(key)
    model, tokenizer = lm.model, lm.tokenizer
    drawn = {"decoder": _of_decoder, "classifier": _of_classifier, "encoder-decoder": _of_both}[model.config.kind](
        key, ids, theme
    )
    both = model.config.kind == "encoder-decoder"
    small = model_map.patterns(key, encoder_decoder.decoder_ids(key, ids), ids) if both else model_map.patterns(key, ids, None)
    if (heads := small.get("encoder" if both else "decoder")) is not None:
        shares = heads[len(heads) // 2, 0]
        drawn[ATTENTION.name] = thumbnail.pattern(np.where(shares == HIDDEN, np.nan, shares / WHOLE_SHARE), theme)
    kind = positions.own_kind(model)
    if positions.has_vectors(kind):
        drawn[POSITIONS.name] = thumbnail.signed(positions.similarity(positions.vectors(model, kind)).values, theme)
    # The finished model's axes: while training is played, nothing moves that did not change.
    finished = language_model(scrubber.as_saved_last(key)).model
    axes = embeddings.principal_axes(embeddings.vectors(finished, "embedding"), 2)
    rows = embeddings.vectors(model, "embedding")
    some = embeddings.sample(len(rows), 100, 0)
    colours = [KIND_COLOURS[tokenizer.kind_of(int(i))] for i in some]
    labels = [tokenizer.label(int(i)) for i in some]
    drawn[EMBEDDINGS.name] = thumbnail.points(labels, colours, axes.place(rows[some]), theme)
    return drawn


def _of_decoder(key: ModelKey, ids: tuple[int, ...], theme: Theme) -> dict[str, str]:
    """The pictures for a decoder: the text that it writes, and the likeliest next tokens."""
    lm = language_model(key)
    guess = next_token.predict(logits_after(key, ids, len(ids) - 1), Sampling())
    likely = guess.order()[:7]
    bars = thumbnail.bars([lm.tokenizer.label(int(i)) for i in likely], guess.before[likely], theme)
    cut = [(letter, number % 2) for number, i in enumerate(ids) for letter in lm.tokenizer.label(i)]
    letters, odd = zip(*cut, strict=True)
    drawn = {NEXT_TOKEN.name: bars, TOKENS.name: thumbnail.text(letters, np.array(odd) / 2, theme, title="tokens")}
    with suppress(ValueError):  # nothing is drawn from logits that are no numbers
        drawn[GENERATE.name] = _text(key, ids, theme)
    return drawn


def _text(key: ModelKey, ids: tuple[int, ...], theme: Theme) -> str:
    lm = language_model(key)
    read = list(ids[-MOST_READ:])
    grown = Generation(lm.model, lm.tensor(Encoding(read)), Sampling(temperature=0.8), never=lm.tokenizer.unused_ids)
    steps = list(islice(grown, affordable(lm.model, len(read), MOST_WRITTEN)))
    labels = [lm.tokenizer.label(int(step.tokens[0])) for step in steps]
    probabilities = [float(next_token.probabilities(step.logits[0])[step.tokens[0]]) for step in steps]
    return thumbnail.text(labels, np.array(probabilities), theme, title="generated text")


def _of_classifier(key: ModelKey, ids: tuple[int, ...], theme: Theme) -> dict[str, str]:
    """The likeliest labels."""
    likely = _labels(language_model(key), ids)[:7]
    values = np.array([label.probability for label in likely])
    return {CLASSIFY.name: thumbnail.bars([label.label[:3] for label in likely], values, theme)}


def _of_both(key: ModelKey, ids: tuple[int, ...], theme: Theme) -> dict[str, str]:
    """Where the answer looks in the source, the mean of all heads; nothing for a decoder without blocks."""
    model = language_model(key).model
    if not model.config.n_layer:
        return {}
    cross = cross_attention.averaged(cross_attention.read(model, ids, encoder_decoder.decoder_ids(key, ids)).cross, None)
    return {TRANSLATE.name: thumbnail.pattern(cross.blocks[0][0], theme)}


def learning(name: str, theme: Theme) -> dict[str, str]:
    """An SVG for the cards of the pages about training: how the model `name` learned, and the models worth comparing."""
    models = entries()
    compared = [curve for other in default_comparison(models) if (curve := models[other].curve) is not None]
    if not compared:
        return {}
    own = models[name].curve if name in models and models[name].has_curve else None
    return {
        TRAIN.name: thumbnail.curves([own or compared[0]], theme),
        RUNS.name: thumbnail.curves(compared, theme),
    }
