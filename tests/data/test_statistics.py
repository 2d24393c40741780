"""What data are like: counted by hand, and most frequent first."""

from __future__ import annotations

from collections import Counter

import pytest

from gptviz.data.classification import LabelledSource
from gptviz.data.seq2seq import PairSource
from gptviz.data.source import Source
from gptviz.data.statistics import statistics
from gptviz.data.text import TaskSource, TextSource
from gptviz.model import preset
from gptviz.text import BPETokenizer, Corpus, labelled_of, pairs_of, task
from gptviz.text.datasets.tasks import TASKS

TEXT = "to be or not to be, that is the question\n" * 40


def test_the_characters_of_a_text_are_counted_as_a_counter_counts_them() -> None:
    source = TextSource(Corpus("hamlet", TEXT), 0.9)
    tokenizer = source.tokenizer("characters", 0)
    found = statistics(source, tokenizer, source.fit_config(preset("generator"), tokenizer))
    training = TEXT[: int(0.9 * len(TEXT))]
    counts = Counter(training)
    expected = {
        tokenizer.label(tokenizer.encode_ids(character)[0]): count
        for character, count in counts.items()
    }
    shares = dict(zip(found.tokens, found.shares.tolist(), strict=True))
    assert shares == pytest.approx(
        {label: count / len(training) for label, count in expected.items()}
    )
    assert list(found.shares) == sorted(found.shares, reverse=True)
    assert found.facts["characters"] == len(TEXT)
    assert found.facts["different characters"] == len(set(TEXT))
    assert found.facts["tokens in the text to train on"] == len(training)


def test_tokens_of_several_characters_are_counted_in_tokens() -> None:
    source = TextSource(Corpus("hamlet", TEXT), 0.9)
    tokenizer = BPETokenizer.learn(TEXT, 300)
    found = statistics(source, tokenizer, source.fit_config(preset("generator"), tokenizer))
    ids = tokenizer.encode_ids(TEXT[: int(0.9 * len(TEXT))]).tolist()
    assert found.shares[0] == pytest.approx(max(Counter(ids).values()) / len(ids))
    assert found.facts["tokens in the text to train on"] == len(ids)


def test_padding_counts_as_no_word_and_labels_are_counted() -> None:
    table = "text,label\n" + "".join(
        f"{'good ' * (row % 3 + 1)}film,{'ab'[row % 2]}\n" for row in range(40)
    )
    source = LabelledSource(labelled_of(table.encode(), "films.csv"), 0.9)
    tokenizer = source.tokenizer("words", 100)
    found = statistics(source, tokenizer, source.fit_config(preset("classifier"), tokenizer))
    counts = Counter(word for text in source.split()[0].texts for word in text.split())
    expected = {word: count / counts.total() for word, count in counts.items()}
    assert dict(zip(found.tokens, found.shares.tolist(), strict=True)) == pytest.approx(expected)
    assert (found.facts["labelled a"], found.facts["labelled b"]) == (20, 20)


@pytest.mark.parametrize(
    "source",
    [
        *(TaskSource(task(name)) for name in TASKS),
        PairSource(pairs_of("".join(f"{n}\t{-n}\n" for n in range(50)).encode(), "mine.tsv")),
    ],
    ids=lambda source: source.title,
)
def test_shares_of_any_data_sum_to_one(source: Source) -> None:
    tokenizer = source.tokenizer("characters", 0)
    config = preset("seq2seq" if isinstance(source, PairSource) else "induction")
    found = statistics(source, tokenizer, source.fit_config(config, tokenizer))
    assert found.shares.sum() == pytest.approx(1)
    assert all(count > 0 for count in found.facts.values())
