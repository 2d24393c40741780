"""What was fitted: kept as a file, found again, never more bytes than allowed."""

from __future__ import annotations

import os
import re
import shutil
import warnings
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError

import gptviz
from gptviz.runs import fitted
from tests.tiny import TinyModel

pytestmark = pytest.mark.usefixtures("home")


def test_tensors_are_found_again_and_a_file_that_cannot_be_read_is_none(home: Path) -> None:
    assert fitted.kept_tensors("a") == {}
    fitted.keep("a", {"one": torch.arange(3.0)})
    assert torch.equal(fitted.kept_tensors("a")["one"], torch.arange(3.0))
    (home / "fitted" / "a.safetensors").write_bytes(b"cut")
    assert fitted.kept_tensors("a") == {}


def test_a_file_that_is_too_long_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted.keep("a", {"one": torch.zeros(100)})
    monkeypatch.setattr(fitted, "MOST_OF_ONE", 100)
    assert fitted.kept_tensors("a") == {}


def lens(seed: int = 0, measured: float = 1.0) -> dict[str, torch.Tensor]:
    """The tensors of a lens: measured where it was fitted here, NaN where it was read from a file."""
    return {"matrices": torch.full((100,), seed), fitted.MEASURED: torch.tensor([measured])}


def kept_for(home: Path, name: str, days: int) -> None:
    """Let a file be so many days old."""
    os.utime(home / "fitted" / f"{name}.safetensors", (1e9 - 86_400 * days,) * 2)


def names(home: Path) -> list[str]:
    return sorted(path.stem for path in (home / "fitted").glob("*.safetensors"))


# In each step something is kept, or read: a lens that can be fitted again, a lens of a file, a
# direction.
steps = st.lists(
    st.tuples(
        st.sampled_from(["fit a lens", "read a lens", "name a direction", "look"]),
        st.integers(0, 5),
    ),
    max_size=25,
)


@given(steps)
def test_only_what_can_be_fitted_again_goes_and_what_was_read_longest_ago_first(
    home: Path, steps: list[tuple[str, int]]
) -> None:
    shutil.rmtree(home / "fitted", ignore_errors=True)
    size = 1_000  # of a file, about
    make = {
        "fit a lens": lambda number: (f"again-{number}", lens()),
        "read a lens": lambda number: (f"file-{number}", lens(measured=float("nan"))),
        "name a direction": lambda number: (f"named-{number}", {"separation": torch.zeros(100)}),
    }
    order: list[str] = []  # the lenses that can be fitted again, the one read longest ago first
    named: set[str] = set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitted, "MOST_BYTES", 4 * size)
        patch.setattr(fitted, "_in_memory", {})
        for now, (step, number) in enumerate(steps):
            if step == "look":
                if f"again-{number}" in order:
                    order.append(order.pop(order.index(f"again-{number}")))
                    assert fitted.kept_tensors(f"again-{number}")
                    kept_for(home, f"again-{number}", -now)
                continue
            name, tensors = make[step](number)
            refused = False
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                try:
                    fitted.keep(name, tensors)
                except OSError as error:
                    refused = True
                    assert "the folder is full" in str(error)
            there = {*names(home)}
            assert named <= there, "what was named stays"
            assert not refused or step == "name a direction"
            if step != "name a direction":
                assert fitted.kept_tensors(name), "it is used, in memory where there is no room"
                assert bool(warned) == (name not in there)
                if step == "read a lens":
                    named |= {name} & there
                elif name in there:
                    order = [each for each in order if each != name] + [name]
                    kept_for(home, name, -now)
            elif not refused:
                named.add(name)
            gone = [each for each in order if each not in there]
            assert gone == order[: len(gone)], "the one that was read longest ago goes first"
            order = order[len(gone) :]


def test_reading_renews_the_age_of_a_lens(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for age, name in enumerate("abc"):
        fitted.keep(name, lens())
        kept_for(home, name, age)
    assert fitted.kept_tensors("c")
    monkeypatch.setattr(fitted, "MOST_BYTES", 3 * (home / "fitted/a.safetensors").stat().st_size)
    fitted.keep("d", lens())
    assert names(home) == ["a", "c", "d"]


def test_one_picture_reads_a_file_once(
    home: Path, monkeypatch: pytest.MonkeyPatch, tiny_model: TinyModel
) -> None:
    lm = gptviz.load(tiny_model())
    found = lm.direction(["the fox", "a dog"], ["the dog", "a fox"], block=1)
    opened: list[Path] = []
    read = fitted.read_regular
    monkeypatch.setattr(
        fitted, "read_regular", lambda path, most: (opened.append(path), read(path, most))[1]
    )
    lm.steer("the fox", found.name, 3.0, max_new_tokens=1)
    assert [path.stem for path in opened] == [found.name]
    # what is written anew is read anew
    fitted.keep(found.name, {"other": torch.zeros(3)})
    assert fitted.kept_tensors(found.name).keys() == {"other"}


def test_a_full_folder_is_said_with_its_place_and_leaves_all_files(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted.keep("again", lens())
    fitted.keep("mine", {"one": torch.zeros(100)})
    monkeypatch.setattr(fitted, "MOST_BYTES", 1_000)
    said = re.escape(f"other is not kept in {home / 'fitted'}: the folder is full, with 1 kB at")
    with pytest.raises(OSError, match=said):
        fitted.keep("other", {"one": torch.zeros(200)})
    assert names(home) == ["again", "mine"]
    monkeypatch.setattr(fitted, "MOST_OF_ONE", 100)
    with pytest.raises(OSError, match="it takes 400 bytes, and 100 bytes is the most"):
        fitted.keep("other", {"one": torch.zeros(100)})


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), SafetensorError("x")])
def test_a_full_disk_is_said_and_a_lens_is_used_without_a_file(
    home: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(fitted, "_in_memory", {})

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(fitted, "save_file", fail)
    with pytest.raises(OSError, match="mine is not kept in .*: ") as raised:
        fitted.keep("mine", {"one": torch.zeros(100)})
    assert "[Errno" not in str(raised.value)
    with pytest.warns(UserWarning, match="again is not kept"):
        fitted.keep("again", lens())
    assert fitted.kept_tensors("again")
    assert not fitted.is_kept("again")
    assert not names(home)


def test_a_read_only_server_writes_nothing_and_has_the_last_in_memory(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPTVIZ_READ_ONLY", "1")
    monkeypatch.setattr(fitted, "_in_memory", {})
    monkeypatch.setattr(fitted, "MOST_IN_MEMORY", 2 * 2 * 4)
    for name in "abc":
        fitted.keep(name, {"one": torch.ones(2)})
    assert not (home / "fitted").exists()
    assert [bool(fitted.kept_tensors(name)) for name in "abc"] == [False, True, True]
    assert fitted.names("") == ["b", "c"]
    assert fitted.is_kept("c")
    monkeypatch.setenv("GPTVIZ_READ_ONLY", "0")
    assert fitted.names("") == [], "what visitors fitted is in none of the owner's lists"
    assert not fitted.is_kept("c")
    assert fitted.kept_tensors("c"), "it is found by its name, as a link has it"
