"""The scenes for guessing can be read by the shipped models of characters, and none of them is in
what these learned from.
"""

from __future__ import annotations

import pytest

from gptviz.runs import checkpoints
from gptviz.text import from_json, read_corpus
from gptviz.text.datasets.unseen import CHARACTERS, GUESSED, PASSAGES, passage
from tests.text.conftest import DATA


def test_each_has_enough_to_read_and_ten_characters_to_guess() -> None:
    assert PASSAGES >= 10
    for number in range(PASSAGES):
        before, guessed = passage(number)
        assert len(before) > 150
        assert len(guessed) == GUESSED
        assert set(before + guessed) <= set(CHARACTERS)
    assert len({passage(number) for number in range(PASSAGES)}) == PASSAGES


def test_no_line_is_in_tiny_shakespeare() -> None:
    if not (DATA / "tinyshakespeare.txt").is_file():
        pytest.skip("Tiny Shakespeare is not at ../shared/data")
    known = set(read_corpus(DATA / "tinyshakespeare.txt").text.splitlines())
    lines = {
        line
        for number in range(PASSAGES)
        for line in "".join(passage(number)).splitlines()
        if not line.endswith(":")
    } - {""}
    assert len(lines) > 50
    assert not lines & known


@pytest.mark.parametrize("name", ["ladder-0", "ladder-8", "shakespeare", "generator"])
def test_shipped_models_of_characters_have_these_characters(name: str) -> None:
    tokenizer = from_json(
        (checkpoints.BUNDLED / name / "tokenizer.json").read_text(encoding="utf-8")
    )
    assert "".join(map(tokenizer.piece, range(tokenizer.vocab_size))) == CHARACTERS
