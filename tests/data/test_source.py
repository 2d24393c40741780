"""Sources: what a run learns from is written down, found again, and refused where it cannot
serve.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from gptviz.data import registry
from gptviz.data.batches import Generated, Windows
from gptviz.data.classification import LabelledSource
from gptviz.data.registry import source_from, source_named
from gptviz.data.seq2seq import PairSource, PairTaskSource
from gptviz.data.source import Source
from gptviz.data.text import TaskSource, TextSource
from gptviz.model import Config
from gptviz.text import (
    PAIR_TASKS,
    TASKS,
    CharTokenizer,
    Corpus,
    CorpusUnavailableError,
    LabelledTexts,
    Pairs,
    Tokenizer,
    opinions,
    recall,
    remember,
    task,
)
from tests.small_runs import TEXT
from tests.tiny import CONTEXT, tiny

CORPUS = Corpus("pangrams", TEXT)
REVIEWS = LabelledTexts("reviews", ("good", "bad", "fine", "dull"), (1, 0, 1, 0), ("no", "yes"))
WORDS = Pairs("words", (("a", "b"), ("c", "d"), ("e", "f")))


pytestmark = pytest.mark.usefixtures("home")  # whatever is remembered is remembered for one test


@pytest.mark.parametrize(
    "text",
    [TEXT, "é日\U0001f600", "one\r\ntwo\rthree\n", "\ufeffmark", "lone \ud800 surrogate", "\0"],
)
def test_a_text_remembered_is_recalled_to_the_character(text: str, home: Path) -> None:
    corpus = Corpus("mine", text)
    remember(corpus)
    remember(corpus)
    assert recall("whatever", corpus.sha256).text == text
    assert recall("whatever", corpus.sha256).name == "whatever"
    assert [file.name for file in (home / "corpora").iterdir()] == [f"{corpus.sha256}.txt"]


def test_a_text_that_was_changed_or_is_gone_is_not_recalled(home: Path) -> None:
    remember(CORPUS)
    file = home / f"corpora/{CORPUS.sha256}.txt"
    file.write_text(TEXT + "!")
    for _ in range(2):
        with pytest.raises(
            CorpusUnavailableError,
            match=f"the text “pangrams” is not here any more .*{CORPUS.sha256[:12]}",
        ):
            recall("pangrams", CORPUS.sha256)
        file.unlink(missing_ok=True)


@pytest.mark.parametrize("sha256", ["../../etc/passwd", "", "x" * 64, "A" * 64])
def test_a_hash_that_is_none_is_never_a_path(sha256: str, home: Path) -> None:
    (home / "corpora").mkdir()
    (home / "corpora/.txt").write_text("x")
    with pytest.raises(CorpusUnavailableError):
        recall("mine", sha256)


def test_a_text_that_comes_with_python_needs_no_copy() -> None:
    source = source_named("python-reference")
    assert isinstance(source, TextSource)
    assert recall("python-reference", source.corpus.sha256).text == source.corpus.text


def test_a_text_is_divided_where_its_fraction_says() -> None:
    tokenizer = CharTokenizer(TEXT)
    data = TextSource(CORPUS, 0.75).data(tokenizer, tiny(vocab_size=tokenizer.vocab_size))
    assert isinstance(data, Windows)
    cut = 3 * len(TEXT) // 4
    assert tokenizer.decode(data.held_out.numpy()) == TEXT[cut:]
    assert len(data.windows) == cut - CONTEXT


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_named_and_has_its_floor(name: str) -> None:
    source = source_named(name)
    assert isinstance(source, TaskSource)
    assert (source.title, source.floor) == (name, task(name).floor)
    tokenizer = source.task.tokenizer
    config = tiny(vocab_size=tokenizer.vocab_size, context_length=source.task.length - 1)
    assert isinstance(source.data(tokenizer, config), Generated)
    with pytest.raises(
        ValueError, match=f"a sequence of {name} needs {source.task.length - 1} or more"
    ):
        source.data(
            tokenizer, tiny(vocab_size=tokenizer.vocab_size, context_length=source.task.length - 2)
        )


SOURCES: tuple[Source, ...] = (
    TextSource(CORPUS, 0.75),
    TaskSource(task("copy", vocab=5, lag=2, length=7)),
    LabelledSource(REVIEWS, 0.5, 3),
    PairTaskSource(PAIR_TASKS["dates"]),
    PairSource(WORDS, 0.5, 1),
)
GENERATED = (
    LabelledSource(opinions(), 0.8),
    *(PairTaskSource(PAIR_TASKS[name]) for name in ("numbers", "mirror")),
)
HEADS = {
    "decoder": {},
    "classifier": {"head": "mean", "n_label": 2},
    "encoder-decoder": {"n_encoder_layer": 1},
}


def fitted(source: Source) -> tuple[Tokenizer, Config]:
    """A tokenizer and the config of a small model for the source."""
    tokenizer = source.tokenizer(*source.tokenizer_kinds[:1] or ("own",), 1_000)  # type: ignore[call-arg]
    return tokenizer, source.fit_config(
        tiny(context_length=64, **HEADS[source.model_kind]), tokenizer
    )


@pytest.mark.parametrize("source", [*SOURCES, *GENERATED], ids=lambda source: source.title)
def test_what_is_written_down_leads_to_the_same_data(source: Source) -> None:
    source.keep()
    written = source.to_dict()
    assert written["kind"] == source.kind
    opened = source_from(json.loads(json.dumps(written)))
    assert opened == source
    assert (opened.title, opened.floor, opened.to_dict()) == (source.title, source.floor, written)
    assert json.dumps(opened.origin()) == json.dumps(source.origin())
    one, other = (each.data(*fitted(source)).training(4, 1) for each in (source, opened))
    assert torch.equal(one.targets, other.targets)
    del written["kind"]  # as cards were written before
    assert source_from(written) == source


def test_every_kind_of_source_is_known_by_its_name_and_files_by_the_models_that_learn_from_them() -> (
    None
):
    assert {source.kind for source in SOURCES} == set(registry.SOURCES)
    assert set(registry.FROM_FILES) == {source.model_kind for source in SOURCES}


# By kind: rows held out, and the tokens of a row at most, in a context of 64.
HELD_OUT = {
    "text": (1, len(TEXT) - 3 * len(TEXT) // 4),
    "task": (2_000, 6),
    "labelled": (2, 64),
} | {
    "pair_task": (2_000, 56),
    "pairs": (1, 64),
}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.kind)
def test_an_evaluation_reads_at_most_the_tokens_that_were_said(source: Source) -> None:
    tokenizer, config = fitted(source)
    rows, tokens = HELD_OUT[source.kind]
    assert source.evaluation_tokens(config, tokenizer.kind) == rows * tokens
    assert (
        0
        < sum(batch.inputs[0].numel() for batch in source.data(tokenizer, config).validation())
        <= rows * tokens
    )


STRANGE: list[dict[str, Any]] = [
    {},
    {"kind": "flying"},
    {"kind": ["text"]},
    {"kind": None, "corpus": "mine"},
    *({"kind": kind} for kind in registry.SOURCES),
    {"task": "flying"},
    {"task": ["reversal"]},
    {"task": "reversal", "settings": 3},
    {"task": "reversal", "settings": {"vocab": 10**12}},
    {"task": "reversal", "settings": {"speed": 1}},
    {"corpus": "mine"},
    {"corpus": "mine", "sha256": 5},
    {"corpus": 5, "sha256": "0" * 64},
    {"corpus": "mine", "sha256": "../../x"},
    {"corpus": "\ud800", "sha256": "0" * 64},
    {"corpus": "mine", "sha256": CORPUS.sha256, "fraction": "half"},
    {"corpus": "mine", "sha256": CORPUS.sha256, "fraction": None},
    {"corpus": "mine", "sha256": CORPUS.sha256, "fraction": 10**400},
    *({"labelled": "mine"}, {"pairs": "mine"}, {"labelled": "mine", "sha256": CORPUS.sha256}),
    {"pair_task": "flying"},
    {"pair_task": ["dates"]},
    {"pair_task": None},
    *(
        {key: "mine", "sha256": texts.sha256} | change
        for key, texts in (("labelled", REVIEWS), ("pairs", WORDS))
        for change in (
            *({"sha256": None}, {"sha256": 5}, {"sha256": "../../x"}, {key: 5, "sha256": "0" * 64}),
            *(
                {"fraction": "half"},
                {"fraction": None},
                {"fraction": 10**400},
                {"seed": "x"},
                {"seed": None},
                {"seed": 1e999},
            ),
        )
    ),
]


@pytest.mark.parametrize("content", STRANGE, ids=str)
def test_a_source_that_a_stranger_wrote_down_is_refused_clearly(content: dict[str, Any]) -> None:
    for source in SOURCES:
        source.keep()
    with pytest.raises((ValueError, CorpusUnavailableError)) as raised:
        source_from(content)
    assert len(str(raised.value)) < 300


SHARES = [
    (source, {"fraction": share})
    for source in SOURCES[::2]
    for share in (0, 1, -1, 7, float("nan"))
]
SEEDS = [(source, {"seed": -1}) for source in SOURCES[2::2]]


@pytest.mark.parametrize(
    ("source", "change"),
    SHARES + SEEDS,
    ids=lambda one: str(one) if isinstance(one, dict) else one.kind,
)
def test_a_share_that_leaves_nothing_and_a_seed_that_cannot_be_are_refused(
    source: Source, change: dict[str, float]
) -> None:
    source.keep()
    with pytest.raises(ValueError, match="must lie between 0 and 1|non-negative"):
        source_from(source.to_dict() | change).data(*fitted(source))


def test_a_disk_that_takes_no_copy_is_an_error_of_the_disk(home: Path) -> None:
    (home / "corpora").write_text("a file where a folder should be")
    with pytest.raises(OSError, match="."):
        TextSource(CORPUS).keep()
    assert os.listdir(home) == ["corpora"]


@pytest.mark.parametrize(
    "source",
    [TextSource(Corpus("text", "good bad" * 60_000)), LabelledSource(REVIEWS), PairSource(WORDS)],
    ids=lambda source: source.kind,
)
def test_what_a_vocabulary_lacks_is_counted_in_the_texts_to_train_on(source: Source) -> None:
    """Against a loop over their characters."""
    characters = "".join(source.excerpts())
    expected = sum(one not in "gbc " for one in characters)
    assert 0 < expected < len(characters) <= 100_000
    said = source.describe_unread(CharTokenizer("gbc "))
    assert (
        f"In the first {len(characters):,} tokens of {source.title} the vocabulary lacks "
        f"something {expected:,} times" in said
    )
    assert source.describe_unread(CharTokenizer(characters)) == ""


def test_a_task_brings_its_own_tokens() -> None:
    assert TaskSource(task("reversal")).describe_unread(CharTokenizer("a")) == ""


def test_words_that_are_rare_are_not_said_to_lack_but_another_language_is() -> None:
    source = LabelledSource(opinions(200))
    assert source.describe_unread(source.tokenizer("words", 60)) == ""
    other = LabelledSource(
        LabelledTexts(
            "other", ("guten tag", "auf wiedersehen", "ja", "nein"), (1, 0, 1, 0), ("no", "yes")
        )
    )
    assert "Not in the vocabulary" in other.describe_unread(source.tokenizer("words", 60))


def test_data_that_training_reads_too_are_never_called_new() -> None:
    """Whether a task's rows are new is counted here: how many of those held out come in 200 batches
    of training.
    """
    few = [
        task("reversal", vocab=2, length=4),
        task("copy", vocab=3, lag=2, length=6),
        task("induction", vocab=4, length=5, shortest=1, longest=3),
        task("addition", digits=1),
        task("modular", modulus=5),
    ]
    for each in [*map(task, TASKS), *few]:
        source = TaskSource(each)
        held = {(*row, last) for x, y in _rows_of(source) for row, last in zip(x, y, strict=True)}
        drawn = {
            tuple(row)
            for seed in range(200)
            for row in Generated(source.task).examples(32, seed).ids.tolist()
        }
        is_new = not held & drawn
        assert (
            registry.held_out(source.to_dict()) == "data that the model was not trained on"
        ) == is_new, each
    assert (
        registry.held_out(TextSource(CORPUS).to_dict())
        == registry.held_out(None)
        == "data that the model was not trained on"
    )
    biased = TaskSource(task("jobs", nurse=10, doctor=90))
    assert "it was trained on equal ones" in registry.held_out(biased.to_dict())


def test_what_is_held_out_is_said_in_one_place() -> None:
    files = Path(registry.__file__).parents[1].rglob("*.py")
    joined = {file: re.sub(r'"\s+f?"', "", file.read_text(encoding="utf-8")) for file in files}
    assert [
        file for file, text in joined.items() if "that the model was not trained on" in text
    ] == [Path(registry.__file__)]


def _rows_of(source: TaskSource) -> list[tuple[list[tuple[int, ...]], list[int]]]:
    batches = list(Generated(source.task).validation())
    return [
        ([tuple(row) for row in batch.inputs[0].tolist()], batch.targets[:, -1].tolist())
        for batch in batches
    ]
