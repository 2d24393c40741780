"""Names and notes of the reader's own: kept with the model, one file at a time and as a whole, and
never lost because a file is damaged.
"""

from __future__ import annotations

import json
from pathlib import Path
from threading import Thread

import pytest

from gptviz.machine.hosting import NotAllowedError
from gptviz.runs import checkpoints, manage
from gptviz.runs.notes import Note, NotesError, read_notes, write_note
from tests.tiny import TinyModel

HEAD = "blocks.1.attention.head.3"
MLP = "blocks.0.mlp"


def test_a_name_and_a_note_are_kept_and_each_is_changed_alone(home: Path) -> None:
    folder = checkpoints.find("sentences")
    assert read_notes(folder) == {}
    write_note(folder, HEAD, name="copies")
    write_note(folder, MLP, note="two\nlines")
    assert write_note(folder, HEAD, note="why") == Note("copies", "why")
    assert read_notes(folder) == {HEAD: Note("copies", "why"), MLP: Note("", "two\nlines")}
    assert write_note(folder, HEAD, name="") == Note("", "why")
    write_note(folder, HEAD, note="  ")
    assert read_notes(folder) == {MLP: Note("", "two\nlines")}
    # beside the models that ship nothing is written
    assert not (folder / checkpoints.NOTES).exists()
    assert list(json.loads((home / "notes" / "sentences.json").read_text())) == [MLP]


def test_a_name_is_one_line_of_signs_that_can_be_seen(home: Path) -> None:
    folder = checkpoints.find("sentences")
    assert write_note(folder, HEAD, name=" a\n b\u202e\x07 ").name == "a b"


@pytest.mark.parametrize(("name", "longest"), [("name", 60), ("note", 4_000)])
def test_what_is_too_long_is_refused_and_what_was_there_stays(
    home: Path, name: str, longest: int
) -> None:
    folder = checkpoints.find("sentences")
    write_note(folder, HEAD, **{name: "x" * longest})
    with pytest.raises(NotesError, match=f"at most {longest:,} characters"):
        write_note(folder, HEAD, **{name: "y" * (longest + 1)})
    assert getattr(read_notes(folder)[HEAD], name) == "x" * longest


def test_notes_go_with_a_model_that_is_renamed_deleted_and_brought_back(
    tiny_model: TinyModel,
) -> None:
    write_note(tiny_model("old"), MLP, name="mine")
    manage.rename("old", "new")
    assert read_notes(checkpoints.find("new")) == {MLP: Note("mine")}
    token = manage.delete("new")
    tiny_model("new", seed=1)
    assert read_notes(checkpoints.find("new")) == {}
    assert manage.undelete(token) == "new-2"
    assert read_notes(checkpoints.find("new-2")) == {MLP: Note("mine")}


def test_a_model_of_ones_own_does_not_have_the_notes_of_the_one_that_it_hides(
    tiny_model: TinyModel,
) -> None:
    write_note(checkpoints.find("sentences"), MLP, name="theirs")
    assert read_notes(tiny_model("sentences")) == {}
    # and one with notes can be replaced
    write_note(checkpoints.find("sentences"), MLP, name="mine")
    assert checkpoints.destination("sentences") == checkpoints.find("sentences")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"blocks.0.mlp": "x"}',
        '{"blocks.0.mlp": {"name": 1, "note": ""}}',
        json.dumps({MLP: {"name": "x" * 61, "note": ""}}),
        json.dumps({str(i): {"name": "x", "note": ""} for i in range(1_001)}),
    ],
)
def test_a_damaged_file_is_named_and_stays_as_it_is(home: Path, content: str) -> None:
    folder = checkpoints.find("sentences")
    write_note(folder, HEAD, name="copies")
    file = home / "notes" / "sentences.json"
    file.write_text(content)
    with pytest.raises(NotesError, match=r"sentences\.json cannot be read"):
        read_notes(folder)
    with pytest.raises(NotesError, match=r"nothing is written there: repair the file"):
        write_note(folder, HEAD, name="another")
    assert file.read_text() == content


def test_there_are_at_most_a_thousand(home: Path) -> None:
    folder = checkpoints.find("sentences")
    write_note(folder, HEAD, name="first")
    file = home / "notes" / "sentences.json"
    every = {f"blocks.0.mlp.neuron.{i}": {"name": "x", "note": ""} for i in range(1_000)}
    file.write_text(json.dumps(every))
    with pytest.raises(NotesError, match="1,000 units of sentences"):
        write_note(folder, HEAD, name="one more")
    write_note(folder, "blocks.0.mlp.neuron.0", name="")
    write_note(folder, HEAD, name="one more")


def test_who_only_reads_reads_them_and_writes_none(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = checkpoints.find("sentences")
    write_note(folder, HEAD, name="copies")
    monkeypatch.setenv("GPTVIZ_READ_ONLY", "1")
    assert read_notes(folder) == {HEAD: Note("copies")}
    before = (home / "notes" / "sentences.json").read_bytes()
    with pytest.raises(NotAllowedError, match="keeps nothing"):
        write_note(folder, HEAD, name="another")
    assert (home / "notes" / "sentences.json").read_bytes() == before


def test_what_two_sessions_write_at_once_is_all_kept(home: Path) -> None:
    folder = checkpoints.find("sentences")

    def write(first: int) -> None:
        for i in range(first, first + 10):
            write_note(folder, f"blocks.0.mlp.neuron.{i}", name=str(i))

    threads = [Thread(target=write, args=(first,)) for first in (0, 10, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {note.name for note in read_notes(folder).values()} == {str(i) for i in range(30)}
