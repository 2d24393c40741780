"""Linear probes: what can be read from the stream after each layer by a plane through it.

A probe learns to tell labels of tokens apart by the vectors of the stream there (Alain and Bengio
2016). A second one learns labels that were shuffled: what it gets right is what a probe can find
where there is nothing to find (Hewitt and Liang 2019).
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
from gptviz.model import Transformer
from gptviz.model.kinds import MODEL_KINDS

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
TABLE, OF_TABLE = "table", "A table of yours"
FURTHEST_IN_WORD, MOST_CLASSES = 5, 20
QUOTES = '“”"'
# The most tokens that are read, and the fewest that a probe is fitted to.
MOST_TOKENS, FEWEST = 4_096, 20
# The share of the tokens that the probe is fitted to; it is tested on the others.
FITTED = 0.75
# A label has appeared where a probe has come so far from what shuffled labels give to what the best
# layer gives.
APPEARED = 0.9
ALL, SHUFFLED, COMMONEST = "probe", "shuffled labels", "always the commonest"


@dataclass(frozen=True)
class Probed:
    """What probes read from the stream, on tokens that they were not fitted to."""

    layers: tuple[Layer, ...]  #: where the stream was read
    classes: tuple[str, ...]  #: the labels that are told apart
    accuracy: Float64Array  #: [layer], the share of tokens whose label the probe says
    control: Float64Array  #: [layer], the same of a probe of shuffled labels
    commonest: float  #: the share of the commonest label among these tokens
    #: [layer, place], the accuracy at each place in a row; NaN where no token has a label
    by_place: Float64Array

    @property
    def appears(self) -> Layer | None:
        """The first layer after which the label can be read nearly as well as after the best one.

        It is None if no probe beats the commonest label and shuffled labels by 5 % of the tokens.
        """
        best = int(self.accuracy.argmax())
        floor = max(float(self.control.mean()), self.commonest)
        if self.accuracy[best] - floor < 0.05:
            return None
        there = self.accuracy >= floor + APPEARED * (self.accuracy[best] - floor)
        return self.layers[int(there.argmax())]

    @property
    def said(self) -> str:
        """Where the label can be read, in a sentence."""
        if self.appears is None:
            return (
                "The label cannot be read from the stream: no probe is clearly better than one of "
                "shuffled labels."
            )
        right, most = (
            f"{100 * share:.1f} %"
            for share in (self.accuracy[self.layers.index(self.appears)], self.accuracy.max())
        )
        where = "there already in" if self.appears == self.layers[0] else "there after"
        more = "." if right == most else f", and at {most} where it is best."
        return (
            f"The label is {where} {self.appears.title}: the probe is right at {right} of the "
            f"tokens{more}"
        )

    def labelled(self) -> LabelledArray:
        """The accuracies by layer [line, layer]: of the probe, of shuffled labels, and of always
        saying the commonest one.
        """
        lines = [self.accuracy, self.control, np.full(len(self.layers), self.commonest)]
        axes = (
            Axis("what", (ALL, SHUFFLED, COMMONEST)),
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
        return [
            None if not letter else "upper" if letter.isupper() else "lower" for letter in letters
        ]
    if name == "word":
        place = 0
        for before, piece in zip(["", *pieces], pieces, strict=False):
            begins = not before[-1:].isalpha() or not piece[:1].isalpha()
            place = 0 if begins else place + 1
            is_last = place >= FURTHEST_IN_WORD
            labels.append(
                (f"{FURTHEST_IN_WORD} or more" if is_last else str(place))
                if piece.strip()[:1].isalpha()
                else None
            )
        return labels
    if name == "quotes":
        inside = False
        for piece in pieces:
            marks = [letter for letter in piece if letter in QUOTES]
            labels.append(None if marks else "in quotes" if inside else "outside")
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
) -> Probed:
    """Fit a linear probe to the stream after every layer, on the first three quarters of the
    tokens, and test it on the others.

    Args:
        rows: the tokens [T] that the model reads.
        labels: of each row those of its tokens; None for a token that does not count.
        seed: decides how labels are shuffled.

    Raises:
        ValueError: the model is no decoder, its stream is not all numbers, fewer than `FEWEST`
            tokens have a label, or all that the probe is fitted to have the same.
    """
    if model.config.kind != "decoder":
        raise ValueError(
            f"this model is {MODEL_KINDS[model.config.kind].with_article}: probes read the stream of decoders"
        )
    flat = [label for row in labels for label in row]
    classes = tuple(
        label
        for label, _ in Counter(label for label in flat if label is not None).most_common(
            MOST_CLASSES
        )
    )
    number = {label: index for index, label in enumerate(classes)}
    known = np.array([label in number for label in flat], bool)
    truth = np.array(
        [number[label] for label in flat if label is not None and label in number], np.int64
    )
    end = int(FITTED * len(truth))
    if len(truth) < FEWEST or len(set(truth[:end].tolist())) < 2:
        raise ValueError(
            f"a probe needs {FEWEST} tokens with labels, of at least two kinds: choose another "
            "label or text"
        )
    read = streams(model, rows, known)
    shuffled = np.random.default_rng(seed).permutation(truth)
    right, control = np.zeros((len(read), len(truth) - end), bool), np.zeros(len(read))
    for layer, vectors in enumerate(read):
        with progress.part(len(rows) + layer, len(rows) + len(read), doing="fitting probes"):
            right[layer] = _said(vectors, truth, end) == truth[end:]
            control[layer] = (_said(vectors, shuffled, end) == shuffled[end:]).mean()
    place = np.concatenate([np.arange(len(row)) for row in rows])[known][end:]
    by_place = np.full((len(read), max(map(len, rows))), np.nan)
    for one in np.unique(place):
        by_place[:, one] = right[:, place == one].mean(1)
    commonest = float(np.bincount(truth[end:]).max() / len(truth[end:]))
    return Probed(layers(model.config), classes, right.mean(1), control, commonest, by_place)


def streams(
    model: Transformer, rows: Sequence[Tensor], known: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float32]:
    """The stream after every layer at the tokens that count: [layer, tokens, d_model]."""
    read, n_layer = [], len(layers(model.config))
    for index, row in enumerate(rows):
        with progress.part(index, len(rows) + n_layer, step="row"):
            read.append(stream_of(trace_stream(model, row.tolist()), model.config).cpu())
    streams: npt.NDArray[np.float32] = (
        torch.cat(read, 1)[:, torch.from_numpy(known)].detach().numpy()
    )
    if not np.isfinite(streams).all():
        raise ValueError(
            "the stream of this model is not all numbers: its weights are so large that it overflows"
        )
    return streams


def _said(
    vectors: npt.NDArray[np.float32], truth: npt.NDArray[np.int64], end: int
) -> npt.NDArray[np.int64]:
    """What a probe that is fitted to the first `end` vectors says of the others: ridge regression
    to each label, after each number was brought to a mean of 0 and a variance of 1.
    """
    from sklearn.linear_model import RidgeClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    fitted = make_pipeline(StandardScaler(), RidgeClassifier()).fit(vectors[:end], truth[:end])
    return np.asarray(fitted.predict(vectors[end:]), np.int64)
