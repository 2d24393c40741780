"""Pictures of a lesson: what its folder has goes with the lesson; what does not is named with its
line.
"""

from __future__ import annotations

import io
import re
from base64 import b64decode
from pathlib import Path

import pytest
from PIL import Image

from gptviz.lessons import pictures
from gptviz.lessons.checking import problems
from gptviz.lessons.library import library
from gptviz.takehome.lesson_file import lesson_content
from gptviz.takehome.page_file import as_html

ASKED = (
    "```question\nask: How many? ![asked](<my {kind}>)\nkind: number\nanswer: 1 + 1\nhint: "
    "'![hint]({kind})'\n```"
)
LESSON = (
    "---\ntitle: A title\nabout: A sentence.\nmodel: ladder-2\n---\n## "
    f"One\nLook:\n\n![seen]({{kind}})\n\n{ASKED}\n"
)
# Pictures that a lesson does not take along.
OTHERS = (
    "gone.png",
    "../out.png",
    "link.png",
    "a.svg",
    "https://example.org/a.png",
    "a%00.png",
    "big.png",
)


def picture(path: Path) -> None:
    Image.new("RGB", (6, 3), "red").save(path)


def check(folder: Path, content: str) -> list[tuple[int | None, str]]:
    """The lines and the problems of a lesson."""
    (folder / "mine.md").write_text(content, "utf-8")
    return [
        (one.line, one.problem) for one in problems(library(folder), lambda _: {}, lambda _: [])
    ]


@pytest.mark.parametrize("kind", ["png", "jpg", "gif", "webp"])
def test_the_pictures_of_its_folder_are_in_the_file_of_a_lesson(tmp_path: Path, kind: str) -> None:
    for name in (f"a.{kind}", f"my a.{kind}"):
        picture(tmp_path / name)
    assert check(tmp_path, LESSON.format(kind=f"a.{kind}")) == []
    html = as_html(lesson_content(library(tmp_path).lessons["mine"], {}))
    # The hint is packed, so that nobody reads it by accident.
    sources = re.findall(r'<img src="data:image/\w+;base64,([^"]+)" alt="(seen|asked)"', html)
    assert [alt for _, alt in sources] == ["seen", "asked"]
    assert [Image.open(io.BytesIO(b64decode(data))).size for data, _ in sources] == [(6, 3)] * 2


@pytest.mark.parametrize("source", OTHERS)
def test_a_picture_that_does_not_go_with_the_lesson_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.setattr(pictures, "MOST_BYTES", 500)
    folder = tmp_path / "lessons"
    folder.mkdir()
    picture(tmp_path / "out.png")
    (folder / "link.png").symlink_to(tmp_path / "out.png")
    (folder / "a.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (folder / "big.png").write_bytes(bytes(501))
    front = LESSON.partition("Look")[0]
    ((line, problem),) = check(folder, f"{front}Look:\n\n![a picture]({source})\n")
    assert line == 9
    assert f"{source!r}" in problem
    assert "PNG, JPEG, GIF or WebP" in problem


def test_what_only_looks_like_a_picture_is_none(tmp_path: Path) -> None:
    assert (
        check(
            tmp_path,
            LESSON.partition("Look")[0]
            + "Write `![name](file.png)`.\n\n```\n![name](file.png)\n```\n",
        )
        == []
    )
