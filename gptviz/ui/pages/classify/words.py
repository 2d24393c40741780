"""The details folded below each view of the Classify page: how it is computed, what it does not say, and its code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gptviz.interp.explaining.decision import Decision, Worth
from gptviz.labelled_array import LabelledArray
from gptviz.ui.shell.subject import Subject, load_call

HOW_WORDS = r"""
The head is linear in every word, so the share of a word is exact, not an approximation: $\text{logit}_k = b_k + \sum_t s_{t,k}$,
where a logit is the score of a label. Only differences of logits decide, since
$p_k = e^{\text{logit}_k} / \sum_j e^{\text{logit}_j}$. Between two labels $p = 1 / (1 + e^{-m})$ with the margin
$m = b_1 - b_0 + \sum_t (s_{t,1} - s_{t,0})$: a bar is one term of that sum. The head called “flatten”, as the original
experiment has it, turns each word into one number and weighs it by its place; “mean” and “sum” give all places the same
weight, and divide by the number of words or by the square root of it. The shares were recorded by the tap `shares` in the
pass that gave the label (`gptviz/model/parts/heads.py`; `classify` in
`gptviz/interp/reading/classification.py`, `decision` in `gptviz/interp/explaining/decision.py`)."""
LIMITS_WORDS = """A share belongs to a place in the text, not only to the word there. In a model with blocks the word has
already read all the others, so the effect of “not” may show in the bar of “good”. Take a word away to see how the other bars
change. A word that is not in the vocabulary is read as ⟨unknown⟩; a text longer than the context is cut off. A probability
says how sure the model is, not that it is right: see its most confident mistakes."""
HOW_LEFT_OUT = r"""
The model reads the text once more without each of its tokens in turn, and a bar is what the decision loses: the logit (the score)
of the label, or the difference of two logits, for the whole text, less the same for the text without the token. Between two
labels $p = 1 / (1 + e^{-m})$, where $m$ is that difference. The head of this model reads the vector of the first token alone,
passes it through a layer with a curved function, and the labels are linear in what comes out. So no other token has a share in a
logit that could be read off: it counts by what the first token has gathered from it (`left_out` and `worth` in
`gptviz/interp/explaining/decision.py`, the head in `gptviz/model/parts/heads.py`)."""
LIMITS_LEFT_OUT = """The bars do not add up. Of two tokens that say the same, each is worth little, since the other one is still
there; and a text with a hole in it is a kind of text that the model may not have seen in training. A word that the tokenizer
cuts into pieces has a bar for each. The tokens that are put around every text stay in place. A probability says how sure the
model is, not that it is right."""
HOW_TEXTS = r"""
Every text is read in the same way as the text above, and gets its likeliest label. A cell counts the texts that have one label
(row) and were given another (column); its colour is the share of the row. Accuracy is the sum of the diagonal, divided by the
number of texts. If labels have an order, such as stars, the page also counts how far from the right label the wrong ones are.
The baseline reads the same texts: TF-IDF and logistic regression from scikit-learn, learned on the texts the model was trained
on (`confusion` and `mistakes` in `gptviz/interp/reading/classification.py`, `distances` in `gptviz/interp/reading/ordinal.py`,
`baseline` in `gptviz/data/baseline.py`, the split in `gptviz/data/classification.py`)."""
LIMITS_TEXTS = """Measured on a few hundred texts, an accuracy is known only to within a few points: 80 % right on 1,000 texts
means between 77.5 and 82.5 % (95 % of the time). Labels are given by people, and some are wrong: read the mistakes. On texts of
another kind than the model was trained on, the accuracy may be much lower."""


@dataclass(frozen=True)
class Folded:
    """The details folded below a view: the arguments of `details`; one made by hand has its own numbers and code."""

    numbers: Callable[[], LabelledArray] | None = None
    code: str | None = None
    how: str = HOW_WORDS
    limits: str = LIMITS_WORDS


def code_words(subject: Subject, chosen: Decision) -> str:
    """The lines of `gptviz` that compute what each word adds."""
    labels = ", ".join(f"{i}: {name!r}" for i, name in enumerate(subject.lm.labels))
    return f"""import gptviz
from gptviz.interp.reading.classification import classify
from gptviz.interp.explaining.decision import decision

lm = {load_call(subject.lm)}
classified = classify(lm.model, lm.seen(lm.encode({subject.prompt!r})))
chosen = decision(classified, {chosen.label}, {chosen.against})  # {labels}
chosen.bias, chosen.shares, chosen.total  # chosen.bias + chosen.shares.sum() = chosen.total"""


def code_left_out(subject: Subject, found: Worth, places: range) -> str:
    """The lines of `gptviz` that compute what the decision loses without each token."""
    labels = ", ".join(f"{i}: {name!r}" for i, name in enumerate(subject.lm.labels))
    return f"""import gptviz
from gptviz.interp.reading.classification import judge
from gptviz.interp.explaining.decision import left_out, worth

lm = {load_call(subject.lm)}
ids = lm.seen(lm.encode({subject.prompt!r}))
without = left_out(lm.model, ids, {places!r})  # logits [tokens, label]
found = worth(judge(lm.model, ids), without, {found.label}, {found.against})  # {labels}
found.of_tokens, found.total"""


def code_held_out(subject: Subject) -> str:
    """The lines of `gptviz` that compute the confusion of held-out texts."""
    return f"""import gptviz
from gptviz.interp.reading.classification import confusion, mistakes
from gptviz.data.registry import source_from

lm = {load_call(subject.lm)}
held_out = source_from(lm.card.source).split()[1].under(lm.labels)
probabilities = lm.probabilities(held_out.texts)  # [texts, label]
counts = confusion(held_out.labels, probabilities.argmax(1), lm.labels)
wrong = mistakes(held_out.labels, probabilities)"""


def code_file(subject: Subject, name: str) -> str:
    """The lines of `gptviz` that label the texts of a file."""
    return f"""from pathlib import Path

import gptviz
from gptviz.text import texts_of

lm = {load_call(subject.lm)}
texts = texts_of(Path({name!r}).read_bytes(), {name!r})
probabilities = lm.probabilities(texts)  # [texts, label]"""
