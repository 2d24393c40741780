"""Linear probes: what can be read from the stream after each layer by a plane through it.

A probe learns to tell labels of tokens apart by the vectors of the stream there (Alain and Bengio
2016). Beside it stands a control task (Hewitt and Liang 2019): each token of the vocabulary has
one random label wherever it stands, so that what a probe gets right there it knows by heart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.machine import progress
from gptviz.machine.memory import FLOAT32
from gptviz.model import Transformer
from gptviz.model.kinds import MODEL_KINDS

from ..held_out import beginnings, split_rows, support
from .layers import Layer, layers, stream_of, trace_stream

# The labels of a token that come only from the text: in words, by name. Of many labels the
# commonest are told apart.
FROM_TEXT = {
    "case": "Upper case",
    "word": "Place in the word",
    "quotes": "In quotes",
    **{f"before-{back}": f"The token {back} before" for back in range(1, 5)},
}
# The label of the last token of each text of a table with the columns text and label.
TABLE = "table"
OF_TABLE = "A table of yours"
FURTHEST_IN_WORD = 5
MOST_CLASSES = 20
QUOTES = '“”"'
# The most tokens that are read, and the most bytes of the stream at them; the fewest tokens with a
# label, and of these the fewest held out.
MOST_TOKENS = 8_192
MOST_BYTES = 2**30
FEWEST = 20
FEWEST_HELD_OUT = 5
# The share of the tokens, the last ones, that the probe is tested on; it is fitted to the others.
# The
# layer that is named is chosen by a probe of the first `CHOOSING` of these.
HELD_OUT = 0.25
CHOOSING = 0.8
# A label has appeared where a probe has come so far from the commonest label to what the best layer
# gives.
APPEARED = 0.9
# A label can be read where a probe is right at so many more of the tokens than the commonest label.
READABLE = 0.05
PROBE = "probe"
CONTROL = "control task"
COMMONEST = "always the commonest"


@dataclass(frozen=True)
class Probed:
    """What probes read from the stream, on tokens that they were not fitted to: no token before
    which, itself included, the same text stands as before one that they were fitted to.
    """

    label: str  #: what is told apart, in words
    layers: tuple[Layer, ...]  #: where the stream was read
    classes: tuple[str, ...]  #: the labels that are told apart
    accuracy: Float64Array  #: [layer], the share of tokens whose label the probe says
    #: [layer], the same of a probe of random labels: one for each token of the vocabulary
    control: Float64Array
    commonest: float  #: the share of the commonest label among these tokens
    #: [layer, place], the accuracy at each place in a row; NaN where no token has a label
    by_place: Float64Array
    #: [layer], how much more of the tokens the probe says than the commonest label does, on some of
    #: those that it is fitted to: the layer that is named is chosen by them
    chosen_by: Float64Array
    fitted_to: int  #: the number of tokens that it was fitted to
    tested_on: int  #: the number of tokens held out
    d_model: int  #: how many numbers a vector of the stream has

    @property
    def appears(self) -> Layer | None:
        """The first layer after which the label can be read nearly as well as after the best one.

        It is chosen on tokens that the accuracies are not over. It is None if no probe beats the
        commonest label by 5 % of the tokens there, or it does not beat it on those held out.
        """
        most = self.chosen_by.max()
        if most < READABLE:
            return None
        first = int((self.chosen_by >= APPEARED * most).argmax())
        if self.accuracy[first] > self.commonest:
            return self.layers[first]
        return None

    @property
    def said(self) -> str:
        """Where the label can be read, in a sentence."""
        commonest = f"{100 * self.commonest:.1f} %"
        if self.appears is None:
            return (
                f"“{self.label}” cannot be read from the stream: no probe is clearly better than "
                f"always saying the commonest label, which is right at {commonest} of the tokens."
            )
        at = self.layers.index(self.appears)
        right, control = (f"{100 * share[at]:.1f} %" for share in (self.accuracy, self.control))
        where = "already in" if at == 0 else "after"
        return (
            f"“{self.label}” can be read {where} {self.appears.title}: the probe is right at "
            f"{right} of {self.tested_on:,} tokens that it was not fitted to. The commonest label "
            f"is right at {commonest}; the same probe learns random labels of the tokens at "
            f"{control}."
        )

    @property
    def support(self) -> str:
        """To how many tokens it was fitted, in a sentence, which warns where they are few."""
        numbers = self.d_model + 1  # a weight for each number of the stream, and a bias
        return support(self.fitted_to, self.fitted_to / numbers)

    def labelled(self) -> LabelledArray:
        """The accuracies by layer [line, layer]: of the probe, of the control task, and of always
        saying the commonest label.
        """
        lines = [self.accuracy, self.control, np.full(len(self.layers), self.commonest)]
        axes = (
            Axis("what", (PROBE, CONTROL, COMMONEST)),
            Axis("layer", tuple(layer.name for layer in self.layers)),
        )
        return LabelledArray(np.stack(lines), axes, "share of tokens")

    def places(self) -> LabelledArray:
        """The accuracies [place, layer] at the places in a row where tokens have labels, counted
        from 0.
        """
        known = np.flatnonzero(~np.isnan(self.by_place[0]))
        axes = (
            Axis("place", tuple(f"place {place}" for place in known)),
            Axis("layer", tuple(layer.name for layer in self.layers)),
        )
        return LabelledArray(self.by_place[:, known].T, axes, "share of tokens")


def text_labels(pieces: Sequence[str], name: str) -> list[str | None]:
    """The labels of the `pieces` of a text, of the kind `name` in `FROM_TEXT` (else a ValueError);
    None where there is none.
    """
    labels: list[str | None] = []
    if name == "case":
        letters = [next((letter for letter in piece if letter.isalpha()), "") for piece in pieces]
        return [("lower", "upper")[letter.isupper()] if letter else None for letter in letters]
    if name == "word":
        place = 0
        for before, piece in zip(["", *pieces], pieces, strict=False):
            begins = not before[-1:].isalpha() or not piece[:1].isalpha()
            place = 0 if begins else place + 1
            if not piece.strip()[:1].isalpha():
                labels.append(None)
            elif place >= FURTHEST_IN_WORD:
                labels.append(f"{FURTHEST_IN_WORD} or more")
            else:
                labels.append(str(place))
        return labels
    if name == "quotes":
        inside = False
        for piece in pieces:
            marks = [letter for letter in piece if letter in QUOTES]
            labels.append(None if marks else ("outside", "in quotes")[inside])
            for mark in marks:
                inside = mark == "“" or (mark == '"' and not inside)
        return labels
    if name not in FROM_TEXT:
        raise ValueError(f"there is no label {name!r:.40}: choose one of {', '.join(FROM_TEXT)}")
    back = int(name.removeprefix("before-"))
    return [None] * min(back, len(pieces)) + list(pieces[: max(len(pieces) - back, 0)])


def probe(
    model: Transformer,
    rows: Sequence[Tensor],
    labels: Sequence[Sequence[str | None]],
    seed: int = 0,
    *,
    label: str = "The label",
) -> Probed:
    """Fit a linear probe to the stream after every layer, on the first three quarters of the
    tokens, and test it on the others.

    A decoder has the same stream at tokens before which the same tokens stand. So those with equal
    beginnings stand on one side, and count once for each label.

    Args:
        rows: the tokens [T] that the model reads.
        labels: of each row those of its tokens; None for a token that does not count.
        seed: decides the random labels of the control task.
        label: what is told apart, in words.

    Raises:
        ValueError: the model is no decoder, its stream is not all numbers, fewer than `FEWEST`
            different tokens have a label, all that the probe is fitted to have the same, or too few
            are held out.
    """
    if model.config.kind != "decoder":
        kind = MODEL_KINDS[model.config.kind].with_article
        raise ValueError(f"this model is {kind}: probes read the stream of decoders")
    # the tokens that have one of the labels that are told apart, by beginning and label
    counts = Counter(one for row in labels for one in row if one is not None)
    classes = tuple(one for one, _ in counts.most_common(MOST_CLASSES))
    places: dict[tuple[int, str], tuple[int, int]] = {}
    for index, (row, begun) in enumerate(zip(labels, beginnings(map(_ids, rows)), strict=True)):
        for place, (one, beginning) in enumerate(zip(row, begun, strict=True)):
            if one in classes:
                places.setdefault((beginning, one), (index, place))
    room = MOST_BYTES // (len(layers(model.config)) * model.config.d_model * FLOAT32)
    tokens = list(places.items())[:room]
    truth = np.array([classes.index(one) for (_, one), _ in tokens], np.int64)
    fitted_to, held_out = split_rows([beginning for (beginning, _), _ in tokens], HELD_OUT)
    _check(truth, fitted_to, held_out)

    # the stream at these tokens, and the control task: a random label for each kind of token
    known = [np.zeros(len(row), bool) for row in rows]
    for _, (index, place) in tokens:
        known[index][place] = True
    read = streams(model, rows, np.concatenate(known))
    kinds = np.array([int(rows[index][place]) for _, (index, place) in tokens])
    distinct, of_kind = np.unique(kinds, return_inverse=True)
    random = np.random.default_rng(seed).choice(truth, len(distinct))[of_kind]

    # a probe of each layer, one of the control task, and one that chooses the layer
    first = int(CHOOSING * len(fitted_to))
    choosing = fitted_to[:first], fitted_to[first:]
    right = np.zeros((len(read), len(held_out)), bool)
    control, chosen_by = np.zeros((2, len(read)))
    for layer, vectors in enumerate(read):
        with progress.part(len(rows) + layer, len(rows) + len(read), doing="fitting probes"):
            right[layer] = _are_right(vectors, truth, fitted_to, held_out)
            control[layer] = _are_right(vectors, random, fitted_to, held_out).mean()
            chosen_by[layer] = _are_right(vectors, truth, *choosing).mean()
    at_place = np.array([tokens[index][1][1] for index in held_out])
    by_place = np.full((len(read), max(map(len, rows))), np.nan)
    for one in np.unique(at_place):
        by_place[:, one] = right[:, at_place == one].mean(1)
    return Probed(
        label,
        layers(model.config),
        classes,
        right.mean(1),
        control,
        _share_of_commonest(truth[held_out]),
        by_place,
        chosen_by - _share_of_commonest(truth[choosing[1]]),
        len(fitted_to),
        len(held_out),
        model.config.d_model,
    )


def _ids(row: Tensor) -> list[int]:
    ids: list[int] = row.tolist()
    return ids


def _share_of_commonest(truth: npt.NDArray[np.int64]) -> float:
    """The share of the commonest label."""
    return float(np.bincount(truth).max() / len(truth))


def _check(truth: npt.NDArray[np.int64], fitted_to: list[int], held_out: list[int]) -> None:
    """Refuse to fit a probe to too few tokens, or to one label, with a ValueError."""
    if len(truth) < FEWEST:
        raise ValueError(
            f"a probe needs {FEWEST} different tokens with labels, and there are {len(truth)}: "
            "choose another label, or give more texts that differ"
        )
    if len(set(truth[fitted_to].tolist())) < 2:
        raise ValueError(
            "a probe tells labels of at least two kinds apart, and all tokens that it would be "
            "fitted to have the same: choose another label or text"
        )
    if len(held_out) < FEWEST_HELD_OUT:
        raise ValueError(
            "a probe is tested on tokens that differ from those that it is fitted to, and of the "
            f"{len(truth)} different tokens only {len(held_out)} would be left: give more texts "
            "that differ"
        )


def streams(
    model: Transformer, rows: Sequence[Tensor], known: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float32]:
    """The stream after every layer at the tokens that count: [layer, tokens, d_model]."""
    read = []
    n_layer = len(layers(model.config))
    counted = torch.from_numpy(known).split([len(row) for row in rows])
    for index, (row, counts) in enumerate(zip(rows, counted, strict=True)):
        with progress.part(index, len(rows) + n_layer, step="row"):
            stream = stream_of(trace_stream(model, _ids(row)), model.config)
            read.append(stream[:, counts.to(stream.device)].cpu())
    streams: npt.NDArray[np.float32] = torch.cat(read, 1).detach().numpy()
    if not np.isfinite(streams).all():
        raise ValueError(
            "the stream of this model is not all numbers: its weights are so large that it "
            "overflows"
        )
    return streams


def _are_right(
    vectors: npt.NDArray[np.float32],
    truth: npt.NDArray[np.int64],
    fitted_to: list[int],
    held_out: list[int],
) -> npt.NDArray[np.bool_]:
    """Where a probe that is fitted to some of the vectors says the label of others: ridge
    regression to each label, after each number was brought to a mean of 0 and a variance of 1.
    """
    if len(set(truth[fitted_to].tolist())) < 2:
        # there is one label to say
        return np.asarray(truth[held_out] == truth[fitted_to[0]])
    from sklearn.linear_model import RidgeClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    fitted = make_pipeline(StandardScaler(), RidgeClassifier())
    fitted.fit(vectors[fitted_to], truth[fitted_to])
    return np.asarray(fitted.predict(vectors[held_out]) == truth[held_out])
