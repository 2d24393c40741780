"""A lesson in another language has the texts of its catalogue, and nothing else of it."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo

from gptviz.lessons.answering import answer_to
from gptviz.lessons.lesson import Lesson
from gptviz.lessons.library import library, own_folder
from gptviz.lessons.translation import LATE, texts_of
from gptviz.takehome.lesson_file import lesson_content
from gptviz.takehome.page import PageContent
from gptviz.takehome.page_file import as_html
from tests.browser.machinery import HOSTILE
from tests.command_line import Capture, answered

LESSON = """---
title: A title
about: A sentence.
---
## The first

It has {{ parameters() }} numbers,
in `code`, [here](https://example.org/a).

A second paragraph.

```question
ask: Which one?
kind: choice
answer: "'second'"
options: [first, second, "3"]
reveal: It was {{ parameters() }}.
```

```page
open: attention
look_at: A bar.
claim: parameters() > 2
```
"""
WORDS = {
    "A title": "Un título",
    "A sentence.": "Una frase.",
    "The first": "El primero",
    "It has {{ parameters() }} numbers, in `code`, [here](https://example.org/a).": (
        "En `code` tiene {{ parameters() }} números, [aquí](https://example.org/a)."
    ),
    "A second paragraph.": "Un segundo párrafo.",
    "Which one?": "¿Cuál?",
    "first": "primero",
    "second": "segundo",
    "It was {{ parameters() }}.": "Eran {{ parameters() }}.",
    "A bar.": "Una barra.",
}
FUNCTIONS = {"parameters": lambda: 1234}


def catalogue(words: dict[str, str], language: str = "es") -> bytes:
    found = Catalog(language, fuzzy=False)
    for text, translated in words.items():
        found.add(text, translated)
    content = io.BytesIO()
    write_mo(content, found)
    return content.getvalue()


def read(folder: Path, content: bytes, language: str = "es") -> Lesson:
    """The lesson with one catalogue beside it."""
    (folder / "own.md").write_text(LESSON, encoding="utf-8")
    (folder / f"own.{language}.mo").write_bytes(content)
    return library(folder).in_language([language]).lessons["own"]


def file_of(lesson: Lesson) -> str:
    def blank(name: str, query: dict[str, str]) -> PageContent:
        return PageContent(name, query, ())

    return as_html(lesson_content(lesson, FUNCTIONS, blank))


def test_all_texts_are_translated_and_what_the_model_computes_is_the_same(tmp_path: Path) -> None:
    lesson = read(tmp_path, catalogue(WORDS))
    english = library(tmp_path).lessons["own"]
    assert set(texts_of(english)) == set(WORDS), "“3” is the same in all languages"
    assert (lesson.title, lesson.language, lesson.missing) == ("Un título", "es", 0)
    assert lesson.steps[0].text.split("\n\n")[1] == "Un segundo párrafo."
    assert lesson.steps[0].claims == english.steps[0].claims
    question = lesson.steps[0].questions[0]
    assert question.options == ("first", "second", "3")
    answer = answer_to(question, FUNCTIONS)
    assert (answer.value, answer.in_words) == ("second", "“segundo”")
    html = file_of(lesson)
    assert '<html lang="es" dir="ltr"' in html
    assert "tiene 1234 números" in html
    assert 'value="second"> segundo</label>' in html
    assert "<button>Comprobar</button>" in html
    assert '<section class="page" lang="en" dir="ltr"' in html
    assert "ntalo otra vez" in html  # what the script says
    assert "lags behind" not in html


@pytest.mark.parametrize(
    ("text", "translated"),
    [
        (None, ""),
        ("It was {{ parameters() }}.", "Eran {{ 1 }}."),
        ("It was {{ parameters() }}.", "Eran."),
        ("A bar.", "Una barra {{ parameters() }}."),
        ("A second paragraph.", "Un `segundo` párrafo."),
        ("A second paragraph.", "![Un segundo](https://example.org/x.png)"),
    ],
)
def test_what_a_catalogue_lacks_or_would_compute_anew_is_english_and_said(
    tmp_path: Path, text: str | None, translated: str
) -> None:
    words = {key: word for key, word in WORDS.items() if key != "A bar."}
    words |= {} if text is None else {"A bar.": "Una barra.", text: translated}
    lesson = read(tmp_path, catalogue(words))
    assert lesson.missing == 1
    lacked = text or "A bar."
    assert lacked in str(lesson), "in English"
    html = file_of(lesson)
    assert "va por detrás de su lección" in html
    assert LATE not in html


def test_a_changed_paragraph_is_english_until_it_is_translated_anew(tmp_path: Path) -> None:
    (tmp_path / "own.es.mo").write_bytes(catalogue(WORDS))
    changed = LESSON.replace("A second paragraph.", "Another paragraph.").replace(
        "numbers,\nin", "numbers, in"
    )
    (tmp_path / "own.md").write_text(changed, encoding="utf-8")
    lesson = library(tmp_path).in_language(["es"]).lessons["own"]
    assert lesson.missing == 1, "a line that is broken elsewhere is the same text"
    assert lesson.steps[0].text.endswith("\n\nAnother paragraph.")


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_translation_is_never_markup(tmp_path: Path, hostile: str) -> None:
    lesson = read(tmp_path, catalogue(dict.fromkeys(WORDS, hostile)))
    html = file_of(lesson)
    assert "<img src=x" not in html
    assert html.count("<script") == html.count("</script>") == 2, "words, and what checks answers"
    assert 'href="javascript' not in html


@pytest.mark.parametrize(
    "content", [b"", b"no catalogue", catalogue(WORDS)[:200], b"\xde\x12\x04\x95" + b"\xff" * 40]
)
def test_a_damaged_catalogue_is_none(tmp_path: Path, content: bytes) -> None:
    assert read(tmp_path, content).language == "en"


def test_the_first_language_that_is_there_is_taken_and_english_is_always_there(
    tmp_path: Path,
) -> None:
    read(tmp_path, catalogue(WORDS))
    known = library(tmp_path)
    for asked, language in (
        (["fr", "es"], "es"),
        (["en", "es"], "en"),
        (["fr"], "en"),
        ([], "en"),
    ):
        assert known.in_language(asked).lessons["own"].language == language


def test_the_command_writes_a_lesson_in_a_language(
    home: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPTVIZ_LANGUAGE", "")  # put back what the command sets
    own_folder().mkdir()
    text = LESSON.replace("parameters()", "tokens('a')").replace("open: attention", "open: home")
    (own_folder() / "own.md").write_text(re.sub("claim.*\n", "", text), encoding="utf-8")
    words = {"A title": "Un título"}
    (own_folder() / "own.es.mo").write_bytes(catalogue(words))
    out = tmp_path / "lesson.html"
    answered(capsys, "export", "lesson:own", "--language", "es", "--out", out)
    html = out.read_text(encoding="utf-8")
    assert "<h1>Un título</h1>" in html
    assert "¿Cómo predice un transformer" in html, "the title of the page in it"
