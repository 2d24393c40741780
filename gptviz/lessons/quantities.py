"""Quantities: what the expressions of a lesson may ask of a model. Every function computes; none has an answer written down."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from gptviz.interp import attention, embeddings, positions
from gptviz.interp.next_token import logits_after
from gptviz.language_model import LanguageModel
from gptviz.model import parameter_count
from gptviz.text.visible import visible

LONGEST_TEXT = 20_000  # characters
MOST_ENTRIES = 50

Function = Callable[..., Any]
_TYPES: dict[str, Any] = {"str": str, "int": int, "float": int | float}


class Quantities:
    """The functions of expressions, over the models that a lesson names.

    Every function takes `model`, the name of a model, and `step`, one of its snapshots; by default the lesson's model as it was
    saved last. It also takes `without`, a part that is switched off, as in `without="blocks.1.attention.head.3"`, or a list.

    Args:
        opened: gives the model of a name and a step.
        model: the name of the model that is meant where none is given.
    """

    def __init__(self, opened: Callable[[str, int | None], LanguageModel], model: str) -> None:
        self.opened, self.model = opened, model

    @property
    def functions(self) -> dict[str, Function]:
        """By name."""
        asked = {name: self._with_model(function) for name, function in ASKED.items()}
        return asked | PLAIN

    def _with_model(self, function: Function) -> Function:
        def asked(*arguments: Any, model: str | None = None, step: int | None = None, **named: Any) -> Any:
            for value in (*arguments, *named.values()):
                if isinstance(value, str) and len(value) > LONGEST_TEXT:
                    raise ValueError(f"a text has {len(value):,} characters, and {LONGEST_TEXT:,} are the most")
            lm = self.opened(self.model if model is None else model, step)
            without = named.pop("without", None)
            if without is not None:
                lm = lm.edited(*([without] if isinstance(without, str) else without))
            _check(function, lm, *arguments, **named)
            return function(lm, *arguments, **named)

        return asked


def _check(function: Function, *arguments: Any, **named: Any) -> None:
    """Refuse what a function does not take: too few or too many arguments, or a number where a text belongs."""
    signature = inspect.signature(function)
    try:
        given = signature.bind(*arguments, **named).arguments
    except TypeError as error:
        raise ValueError(str(error)) from None
    for name, value in given.items():
        wanted = _TYPES.get(str(signature.parameters[name].annotation))
        if wanted is not None and (not isinstance(value, wanted) or isinstance(value, bool)):
            raise ValueError(f"{name} is {value!r:.40}; it must be a {'text' if wanted is str else 'number'}")


def _ids(lm: LanguageModel, text: str) -> list[int]:
    return lm.seen(lm.tensor(lm.tokenizer.encode(text))).tolist()


def _token(lm: LanguageModel, token: str) -> int:
    """The id of a token that is given as its text.

    Raises:
        ValueError: there is none.
    """
    found = lm.tokenizer.id_of(token)
    if found is None:
        raise ValueError(f"{lm.name} has no token {token!r:.40}")
    return found


def _logits(lm: LanguageModel, prompt: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The logits [vocab_size] of the token after a prompt."""
    ids = _ids(lm, prompt)
    return logits_after(lm.model, ids, slice(len(ids) - 1, len(ids)))[0].astype(np.float64)


def _shares(lm: LanguageModel, prompt: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    logits = _logits(lm, prompt)
    shares: np.ndarray[Any, np.dtype[np.float64]] = np.exp(logits - logits.max())
    return shares / shares.sum()


def tokens(lm: LanguageModel, text: str) -> list[str]:
    """The visible forms of the tokens of a text."""
    return [lm.tokenizer.label(i) for i in _ids(lm, text)]


def vocabulary(lm: LanguageModel) -> int:
    """How many tokens the model knows."""
    return lm.tokenizer.vocab_size


def probability(lm: LanguageModel, prompt: str, token: str) -> float:
    """How likely a token is to come next."""
    return float(_shares(lm, prompt)[_token(lm, token)])


def logit(lm: LanguageModel, prompt: str, token: str) -> float:
    """The logit of a token to come next."""
    return float(_logits(lm, prompt)[_token(lm, token)])


def rank(lm: LanguageModel, prompt: str, token: str) -> int:
    """The place of a token among all, 1 for the likeliest."""
    logits = _logits(lm, prompt)
    return int((logits > logits[_token(lm, token)]).sum()) + 1


def likeliest(lm: LanguageModel, prompt: str, count: int = 1) -> str | list[str]:
    """The text of the likeliest next token; with `count`, those of the likeliest ones."""
    if not 1 <= count <= MOST_ENTRIES:
        raise ValueError(f"count is {count}; it must be from 1 to {MOST_ENTRIES}")
    order = np.argsort(-_logits(lm, prompt), kind="stable")[:count]
    texts = [lm.tokenizer.piece(int(i)) for i in order]
    return texts[0] if count == 1 else texts


def entropy(lm: LanguageModel, prompt: str) -> float:
    """How unsure the model is of the next token, in nats."""
    shares = _shares(lm, prompt)
    return float(-(shares * np.log(np.maximum(shares, 1e-300))).sum())


def loss(lm: LanguageModel, text: str) -> float:
    """The mean surprise of the model at the tokens of a text, in nats per token; the first is not guessed."""
    ids = _ids(lm, text)
    if len(ids) < 2:
        raise ValueError("the text needs two tokens or more")
    logits = torch.from_numpy(logits_after(lm.model, ids, slice(0, len(ids) - 1))).double()
    return float(torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:])))


def continuation(lm: LanguageModel, prompt: str, count: int = 20) -> str:
    """What the model writes after a prompt if it always takes the likeliest token."""
    return lm.generate(prompt, min(count, 200), temperature=0.0)


def answer(lm: LanguageModel, text: str) -> str:
    """What an encoder–decoder answers."""
    return lm.answer(text)


def label(lm: LanguageModel, text: str) -> str:
    """The likeliest label of a text."""
    judged = lm.classify(text)
    return max(judged, key=judged.__getitem__)


def label_probability(lm: LanguageModel, text: str, name: str) -> float:
    """The probability of a label of a text."""
    judged = lm.classify(text)
    if name not in judged:
        raise ValueError(f"{lm.name} has no label {name!r:.40}; it has {', '.join(judged)}")
    return judged[name]


def attends(lm: LanguageModel, prompt: str, block: int, head: int, query: int, key: int) -> float:
    """The share of its attention that a query gives a key; places count from 0, or from the end, −1 for the last."""
    return float(_pattern(lm, prompt, block, head)[query, key])


def attention_sum(lm: LanguageModel, prompt: str, block: int, head: int, query: int) -> float:
    """What the shares of a query add up to."""
    return float(_pattern(lm, prompt, block, head)[query].sum())


def most_read(lm: LanguageModel, prompt: str, block: int, head: int, query: int = -1) -> int:
    """The place of the token that a query reads most."""
    return int(_pattern(lm, prompt, block, head)[query].argmax())


def _pattern(lm: LanguageModel, prompt: str, block: int, head: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    blocks = attention.patterns(lm.model, _ids(lm, prompt)).blocks
    if not 0 <= block < len(blocks) or not 0 <= head < len(blocks[block]):
        raise ValueError(f"{lm.name} has no head {head} in a block {block}")
    return blocks[block][head]


def best_head(lm: LanguageModel, score: str, prompt: str | None = None) -> str:
    """The head with the largest value of a score, such as "induction", as "block.head": see the page Heads."""
    rows = _heads(lm, score, prompt)
    best = max(rows, key=lambda row: row[score])
    return f"{best['block']}.{best['head']}"


def head_score(lm: LanguageModel, score: str, block: int, head: int, prompt: str | None = None) -> float:
    """The value of a score for one head."""
    found = [row[score] for row in _heads(lm, score, prompt) if (row["block"], row["head"]) == (block, head)]
    if not found:
        raise ValueError(f"{lm.name} has no head {head} in a block {block}")
    return float(found[0])


def highest_score(lm: LanguageModel, score: str, prompt: str | None = None) -> float:
    """The largest value of a score that any head has."""
    return max(float(row[score]) for row in _heads(lm, score, prompt))


def _heads(lm: LanguageModel, score: str, prompt: str | None) -> list[dict[str, Any]]:
    rows = [row for row in lm.heads(prompt) if row.get(score) is not None]
    if not rows:
        raise ValueError(f"there is no score {score!r:.40} for the heads of {lm.name}")
    return rows


def contribution(lm: LanguageModel, prompt: str, token: str, part: str, against: str | None = None) -> float:
    """What a part, such as "blocks.1.attention.head.3", adds to the logit of a token, or to its difference from another's."""
    found = {one.name: one.value for one in lm.attribute(prompt, token, against=against).parts}
    if part not in found:
        raise ValueError(f"{lm.name} has no part {part!r:.60}")
    return float(found[part])


def strongest_head(lm: LanguageModel, prompt: str, token: str, against: str | None = None) -> str:
    """The name of the head that adds most to the logit of a token, or to its difference from another's."""
    heads = {one.name: one.value for one in lm.attribute(prompt, token, against=against).parts if ".head." in one.name}
    if not heads:
        raise ValueError(f"{lm.name} has no heads")
    return max(heads, key=heads.__getitem__)


def lens_rank(lm: LanguageModel, prompt: str, token: str, layer: int) -> int:
    """The place of a token among all, 1 for the likeliest, if the model stopped after a layer, 0 the embedding."""
    seen = lm.lens(prompt, top=min(lm.tokenizer.vocab_size, 1_000))
    if not -len(seen.top) <= layer < len(seen.top):
        raise ValueError(f"there is no layer {layer}; there are {len(seen.top)}")
    places = np.flatnonzero(np.asarray(seen.top)[layer, -1] == _token(lm, token))
    if not len(places):
        raise ValueError(f"{token!r:.40} is not among the 1,000 likeliest tokens there")
    return int(places[0]) + 1


def parameters(lm: LanguageModel) -> int:
    """How many numbers the model has learned."""
    return parameter_count(lm.model.config)


def setting(lm: LanguageModel, name: str) -> Any:
    """A setting of the architecture, such as "n_head"."""
    if name not in lm.model.config.to_dict():
        raise ValueError(f"there is no setting {name!r:.40}")
    return lm.model.config.to_dict()[name]


def validation_loss(lm: LanguageModel) -> float:
    """The loss on held-out data that stands on the model's card, in nats."""
    if lm.card.validation_loss is None:
        raise ValueError(f"the card of {lm.name} has no validation loss")
    return lm.card.validation_loss


def similarity(lm: LanguageModel, one: str, other: str) -> float:
    """The cosine between the embeddings of two tokens."""
    rows = embeddings.vectors(lm.model, "embedding")
    a, b = rows[_token(lm, one)].astype(np.float64), rows[_token(lm, other)].astype(np.float64)
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def nearest(lm: LanguageModel, token: str) -> str:
    """The text of the token whose embedding has the largest cosine with that of a token."""
    rows = embeddings.vectors(lm.model, "embedding").astype(np.float64)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    own = _token(lm, token)
    cosines = rows @ rows[own]
    cosines[own] = -2.0
    return lm.tokenizer.piece(int(cosines.argmax()))


def position_similarity(lm: LanguageModel, one: int, other: int) -> float:
    """The cosine between the vectors of two positions."""
    square = positions.similarity(positions.vectors(lm.model, positions.own_kind(lm.model))).values
    return float(square[one, other])


def percent(value: float, digits: int = 0) -> str:
    """A share as a percentage."""
    return f"{100 * value:.{_digits(digits)}f} %"


def rounded(value: float, digits: int = 2) -> str:
    """A number in words, with so many digits after the point."""
    return f"{value:,.{_digits(digits)}f}"


def _digits(digits: int) -> int:
    if not 0 <= digits <= 12:
        raise ValueError(f"digits is {digits}; it must be from 0 to 12")
    return digits


def quoted(text: str) -> str:
    """A token as it can be seen: a space as ␣, a line break as ⏎."""
    return f"“{visible(text)}”"


def count(of: Sequence[Any]) -> int:
    """How many entries a list has, or characters a text."""
    return len(of)


ASKED: dict[str, Function] = {
    function.__name__: function
    for function in (
        *(tokens, vocabulary, probability, logit, rank, likeliest, entropy, loss, continuation, answer, label, label_probability),
        *(attention_sum, best_head, head_score, highest_score, contribution, strongest_head, lens_rank),
        *(attends, most_read, parameters, setting, validation_loss, similarity, nearest, position_similarity),
    )
}
"""What runs or reads a model: the first argument is the model."""

PLAIN: dict[str, Function] = {
    "percent": percent,
    "rounded": rounded,
    "quoted": quoted,
    "count": count,
    "exp": math.exp,
    "log": math.log,
    "abs": abs,
    "max": max,
    "min": min,
}
"""What needs no model."""
