"""One edit: what of a model is changed, what becomes of it, and where and how it acts.

Each kind of edit is a class, which stands beside what it changes: `unit_edits` has those of heads,
MLPs, neurons, experts, embeddings and positions, `weight_edits` those of matrices and adapters,
`directions`, `swaps` and `dictionary` those of the stream. `edits` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NamedTuple, Self

import torch
from torch import Tensor

from gptviz.machine import progress
from gptviz.model import Config, Transformer, Watch
from gptviz.model.edited import ENCODER, Pass, Replacement
from gptviz.settings import address_values

from ..units.unit import Unit

ZERO: Final = "zero"
MEAN: Final = "mean"
FROM: Final = "from"
# The strengths of an adapter and of a swap in edits: beyond them a model says nothing that could be
# read.
MOST_STRENGTH = 10.0
# All other numbers of edits: beyond them products overflow, and nothing is left to be read.
MOST_NUMBER = 100_000.0
# By each word that a unit can become, what the title of the edit says of it.
Words = Mapping[str, str]
# The names of taps, and what takes the place of the value there.
Acts = Iterator[tuple[str, Replacement]]


@dataclass(frozen=True)
class Edit:
    """A unit of a model and what becomes of it. Each kind of edit is a class."""

    unit: Unit  #: which piece of the model
    to: str | float = ZERO  #: a word of `becomes`, a number, or of weights the name of a quantiser

    #: by each word that a unit of this kind can become, what the title says of it
    becomes: ClassVar[Words] = {ZERO: " is switched off (zero)"}
    #: what the title says where the unit is set to a number; empty where that is not possible
    set_to: ClassVar[str] = ""
    #: whether it keeps weights in fewer bits
    is_of_weights: ClassVar[bool] = False
    #: whether it changes what is computed, and not the weights that it is computed with
    is_of_values: ClassVar[bool] = True

    @classmethod
    def parse(cls, unit: Unit, text: str, config: Config) -> Edit:
        """The edit of this unit of a model that `text` says; a ValueError names what is
        possible.
        """
        _, equals, to = text.strip().partition("=")
        if not equals or to == ZERO:
            return cls(unit)
        if to in cls.becomes:
            return cls(unit, to)
        choices = ", ".join(cls.becomes)
        if cls.set_to:
            choices += f" or {_allowed_range(MOST_NUMBER)}"
            if (number := read_number(to, MOST_NUMBER)) is not None:
                return cls(unit, number)
        raise ValueError(f"{text!r:.80}: {unit.title} cannot become {to!r:.40}, but {choices}")

    @property
    def text(self) -> str:
        """Its form in an address, on the command line and in the library, which `edits.edit`
        reads.
        """
        if self.to == ZERO:
            return self.unit.name
        return f"{self.unit.name}={self.to if isinstance(self.to, str) else f'{self.to:.6g}'}"

    def __str__(self) -> str:
        return self.text

    @property
    def title(self) -> str:
        """The change of the unit, as a sentence without its full stop, with the ids of tokens."""
        return self.title_with(str)

    def title_with(self, token: Callable[[int], str]) -> str:
        """As `title`, with the name of each `token` in place of its id."""
        name = self.unit.title[0].upper() + self.unit.title[1:]
        if isinstance(self.to, str):
            return name + self.becomes[self.to]
        return name + self.set_to.format(self.to)

    @property
    def needs_text(self) -> bool:
        """Whether it takes something from a reference text."""
        return self.to in (MEAN, FROM)

    @property
    def number(self) -> float:
        """What it sets the unit to: 0 where it switches it off."""
        return 0.0 if self.to == ZERO else float(self.to)

    @property
    def tap(self) -> str:
        """The name of the value that it replaces, where there is one."""
        return self.unit.tap

    @classmethod
    def act(cls, edits: Sequence[Self], values: Values) -> Acts:
        """What `edits` of this kind put in the place of what a model computes, each with the name
        of the tap where it does. A ValueError if one of them does not fit the model.
        """
        yield from ()

    def require_fit(self, model: Transformer) -> None:
        """Refuse, with a ValueError, a model that cannot have this edit though it has the unit."""


@dataclass(frozen=True)
class StreamEdit(Edit):
    """An edit of the stream along something that was fitted and is kept under a name."""

    #: what was fitted, where it is open; else it is opened by its name
    opened: Any = field(default=None, compare=False)

    def require_fit(self, model: Transformer) -> None:
        """As `Edit.require_fit`."""
        list(self.act([self], Values(model)))


def strength(text: str) -> float | None:
    """The strength of an adapter, a direction or a swap that an edit such as "adapter=0.5" says;
    None if none is possible.
    """
    to = text.partition("=")[2]
    if to in ("", ZERO):
        return 0.0
    return read_number(to, MOST_STRENGTH)


def parse_strength(text: str, of: str) -> float:
    """As `strength`, of an adapter or a swap; a ValueError if none is possible."""
    if (number := strength(text)) is None:
        raise ValueError(f"{text!r:.80}: the strength of {of} is {_allowed_range(MOST_STRENGTH)}")
    return number


def round_number(number: float) -> float:
    """A number of an edit, with as many digits as its text has."""
    return float(f"{number:.6g}")


def read_number(text: str, most: float) -> float | None:
    """The number that a text is, from -`most` to `most`; None if it is no such number."""
    number = address_values.number(text)
    if abs(number) <= most:
        return round_number(number)
    return None


def _allowed_range(most: float) -> str:
    return f"a number from -{most:,.0f} to {most:,.0f}"


def take_away(vector: Tensor, share: float) -> Replacement:
    """The stream [B, T, d_model] less a `share` of its part along the `vector`: 1 leaves nothing of
    it, 2 mirrors the stream.
    """

    def replace(value: Tensor, seen: Pass) -> Tensor:
        along = vector.to(value) / vector.to(value).norm()
        if share:
            return value - share * (value @ along)[..., None] * along
        return value

    return replace


class Inputs(NamedTuple):
    """A piece of a reference text, or several, as a model reads it."""

    ids: Tensor  #: [B, T], the tokens; padding counts in no mean
    source: Tensor | None = None  #: [B, S], what the encoder reads, or None if there is no encoder

    @property
    def before_answer(self) -> Inputs:
        """What is read before the first guess: the whole text; of an encoder–decoder, the source
        and the start token.
        """
        if self.source is None:
            return self
        return self._replace(ids=self.ids[:, :1])


class Values:
    """A model, and the values that edits take from a reference text, computed in one run of it,
    unedited, over each piece of the text. A ValueError if an edit needs such a text, and there is
    none.
    """

    def __init__(
        self, model: Transformer, edits: Sequence[Edit] = (), reference: Sequence[Inputs] = ()
    ) -> None:
        self.model = model
        waiting = [one for one in edits if one.needs_text]
        if waiting and not reference:
            what = "mean" if waiting[0].to == MEAN else "pattern"
            raise ValueError(
                f"{waiting[0].text} needs a reference text to take the {what} from: give a text"
            )
        #: by tap name, over all tokens: of z [n_head, d_head], of other values [size]
        self.means: dict[str, Tensor] = {}
        #: by tap name, [n_head, query, key] over the first row of the first piece
        self.patterns: dict[str, Tensor] = {}
        averaged = {one.tap for one in waiting if one.to == MEAN}
        copied = {one.tap for one in waiting if one.to == FROM}
        counts = dict.fromkeys(averaged, 0)
        if not waiting:
            return
        for before, piece in enumerate(reference):
            real = {"": _real_tokens(model, piece.ids)} | (
                {} if piece.source is None else {ENCODER: _real_tokens(model, piece.source)}
            )

            def see(name: str, value: Tensor, real: dict[str, Tensor] = real) -> None:
                if name in copied:
                    self.patterns.setdefault(name, value[0].clone())
                if name in averaged:
                    by_token = value.transpose(1, 2) if name.endswith(".z") else value  # [B, T, …]
                    # [tokens, …]
                    tokens = by_token[real[ENCODER if name.startswith(ENCODER) else ""]]
                    self.means[name] = self.means.get(name, 0.0) + tokens.sum(0)
                    counts[name] += len(tokens)

            with torch.no_grad(), progress.part(before, len(reference)):
                model(
                    piece.ids,
                    piece.source,
                    tap=Watch(sorted(averaged | copied), see),
                    logits_at=slice(-1, None),
                )
        self.means = {name: total / counts[name] for name, total in self.means.items()}


def _real_tokens(model: Transformer, ids: Tensor) -> Tensor:
    """Where `ids` [B, T] are no padding. The first token counts always: some models begin with the
    token that pads.
    """
    if model.config.padding is None:
        real = torch.ones_like(ids, dtype=torch.bool)
    else:
        real = ids != model.config.padding
    real[:, 0] = True
    return real
