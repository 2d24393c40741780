"""What a list of prompts says of heads and MLPs, against a loop of single calls."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor

import gptviz
from gptviz.interp.over_prompts import AskedPrompt, How, measure_prompt, spread
from gptviz.interp.trace import run
from gptviz.interp.units.unit import heads_and_mlps
from gptviz.language_model.changing import example_pairs
from gptviz.text.datasets.prompt_pairs import PromptRow
from tests.tiny import TinyModel, scrambled, tiny

ROWS = (
    PromptRow("a cab", "a cad", "a", "b"),
    PromptRow("bad abe", "bad cbe", "d", "c"),
    PromptRow("face", "fade", "f", "g"),
    PromptRow("g beg", "g bag", "e", "a"),
)


@pytest.fixture
def lm(tiny_model: TinyModel) -> gptviz.LanguageModel:
    return gptviz.load(tiny_model("mine", text="abcdefg "))


def restored(lm: gptviz.LanguageModel, row: PromptRow, name: str) -> float:
    """The share that a head, or an MLP at all positions, restores."""
    block = int(name.split(".")[1])
    if name.endswith("mlp"):
        pair = lm.pair(row.clean, row.corrupted, row.right, row.wrong)
        ids = pair.ids(lm.device)
        tap = f"blocks.{block}.mlp.out"
        clean = run(lm.model, ids[:1], [tap, "logits"])

        def put(_value: Tensor) -> Tensor:
            return clean[tap].clone()

        patched, corrupted = (
            run(lm.model, ids[1:], ["logits"], edits=edits)["logits"] for edits in ({tap: put}, {})
        )
        one, other, whole = (
            float(pair.answer(logits)[0]) for logits in (patched, corrupted, clean["logits"])
        )
        return (one - other) / (whole - other)
    return float(
        lm.patch(row.clean, row.corrupted, row.right, row.wrong, "attention.z").shares[
            block, int(name.split(".")[-1])
        ]
    )


def added(lm: gptviz.LanguageModel, row: PromptRow, name: str) -> float:
    return lm.attribute(row.clean, row.right, None, row.wrong).of(name)


def lost(lm: gptviz.LanguageModel, row: PromptRow, name: str) -> float:
    with torch.inference_mode():
        read = [
            one.model(lm.encode(row.clean)[None])[0, -1].double().log_softmax(-1)
            for one in (lm, lm.edited(name))
        ]
    return float(read[0][lm.token(row.right)] - read[1][lm.token(row.right)])


@pytest.mark.parametrize(
    ("how", "single"), [("patch", restored), ("attribute", added), ("switch off", lost)]
)
def test_mean_and_spread_are_those_of_a_loop_of_single_calls(
    lm: gptviz.LanguageModel, how: How, single: object
) -> None:
    found = lm.over_prompts(ROWS, how)
    assert found.units == tuple(one.name for one in heads_and_mlps(lm.model.config))
    expected = np.array([[single(lm, row, name) for name in found.units] for row in ROWS])  # type: ignore[operator]
    np.testing.assert_allclose(found.values, expected, rtol=1e-3, atol=1e-5)
    for i in range(len(found.units)):
        column = [float(value) for value in expected[:, i]]
        mean = sum(column) / 4
        assert found.mean[i] == pytest.approx(mean, rel=1e-3, abs=1e-5)
        assert found.deviation[i] == pytest.approx(
            (sum((one - mean) ** 2 for one in column) / 3) ** 0.5, rel=1e-3, abs=1e-5
        )
        if min(map(abs, [*column, mean])) > 1e-4:
            assert found.same_sign[i] == sum((one > 0) == (mean > 0) for one in column) / 4


def test_a_single_prompt_has_no_spread_and_answers_that_are_left_out_are_the_likeliest(
    lm: gptviz.LanguageModel,
) -> None:
    row = PromptRow("a cab", "a cad")
    pair = lm.pair(row.clean, row.corrupted)
    found = lm.over_prompts([row], "patch")
    assert np.isnan(found.deviation).all()
    expected = measure_prompt(
        lm.model, AskedPrompt(pair.clean, pair.right, pair.wrong, pair.corrupted), "patch"
    )
    np.testing.assert_allclose(found.mean, list(expected.values()))
    alone = lm.over_prompts([PromptRow("a cab")], "attribute")
    np.testing.assert_allclose(alone.mean, [lm.attribute("a cab").of(name) for name in alone.units])


def test_prompts_of_several_lengths_are_measured_one_after_the_other() -> None:
    model = scrambled(tiny())
    asked = [
        AskedPrompt((1, 2, 3), 4, 5, (1, 6, 3)),
        AskedPrompt((1, 2, 3, 4, 5), 4, 7, (1, 3, 3, 4, 5)),
    ]
    each = [measure_prompt(model, prompt, "patch") for prompt in asked]
    found = spread(each, "patch")
    np.testing.assert_allclose(
        found.mean,
        [(first + second) / 2 for first, second in zip(*map(dict.values, each), strict=True)],
    )
    assert found.labelled().axes[1].labels == found.units == tuple(each[0])


@pytest.mark.parametrize(
    ("rows", "how", "says"),
    [
        (
            [PromptRow("ab", "abc", place="p.csv, line 2")],
            "patch",
            "p.csv, line 2: the clean prompt has 2 tokens",
        ),
        (
            [PromptRow("ab", place="p.csv, line 3")],
            "patch",
            "p.csv, line 3: there is no corrupted prompt",
        ),
        ([PromptRow("a€", place="p.csv, line 4")], "attribute", "p.csv, line 4: .*€"),
        (
            [PromptRow("ab", right="xy", place="p.csv, line 5")],
            "switch off",
            "p.csv, line 5: 'xy' is no single token",
        ),
        (
            [PromptRow("ab", "ab", place="p.csv, line 6")],
            "patch",
            "p.csv, line 6: both prompts have the same answer",
        ),
        (
            [PromptRow("ab", wrong="a"), PromptRow("ab", place="p.csv, line 7")],
            "attribute",
            "p.csv, line 7: only some rows",
        ),
        ([], "patch", "the list has no prompts"),
        (
            [PromptRow("ab")],
            "smooth",
            "how is 'smooth'; it must be one of patch, attribute, switch off",
        ),
    ],
)
def test_bad_rows_are_named(
    lm: gptviz.LanguageModel, rows: Sequence[PromptRow], how: How, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        lm.over_prompts(rows, how)


def test_several_bad_rows_are_named_together(lm: gptviz.LanguageModel) -> None:
    bad = [PromptRow("a", "ab", place=f"p.csv, line {line}") for line in range(1, 8)]
    with pytest.raises(ValueError, match="line 1: .*line 5: .*; and 2 others"):
        lm.over_prompts(bad)


@pytest.mark.parametrize("name", ["sentences", "addition", "induction"])
def test_a_task_writes_pairs_that_its_model_answers_rightly_and_otherwise(name: str) -> None:
    lm = gptviz.load(name)
    rows = example_pairs(lm, 4)
    assert len(rows) == 4
    for row in rows:
        clean, corrupted = (lm.tokenizer.encode(text).ids for text in (row.clean, row.corrupted))
        assert sum(one != other for one, other in zip(clean, corrupted, strict=True)) == 1
        with torch.inference_mode():
            likeliest = [
                int(lm.model(lm.seen(torch.tensor(ids))[None])[0, -1].argmax())
                for ids in (clean, corrupted)
            ]
        assert lm.tokenizer.label(likeliest[0]) == row.right
        assert likeliest[1] != likeliest[0]
    with pytest.raises(ValueError, match="shakespeare has not learned a task"):
        example_pairs(gptviz.load("shakespeare"))


def test_pairs_of_one_of_several_tasks() -> None:
    rows = example_pairs(gptviz.load("sentences"), 3, "colours")
    assert len(rows) == 3
    assert all(
        " has a " in row.clean or " bought a " in row.clean or " found a " in row.clean
        for row in rows
    )
