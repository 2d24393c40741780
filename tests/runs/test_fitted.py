"""What was fitted: kept as a file, found again, never more bytes than allowed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from gptviz.runs import fitted

pytestmark = pytest.mark.usefixtures("home")


def test_tensors_are_found_again_and_a_file_that_cannot_be_read_is_none(home: Path) -> None:
    assert fitted.kept("a") == {}
    fitted.keep("a", {"one": torch.arange(3.0)})
    assert torch.equal(fitted.kept("a")["one"], torch.arange(3.0))
    (home / "fitted" / "a.safetensors").write_bytes(b"cut")
    assert fitted.kept("a") == {}


def test_a_file_that_is_too_long_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted.keep("a", {"one": torch.zeros(100)})
    monkeypatch.setattr(fitted, "MOST_OF_ONE", 100)
    assert fitted.kept("a") == {}


def test_the_oldest_files_go_where_all_are_too_many_bytes(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for age, name in enumerate("abc"):
        fitted.keep(name, {"one": torch.zeros(100)})
        os.utime(home / "fitted" / f"{name}.safetensors", (1e9 - 1e6 * age,) * 2)
    monkeypatch.setattr(fitted, "MOST_BYTES", 1_200)
    fitted.keep("d", {"one": torch.zeros(100)})
    assert sorted(path.stem for path in (home / "fitted").glob("*.safetensors")) == ["a", "d"]


def test_a_read_only_server_writes_nothing_and_has_the_last_in_memory(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPTVIZ_READ_ONLY", "1")
    monkeypatch.setattr(fitted, "_in_memory", {})
    monkeypatch.setattr(fitted, "MOST_IN_MEMORY", 2 * 2 * 4)
    for name in "abc":
        fitted.keep(name, {"one": torch.ones(2)})
    assert not (home / "fitted").exists()
    assert [bool(fitted.kept(name)) for name in "abc"] == [False, True, True]
