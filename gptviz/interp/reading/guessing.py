"""Shannon's guessing game: how many guesses a player needs for each token of a text, and how many
bits that is.

A player reads what comes before a token and guesses the token until the guess is right. Who knows
the order in which the player guesses can find each token only from the number of guesses. So this
number tells as much as the token does, and its entropy is an upper bound of the entropy of the text
(C. E. Shannon, "Prediction and Entropy of Printed English", 1951).

Shannon counted how often each number of guesses occurred. A short game is too short for that: who
always needs five guesses would get 0 bits. Here only the mean counts: the bits are the most that
any numbers of guesses with this mean can tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional as F

from gptviz.labelled_array import Float64Array
from gptviz.model import Transformer

from .next_token import Logits


@dataclass(frozen=True)
class Played:
    """A game of a player that has a probability for every token, and guesses the likeliest
    first.
    """

    logits: Logits  #: [T, vocab_size], before each of the T tokens
    #: [T], how many guesses each token took, from 1. Tokens that are equally likely are guessed in
    #: a random order: what is here is the mean over all orders.
    guesses: Float64Array
    surprise: Float64Array  #: [T], −log2 of the probability of each token, in bits

    @property
    def bits(self) -> float:
        """The bits per token by its guesses: see `bits_of_guesses`."""
        return bits_of_guesses(float(self.guesses.mean()), self.logits.shape[-1])


def play(model: Transformer, ids: Sequence[int], first: int) -> Played:
    """The game of a decoder for the tokens `ids[first:]`.

    Before each of them it reads as many tokens as its context has, but at most `first`: the same
    number before each. A ValueError if there is nothing to read or to guess, or the model is no
    decoder.
    """
    if model.config.kind != "decoder":
        raise ValueError("only a decoder guesses the next token of a text")
    if not 0 < first < len(ids):
        raise ValueError(
            f"of {len(ids)} tokens, {first} are to be read: at least one must be read, and one "
            "guessed"
        )
    read = min(model.config.context_length, first)
    device = model.embed.weight.device
    windows = torch.tensor(ids[first - read : -1], device=device).unfold(0, read, 1)  # [T, read]
    with torch.inference_mode():
        logits = model(windows, logits_at=slice(read - 1, read))[:, 0]  # [T, vocab_size]
    return play_game(logits.float().cpu().numpy(), ids[first:])


def play_game(logits: Logits, tokens: Sequence[int]) -> Played:
    """The game of a player with these logits [T, vocab_size] before each of the T `tokens`."""
    exact = torch.from_numpy(logits).double()
    true = torch.tensor(tokens)
    of_true = exact.gather(-1, true[:, None])  # [T, 1]
    likelier = (exact > of_true).sum(-1)
    equal = (exact == of_true).sum(-1)
    surprise = F.cross_entropy(exact, true, reduction="none") / math.log(2)
    return Played(logits, (likelier + (equal + 1) / 2).double().numpy(), surprise.numpy())


def guesses_of_chance(choices: int, wrong: int = 0) -> float:
    """How many guesses a token takes on average, `wrong` guesses included, if all other choices are
    tried in a random order.
    """
    return (choices + wrong + 1) / 2


def bits_of_guesses(mean: float, choices: int) -> float:
    """The largest entropy, in bits, that numbers of guesses from 1 to `choices` can have if this is
    their mean.

    It is 0 if every first guess is right. It rises to log2 of `choices` at the mean of random
    guesses, and stays there.

    The distribution of largest entropy with a given mean is p(r) ∝ q^r for a q between 0 and 1 (E.
    T. Jaynes, "Information Theory and Statistical Mechanics", 1957). Its entropy is also what the
    guesses of a game take on average in the code that this distribution makes. A ValueError if no
    guesses have this mean.
    """
    if not 1 <= mean <= choices:
        raise ValueError(f"the mean of guesses from 1 to {choices} cannot be {mean}")
    if mean >= guesses_of_chance(choices):
        return math.log2(choices)
    if mean == 1:
        return 0.0
    wrong = np.arange(choices)
    low = 0.0
    high = 1.0
    while low < (q := (low + high) / 2) < high:  # until no number lies between them
        weights = q**wrong
        low, high = (q, high) if weights @ wrong < (mean - 1) * weights.sum() else (low, q)
    return math.log2((high**wrong).sum()) - (mean - 1) * math.log2(high)
