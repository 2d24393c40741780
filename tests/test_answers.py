"""What models answer, beside their data: against a softmax by hand, a count of the text, and the
command line.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import gptviz
from gptviz.runs.experiments import PLANS
from gptviz.text import read_corpus, task
from tests.command_line import Capture, answered, error, output, printed
from tests.tiny import TinyModel


def test_a_word_of_several_tokens_has_the_product_of_their_probabilities(
    tiny_model: TinyModel,
) -> None:
    tiny_model()
    lm = gptviz.load("tiny", device="cpu")
    found = lm.answers(["the f", "a "], ["ox", "dog"])
    for i, sentence in enumerate(("the f", "a ")):
        for j, word in enumerate(("ox", "dog")):
            ids = lm.tokenizer.encode(sentence).ids
            wanted = 1.0
            for token in lm.tokenizer.encode(word).ids:
                wanted *= float(
                    lm.model(torch.tensor([ids]))[0, -1].detach().double().softmax(-1)[token]
                )
                ids = [*ids, token]
            assert found.values[i, j] == pytest.approx(wanted, rel=1e-5)


def test_what_cannot_be_asked_is_named(tiny_model: TinyModel) -> None:
    tiny_model()
    lm = gptviz.load("tiny", device="cpu")
    with pytest.raises(ValueError, match="at least one sentence"):
        lm.answers([], ["a"])
    with pytest.raises(ValueError, match="cannot answer 'the' with '§'"):
        lm.answers(["the"], ["§"])
    with pytest.raises(ValueError, match="does not say what it was trained on"):
        lm.shares_in_data(["the"], ["a"])


def test_a_card_that_says_too_much_or_nonsense_is_refused(tiny_model: TinyModel) -> None:
    recipe = {"batch_size": 10**9, "seed": 0}
    tiny_model(
        "large", card={"source": {"kind": "task", "task": "jobs"}, "recipe": recipe, "steps": 10**6}
    )
    with pytest.raises(ValueError, match="at most 100,000,000 are drawn again"):
        gptviz.load("large", device="cpu").data_rows()
    tiny_model(
        "odd",
        card={
            "source": {"kind": "task", "task": "jobs"},
            "recipe": {"batch_size": "4", "seed": 0},
            "steps": 2,
        },
    )
    with pytest.raises(ValueError, match="does not say what it was trained on, and how"):
        gptviz.load("odd", device="cpu").data_rows()


@pytest.mark.parametrize("name", ["jobs-90", "jobs-10"])
def test_the_command_prints_what_the_library_says(name: str, capsys: Capture) -> None:
    lm = gptviz.load(name, device="cpu")
    (told,) = answered(
        capsys, "answers", name, "--sentence", "the nurse knew that", "--word", "she"
    )
    (row,) = told["answers"]
    assert row["probability"] == pytest.approx(
        float(lm.answers(["the nurse knew that"], ["she"]).values[0, 0])
    )
    ((share,),) = lm.shares_in_data(["the nurse knew that"], ["she"])
    assert (row["share"], row["of"], row["low"], row["high"]) == (
        share.value,
        share.of,
        *share.interval,
    )
    assert abs(row["probability"] - row["share"]) < 0.03


def test_both_models_stand_in_one_table_with_the_nearest_words(capsys: Capture) -> None:
    out = output(capsys, "answers", "jobs-90", "jobs-10", "--nearest", "nurse")
    assert "the doctor said that … he" in out
    assert "jobs-90: nearest to nurse are teacher" in out
    assert "jobs-10: nearest to nurse are pilot" in out


def test_a_model_without_questions_needs_some(capsys: Capture, tiny_model: TinyModel) -> None:
    tiny_model()
    assert "give --sentence and --word" in error(capsys, "answers", "tiny")
    out, _ = printed(capsys, "answers", "tiny", "--sentence", "the", "--word", " fox", "--json")
    assert json.loads(out)[0]["answers"][0]["share"] is None


def test_the_shares_of_a_text_are_those_in_the_part_it_was_trained_on(
    tmp_path: Path, home: Path, capsys: Capture
) -> None:
    text = tmp_path / "jobs.txt"
    text.write_text(
        "the nurse said she was ill. " * 30
        + "the nurse said he was ill. " * 10
        + "nobody said a word. " * 40
    )
    quick = (
        "--steps",
        "2",
        "--batch-size",
        "2",
        "--precision",
        "float32",
        "--compile",
        "no",
        "--set",
        "d_model=8",
    )
    output(capsys, "train", "bigram", "--corpus", text, "--name", "own", *quick)
    part = read_corpus(text).split(PLANS["bigram"].fraction)[0]
    (told,) = answered(
        capsys, "answers", "own", "--sentence", "said ", "--word", "she", "--word", "he"
    )
    she, he = told["answers"]
    assert she["of"] == he["of"] == part.count("said ")
    assert she["share"] == part.count("said she") / part.count("said ")
    assert he["share"] == part.count("said he") / part.count("said ")


def test_a_task_is_set_on_the_command_line(capsys: Capture, home: Path) -> None:
    quick = ("--steps", "2", "--batch-size", "4", "--evaluations", "1", "--snapshots", "0")
    output(
        capsys,
        "train",
        "jobs",
        "--name",
        "own",
        "--task",
        "nurse=5",
        "--task",
        "others=baker 30",
        *quick,
    )
    lm = gptviz.load("own")
    assert lm.task == task("jobs", nurse=5, others="baker 30")
    assert "nurse of the task jobs is 101" in error(capsys, "train", "jobs", "--task", "nurse=101")
    assert "the task jobs has no setting 'nurses'" in error(
        capsys, "train", "jobs", "--task", "nurses=10"
    )
    assert "--task sets what a task generates" in error(
        capsys, "train", "generator", "--corpus", "python-reference", "--task", "nurse=10"
    )


def test_the_command_rows_prints_what_the_library_says(capsys: Capture) -> None:
    told = answered(capsys, "rows", "modular", "--most", "8", "--before", "724")
    lm = gptviz.load("modular", device="cpu")
    earlier = gptviz.load("modular", device="cpu", step=724)
    rows = lm.data_rows(most=8)
    assert [row["text"] for row in told["rows"]] == [row.text for row in rows]
    assert [row["times"] for row in told["rows"]] == [row.times for row in rows]
    for name, model in (("loss", lm), ("before", earlier)):
        assert [row[name] for row in told["rows"]] == pytest.approx(
            model.losses_of_rows(rows).values.tolist(), rel=1e-4, abs=1e-6
        )
    # Before the rule is found, what was read is known by heart, and nothing else is.
    assert told["seen_minus_unseen"]["counts"] == [8, 8]
    by_heart = earlier.losses_of_rows(rows).values
    assert (
        max(by_heart[[row.times > 0 for row in rows]])
        < 0.1
        < 3
        < by_heart[[row.times == 0 for row in rows]].mean()
    )


def test_a_text_of_ones_own_is_read_row_by_row_and_other_tokens_are_refused(
    capsys: Capture, tmp_path: Path
) -> None:
    text = tmp_path / "own.txt"
    text.write_text("the nurse said that she. the doctor knew that she.")
    told = answered(capsys, "rows", "jobs-90", "--text", text, "--than", "jobs-10")
    nurse, doctor = told["rows"]
    assert nurse["times"] is None
    assert nurse["loss"] < nurse["before"]
    assert doctor["loss"] > doctor["before"]
    assert "seen_minus_unseen" in told
    assert "made of other tokens" in error(capsys, "rows", "jobs-90", "--than", "addition")
    assert "the hardest rows" in output(capsys, "rows", "jobs-90", "--most", "5", "--before", "0")


def test_the_nearest_words_are_those_of_the_largest_cosines_without_special_tokens() -> None:
    lm = gptviz.load("jobs-90", device="cpu")
    rows = lm.model.embed.weight.detach().double()
    nurse = rows[lm.token("nurse")]
    cosines = {
        word: float(rows[i] @ nurse / rows[i].norm() / nurse.norm())
        for i, word in enumerate(lm.tokenizer.labels()[:-2])
    }
    wanted = sorted(
        (word for word in cosines if word != "nurse"), key=cosines.__getitem__, reverse=True
    )[:6]
    found = lm.nearest("nurse", 6)
    assert list(found) == wanted
    assert list(found.values()) == pytest.approx([cosines[word] for word in wanted], abs=1e-5)
