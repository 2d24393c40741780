"""What the logits of a language model are of: the tokens of its vocabulary, or a classifier's
labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from gptviz.text import Tokenizer


@dataclass(frozen=True)
class AnswerSpace:
    """What a model can answer, each with the number of its logit."""

    noun: Literal["token", "label"]  #: what an answer is
    label: Callable[[int], str]  #: the visible form of an answer: of a space ␣
    #: an answer as it is written; of a token that stands for no text, its name: `⟨start⟩`
    text: Callable[[int], str]


def of_labels(labels: Sequence[str]) -> AnswerSpace:
    """The labels of a classifier."""
    return AnswerSpace("label", labels.__getitem__, labels.__getitem__)


def of_tokens(tokenizer: Tokenizer) -> AnswerSpace:
    """The tokens of a vocabulary."""
    return AnswerSpace(
        "token", tokenizer.label, lambda token: tokenizer.piece(token) or tokenizer.label(token)
    )
