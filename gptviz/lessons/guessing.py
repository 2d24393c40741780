"""A class guesses the next token: what is typed as a token of the model, and the guesses of the
class beside the probabilities of the model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
import numpy.typing as npt

from gptviz.text import Tokenizer
from gptviz.text.visible_form import unique_names

from .votes import LONGEST

# The most tokens that a search offers; a vocabulary that has no more than `FEW` is offered whole.
MOST_FOUND = 10
FEW = 100
# The most tokens that a result shows, beside the one that was right.
MOST_SHOWN = 8


def written_text(typed: str) -> str:
    """A text as it is typed, with ␣ for a space and ⏎ for a line break."""
    return typed.replace("␣", " ").replace("⏎", "\n")


@dataclass(frozen=True)
class GuessableTokens:
    """The vocabulary of a model, in which a class looks for its guesses."""

    tokenizer: Tokenizer

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of each token; no two have the same."""
        return unique_names(self.tokenizer.labels())

    @cached_property
    def ids(self) -> Mapping[str, int]:
        """The tokens that can be guessed, by their names, the shortest first: those that stand for
        a text.
        """
        unused = {*self.tokenizer.unused_ids, *self.tokenizer.before, *self.tokenizer.after}
        found = {name: i for i, name in enumerate(self.names) if i not in unused}
        short = [name for name in found if len(name) <= LONGEST]
        return {name: found[name] for name in sorted(short, key=lambda name: (len(name), name))}

    def first_token(self, before: str, typed: str) -> str | None:
        """The name of the token with which a text begins where it follows `before`; None if no
        token does. A word has a space before it, unless every character is a token.
        """
        text = written_text(typed[:LONGEST])
        is_next_word = text[:1].isalnum() and before[-1:].strip() != ""
        if is_next_word and self.tokenizer.way != "characters":
            spaced = self._first_token(before, f" {text}")
        else:
            spaced = None
        return spaced or self._first_token(before, text)

    def _first_token(self, before: str, text: str) -> str | None:
        # As the text goes on; where its beginning grows together with the last token before it, by
        # itself.
        for first in (before, ""):
            begun = self.tokenizer.encode(first).ids
            read = self.tokenizer.encode(first + text)
            place = self.tokenizer.text_slice(begun).stop
            is_unknown = any(each.position == place for each in read.unknown)
            if read.ids[:place] == begun[:place] and len(read.ids) > place and not is_unknown:
                name = self.names[read.ids[place]]
                return name if name in self.ids else None
        return None

    def find(self, before: str, typed: str) -> list[str]:
        """The names of the tokens that may be meant by what is typed after `before`, at most
        `MOST_FOUND`: first the one that it begins with, then those that begin with it, the shortest
        first. Before anything is typed, all tokens of a small vocabulary, and none of a large one.
        """
        if not typed:
            return list(self.ids) if len(self.ids) <= FEW else []
        first = self.first_token(before, typed)
        begins = typed[:LONGEST].strip().removeprefix("␣").casefold()
        found = (
            name
            for name in self.ids
            if begins and name != first and name.removeprefix("␣").casefold().startswith(begins)
        )
        return [*filter(None, (first,)), *islice(found, MOST_FOUND - 1)]


def surprise(share: float) -> float:
    """How surprising a token is that has this share, in bits: −log2 of it. Infinite if it has
    none.
    """
    if share == 0:
        return math.inf
    return -math.log2(share)


@dataclass(frozen=True)
class GuessResult:
    """The guesses of a class beside the probabilities of a model."""

    counts: Mapping[int, int]  #: how many guessed each token; none of them is 0
    probabilities: npt.NDArray[np.float64]  #: [vocab_size], those of the model
    true: int | None = None  #: the token that came next, if it is known

    @property
    def n_guesses(self) -> int:
        """How many guesses there are."""
        return sum(self.counts.values())

    def shares(self, token: int) -> tuple[float, float]:
        """The share of the class that guessed a token, and the model's probability of it. Of no
        guesses every token has the share 0.
        """
        of_class = self.counts.get(token, 0) / max(1, self.n_guesses)
        return of_class, float(self.probabilities[token])

    @property
    def tokens(self) -> list[int]:
        """The tokens that are shown: those that have most of the class or of the model, the largest
        share first, and the right one.
        """
        likeliest = np.argsort(-self.probabilities, kind="stable")[:MOST_SHOWN].tolist()
        shown = sorted(
            {*self.counts, *likeliest}, key=lambda token: (-max(self.shares(token)), token)
        )[:MOST_SHOWN]
        if self.true is None or self.true in shown:
            return shown
        return [*shown, self.true]

    @property
    def others(self) -> tuple[float, float]:
        """What all tokens that are not shown have together, of the class and of the model."""
        counted = sum(self.counts.get(token, 0) for token in self.tokens)
        of_class = (self.n_guesses - counted) / max(1, self.n_guesses)
        return of_class, max(0.0, 1 - float(self.probabilities[self.tokens].sum()))
