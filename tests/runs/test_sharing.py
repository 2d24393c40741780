"""A model packed into a zip file opens again as the same model; no zip file writes anywhere else or
leaves anything behind.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st

import gptviz
from gptviz.machine import progress
from gptviz.machine.progress import Progress
from gptviz.runs import checkpoints, sharing, zips
from gptviz.runs.checkpoints import CheckpointError
from gptviz.runs.imports import import_model
from gptviz.runs.status import locked
from tests.command_line import Capture, answered
from tests.pretrained.gguf_files import saved
from tests.pretrained.test_families import GROUPED, VOCAB, theirs
from tests.pretrained.torch_files import saved_by_mingpt, saved_by_nanogpt
from tests.processes import running
from tests.systems import named_pipe
from tests.tiny import TinyModel
from tests.waiting import PATIENCE

Files = dict[str, bytes]


def content(folder: Path) -> Files:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def packed(folder: Path, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    sharing.pack(folder, file, **options)
    return file


def files_of(folder: Path) -> Files:
    """The files of a model as a zip file has them."""
    with zipfile.ZipFile(packed(folder)) as file:
        return {name: file.read(name) for name in file.namelist()}


def zipped(
    files: Files | list[tuple[str, bytes]], method: int = zipfile.ZIP_DEFLATED
) -> io.BytesIO:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as file:
        for name, data in files.items() if isinstance(files, dict) else files:
            file.writestr(zipfile.ZipInfo(name), data, method)
    return made


def left_in(home: Path) -> set[str]:
    """All that lies in the user's folder, without the locks."""
    return {
        path.relative_to(home).as_posix() for path in home.rglob("*") if ".locks" not in path.parts
    } - {"checkpoints"}


@pytest.fixture
def files(tiny_model: TinyModel) -> Files:
    """Those of a model called mine."""
    return files_of(tiny_model("mine"))


# Packing


def test_a_packed_model_opens_again_as_it_was(tiny_model: TinyModel, tmp_path: Path) -> None:
    folder = tiny_model("mine", card={"steps": 3})
    (folder / "log.jsonl").write_text('{"kind": "step", "step": 1, "loss": 2.0}\n')
    (folder / "state.safetensors").write_bytes(b"what only a run needs")
    checkpoints.snapshot_path(folder, 2).parent.mkdir()
    shutil.copy(folder / "model.safetensors", checkpoints.snapshot_path(folder, 2))
    before = {name: data for name, data in content(folder).items() if name != "state.safetensors"}
    file = tmp_path / "mine.zip"
    sharing.pack(folder, file)
    with zipfile.ZipFile(file) as archive:
        assert sum(entry.file_size for entry in archive.infolist()) == sharing.packed_bytes(folder)
    assert sharing.unpack(file).name == "mine-2"
    assert sharing.unpack(file, "other") == checkpoints.find("other")
    for name in ("mine-2", "other"):
        assert content(checkpoints.find(name)) == before
    without = sharing.unpack(packed(folder, snapshots=False))
    assert content(without) == {
        name: data for name, data in before.items() if "snapshots" not in name
    }


def test_what_lies_behind_a_link_is_never_packed(tiny_model: TinyModel, tmp_path: Path) -> None:
    folder = tiny_model("mine")
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "00000001.safetensors").write_text("secret")
    (folder / "snapshots").symlink_to(secrets)
    (folder / "log.jsonl").symlink_to(secrets / "00000001.safetensors")
    (folder / "notes.txt").write_text("secret")
    named_pipe(folder / "extra")
    assert {Path(name).name for name in files_of(folder)} == {
        *("config.json", "tokenizer.json", "model.safetensors", "card.json")
    }


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_model_without_one_of_its_files_is_not_packed(
    name: str, tiny_model: TinyModel, tmp_path: Path
) -> None:
    folder = tiny_model("mine")
    os.rename(folder / name, tmp_path / name)
    for is_a_link in (False, True):
        if is_a_link:
            (folder / name).symlink_to(tmp_path / name)
        with pytest.raises(CheckpointError, match=f"mine lacks {name}"):
            sharing.pack(folder, tmp_path / "mine.zip")
        assert not (tmp_path / "mine.zip").exists()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_of_another_program_is_packed_with_its_weights_in_the_type_they_have(
    home: Path, tmp_path: Path, dtype: torch.dtype
) -> None:
    theirs("llama", GROUPED).to(dtype).save_pretrained(tmp_path / "llama")
    folder = import_model(str(tmp_path / "llama")).folder
    file = packed(folder)
    before = checkpoints.load(folder).model
    shutil.rmtree(tmp_path / "llama")
    made = sharing.unpack(file, "shared")
    assert {
        tensor.dtype for tensor in safetensors.torch.load_file(made / "model.safetensors").values()
    } == {dtype}
    assert all(
        torch.equal(a, b)
        for a, b in zip(checkpoints.load(made).model.parameters(), before.parameters(), strict=True)
    )
    assert {path.split("/")[0] for path in left_in(home / "checkpoints")} == {"llama", "shared"}


def test_a_disk_that_is_full_while_packing_leaves_the_file_that_was_there(
    tiny_model: TinyModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_model("mine")
    file = tmp_path / "mine.zip"
    file.write_text("before")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "open", full)
    with pytest.raises(CheckpointError, match=r"mine cannot be packed .*No space left"):
        sharing.pack(folder, file)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["mine.zip"]
    assert file.read_text() == "before"


# Unpacking what other programs made


def folder_of_transformers(folder: Path) -> Files:
    theirs("llama", GROUPED).save_pretrained(folder)
    return {f"Tiny llama/{name}": data for name, data in content(folder).items()}


def one_gguf(folder: Path) -> Files:
    saved(theirs("llama", GROUPED), folder / "tiny.gguf")
    return content(folder)


def of_nanogpt(folder: Path) -> Files:
    saved_by_nanogpt(folder)
    characters = {place: chr(ord("A") + place) for place in range(VOCAB)}
    (folder / "meta.pkl").write_bytes(pickle.dumps({"itos": characters}))
    return {f"out/{name}": data for name, data in content(folder).items()}


def of_mingpt(folder: Path) -> Files:
    saved_by_mingpt(folder)
    (folder / "config.json").write_text(
        json.dumps({"system": {}, "model": {"model_type": None, "n_head": 2}})
    )
    return {f"adder/{name}": data for name, data in content(folder).items()}


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (folder_of_transformers, ("Tiny-llama", "Llama")),
        (one_gguf, ("two", "Llama")),
        (of_nanogpt, ("out", "nanoGPT")),
        (of_mingpt, ("adder", "minGPT")),
    ],
)
def test_a_zip_file_of_another_program_s_model_becomes_a_model_with_its_own_weights(
    make: Callable[[Path], Files],
    names: tuple[str, str],
    home: Path,
    tmp_path: Path,
    capsys: Capture,
) -> None:
    (tmp_path / "source").mkdir()
    files = make(tmp_path / "source")
    (tmp_path / "two.zip").write_bytes(zipped({"__MACOSX/._x": b"", **files}).getvalue())
    shutil.rmtree(tmp_path / "source")
    row = answered(capsys, "import", tmp_path / "two.zip")
    assert (row["name"], row["family"]) == names
    lm = gptviz.load(row["name"])
    assert row["parameters"] == sum(parameter.numel() for parameter in lm.model.parameters())
    assert {path.split("/")[0] for path in left_in(home / "checkpoints")} == {row["name"]}
    assert not (checkpoints.find(row["name"]) / "source.json").exists()


# Hostile zip files


def refused(file: io.BytesIO, words: str, home: Path) -> None:
    before = left_in(home)
    with pytest.raises(CheckpointError, match=words) as caught:
        sharing.unpack(file)
    assert "\n" not in str(caught.value)
    assert left_in(home) == before


NOWHERE = [
    ("../x/config.json", "leads out"),
    ("mine/../../x", "leads out"),
    ("/etc/config.json", "leads out"),
    ("mine//config.json", "leads out"),
    ("./config.json", "leads out"),
    ("mine\\..\\config.json", "no name for a file"),
    ("C:/config.json", "no name for a file"),
    ("mine/a\nb", "no name for a file"),
    ("mine/\u202egnp.exe", "no name for a file"),
    ("mine/" + "x" * 500, "no name for a file"),
    ("mine/aux.json", "take for something else"),
    ("COM1", "take for something else"),
    ("mine./config.json", "take for something else"),
    ("mine /config.json", "take for something else"),
    ("mine/CONFIG.json", "stands twice"),
    ("mine/config.json", "stands twice"),
    ("mine/config.json/x", "a file and a folder"),
    ("mine", "a file and a folder|stands twice"),
]


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(("name", "words"), NOWHERE)
def test_a_name_that_leads_elsewhere_or_is_another_s_is_refused(
    name: str, words: str, files: Files, home: Path, tmp_path: Path
) -> None:
    refused(zipped([*files.items(), (name, b"{}")]), words, home)
    assert {path.name for path in tmp_path.iterdir()} == {"home"}


def test_a_name_with_a_zero_byte_is_refused(tiny_model: TinyModel, home: Path) -> None:
    data = zipped({**files_of(tiny_model("mine")), "mine/z_z": b""}).getvalue()
    refused(io.BytesIO(data.replace(b"mine/z_z", b"mine/z\0z")), "no name for a file", home)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFDIR])
def test_a_link_and_a_device_are_refused(kind: int, files: Files, home: Path) -> None:
    made = zipped(files)
    entry = zipfile.ZipInfo("mine/snapshots")
    entry.external_attr = (kind | 0o777) << 16
    with zipfile.ZipFile(made, "a") as file:
        file.writestr(entry, "/etc")
    refused(made, "'mine/snapshots' is a link or a device", home)


def test_a_small_file_that_becomes_a_large_one_is_refused_before_anything_is_written(
    files: Files, home: Path
) -> None:
    refused(zipped({**files, "mine/log.jsonl": bytes(10 * zips.SMALL)}), "would become", home)


def test_more_than_the_disk_has_room_for_is_refused_with_both_numbers(
    tiny_model: TinyModel, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = packed(tiny_model("mine"))
    monkeypatch.setattr(
        shutil,
        "disk_usage",
        lambda _: shutil._ntuple_diskusage(2**40, 2**40, sharing.ROOM_LEFT + 10),
    )  # type: ignore[attr-defined]
    refused(file, r"unpacked it has .* kB, and 67.1 MB is free on the disk", home)


def test_too_many_entries_and_too_long_a_list_of_them_are_refused(home: Path) -> None:
    refused(zipped({f"{i}": b"" for i in range(zips.MOST_ENTRIES + 1)}), "10,001 entries", home)
    refused(
        zipped({f"{i:0390}": b"" for i in range(zips.LONGEST_READ // 390)}),
        "list of files is too long",
        home,
    )


def lying(data: bytes, name: bytes, size: int) -> io.BytesIO:
    """The zip file with another declared length of one entry, in its list and beside the entry."""
    changed = bytearray(data)
    for mark, at, to_name in ((b"PK\1\2", 24, 46), (b"PK\3\4", 22, 30)):
        place = changed.find(mark)
        while changed[place + to_name : place + to_name + len(name)] != name:
            place = changed.find(mark, place + 1)
        changed[place + at : place + at + 4] = struct.pack("<I", size)
    return io.BytesIO(bytes(changed))


@pytest.mark.parametrize("more", [-1, 1, 1000])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_length_that_is_a_lie_stops_the_unpacking(
    more: int, method: int, files: Files, home: Path
) -> None:
    data = zipped(files, method).getvalue()
    size = len(files["mine/model.safetensors"]) + more
    refused(lying(data, b"mine/model.safetensors", size), "not as long as it says|damaged", home)


@given(cut=st.integers(0, 10**6), flipped=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_a_damaged_zip_file_is_refused_or_opened_but_never_fails_otherwise(
    cut: int, flipped: int, bit: int
) -> None:
    """What lies in it may still be whole: then it is the same."""
    data = bytearray(zipped({"a/config.json": b'{"x": 1}' * 20, "a/b": b"yes" * 50}).getvalue())
    data[flipped % len(data)] ^= 1 << bit
    data = data[: len(data) - cut % (2 * len(data)) // 4]
    try:
        with zips.open_zip(io.BytesIO(bytes(data))) as found:
            for name in found.names:
                assert found.read_entry(name, 1000) in (b'{"x": 1}' * 20, b"yes" * 50)
    except zips.ZipError:
        pass


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"readme.txt": b"hello"}, "holds no model"),
        ({"a/config.json": b"{}", "b/config.json": b"{}"}, "several models"),
        ({"a/config.json": b"[" * 100_000}, "a/config.json"),
        ({"a/config.json": b'{"model_type": "mamba"}'}, "mamba"),
        ({"a.gguf": b"GGUF", "b.gguf": b""}, "several models"),
        ({"ckpt.pt": pickle.dumps({"model": print}, protocol=2)}, "could run code|damaged"),
        ({"a/config.json": json.dumps({"format": 1, "config": {}}).encode()}, "a/config.json"),
    ],
)
def test_what_is_no_sound_model_is_refused_by_name(files: Files, words: str, home: Path) -> None:
    refused(zipped(files), words, home)


def test_a_password_and_a_rare_way_of_packing_are_refused(files: Files, home: Path) -> None:
    refused(zipped(files, zipfile.ZIP_LZMA), "another method", home)
    data = bytearray(zipped(files).getvalue())
    data[data.find(b"PK\1\2") + 8] |= 1
    refused(io.BytesIO(bytes(data)), "password", home)


def test_weights_and_snapshots_that_do_not_fit_the_config_never_appear(
    files: Files, tiny_model: TinyModel, home: Path
) -> None:
    other = files_of(tiny_model("other", n_layer=1))["other/model.safetensors"]
    refused(zipped({**files, "mine/model.safetensors": other}), "not from one model", home)
    refused(
        zipped({**files, "mine/snapshots/00000001.safetensors": other}), "not from one model", home
    )
    del files["mine/tokenizer.json"]
    refused(zipped(files), "mine lacks tokenizer.json", home)


def test_a_reference_to_files_of_this_machine_is_not_followed(
    tiny_model: TinyModel, home: Path, tmp_path: Path
) -> None:
    theirs("llama", GROUPED).save_pretrained(tmp_path / "given")
    folder = import_model(str(tmp_path / "given")).folder
    files = {f"x/{name}": data for name, data in content(folder).items()}
    assert "x/source.json" in files
    refused(zipped(files), "x lacks model.safetensors|lacks model.safetensors", home)


def test_a_disk_that_is_full_while_unpacking_leaves_nothing(
    tiny_model: TinyModel, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = packed(tiny_model("mine"))
    write = zips.ZipEntries.write

    def full(self: zips.ZipEntries, name: str, path: Path) -> None:
        write(self, name, path)
        if name.endswith("model.safetensors"):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(zips.ZipEntries, "write", full)
    refused(file, "cannot be unpacked .*No space left", home)


def test_a_process_killed_while_unpacking_leaves_no_model_and_what_it_left_is_swept(
    tiny_model: TinyModel, home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mine.zip"
    file.write_bytes(packed(tiny_model("mine")).getvalue())
    before = left_in(home)
    code = (
        "import os, pathlib\nfrom gptviz.runs import sharing, zips\nzips.ZipEntries.write = "
        "lambda *_: os._exit(9)\n"
    )
    with running(["-c", f"{code}sharing.unpack(pathlib.Path({str(file)!r}), 'other')"]) as process:
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 9, errors
    assert left_in(home) != before
    assert "other" not in checkpoints.folders()
    sharing.unpack(file, "other")
    assert {path.split("/")[1] for path in left_in(home) if "/" in path} == {"mine", "other"}


def test_a_name_in_use_or_claimed_or_impossible_is_refused(
    tiny_model: TinyModel, home: Path
) -> None:
    folder = tiny_model("mine")
    file = packed(folder)
    for name in ("mine", "shakespeare", "../x"):
        with pytest.raises(CheckpointError, match="there is a model named|cannot name a model"):
            sharing.unpack(file, name)
    with locked(folder.parent / "new"), pytest.raises(CheckpointError, match="another process"):
        sharing.unpack(file, "new")
    assert set(checkpoints.folders()) & {"x", "new"} == set()


def test_packing_says_how_far_it_is_and_stopped_leaves_nothing(
    tiny_model: TinyModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "PIECE", 1_000)
    folder = tiny_model("mine")
    shares = list[float]()
    with progress.listen_to(lambda now: shares.append(now.share)):
        sharing.pack(folder, tmp_path / "whole.zip")
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.5
    assert shares[-1] == 1

    def stop(now: Progress) -> None:
        if now.share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), progress.listen_to(stop):
        sharing.pack(folder, tmp_path / "half.zip")
    assert [path.name for path in tmp_path.glob("*half*")] + [
        path.name for path in tmp_path.glob(".*")
    ] == []
