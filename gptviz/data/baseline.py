"""The baseline of a classifier: a linear model on weighted counts of words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gptviz.text import LabelledTexts, words_of


@dataclass(frozen=True)
class Baseline:
    """The result of counting words."""

    accuracy: float  #: the share of the texts held out whose likeliest label is the right one
    probabilities: npt.NDArray[np.float64]  #: [N, n_label], of each label for each text held out


def baseline(training: LabelledTexts, held_out: LabelledTexts) -> Baseline:
    """Logistic regression on TF-IDF, both with scikit-learn's settings, over all words that a
    `WordTokenizer` finds.

    It knows every word but not their order. A ValueError if no text to train on has a word, or all
    have one label.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    words = TfidfVectorizer(analyzer=words_of)
    model = LogisticRegression(max_iter=1_000)
    model.fit(words.fit_transform(training.texts), training.labels)
    probabilities = np.zeros((len(held_out), len(training.names)))
    probabilities[:, model.classes_] = model.predict_proba(words.transform(held_out.texts))
    return Baseline(
        float((probabilities.argmax(1) == np.asarray(held_out.labels)).mean()), probabilities
    )
