"""Pairs as a run's data: what is read and predicted, written down and found again, learned, and
refused where it cannot serve.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gptviz.data.batches import NOT_COUNTED
from gptviz.data.registry import source_from, source_named
from gptviz.data.seq2seq import (
    PairData,
    PairSource,
    PairTaskSource,
    answers,
    batch_of,
    batches,
    exact_match,
)
from gptviz.data.source import Source
from gptviz.model import Config, Transformer, build
from gptviz.runs import checkpoints
from gptviz.runs.log import read_log
from gptviz.runs.run import RunSpec, prepare
from gptviz.runs.training import Sampled, train
from gptviz.text import PAIR_TASKS, CharTokenizer, Pairs, SpecialTokensTokenizer
from gptviz.train.evaluation import evaluate
from gptviz.train.trainer import Trainer
from tests.small_runs import recipe
from tests.tiny import scrambled, tiny

LETTERS = SpecialTokensTokenizer(CharTokenizer("abcd"))
# Every word of one or two letters, and the same backwards.
WORDS = [*"abcd", *(one + other for one in "abcd" for other in "abcd")]
MIRRORED = Pairs("mirrored", tuple((word, word[::-1]) for word in WORDS))
SOURCE = PairSource(MIRRORED)
TOKENIZER = SOURCE.tokenizer("characters", 0)


pytestmark = pytest.mark.usefixtures("home")  # whatever is remembered is remembered for one test


def answering(source: Source, **changes: Any) -> Config:
    """A small encoder–decoder for the source's tokens."""
    sizes = {
        "n_layer": 1,
        "n_encoder_layer": 1,
        "context_length": 8,
        "positions": "sinusoidal",
    } | changes
    return source.fit_config(tiny(**sizes), source.tokenizer("characters", 0))


def model_of(source: Source, **changes: Any) -> Transformer:
    return scrambled(answering(source, **changes)).double()


@given(
    st.lists(
        st.tuples(st.text("abcd", max_size=5), st.text("abcd", max_size=5)), min_size=1, max_size=6
    )
)
def test_a_decoder_reads_the_start_and_the_answer_and_predicts_the_answer_and_the_end(
    pairs: list[tuple[str, str]],
) -> None:
    (written, read), targets = batch_of(pairs, LETTERS)
    assert (
        written.shape == targets.shape == (len(pairs), 1 + max(len(answer) for _, answer in pairs))
    )
    assert read.shape == (len(pairs), 1 + max(len(source) for source, _ in pairs))
    for (source, answer), ids, source_ids, target in zip(
        pairs, written, read, targets, strict=True
    ):
        s = LETTERS.encode(source).ids
        t = LETTERS.encode(answer).ids
        n = len(t) + 1
        assert ids.tolist() == [LETTERS.start, *t] + [LETTERS.padding] * (len(ids) - n)
        assert target.tolist() == [*t, LETTERS.end] + [NOT_COUNTED] * (len(ids) - n)
        assert source_ids.tolist() == [*s, LETTERS.end] + [LETTERS.padding] * (
            len(source_ids) - len(s) - 1
        )


def test_the_loss_of_a_padded_batch_is_the_mean_over_the_tokens_of_each_pair_alone() -> None:
    model = model_of(SOURCE)
    pairs = [("abcd", "d"), ("a", "dcba"), ("bc", "cb")]
    total = count = 0.0
    for pair in pairs:
        alone = evaluate(model, [batch_of([pair], TOKENIZER)])
        total += alone.loss * alone.tokens
        count += alone.tokens
    together = evaluate(model, [batch_of(pairs, TOKENIZER)])
    assert together.tokens == count == sum(len(answer) + 1 for _, answer in pairs)
    assert together.loss == pytest.approx(total / count, rel=1e-5)


def test_an_evaluation_reads_every_pair_once_in_batches_of_like_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gptviz.data.seq2seq.EVALUATION_TOKENS", 12)
    pairs = [(word * n, word) for n in (3, 1, 2) for word in "abcd"]
    some = list(batches(pairs, LETTERS))
    assert all(max(t.numel() for t in batch.inputs) <= 12 for batch in some)
    read = [LETTERS.decode(row) for batch in some for row in batch.inputs[1].numpy()]
    assert sorted(read) == sorted(source for source, _ in pairs)
    assert [len(source) for source in read] == sorted(len(source) for source, _ in pairs)


@pytest.mark.parametrize("name", PAIR_TASKS)
def test_a_task_trains_on_fresh_pairs_and_validates_on_those_held_out(name: str) -> None:
    source = source_named(name)
    assert isinstance(source, PairTaskSource)
    config = answering(source, context_length=64)
    assert (config.vocab_size, config.padding) == (
        source.task.tokenizer.vocab_size,
        source.task.tokenizer.padding,
    )
    data = source.data(source.task.tokenizer, config)
    one, again, other = (data.training(5, seed).inputs[1] for seed in (3, 3, 4))
    assert torch.equal(one, again)
    assert one.tolist() != other.tolist()
    counted = sum(int((batch.targets != NOT_COUNTED).sum()) for batch in data.validation())
    assert counted == sum(len(answer) + 1 for _, answer in source.task.held_out())
    longest = max(tensor.shape[1] for batch in data.validation() for tensor in batch.inputs)
    assert longest <= source.tokens(config) <= config.context_length
    assert source.floor == 0.0


def test_pairs_of_the_user_are_split_and_drawn_from_one_side() -> None:
    source = PairSource(MIRRORED, 0.75, 1)
    tokenizer = source.tokenizer("characters", 0)
    data = source.data(tokenizer, answering(source))
    training, held_out = MIRRORED.split(0.75, 1)
    assert data.held_out == held_out
    drawn = {tokenizer.decode(row) for row in data.training(500, 0).inputs[1].numpy()}
    assert drawn == {word for word, _ in training}
    everything = source.all_pairs(tokenizer, answering(source))
    read = [
        tokenizer.decode(row)
        for batch in everything.validation()
        for row in batch.inputs[1].numpy()
    ]
    assert sorted(read) == sorted(WORDS)


def test_of_the_pairs_trained_on_as_many_are_evaluated_as_are_held_out_and_of_a_task_none() -> None:
    source = PairSource(Pairs("mine.tsv", tuple((f"number {n}", str(-n)) for n in range(200))))
    tokenizer = source.tokenizer("characters", 0)
    training, held_out = source.split()
    rows = [
        row
        for batch in source.data(tokenizer, answering(source)).trained_on()
        for row in batch.inputs[1].tolist()
    ]
    sources = [
        tokenizer.decode(
            [token for token in row if token not in (tokenizer.padding, tokenizer.end)]
        )
        for row in rows
    ]
    assert len(set(sources)) == len(sources) == len(held_out)
    assert set(sources) <= {text for text, _ in training}
    task = PairTaskSource(PAIR_TASKS["mirror"])
    assert not list(
        task.data(task.tokenizer("characters", 0), answering(task, context_length=64)).trained_on()
    )


def test_of_many_pairs_a_sample_is_held_out_the_same_every_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gptviz.data.seq2seq.MOST_HELD_OUT_PAIRS", 4)
    pairs = Pairs("many", tuple((word, word[::-1]) for word in WORDS))
    source = PairSource(pairs, 0.5, 1)
    training, held_out = source.split()
    whole = pairs.split(0.5, 1)
    assert (list(training), len(held_out)) == (whole[0], 4)
    assert list(held_out) == [pair for pair in whole[1] if pair in held_out]
    assert source.split()[1] is PairSource(pairs, 0.5, 1).split()[1] is held_out
    assert "4 pairs of the rest to validate" in source.origin()["split"]
    assert "train, the rest to validate" in PairSource(pairs, 0.9).origin()["split"]


def test_what_is_held_out_becomes_tokens_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data = SOURCE.data(TOKENIZER, answering(SOURCE))
    first = list(data.validation())

    def never(*_: object) -> None:
        raise AssertionError("a text was read again")

    monkeypatch.setattr(SpecialTokensTokenizer, "source_ids", never)
    monkeypatch.setattr(SpecialTokensTokenizer, "target_ids", never)
    again = list(data.validation())
    assert len(first) == len(again)
    for one, other in zip(first, again, strict=True):
        assert all(map(torch.equal, (*one.inputs, one.targets), (*other.inputs, other.targets)))
    with pytest.raises(AssertionError, match="read again"):
        data.training(2, 0)


def test_tokens_are_the_characters_of_both_sides_or_learned_byte_pairs() -> None:
    source = PairSource(Pairs("mine", (("ab", "x"), ("b", "y\n"))))
    tokenizer = source.tokenizer("characters", 0)
    assert tokenizer.labels() == ["⏎", "a", "b", "x", "y", "⟨padding⟩", "⟨start⟩", "⟨end⟩"]
    learned = source.tokenizer("bpe", 256)
    assert (learned.inner.kind, learned.vocab_size) == ("bpe", 259)


def test_a_context_grows_to_the_longest_text_of_a_file_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = PairSource(Pairs("long", (("ab", "x" * 29), ("b", "y"))))
    config = answering(source)
    assert config.context_length == 30
    source.data(source.tokenizer("characters", 0), config)
    assert answering(PairSource(MIRRORED)).context_length == 8
    monkeypatch.setattr("gptviz.data.seq2seq.MOST_CONTEXT", 20)
    short = answering(source)
    assert short.context_length == 20
    with pytest.raises(
        ValueError, match="is 20; the longest text of long has 30 tokens with its end: shorten it"
    ):
        source.data(source.tokenizer("characters", 0), short)


def test_answers_are_those_of_each_source_alone_in_the_order_asked() -> None:
    model = model_of(SOURCE, d_model=24)
    tokenizer = SOURCE.tokenizer("characters", 0)
    asked = ["abcd", "a", "", "dcb", "bb", "abcd"]
    together = answers(model, tokenizer, asked)
    assert together == [answers(model, tokenizer, [one])[0] for one in asked]
    assert len(set(together)) > 2


def test_exact_match_counts_whole_answers_that_end() -> None:
    model = model_of(SOURCE, unembed_bias=True)
    with torch.no_grad():
        model.head.unembed.bias[TOKENIZER.end] += 1.0
    given = answers(model, TOKENIZER, WORDS)
    right = [(word, answer) for word, (answer, ended) in zip(WORDS, given, strict=True) if ended]
    assert right
    wrong = [(word, answer + "a") for word, answer in right]
    assert exact_match(model, TOKENIZER, right) == 1.0
    assert exact_match(model, TOKENIZER, wrong) == 0.0
    assert exact_match(model, TOKENIZER, [*right, *wrong]) == 0.5
    with torch.no_grad():
        model.head.unembed.bias[TOKENIZER.end] = -1e9
    endless = [
        (word, answer)
        for word, (answer, _) in zip(WORDS, answers(model, TOKENIZER, WORDS), strict=True)
    ]
    assert exact_match(model, TOKENIZER, endless) == 0.0
    with pytest.raises(ValueError, match="nothing to answer"):
        exact_match(model, TOKENIZER, [])


@pytest.mark.full
def test_a_small_model_learns_to_answer_what_it_never_saw() -> None:
    longer = [word + letter for word in WORDS for letter in "abcd"]
    source = PairSource(Pairs("longer", tuple((word, word[::-1]) for word in [*WORDS, *longer])))
    tokenizer = source.tokenizer("characters", 0)
    config = answering(
        source, d_model=32, n_head=4, d_mlp=64, final_norm=False, residual="post-norm"
    )
    data = source.data(tokenizer, config)
    model = build(config, seed=0)
    assert exact_match(model.eval(), tokenizer, data.held_out) == 0.0
    for _ in Trainer(
        model,
        data,
        recipe(steps=200, batch_size=32, optimiser="muon", learning_rate=1e-2, evaluations=1),
    ):
        pass
    assert len(data.held_out) == 8
    assert exact_match(model, tokenizer, data.held_out) >= 0.75


def test_a_run_on_pairs_keeps_what_it_measured_and_goes_on_from_its_folder() -> None:
    settings = recipe(steps=4, evaluations=2)
    folder = prepare(
        RunSpec(
            name="mine",
            config=answering(SOURCE),
            tokenizer=TOKENIZER,
            source=SOURCE,
            recipe=settings,
        )
    )
    samples = [event.text for event in train(folder) if isinstance(event, Sampled)]
    card = checkpoints.read_card(folder)
    log = read_log(folder / "log.jsonl")
    opened = checkpoints.load(folder)
    data = SOURCE.data(TOKENIZER, opened.model.config)
    assert card.to_json()["exact_match"] == exact_match(opened.model, TOKENIZER, data.held_out)
    assert [entry.others["exact_match"] for entry in card.losses] == [
        line.exact_match for line in log if line.kind == "evaluation"
    ]
    assert card.corpus_sha256 == MIRRORED.sha256
    first = data.held_out[0]
    assert all(sample.startswith(f"{first[0]} → ") for sample in samples)
    assert source_from(dict(card.source or {})) == SOURCE


def test_a_sample_says_what_is_right_where_the_answer_is_wrong() -> None:
    model = model_of(SOURCE, unembed_bias=True)
    given = dict(zip(WORDS, answers(model, TOKENIZER, WORDS), strict=True))
    pairs = [(word, answer if word == "a" else "dddd") for word, (answer, _) in given.items()][:3]
    lines = SOURCE.sample(model, TOKENIZER, PairData(TOKENIZER, lambda size, rng: [], pairs)).split(
        "\n"
    )
    assert len(lines) == 3
    for line, (word, right) in zip(lines, pairs, strict=True):
        answer, ended = given[word]
        wrong = "" if answer == right and ended else f"   (right: {right})"
        assert line == f"{word} → {answer}{'' if ended else ' …'}{wrong}"


def test_the_batches_of_one_seed_are_the_same_on_every_machine() -> None:
    source = PairTaskSource(PAIR_TASKS["dates"])
    data = source.data(source.task.tokenizer, answering(source, context_length=64))
    drawn = data.draw(2, np.random.default_rng(7))
    batch = data.training(2, 7)
    assert [source.task.tokenizer.decode(row) for row in batch.inputs[1].numpy()] == [
        text for text, _ in drawn
    ]
