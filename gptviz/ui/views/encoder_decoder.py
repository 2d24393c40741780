"""An encoder–decoder's two stacks and its own answer to a text, for several pages."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gptviz.generate.decoding import decode, until_end
from gptviz.generate.sampling import Sampling
from gptviz.language_model.core import special_tokenizer
from gptviz.model import Transformer
from gptviz.model.config import Config
from gptviz.text.tokenizers.special_tokens import SpecialTokensTokenizer
from gptviz.ui.shell.subject import ModelKey, language_model
from gptviz.ui.widgets import controls, jobs

ENCODER = "encoder"
DECODER = "decoder"
# The most tokens of an answer that pages show, its end token included: an answer that never ends
# would fill any context.
LONGEST_ANSWER = 128


def stack_control() -> str:
    """The control `stack`: which of an encoder–decoder's two stacks is shown."""
    hint = (
        "The encoder reads the source, at once and as a whole. The decoder reads what it has "
        "written, token by token."
    )
    return controls.select(
        "Stack", (ENCODER, DECODER), key="stack", default=ENCODER, help=hint, segmented=True
    )


def n_blocks(config: Config, stack: str) -> int:
    """How many blocks the `stack` has."""
    if stack == ENCODER and config.n_encoder_layer:
        return config.n_encoder_layer
    return config.n_layer


def stack_of(model: Transformer, stack: str) -> Transformer:
    """The encoder of a model that has one, if `stack` is the encoder; else the model itself."""
    if stack == ENCODER and model.encoder is not None:
        return model.encoder
    return model


@dataclass(frozen=True)
class OutputText:
    """The text that an encoder–decoder writes by itself."""

    ids: tuple[int, ...]  #: the tokens without start and end
    written: tuple[int, ...]  #: the same with the end token, if it was written

    @property
    def has_ended(self) -> bool:
        """Whether the end token was written."""
        return len(self.written) > len(self.ids)

    def is_cut(self, config: Config) -> bool:
        """Whether the text was cut at `LONGEST_ANSWER`, though a model of this `config` had room
        for more.
        """
        return not self.has_ended and len(self.ids) < config.context_length


def longest_answer(config: Config) -> int:
    """The most tokens of an answer, its end token included."""
    return min(config.context_length, LONGEST_ANSWER)


def answer(
    key: ModelKey, source: tuple[int, ...], sampling: Sampling | None = None
) -> OutputText | None:
    """An encoder–decoder's own answer to the `source`: with the likeliest token each time, or drawn
    by `sampling`. None for any other model, and where nobody knows which token an answer begins
    with.
    """
    lm = language_model(key)
    has_one = lm.kind.has_source and isinstance(lm.tokenizer, SpecialTokensTokenizer)
    if has_one:
        return _answer(key, source, sampling)
    return None


@jobs.data("Writing the output", max_entries=64)
def _answer(key: ModelKey, source: tuple[int, ...], sampling: Sampling | None) -> OutputText:
    lm = language_model(key)
    own = special_tokenizer(lm)
    most = longest_answer(lm.model.config)
    ids = decode(
        lm.model, torch.tensor([source]), own.start, own.end, sampling, most, own.unused_ids
    )[0]
    written, ended = until_end(ids, own.end)
    return OutputText(tuple(written), (*written, own.end) if ended else tuple(written))


def decoder_ids(key: ModelKey, source: tuple[int, ...]) -> tuple[int, ...]:
    """The ids that the decoder has read at the end of its answer: the start token and its likeliest
    answer to the `source`.
    """
    lm = language_model(key)
    own = answer(key, source)
    if own is None:
        return source
    return (special_tokenizer(lm).start, *own.ids)[: lm.model.config.context_length]
