"""The gallery: what files share is written once, every link leads to a file, and nothing of others
is replaced.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from gptviz.takehome import gallery
from gptviz.takehome.gallery import Exhibit, write_gallery
from gptviz.takehome.page import Figure, Heading, PageContent, PlainText, SavedView
from tests.browser.machinery import HOSTILE
from tests.command_line import Capture, error, printed


def exhibit(name: str, *pieces: Figure | SavedView | PlainText, title: str = "A title") -> Exhibit:
    content = PageContent(name, {}, (Heading(title, 1, plain=True), *pieces))
    return Exhibit(name, name, "Pages", title, title, lambda: content)


FIGURE = Figure('{"data": [], "layout": {}}', "a figure")
VIEW = SavedView("token_strip", b"data of its own")
SHOWN = [exhibit("a", FIGURE, VIEW), exhibit("b", VIEW), exhibit("c", PlainText("only text"))]


def test_scripts_are_there_once_and_each_file_asks_for_those_it_needs(tmp_path: Path) -> None:
    assert [one.name for one in write_gallery(tmp_path, SHOWN, thumbnails=False)] == ["a", "b", "c"]
    asked = {
        name: re.findall(r'<script src="([^"]+)"', (tmp_path / f"{name}.html").read_text())
        for name in "abc"
    }
    assert asked == {
        "a": ["shared/token_strip.js", "shared/plotly.js"],
        "b": ["shared/token_strip.js"],
        "c": [],
    }
    assert sorted(file.name for file in (tmp_path / "shared").iterdir()) == [
        "plotly.js",
        "token_strip.js",
    ]
    assert all(file.stat().st_size < 30_000 for file in tmp_path.glob("*.html"))
    script = (tmp_path / "shared" / "token_strip.js").read_text(encoding="utf-8")
    assert all(f'["{kind}-token_strip"]' in script for kind in ("script", "style"))


def test_the_list_leads_to_every_file_and_asks_for_nothing_else(tmp_path: Path) -> None:
    list(write_gallery(tmp_path, SHOWN, thumbnails=False))
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'<a href="([^"]+)"', index) == ["a.html", "b.html", "c.html"]
    assert re.findall(r'(?:src|href)="(?!data:)([^"]+)"', index) == ["a.html", "b.html", "c.html"]


def test_a_gallery_is_written_again_and_a_folder_of_others_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    list(write_gallery(mine, SHOWN, thumbnails=False))
    list(write_gallery(mine, [exhibit("a", title="Another title")], thumbnails=False))
    assert "Another title" in (mine / "a.html").read_text(encoding="utf-8")
    (tmp_path / "index.html").write_text("theirs")
    with pytest.raises(ValueError, match="has other files in it: name a new folder"):
        list(write_gallery(tmp_path, SHOWN, thumbnails=False))
    assert (tmp_path / "index.html").read_text() == "theirs"


def test_without_a_browser_there_are_no_pictures_and_nothing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gallery, "BROWSERS", ("no such browser",))
    list(write_gallery(tmp_path, SHOWN))
    assert "<img" not in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_each_picture_is_told_and_what_has_none_is_shown_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: list[str], **how: object) -> None:
        if command[-1].endswith("/b.html"):
            raise subprocess.TimeoutExpired(command, 1)
        picture = next(
            one.removeprefix("--screenshot=") for one in command if one.startswith("--screenshot=")
        )
        Image.new("RGB", gallery.WINDOW, "red").save(picture)

    monkeypatch.setattr(gallery, "browser", lambda: "a browser")
    monkeypatch.setattr(gallery.subprocess, "run", run)
    assert [one.name for one in write_gallery(tmp_path, SHOWN)] == [*"abc", *"abc"]
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'<img src="([^"]+)"', index) == ["thumbnails/a.webp", "thumbnails/c.webp"]
    assert Image.open(tmp_path / "thumbnails" / "a.webp").size == gallery.THUMBNAIL


@pytest.mark.parametrize("hostile", HOSTILE)
def test_text_stays_text(hostile: str, tmp_path: Path) -> None:
    list(write_gallery(tmp_path, [exhibit("a", title=hostile)], thumbnails=False))
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "<img src=x" not in index
    assert "<script" not in index


def test_the_command_writes_what_is_asked_for(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "new" / "gallery"
    asked = ["gallery", "--out", str(out), "--without-thumbnails", "--json"]
    said = json.loads(printed(capsys, *asked, "--only", "positions")[0])
    assert said["files"] == ["positions.html", "positions-2.html"]
    assert not (out / "try.html").exists()
    assert said["bytes"] == sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    assert "there is no lesson and no page 'position': did you mean 'positions'?" in error(
        capsys, *asked, "--only", "position"
    )
