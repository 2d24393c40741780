"""The next token: its probabilities before and after sampling settings, and how probable the tokens
of a text were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gptviz.generate.sampling import Sampling, ledger
from gptviz.labelled_array import Float64Array
from gptviz.machine import progress
from gptviz.model import IDENTITY, Transformer, Watch

from ..trace import one_row
from .layers import last_tap

Logits = npt.NDArray[np.float32]

# At most this many logits of the places of a text are in memory at a time.
MOST_LOGITS = 2_000_000


def probabilities(logits: Tensor | npt.NDArray[np.floating]) -> Float64Array:
    """The softmax of logits [..., choices] over the last axis: the same shape, in float64."""
    shares: Float64Array = torch.as_tensor(logits).cpu().double().softmax(-1).numpy()
    return shares


def perplexity(probabilities: Float64Array) -> float:
    """Perplexity of these `probabilities` [vocab_size]: how many equally likely tokens would be as
    uncertain.
    """
    return float(np.exp(-(probabilities * np.log(np.maximum(probabilities, 1e-300))).sum()))


@torch.inference_mode()
def logits_after(
    model: Transformer, ids: Sequence[int], at: slice, source: Sequence[int] | None = None
) -> Logits:
    """The logits [positions, vocab_size] of the token after each position `at` of `ids`. No others
    are computed. A ValueError if the model is a classifier, which guesses no token, or there are
    more ids than the context holds.
    """
    if model.config.kind == "classifier":
        raise ValueError("this model gives a whole text a label: it has no next token")
    logits: Tensor = model(*one_row(model, ids, source), logits_at=at)[0]
    return logits.float().cpu().numpy()


def probability_of(model: Transformer, prompt: Sequence[int], word: Sequence[int]) -> float:
    """The probability that the tokens of `word` come after those of `prompt`: the product of the
    probability of each token. A ValueError if the model is a classifier, or there are more tokens
    than the context holds.
    """
    logits = logits_after(
        model, [*prompt, *word[:-1]], slice(len(prompt) - 1, len(prompt) + len(word) - 1)
    )
    return float(np.prod(probabilities(logits)[np.arange(len(word)), list(word)]))


@dataclass(frozen=True)
class Prediction:
    """The tokens that may come next, over the whole vocabulary."""

    before: Float64Array  #: [vocab_size], the softmax of the logits: the model's own probabilities
    #: [vocab_size], the probabilities a token is drawn from: after temperature, top-k and top-p,
    #: renormalised
    after: Float64Array
    #: [vocab_size], the setting that excluded a token: "temperature 0", "top-k" or "top-p";
    #: "unused" for a token that is never drawn, "" for one that can be drawn
    cut: npt.NDArray[np.str_]

    def order(self) -> npt.NDArray[np.int64]:
        """The token ids, the likeliest first; of equally likely ones the smaller first."""
        return np.argsort(-self.before, kind="stable")


def predict(
    logits: Tensor | npt.NDArray[np.float32], sampling: Sampling, never: Sequence[int] = ()
) -> Prediction:
    """The prediction from the `logits` [vocab_size] of a position and the settings of `sampling`;
    `never` as in `ledger`.
    """
    stages = ledger(torch.as_tensor(logits), sampling, never)
    after = stages.after.cpu().numpy()
    cut = np.full(after.shape, "", dtype="<U13")
    if sampling.temperature == 0:
        cut[after == 0] = "temperature 0"
    cut[~stages.in_top_p.cpu().numpy()] = "top-p"
    cut[~stages.in_top_k.cpu().numpy()] = "top-k"
    cut[list(never)] = "unused"
    return Prediction(stages.before.cpu().numpy(), after, cut)


@dataclass(frozen=True)
class TokenProbabilities:
    """How probable each token of a text was to a model, and which tokens were likeliest there."""

    #: [T], of the token that stands there, given those before it; NaN for the first
    probability: Float64Array
    #: [T, n], the ids of the likeliest tokens at that place, the likeliest first; 0 for the first
    #: token, before which there is nothing to guess from
    likely: npt.NDArray[np.int64]
    #: [T, n], the probabilities of these tokens; NaN for the first
    likely_probability: Float64Array


def token_probabilities(logits: Logits, ids: Sequence[int], n: int = 8) -> TokenProbabilities:
    """How probable each of the tokens `ids` [T] was to the model, from its logits [T, vocab_size]
    after each of them.
    """
    before = torch.from_numpy(np.asarray(logits)).double().softmax(-1)[:-1]  # [T - 1, vocab_size]
    actual = before.gather(1, torch.tensor(ids)[1:, None])[:, 0]  # [T - 1]
    top = before.topk(min(n, before.shape[1]))
    return TokenProbabilities(
        np.concatenate(([np.nan], actual.numpy())),
        np.pad(top.indices.numpy(), ((1, 0), (0, 0))),
        np.pad(top.values.numpy(), ((1, 0), (0, 0)), constant_values=np.nan),
    )


@dataclass(frozen=True)
class Guesses:
    """The guesses of a model at every place of a text, without the logits of all places, which can
    take gigabytes.
    """

    #: [T, d_model], the stream that the head reads, or None for a model without blocks
    states: Tensor | None
    #: how probable the tokens of the text were, and which were likeliest
    tokens: TokenProbabilities
    surest: Float64Array  #: [T], the probability of the likeliest next token after each place


@torch.inference_mode()
def guesses(model: Transformer, ids: Sequence[int], n: int = 8) -> Guesses:
    """The guesses of a decoder after every token of `ids`, in one pass, with the `n` likeliest of
    each; errors as in `logits_after`.
    """
    if model.config.kind != "decoder":
        raise ValueError("only a decoder guesses a token after every token it reads")
    states = None
    if model.config.n_layer:
        streams: list[Tensor] = []
        watch = Watch([last_tap(model.config)], lambda _name, stream: streams.append(stream[0]))
        with progress.part(0, 2):
            model(*one_row(model, ids), tap=watch, logits_at=slice(-1, None))
        (states,) = streams
    count = len(ids)
    most = min(n, model.config.vocab_size)
    probability = np.full(count, np.nan)
    surest = np.full(count, np.nan)
    likely = np.zeros((count, most), np.int64)
    likely_probability = np.full((count, most), np.nan)
    at_once = max(1, MOST_LOGITS // model.config.vocab_size)
    for start in range(0, count, at_once):
        guess = (
            torch.from_numpy(logits_at(model, ids, states, slice(start, start + at_once)))
            .double()
            .softmax(-1)
        )
        top = guess.topk(most)
        surest[start : start + at_once] = top.values[:, 0].numpy()
        # the tokens that were guessed here
        behind = slice(start + 1, min(start + at_once, count - 1) + 1)
        known = behind.stop - behind.start
        probability[behind] = (
            guess[:known].gather(1, torch.tensor(ids[behind])[:, None])[:, 0].numpy()
        )
        likely[behind], likely_probability[behind] = (
            top.indices[:known].numpy(),
            top.values[:known].numpy(),
        )
        with progress.part(1, 2):
            progress.report(min(start + at_once, count), count, "token")
    return Guesses(states, TokenProbabilities(probability, likely, likely_probability), surest)


@torch.inference_mode()
def logits_at(model: Transformer, ids: Sequence[int], states: Tensor | None, at: slice) -> Logits:
    """The logits [positions, vocab_size] after each position `at` of `ids`, from the `states` of
    `Guesses`.
    """
    if states is None:
        return logits_after(model, ids, at)
    logits: Tensor = model.head(states[None], None, at, IDENTITY)[0]
    return logits.float().cpu().numpy()
