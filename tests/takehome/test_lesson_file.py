"""A lesson to take home: its pages stand beside its texts, its answers are computed, and none of
its text is markup.
"""

from __future__ import annotations

import base64
import json
import re
import zipfile
from dataclasses import replace
from html import escape
from pathlib import Path
from xml.etree import ElementTree

import pytest

import gptviz
from gptviz.__main__ import main
from gptviz.lessons.lesson import Lesson, LessonStep, PageState, Question, parse_lesson
from gptviz.lessons.library import own_folder
from gptviz.takehome.course import PACKAGING, SCORM, scorm_package
from gptviz.takehome.lesson_file import lesson_content
from gptviz.takehome.page import AskedQuestion, Heading, PageContent, PieceGroup, PlainText
from gptviz.takehome.page_file import as_html
from tests.browser.machinery import HOSTILE
from tests.command_line import Capture, answered, error

LESSON = """---
title: A title
about: A sentence.
model: ladder-2
---
## The first
It has {{ parameters() }} numbers.

```page
open: positions
```

```question
ask: How many numbers does it have?
kind: number
answer: parameters()
within: 10
hint: More than {{ parameters() - 1 }}.
claim: parameters() > 2
reveal: They are {{ parameters() }}.
```

## The second
A step without a page.
"""


def blank(name: str, query: dict[str, str]) -> PageContent:
    return PageContent(name, query, (Heading("The title of a page", 1),))


def test_a_page_stands_beside_the_text_of_its_step_and_the_answer_is_not_to_be_read():
    content = lesson_content(parse_lesson(LESSON, "own"), {"parameters": lambda: 1234}, blank)
    (beside,) = [group for group in content.pieces_of(PieceGroup) if group.look == "beside"]
    said, page = beside.pieces
    assert isinstance(said, PieceGroup)
    assert isinstance(page, PageContent)
    assert (page.name, page.query) == ("positions", {"model": "ladder-2"})
    (asked,) = [piece for piece in said.pieces if isinstance(piece, AskedQuestion)]
    assert (asked.value, asked.within, asked.words) == (
        1234,
        10,
        "1234 (an answer within 10 counts as right)",
    )
    assert (asked.hint, asked.reveal) == ("More than 1233.", "They are 1234.")
    html = as_html(content)
    assert re.findall(r"<h(\d)>([^<]*)<", html) == [
        ("1", "A title"),
        ("2", "1 The first"),
        ("3", "The title of a page"),
        ("2", "2 The second"),
    ]
    assert '<section class="page" data-address="model=ladder-2">' in html
    (packed,) = re.findall(r'<form class="question" data-answer="([^"]+)"', html)
    answer = json.loads(base64.b64decode(packed))
    assert (answer["value"], answer["within"]) == (1234, 10)
    assert "<p>More than 1233.</p>" in answer["hint"]
    assert "<p>They are 1234.</p>" in answer["reveal"]
    assert "1233" not in html
    assert html.count("1234") == 1, "in the text of the step, not in the question"
    assert "parameters()" not in html, "a claim is not for readers"


def test_a_lesson_about_any_decoder_says_that_a_small_model_stands_in_where_there_is_no_other():
    said = "Until one is, it goes on with ladder-2"
    lesson = parse_lesson(
        LESSON.replace("model: ladder-2", "model: ladder-2\nany_decoder: yes"), "own"
    )
    for one, is_said in ((lesson, True), (replace(lesson, any_decoder=False), False)):
        words = [
            piece.body
            for piece in lesson_content(one, {"parameters": lambda: 1}, blank).pieces_of(PlainText)
        ]
        assert any(said in text for text in words) == is_said


@pytest.mark.parametrize("hostile", HOSTILE)
def test_the_text_of_a_lesson_is_never_markup(hostile: str):
    question = Question(hostile, "choice", "'b'", (hostile, "b"), hint=hostile, reveal=hostile)
    step = LessonStep(
        hostile, hostile, PageState("positions", {"prompt": hostile}, hostile), (question,)
    )
    html = as_html(
        lesson_content(Lesson("own", hostile, hostile, (step,), based_on=(hostile,)), {}, blank)
    )
    assert "<img src=x" not in html
    assert html.count("<script") == html.count("</script>") == 1, "what checks the answers"
    assert 'href="javascript' not in html
    assert escape(hostile[:20]) in html


def test_the_command_writes_one_file_that_loads_nothing(
    home: Path, tmp_path: Path, capsys: Capture
):
    own_folder().mkdir()
    (own_folder() / "own.md").write_text(LESSON, encoding="utf-8")
    (own_folder() / "broken.md").write_text("no lesson", encoding="utf-8")
    out = tmp_path / "lesson.html"
    said = answered(capsys, "export", "lesson:own", "--out", out)
    assert said == {"lesson": "own", "path": str(out), "bytes": out.stat().st_size}
    content = out.read_text(encoding="utf-8")
    assert (
        f"<p>It has {sum(one.numel() for one in gptviz.load('ladder-2').model.parameters())} "
        "numbers.</p>" in content
    )
    assert "newPlot" in content  # the figures of the page Positions
    assert not re.findall(
        r"""<(?:script|link|img|iframe)[^>]*(?:src|href)=["']?(?!data:)[^"'> ]""", content
    )
    for name, said in (
        ("missing", "there is no lesson 'missing'"),
        ("broken", "between two lines"),
    ):
        assert said in error(capsys, "lessons", "export", name, "--out", tmp_path / "x.html")
    assert main(["lessons", "export"]) == 2
    assert not (tmp_path / "x.html").exists()


def test_the_package_for_course_sites_has_the_very_file_and_a_manifest_that_names_it(
    home: Path, tmp_path: Path, capsys: Capture
):
    own_folder().mkdir()
    text = LESSON.replace("title: A title", 'title: "A <b>title</b> & \\x07more"')
    (own_folder() / "own.md").write_text(text.replace("open: positions", "open: home"), "utf-8")
    out = tmp_path / "lesson.zip"
    said = answered(capsys, "export", "lesson:own", "--format", "scorm", "--out", out)
    assert said == {"lesson": "own", "path": str(out), "bytes": out.stat().st_size}
    with zipfile.ZipFile(out) as archive:
        assert archive.namelist() == ["imsmanifest.xml", "index.html"]
        manifest = ElementTree.fromstring(archive.read("imsmanifest.xml"))
        html = archive.read("index.html").decode("utf-8")
    assert 'data-lesson="own"' in html
    assert "<p>It has " in html
    names = {"": PACKAGING}
    resource = manifest.find("resources/resource", names)
    item = manifest.find("organizations/organization/item", names)
    assert resource is not None
    assert item is not None
    assert resource.get(f"{{{SCORM}}}scormtype") == "sco"
    assert item.get("identifierref") == resource.get("identifier")
    assert resource.get("href") == "index.html"
    assert item.findtext("title", "", names) == "A <b>title</b> & more"
    organizations = manifest.find("organizations", names)
    assert organizations is not None
    assert organizations.get("default") == organizations[0].get("identifier")
    assert manifest.findtext("metadata/schemaversion", "", names) == "1.2"
    for name, form in (("lesson:own", "gguf"), ("shakespeare", "scorm")):
        why = error(capsys, "export", name, "--format", form, "--out", tmp_path / "x.zip")
        assert form in why or "lesson:NAME" in why
    assert not (tmp_path / "x.zip").exists()


def test_the_same_lesson_gives_the_same_package():
    content = lesson_content(parse_lesson(LESSON, "own"), {"parameters": lambda: 1}, blank)
    assert scorm_package(content, "file") == scorm_package(content, "file")


def test_in_a_file_a_guess_is_a_token_that_is_typed():
    guess = Question("?", "guess", "'be'", prompt="To be, **or** not to")
    lesson = Lesson("own", "x", "x", (LessonStep("x", "", questions=(guess,)),))
    content = lesson_content(lesson, {"first_token": lambda prompt, text: f"␣{text}"}, blank)
    (asked,) = list(content.pieces_of(AskedQuestion))
    assert (asked.kind, asked.value, asked.words) == ("token", " be", "“␣be”")
    assert "<code>To be, **or** not to▁" in as_html(content), "and its text is no markup"
