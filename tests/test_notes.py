"""Names and notes of the reader's own, in the library and on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

import gptviz
from gptviz.runs import checkpoints
from gptviz.runs.notes import Note
from tests.command_line import Capture, answered, error, output

HEAD = "blocks.1.attention.head.3"


def test_a_model_has_the_notes_that_were_written_on_it_at_every_step_and_with_edits(
    home: Path,
) -> None:
    lm = gptviz.load("sentences")
    assert lm.notes() == {}
    assert lm.write_note(HEAD, name="copies", note="names") == Note("copies", "names")
    assert lm.edited(HEAD).notes() == {HEAD: Note("copies", "names")}
    first = min(checkpoints.snapshots(checkpoints.find("sentences")))
    assert gptviz.load("sentences", step=first).notes() == lm.notes()
    assert gptviz.load("addition").notes() == {}


@pytest.mark.parametrize(
    "unit",
    [
        "embed",
        "blocks.0.mlp",
        "blocks.0.mlp.neuron.3",
        "direction.number-1f0c2a9b",
        "dictionary.sentences-features.feature.17",
    ],
)
def test_every_kind_of_unit_can_have_one(home: Path, unit: str) -> None:
    lm = gptviz.load("sentences")
    lm.write_note(unit, name="mine")
    assert lm.notes() == {unit: Note("mine")}


def test_a_unit_that_the_model_lacks_has_none(home: Path) -> None:
    with pytest.raises(ValueError, match="there is no block 9"):
        gptviz.load("sentences").write_note("blocks.9.mlp", name="mine")
    assert not (home / "notes").exists()


def test_the_command_writes_lists_and_takes_away(home: Path, capsys: Capture) -> None:
    assert "no names and notes" in output(capsys, "notes", "sentences")
    of_head = ("notes", "sentences", "--unit", HEAD)
    expected = {"unit": HEAD, "title": "head 3 of block 1", "name": "copies", "note": "a\nb"}
    assert answered(capsys, *of_head, "--call", "copies", "--note", "a\nb") == [expected]
    output(capsys, "notes", "sentences", "--unit", "blocks.0.mlp", "--call", "first")
    assert answered(capsys, *of_head) == [expected]
    assert [one["name"] for one in answered(capsys, "notes", "sentences")] == ["first", "copies"]
    assert output(capsys, *of_head).splitlines() == [
        f"head 3 of block 1 ({HEAD}): copies",
        "    a",
        "    b",
    ]
    assert answered(capsys, *of_head, "--call", "", "--note", "") == [
        expected | {"name": "", "note": ""}
    ]
    assert answered(capsys, *of_head) == []


def test_the_command_says_what_is_wrong_in_a_line(home: Path, capsys: Capture) -> None:
    assert "--unit blocks.1" in error(capsys, "notes", "sentences", "--call", "copies")
    assert "at most 60" in error(capsys, "notes", "sentences", "--unit", HEAD, "--call", "x" * 61)
    (home / "notes" / "sentences.json").write_text("{")
    assert "sentences.json cannot be read" in error(capsys, "notes", "sentences")
