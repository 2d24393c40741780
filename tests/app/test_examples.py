"""Before anybody types, a page shows something that the model can read, and the text that it
learned from once that is here.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import gptviz
from gptviz.data.classification import LabelledSource
from gptviz.data.seq2seq import PairSource
from gptviz.runs import checkpoints
from gptviz.runs.card import Card
from gptviz.text import LabelledTexts, Pairs
from gptviz.ui.shell.subject.bar import default_prompt
from gptviz.ui.shell.subject.prompts import LINES, SENTENCE, USUAL, example


@pytest.fixture(autouse=True)
def _own_home(home: Path) -> None:
    """Whatever is remembered is remembered for one test."""


def labelled(*texts: str) -> LabelledSource:
    """These texts with two labels by turns."""
    return LabelledSource(
        LabelledTexts("mine", texts, tuple(i % 2 for i in range(len(texts))), ("a", "b")), 0.5
    )


def test_the_example_is_the_first_text_held_out_that_has_a_word() -> None:
    source = labelled(*(f"7/{i}" if i < 30 else f"number {i}th: good film" for i in range(40)))
    held_out = source.split()[1].texts
    assert held_out[0].startswith("7/")
    source.keep()
    expected = next(text for text in held_out if "film" in text)
    assert example("classifier", json.dumps(source.to_dict())) == expected


def test_where_no_text_has_a_word_the_usual_example_is_shown() -> None:
    source = labelled("映画", "7/10", "кино", "!!!", "8/10", "...")
    source.keep()
    assert example("classifier", json.dumps(source.to_dict())) == USUAL["classifier"]


def test_of_pairs_it_is_the_first_source_held_out_that_is_not_blank() -> None:
    source = PairSource(
        Pairs("mine", tuple((" " * i if i < 9 else f"word {i}", "x") for i in range(1, 14))), 0.2
    )
    held_out = [text for text, _ in source.split()[1]]
    assert not held_out[0].strip()
    source.keep()
    assert example("encoder-decoder", json.dumps(source.to_dict())) == next(
        text for text in held_out if text.strip()
    )


def test_texts_that_come_later_are_shown_then() -> None:
    source = labelled("a fine film", "a dull film", "a good play", "a bad play")
    written = json.dumps(source.to_dict())
    assert example("classifier", written) == USUAL["classifier"]
    source.keep()
    assert example("classifier", written) == source.split()[1].texts[0]


def writers() -> list[str]:
    """The models that ship and go on with a text that somebody wrote. The answers to a task leave
    no choice, and a model without a mask was never asked to guess what it could not see.
    """
    folders = [
        folder for folder in checkpoints.BUNDLED.iterdir() if (folder / "config.json").is_file()
    ]
    return sorted(
        folder.name
        for folder in folders
        if checkpoints.read_config(folder).mask == "causal"
        and checkpoints.read_config(folder).kind == "decoder"
        and checkpoints.read_card(folder).corpus is not None
    )


@pytest.mark.parametrize("name", writers())
def test_the_lines_that_home_opens_on_leave_every_shipped_model_a_choice(name: str) -> None:
    lm = gptviz.load(name)
    ids = lm.encode(LINES)
    assert len(ids) <= 64, "more than the smallest decoder with snapshots reads"
    with torch.inference_mode():
        likeliest = lm.model(lm.seen(ids)[None])[0, -1].softmax(-1).sort(descending=True).values
    assert likeliest[0] < 0.6
    assert likeliest[1] > 0.05


def test_a_decoder_of_another_program_opens_on_whole_words() -> None:
    theirs = Card.from_json({"imported_from": "somebody/theirs"})
    assert default_prompt("decoder", theirs) == SENTENCE
    assert default_prompt("classifier", theirs) == USUAL["classifier"]
    assert default_prompt("decoder", Card()) == LINES
