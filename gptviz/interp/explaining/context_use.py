"""How much of its context a decoder uses: its loss when it reads fewer tokens, and what each
earlier token is worth to a guess.

The loss of a token is −ln of the probability that the model gave it, in nats. All but `by_position`
is measured on one text. Its last token is only guessed and never read, so it may be a guess of the
model's own.

- `by_position`: the mean loss at each position of many texts, which all begin at the first.
- `by_window`: each token is guessed only from the last w tokens before it, as if the text began
  there.
- `left_out`: each token is guessed from all tokens before it but one. Two things can be meant by
  that:
  *replaced*: the token stays in its place, and its embedding is replaced by the mean of all
  embeddings of the vocabulary, a vector that speaks for no token in particular; all others keep
  their positions.
  *removed*: the text is read without the token, and all that follow it move one place towards the
  beginning. For a model that counts positions this changes more than the token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from gptviz.labelled_array import Axis, Float64Array, LabelledArray, number_axis
from gptviz.machine import progress
from gptviz.model import IDENTITY, Edit, Tap, Transformer
from gptviz.model.costs.effort import SOME, effort
from gptviz.settings.fields import check_value, info_of
from gptviz.settings.kinds import HowLeftOut

from ..trace import one_row

# What a pass reads and computes at most, in tokens and in logits: then the next pass begins.
MOST_TOKENS = 4_096
MOST_LOGITS = 2**24
# This many tokens of a text are guessed from each window, evenly spread, unless asked otherwise.
TARGETS = 32
# A window is enough from which the model loses at most this share of what the whole context gains
# over a single token.
NEARLY = 0.05
# A window is enough for one guess which leaves it at least this share of its probability.
MOSTLY = 0.9
# In texts of up to so many tokens every window is measured.
EVERY_WINDOW = 24
# The most tokens of held-out data that `by_position` is asked of, fewer with large models.
MOST_DATA = 8_192


@dataclass(frozen=True)
class ByWindow:
    """The loss of tokens of a text, guessed from the last tokens before them."""

    #: how many tokens are read, ascending; the last is the whole text before every token
    windows: tuple[int, ...]
    #: the positions of the tokens that are guessed, the same for every window
    targets: tuple[int, ...]
    loss: Float64Array  #: [windows, targets], nats

    @property
    def mean(self) -> Float64Array:
        """[windows], the mean loss over the targets."""
        mean: Float64Array = self.loss.mean(1)
        return mean

    @property
    def enough(self) -> int:
        """The smallest window from which on the mean loss stays within `NEARLY` of that with the
        whole context: the last window itself, or more where the text is too short to tell. The
        share is of the difference between one token and all.
        """
        mean = self.mean
        return self._first(mean <= mean[-1] + NEARLY * max(mean[0] - mean[-1], 0))

    @property
    def probability(self) -> Float64Array:
        """[windows], that of the last token, which is the model's guess where `with_guess` made the
        text.
        """
        probability: Float64Array = np.exp(-self.loss[:, -1])
        return probability

    @property
    def enough_for_last(self) -> int:
        """The smallest window from which on the last token has at least `MOSTLY` of the probability
        that it has with the whole context.
        """
        return self._first(self.probability >= MOSTLY * self.probability[-1])

    def _first(self, is_enough: NDArray[np.bool_]) -> int:
        """The smallest window from which on all are enough."""
        short = np.flatnonzero(~is_enough)
        return self.windows[int(short[-1]) + 1 if short.size else 0]

    @property
    def sentence(self) -> str:
        """How much of what stands before them all the guesses need, on average."""
        mean = self.mean
        longest = self.windows[-1]
        if mean[0] <= mean[-1]:
            return "On average over all its guesses here, more than one token does not help."
        if self.enough == longest:
            return (
                f"On average over all its guesses here, the last {self.windows[-2]} do not serve "
                f"as well as all {longest}."
            )
        few = "token serves" if self.enough == 1 else f"{self.enough} tokens serve"
        return (
            f"On average over all its guesses here, the last {few} nearly as well as all {longest}."
        )

    def labelled(self, guess: str) -> LabelledArray:
        """The loss of the last token, called `guess`, and the mean over all, by window."""
        lines = Axis("guess", (guess, "mean of all guesses"))
        windows = Axis("tokens read", tuple(map(str, self.windows)))
        return LabelledArray(
            np.stack([self.loss[:, -1], self.mean]), (lines, windows), "loss (nats)"
        )


@dataclass(frozen=True)
class LeftOut:
    """The worth of tokens of a text to the guesses after them."""

    places: tuple[int, ...]  #: the positions of the tokens that are left out, one at a time
    #: [T, places], how much the loss of each token rises without that one, in nats; negative where
    #: the guess becomes better, NaN for the tokens up to the one left out, whose guesses do not
    #: read it
    rise: Float64Array

    def labelled(self, tokens: Sequence[str]) -> LabelledArray:
        """`rise`, the tokens of the text being called `tokens`."""
        left = tuple(tokens[place] for place in self.places)
        axes = (Axis("token guessed", tuple(tokens)), Axis("token left out", left))
        return LabelledArray(self.rise, axes, "rise of loss (nats)")


@dataclass(frozen=True)
class ContextUse:
    """All of it for one text."""

    ids: tuple[int, ...]  #: [T], the text
    loss: Float64Array  #: [T], the loss of each token guessed from all before it; NaN for the first
    by_window: ByWindow  #: the loss when fewer tokens are read
    left_out: LeftOut  #: what each token is worth


def context_use(
    model: Transformer, ids: Sequence[int], how: HowLeftOut = "replaced", kept: int = 0
) -> ContextUse:
    """How a decoder uses the context in the text `ids`: see the functions of this file. A
    ValueError as in `left_out`.
    """
    return ContextUse(
        tuple(ids),
        losses(model, ids),
        by_window(model, ids, kept=kept),
        left_out(model, ids, how, kept=kept),
    )


@torch.inference_mode()
def with_guess(model: Transformer, ids: Sequence[int]) -> list[int]:
    """The text `ids` and the likeliest next token of a decoder; a ValueError for another model, or
    too many tokens.
    """
    _check(model, [*ids, 0])
    return [*ids, int(model(*one_row(model, ids), logits_at=slice(-1, None))[0, -1].argmax())]


@torch.inference_mode()
def losses(model: Transformer, ids: Sequence[int]) -> Float64Array:
    """The loss of every token of `ids` guessed from all before it [T], in nats; NaN for the first.
    A ValueError if the model is no decoder, the text has fewer than two tokens, or more are read
    than its context holds.
    """
    _check(model, ids)
    rows, _ = one_row(model, ids)
    return np.concatenate(([np.nan], _losses(model(rows[:, :-1]), rows[:, 1:])[0]))


def most_data(model: Transformer) -> int:
    """How many tokens of held-out data are read in about a second, at most `MOST_DATA`."""
    return int(min(MOST_DATA, SOME / effort(model, 1)))


@torch.inference_mode()
def by_position(model: Transformer, rows: Sequence[Sequence[int]]) -> LabelledArray:
    """The mean loss of the tokens at each position of `rows`, each of which is a separate text; NaN
    for the first position. A ValueError as in `losses`, for any row, or if there is none.
    """
    if not rows:
        raise ValueError("there is no text to measure the loss on")
    for row in rows:
        _check(model, row)
    total = np.zeros((2, max(map(len, rows))))
    count = 0
    by_length = sorted(rows, key=len)
    while by_length:
        length = len(by_length[0])
        most = max(1, min(MOST_TOKENS // length, MOST_LOGITS // (length * model.config.vocab_size)))
        same = [row for row in by_length[:most] if len(row) == length]
        by_length = by_length[len(same) :]
        ids = torch.tensor(same, device=model.embed.weight.device)
        nats = _losses(model(ids[:, :-1]), ids[:, 1:])  # [rows, length - 1]
        total[0, 1:length] += nats.sum(0)
        total[1, 1:length] += len(same)
        count += len(same)
    with np.errstate(invalid="ignore"):
        mean = total[0] / total[1]
    return LabelledArray(
        mean, (number_axis("position", len(mean)),), f"mean loss over {count:,} texts (nats)"
    )


def windows_for(length: int) -> tuple[int, ...]:
    """1, 2, 4, … tokens, and all that can be read before a token of a text of `length` tokens; of a
    short text every number of them.
    """
    most = max(length - 1, 1)
    if most <= EVERY_WINDOW:
        return tuple(range(1, most + 1))
    return (*(2**power for power in range(most.bit_length()) if 2**power < most), most)


@torch.inference_mode()
def by_window(
    model: Transformer,
    ids: Sequence[int],
    windows: Sequence[int] | None = None,
    *,
    kept: int = 0,
    targets: int = TARGETS,
) -> ByWindow:
    """The loss of tokens of `ids`, each guessed only from the last tokens before it, which stand at
    the first positions.

    Args:
        windows: how many tokens are read; by default `windows_for` this text. More than there are
            before a token are all of them.
        kept: how many tokens at the beginning stand before every window, such as the token that a
            text must begin with.
        targets: how many tokens are guessed, at most, evenly spread over the text.

    Raises:
        ValueError: as in `losses`, or there is a window without a token.
    """
    _check(model, ids, kept)
    length = len(ids)
    if windows is None:
        chosen = windows_for(length - kept)
    else:
        chosen = tuple(sorted(set(windows)))
    if not chosen or chosen[0] < 1:
        raise ValueError(f"the windows are {list(windows or ())}; each must have 1 token or more")
    places = np.unique(
        np.linspace(kept + 1, length - 1, min(targets, length - 1 - kept)).round().astype(int)
    ).tolist()
    asked = [
        (row, column, max(place - window, kept))
        for row, window in enumerate(chosen)
        for column, place in enumerate(places)
    ]
    # Windows with equal start and end give the same guess: it is computed once.
    guesses = sorted({(start, places[column]) for _, column, start in asked})
    known: dict[tuple[int, int], float] = {}
    for part in _parts(_readings(guesses, model), model, kept):
        with progress.part(
            len(known), len(guesses), sum(len(window.targets) for window in part), step="guess"
        ):
            logits = _read_windows(model, ids, part, kept)
            width = part[-1].width
        for row, window in enumerate(part):
            # counted from the end
            guessed = [place - window.start - 1 - width for place in window.targets]
            truth = torch.tensor([ids[place] for place in window.targets], device=logits.device)
            nats = F.cross_entropy(logits[row, guessed].float(), truth, reduction="none").tolist()
            known |= {
                (window.start, place): loss
                for place, loss in zip(window.targets, nats, strict=True)
            }
    loss = np.empty((len(chosen), len(places)))
    for row, column, start in asked:
        loss[row, column] = known[start, places[column]]
    return ByWindow(chosen, tuple(places), loss)


def _read_windows(
    model: Transformer, ids: Sequence[int], part: Sequence[_Window], kept: int
) -> Tensor:
    """The logits [rows, n, vocab_size] after the last n tokens of the longest reading of a part,
    from the first guess on.
    """
    width = part[-1].width
    rows = [
        [*ids[:kept], *ids[window.start : window.stop], *[0] * (width - window.width)]
        for window in part
    ]
    first = kept + min(place - window.start - 1 for window in part for place in window.targets)
    logits: Tensor = model(
        torch.tensor(rows, device=model.embed.weight.device), logits_at=slice(first, None)
    )
    return logits


class _Window(NamedTuple):
    """Tokens of the text that are read as if it began with them."""

    start: int  #: the first of them
    stop: int  #: the end of them
    targets: tuple[int, ...]  #: the positions that are guessed from what is read before them

    @property
    def width(self) -> int:
        """How many tokens are read."""
        return self.stop - self.start


def _readings(guesses: Sequence[tuple[int, int]], model: Transformer) -> list[_Window]:
    """The texts that are read for the guesses (where the text begins, the position that is
    guessed), the shortest first. In a causal model one reading serves all guesses whose texts begin
    at one place: each token is guessed only from those before it.
    """
    if not _is_causal(model):
        return sorted(
            (_Window(start, place, (place,)) for start, place in guesses),
            key=lambda window: window.width,
        )
    targets: dict[int, list[int]] = {}
    for start, place in guesses:
        targets.setdefault(start, []).append(place)
    return sorted(
        (_Window(start, max(of), tuple(of)) for start, of in targets.items()),
        key=lambda window: window.width,
    )


def _parts(readings: list[_Window], model: Transformer, kept: int) -> Iterator[list[_Window]]:
    """The readings by passes. In a causal model shorter ones are filled up at their ends, which
    changes no guess.
    """
    part: list[_Window] = []
    for reading in readings:
        width = reading.width + kept
        most = max(1, min(MOST_TOKENS // width, MOST_LOGITS // (width * model.config.vocab_size)))
        if part and (
            len(part) >= most or (reading.width != part[0].width and not _is_causal(model))
        ):
            yield part
            part = []
        part.append(reading)
    yield part


@torch.inference_mode()
def left_out(
    model: Transformer,
    ids: Sequence[int],
    how: HowLeftOut = "replaced",
    places: Sequence[int] | None = None,
    *,
    kept: int = 0,
) -> LeftOut:
    """How much the loss of each token of `ids` rises when one of the tokens before it is left out.

    Args:
        how: what leaving out means: see the top of this file.
        places: which tokens are left out, one at a time; by default each but the last, which no
            guess reads.
        kept: how many tokens at the beginning are never left out; then none of the default `places`
            is among them.

    Raises:
        ValueError: as in `losses`, a place is not in the text, or there is no such way to leave a
            token out.
    """
    _check(model, ids, kept)
    check_value(info_of(HowLeftOut), "how", how)
    gone = tuple(range(kept, len(ids) - 1) if places is None else places)
    if outside := [place for place in gone if not 0 <= place < len(ids) - 1]:
        raise ValueError(
            f"there is no token {outside[0]} to leave out: those that are read are counted from 0 "
            f"to {len(ids) - 2}"
        )
    with progress.part(0, 1 + len(gone)):
        before = _Beginning(model, ids)
    rise = np.full((len(ids), len(gone)), np.nan)
    at_once = max(
        1, min(MOST_TOKENS // len(ids), MOST_LOGITS // (len(ids) * model.config.vocab_size))
    )
    mean = mean_embedding(model) if how == "replaced" and gone else None
    for start in range(0, len(gone), at_once):
        some = gone[start : start + at_once]
        with (
            progress.part(1, 1 + len(gone), len(gone)),
            progress.part(start, len(gone), len(some), step="token"),
        ):
            if mean is not None:
                without = _losses_replaced(before, some, mean)
            else:
                without = _losses_removed(before, some)
        for column, place in enumerate(some, start):
            rise[place + 1 :, column] = (without[column - start] - before.losses)[place + 1 :]
    return LeftOut(gone, rise)


class _Beginning:
    """A text as it is, and what a causal model has computed of it: what stands before a change is
    not computed again.
    """

    def __init__(self, model: Transformer, ids: Sequence[int]) -> None:
        self.model = model
        self.ids = torch.tensor(ids, device=model.embed.weight.device)
        self._cache = model.new_cache(1, len(ids)) if _is_causal(model) else None
        logits = model(self.ids[None, :-1], cache=self._cache)
        #: [T], of each of its tokens
        self.losses = np.concatenate(([np.nan], _losses(logits, self.ids[None, 1:])[0]))

    def first_changed(self, places: Sequence[int]) -> int:
        """The first position from which on rows that differ from the text at these places have to
        be read.
        """
        if self._cache is None:
            return 0
        return min(places)

    def logits(self, rows: Tensor, start: int, tap: Tap = IDENTITY) -> Tensor:
        """The logits [B, n, vocab_size] of the rows [B, n] that follow the text up to position
        `start`.
        """
        if self._cache is None or not start:
            return cast(Tensor, self.model(rows, tap=tap))
        cache = self.model.new_cache(len(rows), len(self.ids))
        for layer, kept in zip(cache.layers, self._cache.layers, strict=True):
            layer.keys[:, :, :start], layer.values[:, :, :start] = (
                kept.keys[:, :, :start],
                kept.values[:, :, :start],
            )
        cache.length = start
        cache.vectors = self._cache.vectors[:, :start].expand(len(rows), -1, -1)
        return cast(Tensor, self.model(rows, cache=cache, tap=tap))


def _is_causal(model: Transformer) -> bool:
    """Whether what the model computes at a position depends on nothing after it."""
    return model.config.mask == "causal" and model.config.padding is None


@torch.inference_mode()
def mean_embedding(model: Transformer) -> Tensor:
    """The mean of the embeddings of all tokens, [d_model], as they enter the model."""
    total = torch.zeros(model.config.d_model, dtype=torch.float64, device=model.embed.weight.device)
    for ids in torch.arange(model.config.vocab_size, device=total.device).split(MOST_TOKENS):
        total += model.embed(ids[None])[0].double().sum(0)
    return (total / model.config.vocab_size).float()


def _losses_replaced(before: _Beginning, places: Sequence[int], mean: Tensor) -> Float64Array:
    """The losses [places, T] with the `mean` embedding [d_model] for one token after the other; NaN
    before all these places.
    """
    start = before.first_changed(places)
    rows = before.ids[start:].expand(len(places), -1)

    def replace_embedding(embedded: Tensor) -> Tensor:
        embedded[torch.arange(len(places)), torch.tensor(places) - start] = mean.to(embedded.dtype)
        return embedded  # [places, T - 1 - start, d_model]

    logits = before.logits(rows[:, :-1], start, Edit({"embed": replace_embedding}))
    return np.pad(_losses(logits, rows[:, 1:]), ((0, 0), (start + 1, 0)), constant_values=np.nan)


def _losses_removed(before: _Beginning, places: Sequence[int]) -> Float64Array:
    """The losses [places, T] without one token after the other; NaN if nothing is left to read, and
    before all these places.
    """
    length = len(before.ids)
    start = before.first_changed(places)
    start = max(0, start - 1)  # the token before is read again, for its guess at what follows
    others = torch.arange(start, length - 1).expand(len(places), -1)
    gone = torch.tensor(places)[:, None]
    rows = before.ids[(others + (others >= gone)).to(before.ids.device)]  # [places, T - 1 - start]
    losses = np.full((len(places), length), np.nan)
    if rows.shape[1] > 1:
        # [places, T - 2 - start], of the tokens after the first
        nats = _losses(before.logits(rows[:, :-1], start), rows[:, 1:])
        for row, place in enumerate(places):
            losses[row, [t for t in range(start, length) if t != place][1:]] = nats[row]
    return losses


def _losses(logits: Tensor, truth: Tensor) -> Float64Array:
    """−ln p of each true token [rows, T] after softmax of the logits [rows, T, vocab_size]."""
    nats: Float64Array = (
        F.cross_entropy(logits.flatten(0, 1).float(), truth.flatten(), reduction="none")
        .double()
        .cpu()
        .numpy()
    )
    return nats.reshape(truth.shape)


def _check(model: Transformer, ids: Sequence[int], kept: int = 0) -> None:
    if model.config.kind != "decoder":
        raise ValueError("only a decoder guesses each token from those before it")
    if len(ids) - kept < 2:
        raise ValueError(
            f"the text has {len(ids) - kept} token{'' if len(ids) - kept == 1 else 's'}; at least "
            "2 are needed"
        )
    if len(ids) - 1 > model.config.context_length:
        raise ValueError(
            f"{len(ids) - 1} tokens do not fit in a context of {model.config.context_length}"
        )
