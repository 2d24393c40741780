"""“Guess it yourself” on the page Next token, as a reader plays it, without a browser."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.interp.reading.guessing import bits_of_guesses
from gptviz.runs import checkpoints
from gptviz.text.datasets.unseen import CHARACTERS, GUESSED, passage
from gptviz.ui.pages.next_token.guessing import BOX, by_token, guess_count
from tests.app.opening import button, page_at, payload, press, says
from tests.tiny import TinyModel

TRUE = passage(7)[1]
WRONG = "x"
assert not set(TRUE) & set("xqz")
page = page_at("pages/next_token.py", guess="True", text="7")


def typed(at: AppTest, character: str) -> AppTest:
    return at.text_input(key=BOX).set_value(character).run()


def table(at: AppTest) -> dict[str, list[float]]:
    """The rows of the table at the end: bits by guesses, bits by probabilities, and guesses per
    token.
    """
    frame = at.dataframe[0].value
    return {
        name: [math.nan if each == "–" else float(each) for each in row]
        for name, *row in frame.itertuples()
    }


@pytest.fixture
def two_rungs(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the models that ship, the bigram and `shakespeare` alone."""
    for name in ("ladder-0", "shakespeare"):
        shutil.copytree(checkpoints.BUNDLED / name, tmp_path / "bundled" / name)
    monkeypatch.setattr(checkpoints, "BUNDLED", tmp_path / "bundled")


@pytest.mark.usefixtures("two_rungs")
def test_a_game_of_right_and_wrong_guesses_is_worth_the_bits_of_its_mean_beside_those_of_models() -> (
    None
):
    at = page()
    assert at.code[0].value == f"{passage(7)[0]}▁"
    counts = []
    for place, true in enumerate(TRUE):
        assert f"Token {place + 1} of {GUESSED}" in says(at)
        wrong = "xqz"[: place % 3]
        for number, other in enumerate(wrong, 1):
            at = typed(at, other)
            assert f"Wrong so far: {' '.join(f'“{one}”' for one in wrong[:number])}." in says(at)
        if true in " \n":
            press(at, {" ": "Space", "\n": "Line break"}[true])
        else:
            typed(at, true)
        counts.append(len(wrong) + 1)
        header, arrays = payload(at, "guessed ledger")
        assert header["true"] == CHARACTERS.index(true)
        lm = gptviz.load("shakespeare")
        ids = lm.encode(passage(7)[0] + TRUE[:place])[-len(passage(7)[0]) :]
        np.testing.assert_allclose(arrays["logits"], lm.model(ids[None])[0, -1].detach(), atol=1e-4)
    assert at.code[0].value.endswith(TRUE)
    rows = table(at)
    assert next(iter(rows)) == "You"
    assert rows["You"][0] == pytest.approx(bits_of_guesses(np.mean(counts), 65))
    assert rows["You"][2] == pytest.approx(np.mean(counts), abs=0.005)
    assert rows["pure chance"] == pytest.approx([math.log2(65), math.log2(65), 33], abs=0.005)
    for name, title in (("ladder-0", "ladder-0 (the bigram)"), ("shakespeare", "shakespeare")):
        lm = gptviz.load(name)
        surprise = []
        for place, true in enumerate(TRUE):
            ids = lm.encode(passage(7)[0] + TRUE[:place])[-lm.model.config.context_length :]
            logits = lm.model(ids[None])[0, -1].detach()
            surprise.append(
                -float(torch.log_softmax(logits, -1)[CHARACTERS.index(true)]) / math.log(2)
            )
        assert rows[title][1] == pytest.approx(np.mean(surprise), abs=0.006)
    assert "ladder-3: it is not on this machine." in says(at)
    # The address has the game: a reload shows it again, and the next text begins a new one.
    again = page(guesses=at.query_params["guesses"])
    assert table(again) == rows
    press(again, "Play another text")
    assert (again.query_params["text"], "guesses" in again.query_params) == ("8", False)
    assert again.code[0].value == f"{passage(8)[0]}▁"


@pytest.mark.usefixtures("only_shakespeare")
def test_a_guess_that_cannot_be_right_does_not_count_and_giving_up_counts_as_chance() -> None:
    at = page()
    for refused in ("é", "*"):
        assert "does not occur" in says(typed(at, refused))
        assert "guesses" not in at.query_params
        assert at.text_input(key=BOX).value == ""
    typed(at, WRONG)
    assert "already" in says(typed(at, WRONG))
    assert at.query_params["guesses"] == WRONG
    button(at, "Give up").click().run()
    assert "You gave up, which counts as 33.5 guesses" in says(at)
    assert "Token 2 of 10" in says(at)
    assert table(page(guesses="*" * GUESSED))["You"][0] == math.log2(65), (
        "who gives up each time knows nothing"
    )


@pytest.mark.usefixtures("only_shakespeare")
@pytest.mark.parametrize(
    "asked",
    [
        {"guesses": TRUE + "a"},
        {"guesses": "☃"},
        {"guesses": 2 * WRONG},
        {"guesses": "x" * 700},
        {"text": "100"},
        {"text": "−1"},
    ],
)
def test_nonsense_in_the_address_is_named_and_the_game_begins(asked: dict[str, str]) -> None:
    at = page(**asked)
    assert [one for one in at.warning if "The link asks for" in one.value]
    assert "Token 1 of 10" in says(at)
    true = passage(0 if "text" in asked else 7)[1][0]
    typed(at, true)
    assert "Token 2 of 10" in says(at)


@pytest.mark.usefixtures("only_shakespeare")
def test_a_model_that_cannot_play_is_told_why_and_another_one_takes_its_place(
    tiny_model: TinyModel,
) -> None:
    tiny_model()
    at = page(model="tiny", guesses=TRUE)
    assert "tiny does not play: its tokens are not the 65 characters of this text" in says(at)
    assert "shakespeare plays in its place" in says(at)
    assert "tiny" not in table(at)


@pytest.mark.usefixtures("no_bundled_models")
def test_where_no_model_plays_the_reader_still_does(tiny_model: TinyModel) -> None:
    tiny_model()
    assert list(table(page(model="tiny", guesses=TRUE))) == ["You", "pure chance"]


def test_the_guesses_of_a_game_fall_to_its_tokens() -> None:
    assert by_token("", "ab") == [""]
    assert by_token("xa*", "ab") == ["xa", "*", ""]
    assert by_token("xay", "ab") == ["xa", "y"]
    assert [guess_count("xa"), guess_count("*"), guess_count("xy*")] == [2, 33, 34]
