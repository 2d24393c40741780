"""The baseline: TF-IDF against a loop, a linear model that knows words and not their order."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from sklearn.linear_model import LogisticRegression

from gptviz.data.baseline import baseline
from gptviz.text import LabelledTexts, words_of

TRAINING = LabelledTexts(
    "films",
    (
        "A good film!",
        "a bad film, bad",
        "good good fun",
        "It's no fun: bad.",
        "fun",
        "an awful mess",
    ),
    (1, 0, 1, 0, 1, 0),
    ("bad", "good"),
)
HELD_OUT = LabelledTexts(
    "films",
    ("good mess", "bad fun film", "unheard words", "", "Fun"),
    (1, 0, 0, 1, 1),
    ("bad", "good"),
)


def weighed(texts: tuple[str, ...], frequencies: Counter[str], n: int) -> np.ndarray:
    """Counts times ln((1 + n) / (1 + texts with the word)) + 1, each text of length 1, over the
    words of `frequencies`.
    """
    rows = []
    for text in texts:
        counts = Counter(words_of(text))
        row = [
            counts[word] * (math.log((1 + n) / (1 + frequencies[word])) + 1)
            for word in sorted(frequencies)
        ]
        length = math.sqrt(sum(value**2 for value in row))
        rows.append([value / length if length else 0.0 for value in row])
    return np.array(rows)


def test_it_is_logistic_regression_on_words_counted_and_weighed() -> None:
    frequencies = Counter(word for text in TRAINING.texts for word in set(words_of(text)))
    model = LogisticRegression(max_iter=1_000)
    model.fit(weighed(TRAINING.texts, frequencies, len(TRAINING)), TRAINING.labels)
    expected = model.predict_proba(weighed(HELD_OUT.texts, frequencies, len(TRAINING)))
    result = baseline(TRAINING, HELD_OUT)
    np.testing.assert_allclose(result.probabilities, expected, atol=1e-6)
    assert result.accuracy == np.mean(expected.argmax(1) == HELD_OUT.labels)


def test_every_label_has_a_probability_and_one_that_is_never_seen_has_none() -> None:
    three = ("awful", "bad", "good")
    training = LabelledTexts(
        "films", TRAINING.texts, tuple(label + 1 for label in TRAINING.labels), three
    )
    held_out = LabelledTexts("films", HELD_OUT.texts, (2, 1, 0, 2, 2), three)
    result = baseline(training, held_out)
    np.testing.assert_allclose(
        result.probabilities[:, 1:], baseline(TRAINING, HELD_OUT).probabilities, atol=1e-12
    )
    assert (result.probabilities[:, 0] == 0).all()
