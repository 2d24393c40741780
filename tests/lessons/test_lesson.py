"""The format of lessons: what a file says is what is read, and what cannot be read is named with
its place.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import strategies as st

from gptviz.lessons.lesson import KINDS, LessonError, PageState, parse_lesson, read_lesson
from tests.examples import tried

FRONT = "---\ntitle: A title\nabout: A sentence.\n---\n"
STEP = """## First
Some *text* with {{ 1 + 1 }}.

```python
print("an ordinary block stays in the text")
```

```page
open: attention
prompt: "a: b"
block: 1
look_at: Here.
claim: 1 < 2
```

```question
ask: How many?
kind: number
answer: 2 + 2
within: 0.5
unit: "%"
hint: More than {{ 3 }}.
claim:
  - 2 + 2 == 4
  - "[1, 2] == [1, 2]"
reveal: "It is {{2 + 2}}."
```

## Second
```question
ask: Which?
kind: choice
options: [yes it is, "no"]
answer: '"no"'
```
"""


def refused(content: str) -> str:
    with pytest.raises(LessonError) as error:
        parse_lesson(content, "a-lesson", "a-lesson.md")
    assert str(error.value).startswith("a-lesson.md")
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_a_file_says_is_what_is_read():
    lesson = parse_lesson(FRONT + STEP, "a-lesson")
    assert (lesson.title, lesson.about, lesson.minutes, lesson.model) == (
        "A title",
        "A sentence.",
        5,
        "shakespeare",
    )
    first, second = lesson.steps
    assert (first.title, second.title) == ("First", "Second")
    assert first.page == PageState("attention", {"prompt": "a: b", "block": "1"}, "Here.")
    assert first.text.startswith("Some *text*")
    assert "an ordinary block" in first.text
    assert "How many?" not in first.text
    (question,) = first.questions
    assert (question.kind, question.answer, question.within, question.unit) == (
        "number",
        "2 + 2",
        0.5,
        "%",
    )
    assert second.questions[0].options == ("yes it is", "no")
    assert question.hint == "More than {{ 3 }}."
    claims = ["1 < 2", "2 + 2 == 4", "[1, 2] == [1, 2]"]
    assert [claim.expression for claim in first.claims] == claims
    written = (FRONT + STEP).split("\n")
    assert all(claim.expression in written[claim.line - 1] for claim in first.claims)
    assert not second.claims
    said = [text.strip() for *_, text in lesson.expressions]
    assert said == ["1 + 1", "3", "2 + 2", "2 + 2", *claims, '"no"']


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("no settings", "between two lines ---"),
        ("---\nabout: x\n---\n## A\n", "'title' is missing"),
        ("---\ntitle: [x\n---\n## A\n", "a-lesson.md, line 2: expected"),
        ("---\na: &a [1]\ntitle: *a\n---\n## A\n", "references"),
        (FRONT + "no heading", "0 steps"),
        (FRONT + STEP.replace("open: attention\n", ""), "step 1, page: 'open' is missing"),
        (
            FRONT + STEP.replace('[yes it is, "no"]', '["no", "no"]'),
            "step 2, question: a choice has two",
        ),
        (FRONT + STEP.replace("within: 0.5", "within: far"), "'within' is 'far'"),
        (FRONT + STEP.replace("claim: 1 < 2", "claim:"), "'claim' is missing"),
        (FRONT + "## x\n" * 41, "41 steps"),
        (
            FRONT.replace("---\n", "---\nlevel: insid\n", 1) + STEP,
            "line 2: its level is 'insid': did you mean 'inside'?",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(content, said):
    assert said in refused(content)


@pytest.mark.parametrize(
    ("written", "instead", "line", "fix"),
    [
        ("title: A title", "title: A: title", 2, "must stand in quotes"),
        ("about: A sentence.", "about:\tA sentence.", 3, "spaces"),
        ("about: A sentence.", "about:", 3, "write a line 'about: …'"),
        ("about: A sentence.", "title: again", 3, "leave one of them out"),
        ("about: A sentence.", "about: A sentence.\nminuts: 4", 4, "did you mean 'minutes'?"),
        ("```page", "```pgae", 12, "did you mean 'page'?"),
        ("claim: 1 < 2\n```", "claim: 1 < 2", 12, "write a line ```"),
        ("kind: number", "kind: numer", 22, "did you mean 'number'?"),
        ("answer: 2 + 2", "answer: (2 + 2", 23, "'(' was never closed"),
        ("answer: 2 + 2\n", "", 21, "write a line 'answer: …'"),
        ("within: 0.5", "withn: 0.5", 24, "did you mean 'within'?"),
        ("hint: More", "hints: More", 26, "did you mean 'hint'?"),
        ("  - 2 + 2 == 4", "  - 2 + 2 = 4", 28, "no expression"),
        ("{{ 3 }}", "{{ 3 + }}", 26, "no expression"),
        ("## Second", "## First", 33, "write another"),
        ("{{ 1 + 1 }}", "{{ 1 + }}", 6, "no expression"),
        ("about: A sentence.", 'about: "\\ud800"', 3, "half of a character"),
        ("within: 0.5", 'within: 0.5\n"\\udfff": 1', 25, "half of a character"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_what_to_write(
    written: str, instead: str, line: int, fix: str
):
    said = refused((FRONT + STEP).replace(written, instead, 1))
    assert said.startswith(f"a-lesson.md, line {line}")
    assert fix in said


def test_a_text_is_what_is_written():
    lesson = parse_lesson(
        FRONT + STEP.replace('[yes it is, "no"]', "[yes, no]").replace("block: 1", "block: 01"), "x"
    )
    assert lesson.steps[1].questions[0].options == ("yes", "no")
    assert lesson.steps[0].page.query["block"] == "01"


@tried(
    100,
    2_000,
    st.text(max_size=300),
    st.sampled_from([FRONT, "", "---\n"]),
    st.sampled_from(["page", "question", "x"]),
)
def test_any_text_is_a_lesson_or_refused_in_a_line(text, front, kind):
    try:
        parse_lesson(f"{front}## Step\n```{kind}\n{text}\n```\n", "a-lesson", "a-lesson.md")
    except LessonError as error:
        assert "\n" not in str(error)
        assert len(str(error)) < 600


def test_a_file_that_is_no_text_or_too_long_is_refused(tmp_path: Path):
    for content in (b"\xff\xfe", b"x" * 300_000):
        (tmp_path / "odd.md").write_bytes(content)
        with pytest.raises(LessonError, match=r"odd\.md"):
            read_lesson(tmp_path / "odd.md")


def test_every_kind_of_question_can_be_read():
    fields = {
        "choice": "options: [a, b]",
        "number": "within: 1",
        "token": "reveal: x",
        "state": "state: head",
        "guess": "prompt: the",
    }
    assert set(fields) == set(KINDS)
    for kind, line in fields.items():
        block = f"```question\nask: x\nkind: {kind}\nanswer: '\"a\"'\n{line}\n```\n"
        assert parse_lesson(f"{FRONT}## A\n{block}", "x").steps[0].questions[0].kind == kind
