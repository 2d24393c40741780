"""The lessons there are: each file is read once, and again when it has changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gptviz.lessons import library as module
from gptviz.lessons.library import SHIPPED, library

LESSON = "---\ntitle: {title}\nabout: About it.\n---\n\n## A step\n\nA text.\n"


def test_a_file_is_read_again_when_it_has_changed_and_not_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    file = tmp_path / "mine.md"
    original = module.read_lesson
    monkeypatch.setattr(module, "read_lesson", lambda path: read.append(path) or original(path))
    file.write_text(LESSON.format(title="One"))
    assert [library(tmp_path).lessons["mine"].title for _ in range(3)] == ["One"] * 3
    assert read == [file]
    file.write_text(LESSON.format(title="Two"))
    os.utime(file, ns=(1, 1))
    assert library(tmp_path).lessons["mine"].title == "Two"
    file.write_text("no lesson")
    assert "mine.md" in library(tmp_path).faults
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.md")).write_text("no lesson")
    assert r"\xff.md" in library(tmp_path).faults
    file.unlink()
    assert not library(tmp_path).lessons
    assert len(library(SHIPPED).lessons) > 1
