"""An encoder–decoder's two stacks and its own answer to a text, for several pages."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st
import torch

from gptviz.generate.decoding import decode, until_end
from gptviz.generate.sampling import Sampling
from gptviz.model import Transformer
from gptviz.model.config import Config
from gptviz.text.tokenizers.special_tokens import SpecialTokensTokenizer
from gptviz.ui.shell.subject import ModelKey, language_model
from gptviz.ui.widgets import controls

ENCODER, DECODER = "encoder", "decoder"
# The most tokens of an answer that pages show, its end token included: an answer that never ends would fill any context.
LONGEST_ANSWER = 128


def stack_control() -> str:
    """The control `stack`: which of an encoder–decoder's two stacks is shown."""
    about = "The encoder reads the source, at once and as a whole. The decoder reads what it has written, token by token."
    return controls.select("Stack", (ENCODER, DECODER), key="stack", default=ENCODER, help=about, segmented=True)


def n_blocks(config: Config, stack: str) -> int:
    """How many blocks the `stack` has."""
    return config.n_encoder_layer if stack == ENCODER and config.n_encoder_layer else config.n_layer


def stack_of(model: Transformer, stack: str) -> Transformer:
    """The encoder of a model that has one, if `stack` is the encoder; else the model itself."""
    return model.encoder if stack == ENCODER and model.encoder is not None else model


@dataclass(frozen=True)
class OutputText:
    """The text that an encoder–decoder writes by itself.

    Attributes:
        ids: the tokens without start and end.
        ended: whether the end token was written.
    """

    ids: tuple[int, ...]
    ended: bool

    def is_cut(self, config: Config) -> bool:
        """Whether the text was cut at `LONGEST_ANSWER`, though a model of this `config` had room for more."""
        return not self.ended and len(self.ids) < config.context_length


def longest_answer(config: Config) -> int:
    """The most tokens of an answer, its end token included."""
    return min(config.context_length, LONGEST_ANSWER)


def answer(key: ModelKey, source: tuple[int, ...], start: int, end: int, sampling: Sampling | None = None) -> OutputText:
    """The model's own answer to the `source`, between its `start` and `end` tokens: with the likeliest token each time, or
    drawn by `sampling`.
    """
    return _answer(key, source, start, end, sampling)


@st.cache_data(max_entries=64, show_spinner="Writing the output")
def _answer(key: ModelKey, source: tuple[int, ...], start: int, end: int, sampling: Sampling | None) -> OutputText:
    lm = language_model(key)
    never = lm.special_tokens.unused_ids
    ids = decode(lm.model, torch.tensor([source]), start, end, sampling, longest_answer(lm.model.config), never)[0]
    written, ended = until_end(ids, end)
    return OutputText(tuple(written), ended)


def decoder_ids(key: ModelKey, source: tuple[int, ...]) -> tuple[int, ...]:
    """The ids that the decoder has read at the end of its answer: the start token and its likeliest answer to the `source`."""
    lm = language_model(key)
    if not isinstance(lm.tokenizer, SpecialTokensTokenizer):
        return source  # not trained by gptviz: the token that its answers begin with is not known
    start = lm.tokenizer.start
    return (start, *answer(key, source, start, lm.tokenizer.end).ids)[: lm.model.config.context_length]
