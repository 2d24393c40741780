"""Texts written with a drafter, from the library and from the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gptviz
from gptviz.__main__ import main
from gptviz.generate.speculation import Speculated
from gptviz.runs import checkpoints
from gptviz.text import CharTokenizer
from gptviz.text.tokenizers.padded import PaddedTokenizer
from tests.command_line import Capture, answered, error
from tests.tiny import TinyModel, scrambled, tiny


@pytest.mark.parametrize("drafter", ["prompt", "generator", "shakespeare"])
def test_the_greedy_text_is_that_without_a_drafter(drafter: str) -> None:
    lm = gptviz.load("shakespeare", "cpu")
    by = "prompt" if drafter == "prompt" else gptviz.load(drafter, "cpu")
    found = lm.speculate("ROMEO:\nO, she doth", by, 50, temperature=0)
    assert lm.tokenizer.decode(found.tokens) == lm.generate(
        "ROMEO:\nO, she doth", 50, temperature=0
    )
    assert found.tokens_per_pass == 50 / len(found.rounds)
    if drafter == "shakespeare":
        assert found.acceptance_rate == 1
        assert len(found.rounds) == 10


def test_the_model_itself_as_drafter_writes_its_own_drawn_text() -> None:
    lm = gptviz.load("shakespeare", "cpu")
    found = lm.speculate("JULIET:", lm, 40, temperature=0.9, top_p=0.95, seed=4)
    assert lm.tokenizer.decode(found.tokens) == lm.generate(
        "JULIET:", 40, temperature=0.9, top_p=0.95, seed=4
    )


@pytest.mark.parametrize("rows", [13, 15, 19])
def test_a_drafter_may_have_another_number_of_unused_tokens(rows: int, home: Path) -> None:
    tokens = CharTokenizer("abcdefghijkl")
    for name, size in (("large", 15), ("small", rows)):
        checkpoints.save(
            name, scrambled(tiny(vocab_size=size), seed=size), PaddedTokenizer(tokens, size), {}
        )
    lm = gptviz.load("large", "cpu")
    drafter = gptviz.load("small", "cpu")
    found = lm.speculate("abc", drafter, 30, temperature=0)
    assert lm.tokenizer.decode(found.tokens) == lm.generate("abc", 30, temperature=0)
    drawn = lm.speculate("abc", drafter, 30, temperature=2, seed=1)
    assert max(drawn.tokens) < tokens.vocab_size
    checkpoints.save(
        "other",
        scrambled(tiny(vocab_size=rows)),
        PaddedTokenizer(CharTokenizer("abcdefghijkm"), rows),
        {},
    )
    with pytest.raises(ValueError, match="their vocabularies differ"):
        lm.speculate("abc", gptviz.load("other", "cpu"))


def test_a_text_stops_where_that_without_a_drafter_does(tiny_model: TinyModel) -> None:
    whole = gptviz.load(tiny_model()).generate("the fox", 30, temperature=0)
    end = gptviz.load("tiny").tokenizer.id_of(whole[9])
    lm = gptviz.load(tiny_model("ends", card={"end_tokens": [end]}))
    cut = lm.speculate("the fox", lm, 30, temperature=0).tokens
    assert cut[-1] == end
    assert lm.tokenizer.decode(cut[:-1]) == lm.generate("the fox", 30, temperature=0)
    assert (
        lm.tokenizer.decode(lm.speculate("the fox", lm, 30, temperature=0, go_on=True).tokens)
        == whole
    )
    adds = gptviz.load("addition", "cpu")
    found = adds.speculate("123+456=", adds, 30, temperature=0)
    assert adds.tokenizer.decode(found.tokens) == adds.generate("123+456=", temperature=0)


def test_what_is_impossible_is_named() -> None:
    lm = gptviz.load("ladder-8", "cpu")
    with pytest.raises(
        ValueError, match="'ladder-2' is no drafter: give \"prompt\", or an opened model"
    ):
        lm.speculate("abc", "ladder-2")
    with pytest.raises(ValueError, match="max_new_tokens is -1"):
        lm.speculate("abc", "prompt", -1)
    with pytest.raises(TypeError, match="'temprature' is no setting"):
        lm.speculate("abc", "prompt", temprature=1)
    assert Speculated(()).sentence("prompt", "ladder-8") == "no token was written"
    assert "drafted nothing; 1 pass of ladder-8 gave 1 token," in lm.speculate(
        "abc", "prompt", 1
    ).sentence("prompt", "ladder-8")


def test_generate_with_a_drafter_says_what_was_accepted_and_why(capsys: Capture) -> None:
    asked = ("generate", "ladder-8", "--prompt", "Before we", "--max-new-tokens", "30", "--draft")
    for drafter in ("ladder-2", "prompt"):
        told = answered(capsys, *asked, drafter, "--greedy")
        assert told["text"] == gptviz.load("ladder-8").generate("Before we", 30, temperature=0)
    told = answered(capsys, *asked, "ladder-2", "--seed", "5", "--drafted", "3")
    drafts = [one for each in told["rounds"] for one in each["drafted"]]
    assert all(
        one["accepted"] == (one["number"] < one["p"] / one["q"])
        for one in drafts
        if one["accepted"] is not None
    )
    judged = [one["accepted"] for one in drafts if one["accepted"] is not None]
    assert told["acceptance_rate"] == sum(judged) / len(judged)
    assert told["tokens_per_pass"] == 30 / len(told["rounds"])
    assert max(len(each["drafted"]) for each in told["rounds"]) == 3
    assert main([*asked, "ladder-2", "--seed", "5", "--drafted", "3"]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"Before we{told['text']}\n"
    assert f"{sum(judged)} of {len(judged)} judged drafts of ladder-2 were accepted" in printed.err
    assert f"{told['tokens_per_pass']:.2f} per pass" in printed.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("ladder-8", "--draft", "bpe"),
            r"bpe cannot draft for ladder-8: their vocabularies differ \(2,000 and 65 tokens\)",
        ),
        (("ladder-8", "--draft", "classifier"), "classifier is a classifier and writes no text"),
        (("ladder-8", "--draft", "seq2seq"), "seq2seq answers a text and does not continue it"),
        (
            ("seq2seq", "--draft", "prompt"),
            "seq2seq answers a text and does not continue it: leave --draft out",
        ),
        (("generator-unmasked", "--draft", "generator"), "looks ahead"),
        (("ladder-8", "--draft", "nobody"), "no model named 'nobody'"),
        (
            ("ladder-8", "--draft", "prompt", "--drafted", "0"),
            "drafted tokens is 0; it must be a whole number from 1 to 16",
        ),
        (("ladder-8", "--drafted", "2"), "name one with --draft"),
        (("ladder-8", "--draft", "prompt", "--beams", "2"), "leave --beams out"),
    ],
)
def test_what_cannot_be_drafted_is_refused_in_one_line(
    arguments: tuple[str, ...], message: str, capsys: Capture
) -> None:
    assert re.search(message, error(capsys, "generate", *arguments, "--prompt", "abc"))
