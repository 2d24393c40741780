"""The catalogues of gettext: `python -m tests.languages` counts what is untranslated and names what
is wrong; with `update` it brings all catalogues up to date.

Babel finds the texts: those of the code where they are translated, the records of pages, the
glossary, and of each lesson that ships its texts. A translator writes in the files `*.po`, with any
program for them; gettext reads the files `*.mo`, which `update` makes of them. Its second argument,
such as `fr`, begins a language.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from gptviz import languages
from gptviz.lessons.lesson import read_lesson
from gptviz.lessons.library import SHIPPED
from gptviz.lessons.translation import LATE, texts_of, why_not
from gptviz.ui.menu import PAGES
from gptviz.ui.widgets.words import MEANINGS

ROOT = Path(__file__).resolve().parents[1]
TERMS = ROOT / "docs" / "terms.md"
# Files that change only where their texts do.
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
# The functions that translate a text, by the language of the code, and its files.
CALLS = {"python": ("**.py", "translate", "say"), "javascript": ("takehome/**.js", "inWords")}


def own_texts() -> list[str]:
    """The texts of gptviz itself, each once, in the order in which a translator reads them best."""
    texts = [text for meaning in MEANINGS.items() for text in meaning]
    for page in PAGES.values():
        for text in (page.title, page.question, page.caption, page.sentence):
            texts += [text] if isinstance(text, str) else text.values()
    for code, (files, *functions) in CALLS.items():
        keywords = dict.fromkeys(functions)
        found = extract_from_dir(ROOT / "gptviz", [(files, code)], keywords=keywords)
        texts += [str(text) for _, _, text, *_ in found]
    return list(dict.fromkeys([*texts, LATE]))


def catalogues(more: str = "") -> Iterator[tuple[Path, str, list[str]]]:
    """Every catalogue that there is or, of a language that begins, will be: its file without the
    ending, its language, and its texts.
    """
    lessons = {file: texts_of(read_lesson(file)) for file in sorted(SHIPPED.glob("*.md"))}
    texts = own_texts()
    for language in sorted({*languages.languages(), *([more] if more else [])}):
        yield languages.FOLDER / language / "LC_MESSAGES" / languages.DOMAIN, language, texts
        for file, of_lesson in lessons.items():
            yield file.with_name(f"{file.stem}.{language}"), language, of_lesson


def read(path: Path, language: str) -> Catalog:
    """The catalogue in a file `.po`; an empty one where there is none."""
    file = Path(f"{path}.po")
    content = file.read_bytes() if file.is_file() else b""
    return read_po(io.BytesIO(content), locale=language, ignore_obsolete=True)


def renewed(path: Path, language: str, texts: list[str]) -> Catalog:
    """The catalogue with just these texts, as far as they are translated."""
    before = read(path, language)
    catalogue = Catalog(
        language,
        header_comment=f"# The texts of gptviz in another language: {language}.",
        project="gptviz",
        version="1",
        last_translator="the authors of gptviz",
        language_team=language,
        creation_date=MOMENT,
        revision_date=MOMENT,
        fuzzy=False,
    )
    for text in texts:
        found = before.get(text)
        flags = found.flags if found else ()
        # a text with “95 % o…” is no format of Python's
        added = catalogue.add(text, found.string if found else "", flags=flags)
        added.flags.discard("python-format")
    return catalogue


def written(catalogue: Catalog) -> dict[str, bytes]:
    """The two files of a catalogue, by their endings."""
    po, mo = io.BytesIO(), io.BytesIO()
    write_po(po, catalogue, width=120)
    write_mo(mo, catalogue)
    return {".po": po.getvalue(), ".mo": mo.getvalue()}


def untranslated(catalogue: Catalog) -> list[str]:
    """The texts that a catalogue lacks."""
    return [str(one.id) for one in catalogue if one.id and (not one.string or one.fuzzy)]


def faults(catalogue: Catalog) -> list[str]:
    """What is wrong with translations of a catalogue, in sentences."""
    found = []
    for message, errors in catalogue.check():
        found += [f"{message.id:.60}: {error}" for error in errors]
    for one in catalogue:
        if one.id and one.string and (why := why_not(str(one.id), str(one.string))):
            found.append(f"{one.id:.60}: {why}")
        places = [sorted(re.findall(r"(?<!\{)\{\w+\}", str(text))) for text in (one.id, one.string)]
        if one.id and one.string and places[0] != places[1]:
            found.append(f"{one.id:.60}: {places[0]} became {places[1]}")
    return found


def terms() -> str:
    """The table of the field's words in all languages, as Markdown."""
    names = languages.languages()
    rows = [
        f"| {word} | {' | '.join(languages.translate(word, name) for name in names)} |"
        for word in sorted(MEANINGS, key=str.lower)
    ]
    heading = f"| en | {' | '.join(names)} |\n|{'---|' * (1 + len(names))}"
    about = (
        "The words of the field as the glossary and the lessons have them. Where teachers use the "
        "English word, it stands here too. `make words` writes this table from the catalogues."
    )
    return "\n".join(["# The words in other languages", "", about, "", heading, *rows, ""])


def update(more: str = "") -> None:
    """Write all catalogues anew, and the table of words."""
    for path, language, texts in catalogues(more):
        before = read(path, language)
        if not before and language != more and path.parent == SHIPPED:
            continue  # a lesson that nobody has begun to translate
        path.parent.mkdir(parents=True, exist_ok=True)
        for ending, content in written(renewed(path, language, texts)).items():
            Path(f"{path}{ending}").write_bytes(content)
    TERMS.write_text(terms(), encoding="utf-8")


def counted() -> Iterator[str]:
    """How much is translated into each language, in lines."""
    for name in languages.languages():
        lines = []
        for path, language, texts in catalogues():
            if language == name:
                lacks = len(untranslated(renewed(path, language, texts)))
                lines.append((path.name, lacks, len(texts)))
        own, *lessons = lines
        whole = [lesson for lesson in lessons if not lesson[1]]
        late = [f"{lesson} lacks {lacks}" for lesson, lacks, n in lessons if 0 < lacks < n]
        yield ", ".join(
            [
                f"{name}: {own[1]} of {own[2]} texts of pages and words untranslated",
                f"{len(whole)} of {len(lessons)} lessons whole",
                *late,
            ]
        )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["update", *language]:
            update(*language)
        case _:
            wrong = [
                f"{path.name}: {fault}"
                for path, language, texts in catalogues()
                for fault in faults(renewed(path, language, texts))
            ]
            print("\n".join([*counted(), *wrong]))
            sys.exit(bool(wrong))
