"""What the logits of a language model are of: the tokens of its vocabulary, or a classifier's
labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from .core import LanguageModel, as_property, method


@dataclass(frozen=True)
class AnswerSpace:
    """What a model can answer, each with the number of its logit."""

    noun: Literal["token", "label"]  #: what an answer is
    label: Callable[[int], str]  #: the visible form of an answer: of a space ␣
    #: an answer as it is written; of a token that stands for no text, its name: `⟨start⟩`
    text: Callable[[int], str]


@as_property
def answer_space(lm: LanguageModel) -> AnswerSpace:
    """What the logits of the model are of."""
    if lm.kind.guesses == "label":
        return AnswerSpace("label", lm.labels.__getitem__, lm.labels.__getitem__)
    tokenizer = lm.tokenizer
    return AnswerSpace(
        "token", tokenizer.label, lambda token: tokenizer.piece(token) or tokenizer.label(token)
    )


@as_property
def labels(lm: LanguageModel) -> tuple[str, ...]:
    """The names of a classifier's labels, or "0", "1", … if its card has none that differ. Empty
    for other models.
    """
    named, n_label = lm.card.labels or (), lm.model.config.n_label
    return named if len(named) == len(set(named)) == n_label else tuple(map(str, range(n_label)))


@method
def token(lm: LanguageModel, text: str | int) -> int:
    """The token that stands for exactly `text`; of a classifier, the label of this name. An id
    stays as it is.

    Raises:
        ValueError: there is none.
    """
    if isinstance(text, int) or lm.kind.guesses == "token":
        return token_of_vocabulary(lm, text)
    if text not in lm.labels:
        raise ValueError(
            f"{text!r:.80} is no label of {lm.name}; its labels are {', '.join(lm.labels)}"[:400]
        )
    return int(lm.labels.index(text))


def token_of_vocabulary(lm: LanguageModel, text: str | int) -> int:
    """As `token`, of the vocabulary for a classifier too."""
    if isinstance(text, int):
        return text
    if (token := lm.tokenizer.id_of(text)) is not None:
        return token
    read = lm.tokenizer.encode(text)
    ids = read.ids[lm.tokenizer.inside(read.ids)]
    if len(ids) == 1 and not read.unknown:
        return ids[0]
    pieces = " · ".join(lm.tokenizer.label(i) for i in ids[:20])
    raise ValueError(
        f"{text!r:.80} is no single token of {lm.name}"
        + (f": it is read as {pieces}" if pieces else "")
    )
