"""Texts with labels as a source: split, padded, written down and found again, and learned from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gptviz.data.baseline import baseline
from gptviz.data.batches import Batch, Data
from gptviz.data.classification import LabelledSource, batches, pad_texts, without_some
from gptviz.data.registry import source_from, source_named
from gptviz.model import Config, build
from gptviz.runs import checkpoints
from gptviz.runs.experiments import PLANS
from gptviz.runs.log import read_log
from gptviz.runs.training import train
from gptviz.text import (
    CorpusUnavailableError,
    LabelledTexts,
    WordTokenizer,
    opinions,
    starred_opinions,
)
from gptviz.train.evaluation import evaluate
from tests.small_runs import recipe
from tests.tiny import CONTEXT, scrambled, tiny

TEXTS = LabelledTexts(
    "mine",
    ("a good film", "bad", "so good so good so good", "a truly bad film", "", "good", "映画", "bad film bad film bad film zz"),
    (1, 0, 1, 0, 1, 1, 2, 0),
    ("negative", "positive", "unsure"),
)  # fmt: skip
labels = st.lists(st.integers(0, 2), min_size=4, max_size=60).map(lambda some: (0, 0, 1, *some))


pytestmark = pytest.mark.usefixtures("home")  # whatever is remembered is remembered for one test


def numbered(of: tuple[int, ...]) -> LabelledTexts:
    """Texts that are their row."""
    return LabelledTexts("numbered", tuple(f"row {i}" for i in range(len(of))), of, ("a", "b", "c"))


@settings(deadline=None)
@given(labels, st.floats(0.05, 0.95), st.integers(0, 5))
def test_every_text_is_in_one_part_and_every_label_has_its_share(
    of: tuple[int, ...], fraction: float, seed: int
) -> None:
    source = LabelledSource(numbered(of), fraction, seed)
    training, held_out = source.split()
    rows = {part: [int(text.split()[1]) for text in part.texts] for part in (training, held_out)}
    assert sorted(rows[training] + rows[held_out]) == list(range(len(of)))
    for part in (training, held_out):
        assert rows[part] == sorted(rows[part])
        assert part.labels == tuple(of[row] for row in rows[part])
        assert part.names == ("a", "b", "c")
    for label in set(of):
        n = of.count(label)
        n_training = training.labels.count(label)
        assert n_training == 1 if n == 1 else 0 < n_training < n
        assert abs(n_training - fraction * n) <= (0.5 if 1 <= fraction * n <= n - 1 else 1)
    assert source.split() == LabelledSource(numbered(of), fraction, seed).split()


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 1)), min_size=2, max_size=40),
    st.integers(0, 5),
)
def test_equal_texts_are_on_one_side(rows: list[tuple[str, int]], seed: int) -> None:
    rows = [("one", 0), ("two ", 0), ("three", 1), (" four", 1), ("two", 0), ("four\n", 1), *rows]
    texts = LabelledTexts(
        "copies", tuple(text for text, _ in rows), tuple(label for _, label in rows), ("a", "b")
    )
    training, held_out = LabelledSource(texts, 0.6, seed).split()
    known, unknown = ({text.strip() for text in part.texts} for part in (training, held_out))
    assert known | unknown == {text.strip() for text in texts.texts}
    assert not known & unknown
    together = [
        *zip(training.texts, training.labels, strict=True),
        *zip(held_out.texts, held_out.labels, strict=True),
    ]
    assert sorted(together) == sorted(rows)


def test_of_many_texts_a_sample_is_held_out_the_same_every_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = LabelledSource(numbered((0,) * 600 + (1,) * 400), 0.5, 7).split()
    monkeypatch.setattr("gptviz.data.classification.MOST_HELD_OUT_TEXTS", 100)
    source = LabelledSource(
        LabelledTexts("another", *_fields(numbered((0,) * 600 + (1,) * 400))), 0.5, 7
    )
    training, held_out = source.split()
    assert training.texts == whole[0].texts
    assert len(held_out) == 100
    assert set(held_out.texts) < set(whole[1].texts)
    assert list(held_out.texts) == sorted(held_out.texts, key=lambda text: int(text.split()[1]))
    assert 45 <= held_out.labels.count(0) <= 75  # of 60 expected
    assert "100 of the rest to validate" in source.origin()["split"]
    assert source.split()[1] is held_out


def _fields(texts: LabelledTexts) -> tuple[Any, ...]:
    return texts.texts, texts.labels, texts.names


def test_another_seed_holds_out_other_texts() -> None:
    made = opinions(300)
    assert LabelledSource(made, seed=0).split()[1] != LabelledSource(made, seed=1).split()[1]


def test_texts_are_cut_at_the_context_and_filled_up_and_none_is_empty() -> None:
    tokenizer = WordTokenizer(["good", "bad", "film"])
    ids = pad_texts(tokenizer, TEXTS.texts, 6)
    expected = [
        [
            tokenizer.id_of(word) if word in tokenizer.words else tokenizer.unknown
            for word in text.split()
            if len(word) > 1
        ][:6]
        for text in TEXTS.texts
    ]
    expected[4] = expected[6] = [tokenizer.unknown]
    assert ids.shape == (8, 6)
    for row, some in zip(ids.tolist(), expected, strict=True):
        assert row == some + [tokenizer.padding] * (6 - len(some))
    assert pad_texts(tokenizer, ["good", "bad film"], 6).shape == (2, 2)
    assert pad_texts(tokenizer, [], 6).shape == (0, 1)


def trained(plan: str, source: LabelledSource, **settings: Any) -> Path:
    """The folder of a finished run of this experiment on the source."""
    folder = PLANS[plan].prepare("mine", source=source, **settings)
    for _ in train(folder):
        pass
    return folder


CLASSIFIER = tiny(mask="full", head="mean", n_label=5)


def prepared(context: int = CONTEXT) -> tuple[Data, WordTokenizer, LabelledSource]:
    source = LabelledSource(opinions(120))
    tokenizer = source.tokenizer("words", 1_000)
    assert isinstance(tokenizer, WordTokenizer)
    config = source.fit_config(
        tiny(mask="full", head="mean", n_label=5, context_length=context), tokenizer
    )
    return source.data(tokenizer, config), tokenizer, source


def rows(batch: Batch, tokenizer: WordTokenizer) -> list[tuple[str, int]]:
    texts = [tokenizer.decode(row.numpy()) for row in batch.inputs[0]]
    return list(zip(texts, batch.targets.tolist(), strict=True))


def test_a_batch_holds_texts_to_train_on_with_their_labels_the_same_for_a_seed() -> None:
    data, tokenizer, source = prepared(20)
    training, held_out = ({*zip(part.texts, part.labels, strict=True)} for part in source.split())
    seen = set()
    for seed in range(30):
        batch = data.training(16, seed)
        assert batch.inputs[0].shape[0] == len(batch.targets) == 16
        assert (batch.inputs[0] != tokenizer.padding).any(0).all()
        assert torch.equal(batch.inputs[0], data.training(16, seed).inputs[0])
        seen |= {*rows(batch, tokenizer)}
    # Words that stand only in held-out texts would be unknown, and there are none among 108
    # opinions.
    assert seen <= training
    assert len(seen) > 0.9 * len(training)
    assert {row for batch in data.validation() for row in rows(batch, tokenizer)} == held_out


@given(
    st.lists(st.lists(st.integers(1, 99), min_size=1, max_size=12), min_size=1, max_size=8),
    st.integers(0, 99),
)
def test_token_dropout_leaves_out_tokens_and_keeps_the_order_of_the_others(
    texts: list[list[int]], seed: int
) -> None:
    width = max(map(len, texts))
    ids = torch.tensor([text + [0] * (width - len(text)) for text in texts])
    fewer = without_some(ids, 0.5, padding=0, generator=torch.Generator().manual_seed(seed))
    for text, row in zip(texts, fewer.tolist(), strict=True):
        left = [token for token in row if token]
        assert left
        assert row == left + [0] * (width - len(left))
        rest = iter(text)
        assert all(token in rest for token in left)  # in their order


def test_stars_are_found_to_be_in_order() -> None:
    for names, ordered in (
        (("1", "2", "3"), True),
        (("a", "b", "c"), False),
        (("2", "1", "3"), False),
    ):
        source = LabelledSource(replace(numbered((0, 1, 2) * 4), names=names))
        assert source.fit_config(CLASSIFIER, source.tokenizer("words", 100)).ordered is ordered


def test_token_dropout_leaves_out_the_share_asked_for() -> None:
    ids = torch.ones(200, 50, dtype=torch.long)
    fewer = without_some(ids, 0.3, padding=0, generator=torch.Generator().manual_seed(0))
    assert (fewer != 0).float().mean().item() == pytest.approx(0.7, abs=0.02)


def test_token_dropout_is_of_training_alone_and_the_same_for_a_seed() -> None:
    _, tokenizer, source = prepared(20)
    config = replace(source.fit_config(CLASSIFIER, tokenizer), token_dropout=0.5)
    whole = source.data(tokenizer, replace(config, token_dropout=0.0))
    some = source.data(tokenizer, config)
    drawn = some.training(16, 3).inputs[0]
    again = some.training(16, 3).inputs[0]
    assert torch.equal(drawn, again)
    assert (drawn != tokenizer.padding).sum() < (
        whole.training(16, 3).inputs[0] != tokenizer.padding
    ).sum()
    for one, other in zip(whole.validation(), some.validation(), strict=True):
        assert torch.equal(one.inputs[0], other.inputs[0])


def test_what_is_held_out_is_read_once_in_order_and_cut_at_the_context() -> None:
    data, tokenizer, source = prepared()
    held_out = source.split()[1]
    held_out_rows = [row for batch in data.validation() for row in rows(batch, tokenizer)]
    assert held_out_rows == [
        (" ".join(text.split()[:CONTEXT]), label)
        for text, label in zip(held_out.texts, held_out.labels, strict=True)
    ]
    again = [
        row for batch in batches(tokenizer, held_out, CONTEXT) for row in rows(batch, tokenizer)
    ]
    assert again == held_out_rows


def test_the_width_of_a_batch_changes_no_loss() -> None:
    data, tokenizer, source = prepared(20)
    config = source.fit_config(
        tiny(mask="full", head="flatten", n_label=5, context_length=20), tokenizer
    )
    model = scrambled(config)
    held_out = source.split()[1]
    whole = Batch((pad_texts(tokenizer, held_out.texts, 20),), torch.tensor(held_out.labels))
    by_one = [whole.rows(slice(row, row + 1)) for row in range(len(held_out))]
    assert evaluate(model, data.validation()).loss == pytest.approx(
        evaluate(model, by_one).loss, rel=1e-6
    )


def test_words_are_learned_from_the_texts_to_train_on_alone() -> None:
    texts = LabelledTexts(
        "mine",
        tuple(f"word{(letter := 'abcdefghij'[i])} word{letter}" for i in range(10)),
        (0, 1) * 5,
        ("a", "b"),
    )
    source = LabelledSource(texts)
    tokenizer = source.tokenizer("words", 100)
    assert isinstance(tokenizer, WordTokenizer)
    assert set(tokenizer.words) == {
        word for text in source.split()[0].texts for word in text.split()
    }


def test_the_config_gets_the_sizes_of_the_words_and_labels() -> None:
    source = LabelledSource(TEXTS)
    tokenizer = source.tokenizer("words", 6)
    config = source.fit_config(PLANS["classifier"].config, tokenizer)
    assert (config.vocab_size, config.padding, config.n_label) == (6, tokenizer.padding, 3)
    assert source.tokens(config) == config.context_length


def test_opinions_need_no_copy_and_others_that_are_gone_are_named() -> None:
    assert source_from(LabelledSource(opinions()).to_dict()).title == "opinions"
    for gone in (LabelledSource(TEXTS), LabelledSource(opinions(50))):
        with pytest.raises(
            CorpusUnavailableError, match=f"the text “{gone.title}” is not here any more"
        ):
            source_from(gone.to_dict())
    assert source_named("opinions") == LabelledSource(opinions())


def test_a_card_says_the_labels_the_split_and_the_baseline() -> None:
    source = LabelledSource(opinions(400), 0.8, 3)
    origin = source.origin()
    assert origin["labels"] == ["negative", "positive"]
    assert origin["corpus_sha256"] == source.labelled.sha256
    assert origin["texts"] == {"training": 320, "held_out": 80}
    assert "80%" in origin["split"]
    assert origin["baseline_accuracy"] == baseline(*source.split()).accuracy
    json.dumps(origin)


def classifier(**changes: Any) -> Config:
    return tiny(**{"mask": "full", "head": "mean", "n_label": 2} | changes)


def test_a_sample_tells_a_text_of_each_label_what_it_is_and_what_it_was_taken_for() -> None:
    data, tokenizer, source = prepared()
    config = source.fit_config(classifier(), tokenizer)
    lines = source.sample(build(config, seed=0).eval(), tokenizer, data).split("\n")
    held_out = source.split()[1]
    for label, line in zip(held_out.names, lines, strict=True):
        first = held_out.texts[held_out.labels.index(held_out.names.index(label))]
        assert line.endswith(f"({label}): {first}")
        assert line.startswith(("negative 5", "positive 5"))


def test_the_confusion_counts_what_each_held_out_text_was_taken_for() -> None:
    source = LabelledSource(opinions(400))
    tokenizer = source.tokenizer("words", 1_000)
    config = source.fit_config(classifier(), tokenizer)
    data = source.data(tokenizer, config)
    model = build(config, seed=0).eval()
    counts = [[0, 0], [0, 0]]
    held_out = source.split()[1]
    for text, label in zip(held_out.texts, held_out.labels, strict=True):
        with torch.inference_mode():
            counts[label][int(model(pad_texts(tokenizer, [text], CONTEXT)).argmax())] += 1
    confusion = source.measure_model(model, tokenizer, data)["confusion"]
    assert confusion == counts
    assert (confusion[0][0] + confusion[1][1]) / len(held_out) == evaluate(
        model, data.validation()
    ).accuracy
    # so that rows and columns cannot be taken for each other
    assert len({count for row in confusion for count in row}) == 4


def test_a_card_carries_the_confusion_and_the_log_numbers_alone() -> None:
    source = LabelledSource(opinions(60))
    folder = trained("classifier", source, recipe=recipe(steps=2, batch_size=4, evaluations=1))
    card = checkpoints.read_card(folder)
    opened = checkpoints.load(folder)
    data = source.data(opened.tokenizer, opened.model.config)
    assert (
        card.to_json()["confusion"]
        == source.measure_model(opened.model.eval(), opened.tokenizer, data)["confusion"]
    )
    assert sum(map(sum, card.confusion)) == card.texts["held_out"]
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert any(line["kind"] == "evaluation" for line in lines)
    assert not any("confusion" in entry for entry in (*lines, *card.to_json()["losses"]))


def test_the_training_accuracy_is_that_of_as_many_training_texts_as_are_held_out_without_dropout() -> (
    None
):
    source = LabelledSource(opinions(200))
    options = {"changes": {"dropout": 0.5}, "recipe": recipe(steps=4, batch_size=8, evaluations=2)}
    folder = trained("classifier", source, **options)
    opened = checkpoints.load(folder)
    training, held_out = source.split()
    step = len(training) / len(held_out)
    rows = [int((number + 0.5) * step) for number in range(len(held_out))]
    with torch.inference_mode():
        guesses = [
            int(
                opened.model.eval()(
                    pad_texts(
                        opened.tokenizer, [training.texts[row]], opened.model.config.context_length
                    )
                ).argmax()
            )
            for row in rows
        ]
    right = [guess == training.labels[row] for guess, row in zip(guesses, rows, strict=True)]
    assert opened.card.training_accuracy == sum(right) / len(right)
    log = [line for line in read_log(folder / "log.jsonl") if line.kind == "evaluation"]
    assert [line.step for line in log if line.training_accuracy is not None] == [0, 2, 4]
    assert log[-1].training_accuracy == opened.card.training_accuracy


@pytest.mark.full
def test_what_counting_words_cannot_solve_a_block_of_attention_can() -> None:
    source = LabelledSource(opinions(2_000))
    options = {
        "changes": {"dropout": 0.0},
        "recipe": recipe(steps=200, batch_size=64, learning_rate=3e-3, evaluations=1),
    }
    folder = trained("classifier", source, **options)
    card = checkpoints.read_card(folder)
    assert 0.65 < card.baseline_accuracy < 0.8
    assert card.accuracy > 0.95


def test_five_labels_are_learned_as_two_are() -> None:
    words = ("terrible", "poor", "fair", "good", "superb")
    places = ("here", "there", "today", "indeed", "again", "at last", "for once", "in town")
    fillers = [(before, after) for before in ("a", "the one", "some such") for after in places]
    made = [
        (f"{before} {words[label]} film {after}", label)
        for before, after in fillers
        for label in range(5)
    ]
    source = LabelledSource(
        LabelledTexts("stars", tuple(t for t, _ in made), tuple(n for _, n in made), tuple("12345"))
    )
    folder = trained("classifier", source, recipe=recipe(steps=60, batch_size=32, evaluations=1))
    card = checkpoints.read_card(folder)
    assert card.labels == tuple("12345")
    assert card.accuracy == card.baseline_accuracy == 1.0


@pytest.mark.full
def test_the_experiment_stars_learns_the_order_of_its_labels() -> None:
    source = LabelledSource(starred_opinions(1_000))
    plan = PLANS["stars"]
    folder = trained("stars", source, recipe=replace(plan.recipe, evaluations=1))
    card = checkpoints.read_card(folder)
    assert checkpoints.read_config(folder).ordered
    assert card.labels == tuple("12345")
    far = sum(
        count
        for i, row in enumerate(card.confusion)
        for j, count in enumerate(row)
        if abs(i - j) > 1
    )
    assert far < 0.1 * sum(map(sum, card.confusion))  # by chance it were 0.48
    # of 100 texts; it was 0.90 where the baseline was 0.87
    assert card.accuracy > card.baseline_accuracy - 0.02


def test_the_experiment_stars_takes_labels_without_an_order_too() -> None:
    source = LabelledSource(numbered((0, 1, 2) * 8))
    folder = trained("stars", source, recipe=replace(PLANS["stars"].recipe, steps=2, evaluations=1))
    assert not checkpoints.read_config(folder).ordered
    assert checkpoints.read_card(folder).labels == ("a", "b", "c")
