"""The kinds of models: what each does, in words, which page shows that, and which models there are of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

import streamlit as st
import torch

from gptviz.generate.decoding import decode_greedily, until_end
from gptviz.language_model import LanguageModel
from gptviz.model import Transformer
from gptviz.model.config import Config, Kind
from gptviz.runs import checkpoints
from gptviz.text.tokenizers.special_tokens import SpecialTokensTokenizer
from gptviz.ui.widgets import controls

from .cache import ModelKey, language_model

KINDS: tuple[Kind, ...] = get_args(Kind)
A: dict[Kind, str] = {"decoder": "a decoder", "classifier": "a classifier", "encoder-decoder": "an encoder–decoder"}
DOES: dict[Kind, str] = {
    "decoder": "goes on with a text, one token after another",
    "classifier": "gives a whole text a label",
    "encoder-decoder": "reads one text and writes another",
}
# The page that shows what a model of this kind does.
PAGE: dict[Kind, str] = {
    "decoder": "pages/generate.py",
    "classifier": "pages/classify.py",
    "encoder-decoder": "pages/translate.py",
}
# The model that shows it best, which is also the plan that trains one.
BEST: dict[Kind, str] = {"decoder": "shakespeare", "classifier": "classifier", "encoder-decoder": "seq2seq"}

# Tokenizers whose tokens have a space between them in a text.
SPACED = ("symbols", "words")
ENCODER, DECODER = "encoder", "decoder"
# The most tokens of an answer, its end mark included, that pages show: one that never ends fills any context.
LONGEST_ANSWER = 128


def of(folder: Path | None) -> Kind | None:
    """The kind of the model in `folder`, None where there is none that can be read."""
    if folder is None:
        return None
    try:
        return _of(folder, (folder / "config.json").stat().st_mtime_ns)
    except (OSError, checkpoints.CheckpointError):
        return None


@lru_cache(maxsize=1024)
def _of(folder: Path, written: int) -> Kind:
    return checkpoints.read_config(folder).kind


def models(kind: Kind) -> list[str]:
    """The names of all models of this kind, the user's own first."""
    return [name for name, folder in checkpoints.folders().items() if of(folder) == kind]


def best(kind: Kind) -> str:
    """The model that shows this kind best: the one that ships, else any; where there is none, the decoder that ships."""
    found = models(kind)
    return BEST[kind] if BEST[kind] in found else next(iter(found), BEST["decoder"])


def room(lm: LanguageModel) -> int:
    """How many tokens of a text the model sees: its context; an encoder's has to hold the end mark too."""
    context = lm.model.config.context_length
    return context - 1 if _is_marked(lm) else context


def seen(lm: LanguageModel, ids: list[int]) -> list[int]:
    """What the model reads of a text `ids`: a decoder its end, the others its beginning; an encoder then the end mark."""
    if lm.model.config.kind == "decoder":
        return ids[-room(lm) :]
    marks = [lm.tokenizer.end] if isinstance(lm.tokenizer, SpecialTokensTokenizer) and _is_marked(lm) else []
    return [*ids[: room(lm)], *marks]


def _is_marked(lm: LanguageModel) -> bool:
    return lm.model.config.kind == "encoder-decoder" and isinstance(lm.tokenizer, SpecialTokensTokenizer)


def is_spaced(lm: LanguageModel) -> bool:
    """Whether a text shows with a gap between its tokens."""
    tokenizer = lm.tokenizer.inner if isinstance(lm.tokenizer, SpecialTokensTokenizer) else lm.tokenizer
    return tokenizer.kind in SPACED


def stack(notices: Any = st) -> str:
    """The control `stack`: which of an encoder–decoder's two stacks is shown."""
    about = "The encoder reads the source, at once and as a whole. The decoder reads what it has written, token by token."
    return controls.select("Stack", (ENCODER, DECODER), key="stack", default=ENCODER, help=about, segmented=True, notices=notices)


@dataclass(frozen=True)
class Answer:
    """What an encoder–decoder writes, the likeliest token each time: the ids without marks, and whether it ends."""

    ids: tuple[int, ...]
    ended: bool

    def is_cut(self, config: Config) -> bool:
        """Whether a model of this `config` had room for more of it than `LONGEST_ANSWER`."""
        return not self.ended and len(self.ids) < config.context_length


def longest(config: Config) -> int:
    """The most tokens of an answer, its end mark included."""
    return min(config.context_length, LONGEST_ANSWER)


@st.cache_data(max_entries=64, show_spinner="Writing the output")
def answer(key: ModelKey, source: tuple[int, ...], start: int, end: int) -> Answer:
    """The model's own answer to the `source`, between its marks for `start` and `end`."""
    model = language_model(key).model
    ids = decode_greedily(model, torch.tensor([source]), start, end, longest(model.config))[0]
    written, ended = until_end(ids, end)
    return Answer(tuple(written), ended)


def answered(key: ModelKey, source: tuple[int, ...]) -> tuple[int, ...]:
    """What the decoder of an encoder–decoder reads in the end: the start mark and its own likeliest answer to the `source`."""
    lm = language_model(key)
    if not isinstance(lm.tokenizer, SpecialTokensTokenizer):
        return source  # no model of ours: nobody knows where its answers begin
    start = lm.tokenizer.start
    return (start, *answer(key, source, start, lm.tokenizer.end).ids)[: lm.model.config.context_length]


def blocks(config: Config, stack: str) -> int:
    """How many blocks the `stack` has."""
    return config.n_encoder_layer if stack == ENCODER and config.n_encoder_layer else config.n_layer


def part(model: Transformer, stack: str) -> Transformer:
    """The encoder of a model that has one, where `stack` says so; else the model itself."""
    return model.encoder if stack == ENCODER and model.encoder is not None else model
