"""Data that a model cannot learn from are refused, with what is wrong by its name or number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gptviz.data.baseline import baseline
from gptviz.data.batches import consecutive_windows
from gptviz.data.classification import LabelledSource
from gptviz.data.registry import source_named
from gptviz.data.seq2seq import PairSource, PairTaskSource
from gptviz.data.source import Source
from gptviz.data.text import TaskSource, TextSource
from gptviz.model import Config
from gptviz.text import PAIR_TASKS, CharTokenizer, Corpus, LabelledTexts, Pairs, WordTokenizer, task
from tests.small_runs import REPETITIVE, TEXT, data
from tests.tiny import CONTEXT, tiny

pytestmark = pytest.mark.usefixtures("home")  # whatever is remembered is remembered for one test

CORPUS = Corpus("pangrams", TEXT)
COPY = task("copy", vocab=11, lag=3, length=9)
LABELLED = LabelledSource(
    LabelledTexts(
        "mine", ("a good film", "bad", "a film", "good"), (1, 0, 2, 1), ("no", "yes", "?")
    )
)
DATES = PairTaskSource(PAIR_TASKS["dates"])
PAIRS = PairSource(Pairs("mirrored", (("ab", "ba"), ("cd", "dc"), ("a", "a"))))
LETTERS = PAIRS.tokenizer("characters", 0)
DECODER = tiny()
CLASSIFIER = tiny(head="mean", n_label=2, mask="full", final_norm=False)
ANSWERING = tiny(n_encoder_layer=1)


def fitted(source: Source, config: Config = DECODER, kind: str = "characters") -> object:
    """The data of a source for this model with the source's own tokens."""
    tokenizer = source.tokenizer(kind, 100)
    return source.data(tokenizer, replace(config, vocab_size=tokenizer.vocab_size))


def labelled(labels: tuple[int, ...], *texts: str) -> LabelledTexts:
    return LabelledTexts(
        "x", texts or tuple(f"row {i}" for i in range(len(labels))), labels, ("a", "b", "c")
    )


REFUSED: list[tuple[str, Callable[[], object]]] = [
    *(
        (
            f"has {n} tokens to train on; a context of 8 needs at least 9",
            lambda n=n: data(training=REPETITIVE[:n]),
        )
        for n in (0, 1, CONTEXT)
    ),
    *(
        (
            f"the text to validate has {n} tokens; .* at least 2",
            lambda n=n: data(validation=REPETITIVE[:n]),
        )
        for n in (0, 1)
    ),
    *(
        (
            f"2 tokens, the text has {n}",
            lambda n=n: next(consecutive_windows(REPETITIVE[:n], CONTEXT)),
        )
        for n in (0, 1)
    ),
    (
        r"no data named 'x{80}'; known are the texts python-reference.*reversal.*dates, numbers, "
        r"mirror",
        lambda: source_named("x" * 5_000),
    ),
    *(
        (
            "copy has tokens of its own",
            lambda other=other: TaskSource(COPY).data(other, tiny(vocab_size=other.vocab_size)),
        )
        for other in (CharTokenizer("abcdefghijk"), task("copy", vocab=12).tokenizer)
    ),
    # labels
    (
        "x has one text of each label, not counting copies",
        lambda: LabelledSource(labelled((0, 1, 2))).split(),
    ),
    (
        "not counting copies",
        lambda: LabelledSource(labelled((0, 1, 0), "fine", "dull", "fine ")).split(),
    ),
    (
        "mine has texts with 3 labels: train a classifier with as many",
        lambda: fitted(LABELLED, kind="words"),
    ),
    ("mine has texts with 3 labels", lambda: fitted(LABELLED, config=CLASSIFIER, kind="words")),
    (
        "pangrams has no labels: give a CSV file",
        lambda: fitted(TextSource(CORPUS), config=CLASSIFIER),
    ),
    ("copy .* has no labels", lambda: fitted(TaskSource(COPY), config=CLASSIFIER)),
    (
        "not a model that is a decoder",
        lambda: LABELLED.fit_config(DECODER, WordTokenizer(["good"])),
    ),
    (
        "word by word, .* are characters",
        lambda: LABELLED.data(CharTokenizer("abc"), replace(CLASSIFIER, n_label=3)),
    ),
    ("vocabulary", lambda: baseline(labelled((0, 1), "!", "?"), LABELLED.labelled)),
    ("class", lambda: baseline(labelled((1, 1), "one", "two"), LABELLED.labelled)),
    # sources and answers
    *(
        ("train an encoder–decoder on it", lambda use=use, config=config: use(config))
        for use in (
            lambda config: PAIRS.fit_config(config, LETTERS),
            lambda config: PAIRS.data(LETTERS, config),
        )
        for config in (DECODER, CLASSIFIER)
    ),
    (
        r"these tokens \(characters\) have none",
        lambda: PAIRS.data(CharTokenizer("abcd"), PAIRS.fit_config(ANSWERING, LETTERS)),
    ),
    ("padding is None in the model", lambda: PAIRS.data(LETTERS, replace(ANSWERING, vocab_size=7))),
    (
        "dates has tokens of its own",
        lambda: DATES.data(LETTERS, PAIRS.fit_config(ANSWERING, LETTERS)),
    ),
    (
        "context_length is 8; dates needs 56",
        lambda: fitted(DATES, config=DATES.fit_config(ANSWERING, DATES.tokenizer("", 0))),
    ),
    (
        "copy .* has no sources and answers",
        lambda: TaskSource(COPY).data(COPY.tokenizer, ANSWERING),
    ),
    ("pangrams has no sources and answers", lambda: fitted(TextSource(CORPUS), config=ANSWERING)),
]


@pytest.mark.parametrize(("said", "asked"), REFUSED, ids=[said for said, _ in REFUSED])
def test_what_cannot_be_learned_from_is_refused(said: str, asked: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=said):
        asked()
