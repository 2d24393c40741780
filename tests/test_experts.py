"""Experts through the library's front door and on the command line."""

from __future__ import annotations

import numpy as np
import pytest

import gptviz
from gptviz.interp.reading.experts import load, taken
from tests.command_line import answered, error, output
from tests.tiny import TinyModel

TEXT = "the quick brown fox"


@pytest.fixture
def mixed(tiny_model: TinyModel) -> str:
    tiny_model("mixed", context_length=32, mlp="experts", n_expert=4, n_active=2)
    return "mixed"


def test_the_command_says_what_the_library_computes(mixed: str, capsys: pytest.CaptureFixture[str]) -> None:
    weights = gptviz.load(mixed, device="cpu").experts(TEXT)
    shares = load(weights).values
    rows = answered(capsys, "experts", mixed, "--prompt", TEXT)
    assert [(row["block"], row["expert"]) for row in rows] == [(block, expert) for block in range(2) for expert in range(4)]
    for row in rows:
        block, expert = row["block"], row["expert"]
        assert row["load"] == pytest.approx(shares[block, expert])
        assert [one["token"] for one in row["tokens"]] == [one.token for one in taken(weights, block, expert)[:8]]
    text = output(capsys, "experts", mixed, "--prompt", TEXT, "--block", "1")
    assert "each token passes 2 of 4 experts: 50.0%" in text
    assert f"{shares[1, 3]:.1%}" in text
    assert "blocks.0" not in text


@pytest.mark.parametrize(
    ("more", "words"), [(["--block", "9"], "there is no block 9: blocks are counted from 0 to 1"), ([], "has no experts")]
)
def test_what_cannot_be_shown_is_said_in_one_line(
    more: list[str], words: str, mixed: str, tiny_model: TinyModel, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny_model("whole")
    assert words in error(capsys, "experts", mixed if more else "whole", "--prompt", "fox", *more)


def test_an_expert_switched_off_changes_what_the_library_computes(mixed: str) -> None:
    lm = gptviz.load(mixed, device="cpu")
    expert = int(np.argmax(load(lm.experts(TEXT)).values[0]))
    off = lm.edited(f"blocks.0.mlp.expert.{expert}")
    assert (off.experts(TEXT).values[0, :, expert] == 0).all()
    assert off.original is lm
