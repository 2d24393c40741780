"""The text that ships for guessing is the end of Tiny Shakespeare, and no shipped model of it has seen that."""

from __future__ import annotations

from typing import Any

import pytest

from gptviz.runs import checkpoints
from gptviz.text import Corpus, from_json, read_corpus
from gptviz.text.datasets.corpora import TINY_SHAKESPEARE_SHA256
from gptviz.text.datasets.unseen import APART, BEFORE, CHARACTERS, GUESSED, PASSAGES, WHOLE, passage, unseen_by
from tests.text.conftest import DATA

SOURCE = {"sha256": TINY_SHAKESPEARE_SHA256, "fraction": 0.9}


@pytest.fixture
def whole() -> Corpus:
    if not (DATA / "tinyshakespeare.txt").is_file():
        pytest.skip("Tiny Shakespeare is not at ../shared/data")
    return read_corpus(DATA / "tinyshakespeare.txt")


def test_the_passages_are_apart_in_the_end_of_the_text_which_models_validate_with(whole: Corpus) -> None:
    assert (whole.sha256, len(whole.text)) == (TINY_SHAKESPEARE_SHA256, WHOLE)
    end = whole.text[-PASSAGES * APART :]
    for fraction in (0.9, 0.95):
        assert end in whole.split(fraction)[1]
    for number in range(PASSAGES):
        before, guessed = passage(number)
        assert (len(before), len(guessed)) == (BEFORE, GUESSED)
        assert end[number * APART :].startswith(before + guessed)
    assert BEFORE + GUESSED <= APART
    assert "".join(sorted(set(whole.text))) == CHARACTERS


def test_there_are_no_other_passages() -> None:
    for number in (-1, PASSAGES):
        with pytest.raises(ValueError, match="from 0 to 99"):
            passage(number)


@pytest.mark.parametrize(
    ("source", "unseen"),
    [
        (SOURCE, True),
        (SOURCE | {"fraction": 0.95}, True),
        (SOURCE | {"fraction": 0.98}, False),
        (SOURCE | {"fraction": "0.9"}, False),
        ({"sha256": TINY_SHAKESPEARE_SHA256}, False),
        (SOURCE | {"sha256": "0" * 64}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_card_has_to_say_that_the_end_was_held_out(source: dict[str, Any] | None, unseen: bool) -> None:
    assert unseen_by(source) == unseen


@pytest.mark.parametrize("name", ["ladder-0", "ladder-8", "shakespeare", "generator"])
def test_shipped_models_of_characters_have_these_characters_and_have_not_seen_the_end(name: str) -> None:
    folder = checkpoints.BUNDLED / name
    tokenizer = from_json((folder / "tokenizer.json").read_text(encoding="utf-8"))
    assert "".join(map(tokenizer.piece, range(tokenizer.vocab_size))) == CHARACTERS
    assert unseen_by(checkpoints.read_card(folder).source)
