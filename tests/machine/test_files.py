"""Files replaced as a whole: whatever ends a process, the last good one stays, and what it left is
removed once it is gone.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gptviz.machine.files import in_place_of, replacement_path, swap, sweep
from gptviz.text import Corpus
from gptviz.text.datasets.corpora import recall, remember
from tests.processes import running


@contextmanager
def writing(code: str) -> Iterator[Any]:
    """A process that runs `code` up to a point where it has printed "there" and waits."""
    with running(
        ["-c", f"import sys\nfrom pathlib import Path\nfrom gptviz.machine.files import *\n{code}"],
        stdin=-1,
    ) as process:
        assert process.stdout.readline() == "there\n", process.stderr and process.stderr.read()
        yield process


WAIT = "print('there', flush=True); sys.stdin.read()"


def test_what_a_living_process_writes_stays_and_what_a_killed_one_left_goes(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("good")
    code = f"with in_place_of(Path({str(path)!r})) as fresh:\n    fresh.write_text('half')\n"
    # safetensors writes to a file of its own next to the one that it is given, and renames it.
    code += f"    fresh.with_name('.tmpAbCdEf').write_text('half')\n    {WAIT}"
    with writing(code) as process:
        during = sorted(os.listdir(tmp_path))
        assert len(during) == 3
        sweep(tmp_path)
        with in_place_of(tmp_path / "another.txt") as fresh:
            fresh.write_text("whole")
        assert sorted(os.listdir(tmp_path)) == sorted([*during, "another.txt"])
        process.kill()
        process.wait()
        assert path.read_text() == "good"
        sweep(tmp_path)
        assert sorted(os.listdir(tmp_path)) == ["another.txt", "file.txt"]
    assert path.read_text() == "good"


def test_writing_removes_what_a_killed_process_left_in_the_same_folder(tmp_path: Path) -> None:
    code = (
        f"with in_place_of(Path({str(tmp_path / 'file.txt')!r})) as fresh:\n    "
        f"fresh.write_text('half')\n    {WAIT}"
    )
    with writing(code) as process:
        process.kill()
        process.wait()
    with in_place_of(tmp_path / "file.txt") as fresh:
        fresh.write_text("whole")
    assert os.listdir(tmp_path) == ["file.txt"]


@pytest.mark.parametrize(
    "moment", ["before the old folder was moved aside", "between the renames", "after them"]
)
def test_a_process_killed_while_it_replaces_a_folder_leaves_the_old_one_or_the_new_one(
    tmp_path: Path, moment: str
) -> None:
    folder = tmp_path / "model.v1"
    folder.mkdir()
    (folder / "weights").write_text("old")
    steps = {
        "before the old folder was moved aside": WAIT,
        "between the renames": f"folder.rename(fresh.with_suffix('.old')); {WAIT}",
        "after them": f"swap(fresh, folder); {WAIT}",
    }
    code = (
        f"folder = Path({str(folder)!r})\nwith replacement_path(folder) as fresh:\n    "
        "fresh.mkdir()\n"
    )
    code += f"    (fresh / 'weights').write_text('new')\n    {steps[moment]}"
    with writing(code) as process:
        process.kill()
        process.wait()
    sweep(tmp_path)
    assert os.listdir(tmp_path) == ["model.v1"]
    assert (folder / "weights").read_text() == ("new" if moment == "after them" else "old")


def test_a_folder_is_replaced_as_a_whole_and_nothing_is_left(tmp_path: Path) -> None:
    for content in ("first", "second"):
        with replacement_path(tmp_path / "model") as fresh:
            fresh.mkdir()
            (fresh / content).touch()
            swap(fresh, tmp_path / "model")
        assert os.listdir(tmp_path) == ["model"]
        assert os.listdir(tmp_path / "model") == [content]


def test_a_folder_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    with (
        pytest.raises(OSError, match="there is no folder"),
        in_place_of(tmp_path / "gone/file.txt") as fresh,
    ):
        fresh.write_text("x")
    assert os.listdir(tmp_path) == []


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    names = [
        ".notes.lock",
        ".file-12345678.new",
        ".file-12345678.old",
        "file-12345678.lock",
        ".a-1234567g.lock",
        ".b.new",
    ]
    for name in names:
        (tmp_path / name).touch()
    sweep(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted(names)


def test_a_full_disk_leaves_nothing_of_a_text_however_often_it_is_tried(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = Corpus("mine", "to be or not to be" * 100)
    write = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        write(path, data[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        for _ in range(3):
            with pytest.raises(OSError, match="No space left"):
                remember(corpus)
    assert os.listdir(home / "corpora") == []
    remember(corpus)
    assert recall("mine", corpus.sha256).text == corpus.text
