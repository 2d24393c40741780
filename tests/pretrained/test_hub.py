"""Models fetched from a hub: here from a small server on this machine that answers as the hub
does.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gptviz.machine import progress
from gptviz.pretrained.families import ImportRefusedError
from gptviz.pretrained.places import download, hub
from tests.pretrained.fake_hub import FakeHub, fake_hub
from tests.pretrained.test_families import GROUPED, theirs

NAME = "someone/tiny"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model as its maker puts it on the hub, with files that nobody needs."""
    folder = tmp_path / "made"
    theirs("llama", GROUPED).save_pretrained(folder)
    for name in (
        "tokenizer.json",
        "tokenizer.model",
        "README.md",
        "modeling_tiny.py",
        "training_args.bin",
        "pytorch_model.bin",
    ):
        (folder / name).write_text(f"the content of {name}")
    return folder


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[FakeHub]:
    monkeypatch.setattr(download, "WAIT", 0.0)
    monkeypatch.setattr(download, "CHUNK", 1_000)
    with fake_hub(tmp_path / "hub", monkeypatch) as server:
        server.add(NAME, folder, licence="apache-2.0")
        yield server


def weights(place: Path) -> bytes:
    return (place / "model.safetensors").read_bytes()


def parts(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "hub").rglob("*.part"))


def test_what_the_hub_has_is_said_before_anything_is_written(
    server: FakeHub, folder: Path, tmp_path: Path
) -> None:
    offer = hub.look_up(NAME)
    needed = {
        "config.json",
        "generation_config.json",
        "README.md",
        "tokenizer.json",
        "model.safetensors",
    }
    assert {file.path for file in offer.files} == needed
    assert (
        offer.size == offer.missing_bytes == sum((folder / name).stat().st_size for name in needed)
    )
    assert (offer.licence, offer.fields["model_type"]) == ("apache-2.0", "llama")
    assert not (tmp_path / "hub").exists()


def test_only_what_is_needed_is_fetched_and_never_code(server: FakeHub, folder: Path) -> None:
    seen: list[progress.Progress] = []
    with progress.listen_to(seen.append):
        place = hub.fetch_model(NAME)
    assert {path.name for path in place.iterdir()} == {
        *(
            "config.json",
            "generation_config.json",
            "README.md",
            "tokenizer.json",
            "model.safetensors",
        )
    }
    assert weights(place) == weights(folder)
    assert [one.done for one in seen] == sorted(one.done for one in seen)
    assert seen[-1].done == seen[-1].of == hub.look_up(NAME).size
    assert hub.look_up(NAME).missing_bytes == 0


def test_what_is_in_the_cache_is_opened_without_a_question_to_the_hub(server: FakeHub) -> None:
    first = hub.fetch_model(NAME)
    server.asked.clear()
    assert hub.fetch_model(NAME) == first
    assert server.asked == []


def test_a_connection_that_breaks_is_opened_again_at_the_byte_where_it_broke(
    server: FakeHub, folder: Path
) -> None:
    server.cut = 3_000
    assert weights(hub.fetch_model(NAME)) == weights(folder)
    asked = [
        range_
        for method, path, range_ in server.asked
        if method == "GET" and path.endswith("model.safetensors")
    ]
    assert asked == [None, "bytes=3000-"]


def test_a_download_that_was_stopped_is_gone_on_with_and_until_then_nothing_is_listed(
    server: FakeHub, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class StoppedError(Exception):
        pass

    before = hub.look_up(NAME).size - len(weights(folder))

    def stop(far: progress.Progress) -> None:
        if far.done >= before + 2_000:
            raise StoppedError

    with pytest.raises(StoppedError), progress.listen_to(stop):
        hub.fetch_model(NAME)
    assert [part.stat().st_size for part in parts(tmp_path)] == [2_000]
    assert hub.cached_path(NAME) is None
    assert not list((tmp_path / "hub").rglob("snapshots"))
    assert hub.look_up(NAME).missing_bytes == len(weights(folder)) - 2_000
    assert weights(hub.fetch_model(NAME)) == weights(folder)
    assert [
        r for m, path, r in server.asked if m == "GET" and path.endswith("model.safetensors")
    ] == [None, "bytes=2000-"]
    assert not parts(tmp_path)


def test_a_server_that_answers_with_the_whole_file_though_the_rest_was_asked_for_does_no_harm(
    server: FakeHub, folder: Path, tmp_path: Path
) -> None:
    offer = hub.look_up(NAME)
    blob = hub._blob(NAME, offer.files[-1])
    blob.parent.mkdir(parents=True)
    download.partial_file(blob).write_bytes(b"x" * 10)  # of another version of the file, it seems
    with pytest.raises(
        ImportRefusedError,
        match="model.safetensors arrived damaged, and was removed: open it again",
    ):
        hub.fetch(offer)
    assert not parts(tmp_path)
    assert weights(hub.fetch(offer)) == weights(folder)


def test_a_full_disk_is_said_before_or_when_it_happens_and_the_download_goes_on_later(
    server: FakeHub, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer = hub.look_up(NAME)
    with monkeypatch.context() as patch:
        patch.setattr(hub.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 100})())
        with pytest.raises(
            ImportRefusedError, match="someone/tiny takes .* and 100 bytes is free: free some space"
        ):
            hub.fetch(offer)

    def full(far: progress.Progress) -> None:
        if far.done > far.of - len(weights(folder)) + 1_000:
            raise OSError(errno.ENOSPC, "No space left on device")

    refused = pytest.raises(
        ImportRefusedError,
        match="the disk of .* was full .*: free some space, then open the model again",
    )
    with refused as caught, progress.listen_to(full):
        hub.fetch(offer)
    assert "\n" not in str(caught.value)
    assert hub.cached_path(NAME) is None
    assert weights(hub.fetch(offer)) == weights(folder)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            (401, "RepoNotFound"),
            "the hub has no model named someone/secret, or a private one: check the name, set "
            "HF_TOKEN",
        ),
        (
            (404, "RepoNotFound"),
            "the hub has no model named someone/secret, or a private one: check the name, set "
            "HF_TOKEN",
        ),
        (
            (403, "GatedRepo"),
            "someone/secret asks for a permission first: get it on the model's page, and set "
            "HF_TOKEN",
        ),
        (
            (503, ""),
            "someone/secret is not in the cache of huggingface_hub, and the hub refuses with "
            "status 503: ",
        ),
    ],
)
def test_what_the_hub_refuses_is_said_in_one_line(
    server: FakeHub, folder: Path, tmp_path: Path, answer: tuple[int, str], message: str
) -> None:
    server.add("someone/secret", folder)
    server.refused["someone/secret"] = answer
    with pytest.raises(ImportRefusedError) as caught:
        hub.fetch_model("someone/secret")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "hub").exists()


def test_without_network_what_was_fetched_opens_and_the_rest_is_said(
    server: FakeHub, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    from huggingface_hub import constants

    place = hub.fetch_model(NAME)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # where nobody listens
    assert hub.fetch_model(NAME) == place
    with pytest.raises(
        ImportRefusedError,
        match="someone/other is not in the cache .*, and the hub cannot be reached .*: fetch it",
    ):
        hub.fetch_model("someone/other")
    with pytest.raises(ImportRefusedError, match="the hub cannot be reached"):
        hub.search("tiny")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(
        ImportRefusedError,
        match="someone/other is not in the cache .*, and the hub may not be asked .HF_HUB_OFFLINE",
    ):
        hub.fetch_model("someone/other")


def test_what_another_program_left_in_the_cache_opens_without_network_though_parts_of_it_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    kept = tmp_path / "models--someone--tiny"
    theirs("llama", GROUPED).save_pretrained(kept / "snapshots" / ("0" * 40))
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("0" * 40)
    place = hub.fetch_model(NAME)
    assert place == kept / "snapshots" / ("0" * 40)
    # there is no tokenizer, which would be fetched if there were network
    assert not hub.is_whole(place)


def test_weights_in_parts_are_fetched_with_their_index(server: FakeHub, folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"a": "model-00001-of-00001.safetensors"}})
    )
    server.add(NAME, folder)
    place = hub.fetch_model(NAME)
    names = {path.name for path in place.iterdir()}
    assert {"model.safetensors.index.json", "model-00001-of-00001.safetensors"} <= names
    assert "pytorch_model.bin" not in names
    assert hub.is_whole(place)
    (place / "model-00001-of-00001.safetensors").unlink()
    assert not hub.is_whole(place)


def test_a_gguf_file_of_a_repository_is_fetched_by_its_own_name(server: FakeHub) -> None:
    server.repositories["someone/files"] = {
        "small.Q4_0.gguf": b"GGUF" + bytes(6_000),
        "README.md": b"text",
        "big.gguf": b"GGUF",
    }
    place = hub.fetch_model("someone/files/small.Q4_0.gguf")
    assert place.name == "small.Q4_0.gguf"
    assert place.stat().st_size == 6_004
    assert hub.fetch_model("someone/files/small.Q4_0.gguf") == place
    with pytest.raises(
        ImportRefusedError,
        match="has only GGUF files: give the name of one with it, as someone/files/big.gguf",
    ):
        hub.fetch_model("someone/files")
    with pytest.raises(ImportRefusedError, match="has no file none.gguf: it has big.gguf, small"):
        hub.fetch_model("someone/files/none.gguf")


def test_a_part_of_a_gguf_file_is_refused_before_it_is_fetched(
    server: FakeHub, tmp_path: Path
) -> None:
    files = ("a-00001-of-00002.gguf", "a-00002-of-00002.gguf", "b-00001-of-00001.gguf")
    server.repositories["someone/parts"] = dict.fromkeys(files, b"GGUF")
    for number, name in enumerate(files[:2], 1):
        with pytest.raises(ImportRefusedError, match=rf"{name} is part {number} of 2 of a model"):
            hub.fetch_model(f"someone/parts/{name}")
    assert not (tmp_path / "hub").exists()
    assert hub.fetch_model(f"someone/parts/{files[2]}").name == files[2]


def test_a_search_gives_models_of_the_families_that_open(server: FakeHub, folder: Path) -> None:
    server.repositories["someone/tiny-mixture"] = {"config.json": b'{"model_type": "mamba"}'}
    found = hub.search("tiny")
    assert [(one.name, one.family, one.parameters, one.downloads) for one in found] == [
        (NAME, "Llama", 1_234, 7)
    ]


def test_two_that_fetch_one_file_at_once_do_not_write_into_each_other(
    server: FakeHub, tmp_path: Path
) -> None:
    from filelock import FileLock

    offer = hub.look_up(NAME)
    lock = tmp_path / "hub" / ".locks" / "models--someone--tiny" / f"{offer.files[-1].key}.lock"
    lock.parent.mkdir(parents=True)
    with (
        FileLock(lock),
        pytest.raises(
            ImportRefusedError, match="is being fetched by another window or program: wait"
        ),
    ):
        hub.fetch(offer)
    hub.fetch(offer)


@pytest.mark.parametrize("config", ["{", "[]", "x" * (2**20 + 1)])
def test_a_config_on_the_hub_that_is_none_is_refused_before_anything_is_fetched(
    server: FakeHub, config: Any
) -> None:
    server.repositories[NAME]["config.json"] = config.encode()
    with pytest.raises(ImportRefusedError, match="config.json of someone/tiny on the hub"):
        hub.look_up(NAME)
