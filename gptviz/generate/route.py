"""The route to a text: the settings with which each token was drawn, or the token if it was chosen
by hand.

As a line, a route is letters, each with a number: `n40f17n80` draws 40 tokens, takes token 17, and
draws 80 more. A setting is valid from its place on: `t0.5` is the temperature, `k3` top-k, `p0.9`
top-p (0 switches either off) and `s7` the seed; before that, the defaults of `Sampling` are valid.
A checksum of the tokens follows after `_`: if it does not fit, the model or its numbers have
changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import groupby

from .sampling import Sampling
from .tree import Choice, TreeNode

# The settings that a line need not name.
START = Sampling()

_WHOLE = r"[0-9]{1,9}"
_REAL = r"[0-9]{1,16}(?:\.[0-9]{1,20})?(?:e-[0-9]{1,3})?"
_PART = re.compile(rf"([nfks])({_WHOLE})|([tp])({_REAL})")
_LINE = re.compile(rf"((?:[nfks]{_WHOLE}|[tp]{_REAL})+)_([0-9a-f]{{6}})")


@dataclass(frozen=True)
class Route:
    """How a text was made: one choice per token, with a checksum."""

    choices: tuple[Choice, ...]  #: how each token was chosen, see `Choice`
    checksum: str  #: of the tokens, six hexadecimal digits

    @classmethod
    def route_to(cls, path: Sequence[TreeNode]) -> Route:
        """The route to the end of a path of nodes, the first after the prompt first."""
        chosen = (node.token if node.drawn is None else node.drawn for node in path)
        return cls(tuple(chosen), checksum(node.token for node in path))

    @property
    def line(self) -> str:
        """The route as a line."""
        parts = []
        now = START
        for choice, group in groupby(self.choices):
            count = len(list(group))
            if isinstance(choice, int):
                parts += [f"f{choice}"] * count
            else:
                old = _settings(now)
                new = _settings(choice)
                changes = [
                    f"{letter}{number.removesuffix('.0')}"
                    for letter, number in new.items()
                    if number != old[letter]
                ]
                parts += [*changes, f"n{count}"]
                now = choice
        return f"{''.join(parts) or 'n0'}_{self.checksum}"

    @classmethod
    def read_line(cls, line: str, *, vocab_size: int, most: int) -> Route:
        """The route of a line, of at most `most` tokens of a vocabulary of `vocab_size`; a
        ValueError if it has none.
        """
        whole = _LINE.fullmatch(line)
        if whole is None:
            raise ValueError("it does not have the form of a route")
        choices: list[Choice] = []
        now = START
        for part in _PART.finditer(whole[1]):
            letter = part[1] or part[3]
            number = part[2] or part[4]
            match letter:
                case "n":
                    if len(choices) + int(number) > most:
                        raise ValueError(f"it leads to more than {most:,} tokens")
                    choices += [now] * int(number)
                case "f":
                    if int(number) >= vocab_size:
                        raise ValueError(
                            f"token {number} is not in the vocabulary, which ends at "
                            f"{vocab_size - 1}"
                        )
                    choices.append(int(number))
                case "t":
                    now = replace(now, temperature=float(number))
                case "k":
                    now = replace(now, top_k=int(number) or None)
                case "p":
                    now = replace(now, top_p=float(number) or None)
                case _:
                    now = replace(now, seed=int(number))
        if len(choices) > most:
            raise ValueError(f"it leads to more than {most:,} tokens")
        return cls(tuple(choices), whole[2])


def checksum(tokens: Iterable[int]) -> str:
    """Six hexadecimal digits, nearly always different for different tokens."""
    return blake2b(" ".join(map(str, tokens)).encode(), digest_size=3).hexdigest()


def _settings(sampling: Sampling) -> dict[str, str]:
    return {
        "t": repr(float(sampling.temperature)),
        "k": str(sampling.top_k or 0),
        "p": repr(float(sampling.top_p or 0)),
        "s": str(sampling.seed),
    }
