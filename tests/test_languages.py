"""The languages: catalogues that are current and say what the English says, and the language that a
reader asks for.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gptviz import languages
from gptviz.machine.hosting import variable
from gptviz.takehome.page_file import SAID
from tests import languages as tool
from tests.app.opening import opened

ROOT = Path(__file__).resolve().parents[1]
THERE = [
    pytest.param(path, language, texts, id=path.name if "." in path.name else language)
    for path, language, texts in tool.catalogues()
    if Path(f"{path}.po").is_file()
]


@pytest.mark.parametrize(("path", "language", "texts"), THERE)
def test_a_catalogue_is_current_and_its_translations_keep_what_is_computed(
    path: Path, language: str, texts: list[str]
) -> None:
    catalogue = tool.renewed(path, language, texts)
    for ending, content in tool.written(catalogue).items():
        assert Path(f"{path}{ending}").read_bytes() == content, "make words"
    assert tool.faults(catalogue) == []


def test_no_catalogue_is_of_a_lesson_that_is_gone() -> None:
    known = {f"{path.name}.po" for path, *_ in tool.catalogues()}
    assert {file.name for file in tool.SHIPPED.glob("*.po")} <= known
    assert {file.with_suffix(".mo") for file in tool.SHIPPED.glob("*.po")} == set(
        tool.SHIPPED.glob("*.mo")
    )


@pytest.mark.parametrize("language", ["de", "es"])
def test_pages_words_and_the_frame_of_a_file_are_whole(language: str) -> None:
    (found,) = [
        tool.renewed(path, name, texts)
        for path, name, texts in tool.catalogues()
        if name == language and path.name == languages.DOMAIN
    ]
    assert tool.untranslated(found) == []


def test_what_is_found_is_all_that_is_translated() -> None:
    """By another way than Babel's: the scripts' own texts are among those found."""
    texts = tool.own_texts()
    said = {
        text
        for file in (ROOT / "gptviz" / "takehome").glob("*.js")
        for text in SAID.findall(file.read_text(encoding="utf-8"))
    }
    assert len(said) >= 5
    assert said <= set(texts)
    assert {"What does each head look at?", "Question.", "residual stream"} <= set(texts)
    assert len(texts) == len(set(texts))


def test_the_table_of_words_is_what_the_catalogues_say() -> None:
    table = tool.TERMS.read_text(encoding="utf-8")
    assert table == tool.terms()
    assert table.count("\n| ") > 60


def test_faults_of_a_translation_are_named() -> None:
    catalogue = tool.Catalog("es")
    catalogue.add("It has {{ parameters() }} numbers.", "Tiene {{ 3 }} números.")
    catalogue.add("See `code`.", "Mira `otro`.")
    catalogue.add("By {version}.", "Por {versión}.")
    catalogue.add("Right {{ 1 }}.", "Bien {{ 1 }}.")
    assert len(tool.faults(catalogue)) == 3
    assert tool.untranslated(tool.Catalog("es")) == []


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ([], "en"),
        ([None, "", "es-MX"], "es"),
        (["de", "es"], "de"),
        (["fr", "es_ES"], "es"),
        (["en-GB", "es"], "en"),
        (["../../es", "<b>", "español"], "en"),
    ],
)
def test_the_first_language_that_is_there_is_shown(
    monkeypatch: pytest.MonkeyPatch, asked: list[str | None], shown: str
) -> None:
    monkeypatch.setattr(languages, "_asked", lambda: asked)
    assert languages.language() == shown


def test_the_address_comes_before_the_server_and_links_carry_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable("language"), "de")
    at = opened("pages/attention.py", model="ladder-2")
    assert at.title[0].value == "Worauf schaut jeder Head?"
    at = opened("pages/attention.py", model="ladder-2", lang="es")
    assert at.title[0].value == "¿A qué mira cada cabeza?"
    assert any("**query** (consulta): Lo que busca" in text.value for text in at.markdown)
    assert "lang=es" in str([element.proto for element in at.get("page_link")])
    monkeypatch.delenv(variable("language"))
    at = opened("pages/attention.py", model="ladder-2", lang="xx")
    assert at.title[0].value == "What does each head look at?"
