"""The user's own models: renamed, deleted and brought back; nobody else's."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from gptviz.runs import checkpoints, manage
from gptviz.runs.checkpoints import CheckpointError
from gptviz.runs.status import locked, mark_waiting
from tests.tiny import TinyModel


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_renamed_model_is_the_same_under_its_new_name(tiny_model: TinyModel) -> None:
    before = content(tiny_model("old"))
    folder = manage.rename("old", "new")
    assert folder == checkpoints.find("new")
    assert content(folder) == before
    assert "old" not in checkpoints.folders()


def test_a_deleted_model_comes_back_as_it_was_and_once(tiny_model: TinyModel) -> None:
    before = content(tiny_model("mine"))
    token = manage.delete("mine")
    assert "mine" not in checkpoints.folders()
    assert manage.undelete(token) == "mine"
    assert content(checkpoints.find("mine")) == before
    with pytest.raises(CheckpointError, match="not in the trash"):
        manage.undelete(token)


def test_a_model_that_comes_back_takes_the_place_of_none(tiny_model: TinyModel) -> None:
    old = content(tiny_model("mine", seed=1))
    token = manage.delete("mine")
    new = content(tiny_model("mine", seed=2))
    assert manage.undelete(token) == "mine-2"
    assert content(checkpoints.find("mine-2")) == old
    assert content(checkpoints.find("mine")) == new != old


@pytest.mark.parametrize(
    "token", ["", "..", "../checkpoints/mine", "00000000000000000001-mine", "0" * 20 + "-../../x"]
)
def test_a_token_that_a_link_made_up_brings_nothing_back(tiny_model: TinyModel, token: str) -> None:
    tiny_model("mine")
    manage.delete("mine")
    with pytest.raises(CheckpointError, match="not in the trash"):
        manage.undelete(token)
    assert "mine" not in checkpoints.folders()


def test_bundled_models_stay(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(checkpoints.BUNDLED / "shakespeare", tmp_path / "bundled" / "shakespeare")
    monkeypatch.setattr(checkpoints, "BUNDLED", tmp_path / "bundled")
    with pytest.raises(CheckpointError, match="came with gptviz and cannot be renamed"):
        manage.rename("shakespeare", "mine")
    with pytest.raises(CheckpointError, match="came with gptviz and cannot be deleted"):
        manage.delete("shakespeare")
    assert checkpoints.find("shakespeare").parent == tmp_path / "bundled"


def test_a_name_that_no_model_has_is_named(home: Path) -> None:
    for attempt in (manage.delete, lambda name: manage.rename(name, "x")):
        with pytest.raises(CheckpointError, match="no model named '../../etc'"):
            attempt("../../etc")


def test_a_run_that_trains_or_waits_stays_until_it_is_stopped(tiny_model: TinyModel) -> None:
    folder = tiny_model("mine")
    checkpoints.write_json(folder / "status.json", {"state": "running", "message": ""})
    with locked(folder):
        for attempt in (manage.delete, lambda name: manage.rename(name, "other")):
            with pytest.raises(CheckpointError, match="being trained .* stop it first"):
                attempt("mine")
    mark_waiting(folder)
    with pytest.raises(CheckpointError, match="waits to be trained .* stop it first"):
        manage.delete("mine")
    # Its process has ended without a word: nobody trains it.
    checkpoints.write_json(folder / "status.json", {"state": "running", "message": ""})
    manage.delete("mine")
    assert "mine" not in checkpoints.folders()


def test_the_trash_keeps_the_last_so_many(
    tiny_model: TinyModel, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manage, "MOST_DELETED", 3)
    (home / "trash").mkdir()
    (home / "trash" / "notes").write_text("somebody's own")
    tokens = []
    for number in range(5):
        tiny_model(f"model-{number}")
        tokens.append(manage.delete(f"model-{number}"))
    assert {path.name for path in (home / "trash").iterdir()} == {*tokens[2:], "notes"}


def test_the_trash_is_bounded_in_bytes_but_keeps_the_last(
    tiny_model: TinyModel, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manage, "MOST_DELETED_BYTES", 10)
    tiny_model("first")
    tiny_model("second")
    manage.delete("first")
    token = manage.delete("second")
    assert [path.name for path in (home / "trash").iterdir()] == [token]
    assert manage.undelete(token) == "second"


def test_emptying_the_trash_follows_no_link(
    tiny_model: TinyModel, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manage, "MOST_DELETED", 1)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("mine")
    (tiny_model("first") / "snapshots").symlink_to(outside)
    manage.delete("first")
    os.symlink(outside, home / "trash" / f"{1:020d}-link")
    tiny_model("second")
    token = manage.delete("second")
    assert [path.name for path in (home / "trash").iterdir()] == [token]
    assert (outside / "precious").read_text() == "mine"
