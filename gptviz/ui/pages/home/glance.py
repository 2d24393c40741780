"""The model at a glance, and the pictures of the pages that Home leads to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator

from gptviz.components.token_strip import Token
from gptviz.figures.kit.format import format_count, percent
from gptviz.generate.sampling import Sampling
from gptviz.interp.reading import next_token
from gptviz.interp.reading.classification import judge
from gptviz.language_model.scanning import Finding, scan
from gptviz.model import Config, parameter_count
from gptviz.model.costs.effort import MOST, effort
from gptviz.model.kinds import MODEL_KINDS
from gptviz.ui.menu import PAGES
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import ModelKey, Subject, ask, language_model
from gptviz.ui.views import encoder_decoder
from gptviz.ui.views.guesses import guesses, logits_after
from gptviz.ui.widgets import escape_markdown, in_quotes, press_button, say_answer

# Guesses on the map, and findings below it.
SHOWN = 8
MOST_FINDINGS = 4
# The tokens of the text on the card of Generate; with a large model, fewer. Of a long prompt the
# end is read for it.
MOST_WRITTEN = 120
MOST_READ = 512


@dataclass(frozen=True)
class Glance:
    """A prompt and what becomes of it."""

    tokens: tuple[Token, ...]  #: a chip for each token that the model reads
    #: the likeliest next tokens; of a classifier, labels; of an encoder–decoder, the tokens of its
    #: answer
    guesses: tuple[Token, ...]
    #: the ids of next tokens, which can be taken; empty for other guesses
    guess_ids: tuple[int, ...]
    shape: str  #: the model's size in words


@st.cache_data(max_entries=32, show_spinner=False)
def glance(key: ModelKey, ids: tuple[int, ...]) -> Glance:
    """The prompt `ids` and the guesses of the model for it."""
    lm = language_model(key)
    label = lm.tokenizer.label
    shape = shape_of(lm.model.config)
    tokens = tuple(Token(lm.tokenizer.label(i)) for i in ids)
    if lm.kind.continues:
        # Its tokens tinted by how probable they were, and the likeliest next ones, which can be
        # taken.
        guess = next_token.predict(logits_after(key, ids, len(ids) - 1), Sampling())
        order = guess.order()[:SHOWN].tolist()
        seen = guesses(key, ids).tokens.probability.tolist()
        tokens = tuple(
            Token(label(i), None if np.isnan(p) else p) for i, p in zip(ids, seen, strict=True)
        )
        return Glance(
            tokens,
            tuple(Token(label(i), float(guess.before[i])) for i in order),
            tuple(order),
            shape,
        )
    if lm.kind.guesses == "label":
        shares = judge(lm.model, torch.tensor(ids, device=lm.device)).probabilities
        order = np.argsort(-shares, kind="stable")[:SHOWN].tolist()
        return Glance(
            tokens,
            tuple(Token(lm.labels[i], float(shares[i]), note=lm.labels[i]) for i in order),
            (),
            shape,
        )
    # The tokens of its answer, with how probable each was.
    decoded = encoder_decoder.decoder_ids(key, ids)
    logits = next_token.logits_after(lm.model, decoded, slice(None), ids)
    written = next_token.token_probabilities(logits, decoded, n=1).probability.tolist()
    return Glance(
        tokens,
        tuple(Token(label(i), p) for i, p in zip(decoded[1:], written[1:], strict=True)),
        (),
        shape,
    )


def shape_of(config: Config) -> str:
    """The size of a model in words."""
    if config.n_encoder_layer:
        stacks = f"{config.n_encoder_layer} + {config.n_layer}"
    else:
        stacks = f"{config.n_layer}"
    if MODEL_KINDS[config.kind].continues:
        none = "no blocks: a bigram"
    else:
        none = "no blocks"
    heads = format_count(config.n_head, "head")
    if config.key_heads < config.n_head:
        heads += f" over {format_count(config.key_heads, 'key head')}"
    if stacks != "0":
        blocks = f"{stacks} block{'' if stacks == '1' else 's'} of {heads}"
    else:
        blocks = none
    if windowed := sum(config.has_window(block) for block in range(config.n_layer)):
        if windowed == config.n_layer:
            which = "each"
        else:
            which = f"{windowed} of them"
        blocks += f", {which} with a window of {config.window:,} tokens (dashed)"
    return (
        f"{config.vocab_size:,} tokens in the vocabulary, {blocks}, {parameter_count(config):,} "
        "parameters"
    )


def say_guess(subject: Subject, guesses: Sequence[Token]) -> None:
    """How the text becomes a guess, and the likeliest next token of a decoder; nothing where the
    model's numbers are damaged.
    """
    shares = [
        guess.probability
        for guess in guesses
        if guess.probability is not None and math.isfinite(guess.probability)
    ]
    if shares and len(shares) == len(guesses):
        n_layer = subject.lm.model.config.n_layer
        if n_layer:
            reads = f"reads them in {format_count(n_layer, 'block')}"
        else:
            reads = "looks the last one up in a table"
        say_answer(
            f"The model cuts the text into {format_count(len(subject.seen), 'token')}, {reads}, "
            f"and guesses {in_quotes(guesses[0].label)} next ({percent(shares[0])})."
        )


def link_to_own_page(subject: Subject) -> None:
    """For a model that guesses no next token: what it does instead, and a link to the page that
    shows it.
    """
    if subject.kind.continues:
        return
    kind = subject.kind
    st.caption(f"This model is {kind.with_article}: it {kind.does}; it does not continue a text.")
    page = frame.page_about(kind.name)
    frame.link(page, f"Look at it closely: {page.title}")


def what_to_look_at(subject: Subject, above: DeltaGenerator, block: int | None) -> None:
    """The findings of all pages for this model and prompt, each with a link to its page: `above`
    the map the most telling one about the `block` that is open there, or else of all; the others
    here. Of a large model they are looked for when somebody asks.
    """
    if not subject.kind.continues:
        return
    asked = ask(subject, scan, "Looking for what stands out")
    is_quick = (
        effort(subject.lm.model, len(subject.seen), max(1, subject.lm.model.config.n_layer)) <= MOST
    )
    with above:
        st.markdown("**What to look at**", width="content")
        if not is_quick and not press_button(
            "Look for what stands out", key="scan", icon=":material/search:"
        ):
            return
    about_block = f"blocks.{block}."
    findings = sorted(
        asked.value[:MOST_FINDINGS],
        key=lambda finding: not any(about_block in said for _, said in finding.query),
    )
    with above:
        if not findings:
            st.caption(
                "Nothing stands out: no head, layer or part is far from what is usual in this "
                "model."
            )
            return
        _show_finding(findings[0])
    for finding in findings[1:]:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            _show_finding(finding)


def _show_finding(finding: Finding) -> None:
    """The link to the page of a finding, and its sentence."""
    frame.link(PAGES[finding.page], query={**frame.shared_state(), **dict(finding.query)})
    st.markdown(escape_markdown(finding.sentence), width="content")
