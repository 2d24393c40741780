"""A class guesses the next token, in a lesson and on Next token: pupils guess, who sits at the server
shows the result beside the model's probabilities.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.interp.reading.next_token import probabilities
from gptviz.lessons import votes
from gptviz.machine import hosting
from gptviz.ui.pages.next_token import asking
from gptviz.ui.shell.around import class_answers, lesson
from tests.app.opening import opened, press, says
from tests.browser.machinery import HOSTILE

TEXT = "To be, or not to be the king"
STEP = {"lesson": "20-you-are-the-model", "lesson_step": "1"}
Visit = Callable[..., AppTest]


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Visit:
    """A fresh session of a browser of the class, or of who sits at the server (None)."""
    monkeypatch.setenv(hosting.variable("lan"), "1")
    votes.forget()
    asking.forget()

    def visit(browser: str | None, path: str = "pages/tokens.py", **query: str) -> AppTest:
        monkeypatch.setattr(hosting, "_is_guest", lambda: browser is not None)
        monkeypatch.setattr(lesson, "browser", lambda: browser)
        monkeypatch.setattr(class_answers, "browser", lambda: browser)
        return opened(path, **query)

    return visit


def guess(at: AppTest, typed: str) -> AppTest:
    """The page after something was typed as a guess."""
    (field,) = (one for one in at.text_input if one.label == "What comes next?")
    return field.set_value(typed).run()


def asked(visit: Visit, position: int = 5) -> AppTest:
    """The page of who teaches, asking what comes after a position of `TEXT`."""
    return visit(
        None,
        "pages/next_token.py",
        model="bpe",
        prompt=TEXT,
        position=str(position),
        asks="True",
    )


def answers(visit: Visit, browser: str) -> AppTest:
    """The page that one of the class opens."""
    return visit(browser, "pages/next_token.py", asks="True")


def drawn(at: AppTest) -> str:
    """The HTML of the result."""
    starts = '<ul class="class-answers">'
    (body,) = (one.proto.body for one in at.get("html") if one.proto.body.startswith(starts))
    return str(body)


def shown(at: AppTest) -> dict[str, list[float]]:
    """The tokens that a result has, each with the percentages of the class and of the model."""
    body = drawn(at)
    return {
        name: [
            0.0 if "&lt;" in share else float(share)
            for share in re.findall(r"</span><small>\w+ ([^%]*) %", line)
        ]
        for name, line in re.findall(r"<li><b>(.*?)</b>(.*?)</li>", body)
    }


@pytest.mark.parametrize("where", ["lesson", "next_token"])
def test_each_browser_has_one_voice_until_the_result_is_shown_and_late_ones_join(
    visit: Visit, where: str
) -> None:
    def teacher() -> AppTest:
        return visit(None, **STEP) if where == "lesson" else asked(visit)

    def pupil(browser: str) -> AppTest:
        return visit(browser, **STEP) if where == "lesson" else answers(visit, browser)

    teacher()
    at = guess(pupil("a"), "sleep")
    assert "Your guess: “␣sleep”" in says(at)
    # changed by typing, and then by a tap
    guess(at, "be")
    (tapped,) = (one for one in at.button_group if one.label == "Tokens of the model")
    assert tapped.value == "␣be"
    at = tapped.set_value("Be").run()
    assert "Your guess: “Be”" in says(at)
    # a reload and a second tab find the voice, and change it
    again = pupil("a")
    assert "Your guess: “Be”" in says(again)
    guess(again, "be")
    guess(pupil("b"), "sleep")
    at = teacher()
    assert "In all 2" in says(at)
    assert "Next came" not in says(at)
    # one comes late, and one after the result
    guess(pupil("late"), "be")
    waiting = pupil("too late")
    at = press(teacher(), "Show the result")
    result = shown(at)
    assert result["␣be ✓"][0] == pytest.approx(66.7)
    assert result["␣sleep"][0] == pytest.approx(33.3)
    lm = gptviz.load("bpe", "cpu")
    shares = probabilities(lm.trace("To be, or not to", ["logits"])["logits"][0, -1])
    for name, (_, of_model) in list(result.items())[:-1]:
        share = float(shares[lm.tokenizer.labels().index(name.removesuffix(" ✓"))])
        assert of_model == pytest.approx(100 * share, rel=0.01, abs=0.1)
    be = float(shares[lm.tokenizer.labels().index("␣be")])
    assert f"class {-math.log2(2 / 3):.2f} bits, model {-math.log2(be):.2f} bits" in says(at)
    # the voice of who typed before and the page ran too late is not counted
    assert shown(pupil("too late")) == result, "all see the same"
    assert "the result is shown already" in says(guess(waiting, "sleep")).lower()
    assert not [one for one in pupil("new").text_input if one.label == "What comes next?"]
    assert "In all 0" in says(press(teacher(), "Ask again"))


def test_nobody_of_the_class_who_guessed_right_is_a_surprise_without_a_bound(visit: Visit) -> None:
    asked(visit)
    guess(answers(visit, "a"), "sleep")
    at = press(asked(visit), "Show the result")
    assert "class without a bound" in says(at)
    assert "−log2 of 0 is infinite" in says(at)
    assert shown(at)["␣be ✓"][0] == 0


def test_the_class_follows_from_question_to_question_and_waits_for_the_first(visit: Visit) -> None:
    assert "asked nothing now" in says(answers(visit, "a"))
    asked(visit)
    assert answers(visit, "a").code[0].value == "To be, or not to▁"
    at = press(asked(visit), "Ask for the token after it")
    assert at.query_params["position"] == "6"
    assert answers(visit, "a").code[0].value == "To be, or not to be▁"
    # at the end nothing is known to come next
    end = asked(visit, -1)
    assert "Ask for the token after it" not in {button.label for button in end.button}
    guess(answers(visit, "a"), "and")
    said = says(press(asked(visit, -1), "Show the result"))
    assert "Class: 1 guess." in said
    assert "The model's likeliest token is" in said
    # and who leaves the question asks no longer
    visit(None, "pages/next_token.py", model="bpe", prompt=TEXT)
    assert "asked nothing now" in says(answers(visit, "a"))


def test_a_pupil_sees_nothing_of_the_text_beyond_the_question(visit: Visit) -> None:
    asked(visit)
    at = answers(visit, "a")
    assert "the king" not in says(at) + "".join(one.value for one in at.code)
    assert not at.text_area, "the prompt is the teacher's"


@pytest.mark.parametrize("text", HOSTILE[:4])
def test_what_is_typed_is_text_wherever_it_is_shown(visit: Visit, text: str) -> None:
    asked(visit)
    at = guess(answers(visit, "a"), text[:100])
    at = press(asked(visit), "Show the result")
    allowed = r"</?(ul|li|b|div|span|small)( (class|style)=\"[a-z0-9.:% -]*\")?>"
    assert not re.findall("[<>]", re.sub(allowed, "", drawn(at)))


def test_without_a_class_a_reader_guesses_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    votes.forget()
    at = guess(opened("pages/tokens.py", **STEP), "sleep")
    assert "Your guess: “␣sleep”" in says(at)
    at = press(at, "Check")
    assert "Not yet" in says(at)
    at = press(guess(at, "be"), "Check")
    assert "That is right: it is “␣be”" in says(at)
    assert shown(at)["␣be ✓"][0] == 100
    assert not votes._ballots
    assert not [one for one in opened("pages/next_token.py").toggle if one.label == "Ask the class"]


def test_a_pupil_is_told_the_animal_that_their_answers_stand_under(
    visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(visit)
    assert "drawn at random" not in says(guess(answers(visit, "a"), "be"))
    monkeypatch.setenv(hosting.variable("pseudonyms"), "1")
    assert f"**{votes.pseudonym('a')}**" in says(answers(visit, "a"))
    assert "drawn at random" not in says(answers(visit, "who has not answered"))
