"""A model that another program made becomes one of the user's models, and its weights stay where
they are.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import gptviz
from gptviz.__main__ import main
from gptviz.machine import memory, progress
from gptviz.model.costs import memory_needed
from gptviz.pretrained.places import download, hub
from gptviz.pretrained.sources import tensors
from gptviz.runs import checkpoints
from gptviz.runs.imports import import_model
from gptviz.text.tokenizers.symbols import SymbolTokenizer
from tests.command_line import Capture, answered, error, output
from tests.pretrained.fake_hub import FakeHub, fake_hub
from tests.pretrained.test_families import GROUPED, VOCAB, theirs
from tests.pretrained.torch_files import Touch
from tests.tiny import some_ids


@pytest.fixture
def model(home: Path, tmp_path: Path) -> Any:
    model = theirs("llama", GROUPED)
    model.save_pretrained(tmp_path / "Tiny llama!")
    return model


def test_an_imported_model_is_listed_opened_and_writes_what_it_wrote_there(
    model: Any, tmp_path: Path, capsys: Capture
) -> None:
    made = answered(capsys, "import", str(tmp_path / "Tiny llama!"))
    assert (made["name"], made["family"]) == ("Tiny-llama", "Llama")
    assert made["parameters"] == sum(p.numel() for p in model.parameters())
    folder = checkpoints.find("Tiny-llama")
    # not a second copy of the weights
    assert sum(file.stat().st_size for file in folder.iterdir()) < 20_000
    rows = {row["name"]: row for row in answered(capsys, "models")}
    assert "error" not in rows["Tiny-llama"]
    lm = gptviz.load("Tiny-llama")
    ids = some_ids(6, batch=1, vocab=VOCAB)
    text = " ".join(map(str, ids[0].tolist()))
    written = model.generate(
        ids, max_new_tokens=8, do_sample=False, eos_token_id=None, pad_token_id=0
    )[0, 6:].tolist()
    assert lm.generate(text, max_new_tokens=8, temperature=0.0).split() == list(map(str, written))
    trace = lm.trace(text)
    torch.testing.assert_close(trace["logits"], model(ids).logits.detach(), rtol=1e-4, atol=1e-4)


def test_a_name_in_use_gets_a_number_and_an_impossible_one_is_refused(
    model: Any, tmp_path: Path
) -> None:
    source = str(tmp_path / "Tiny llama!")
    assert [import_model(source).folder.name for _ in range(2)] == ["Tiny-llama", "Tiny-llama-2"]
    for name in ("../x", "", "shakespeare", "Tiny-llama"):
        with pytest.raises(
            checkpoints.CheckpointError, match="cannot name a model|there is a model|in use"
        ):
            import_model(source, name)
    assert own_models(tmp_path) == {"Tiny-llama", "Tiny-llama-2"}


def test_weights_that_are_gone_are_said_by_models_and_by_load(
    model: Any, tmp_path: Path, capsys: Capture
) -> None:
    import_model(str(tmp_path / "Tiny llama!"))
    (tmp_path / "Tiny llama!" / "model.safetensors").unlink()
    assert "are gone: put them back, or import the model again" in output(capsys, "models")
    with pytest.raises(
        checkpoints.CheckpointError, match=r"Tiny-llama: the weights at .* are gone"
    ):
        gptviz.load("Tiny-llama")


def test_what_cannot_be_opened_leaves_nothing_behind(
    model: Any, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "Tiny llama!" / "config.json").write_text('{"model_type": "mamba"}')
    said = error(capsys, "import", tmp_path / "Tiny llama!")
    assert "mamba" in said
    assert not (tmp_path / "home" / "checkpoints").exists()


def test_a_full_disk_is_said_with_its_folder_and_leaves_nothing_behind(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(checkpoints, "_write_json", full)
    said = error(capsys, "import", tmp_path / "Tiny llama!", "--name", "mine")
    assert (
        f"below {checkpoints.own_folder()} (No space left on device): see that there is room"
        in said
    )
    assert not [path for path in checkpoints.own_folder().iterdir() if path.name != ".locks"]


def test_a_model_too_large_for_this_machine_is_refused_with_both_numbers_and_leaves_nothing(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    folder = tmp_path / "Tiny llama!"
    import_model(str(folder))
    needs = memory.in_bytes(
        memory_needed.estimate_memory(gptviz.load("Tiny-llama").model.config).total
    )
    monkeypatch.setattr(memory, "free_bytes", lambda device="cpu": 20_000)
    # those of pages that another test imported print a warning
    monkeypatch.setattr(memory, "_caches", [])
    said = (
        rf"is not opened: it needs about {needs} of memory, .* and 20 kB is free: close other "
        r"programs, open it in bfloat16"
    )
    for name in ("Tiny-llama", "shakespeare"):
        with pytest.raises(
            checkpoints.CheckpointError, match=said if name == "Tiny-llama" else "and 20 kB is free"
        ):
            gptviz.load(name)
    # Files larger than all memory may not open at all: they are refused for their size, and not as
    # damaged.
    monkeypatch.setattr(tensors, "safe_open", lambda *_, **__: pytest.fail("a file was opened"))
    with pytest.raises(checkpoints.CheckpointError, match="and 20 kB is free"):
        gptviz.load(folder)
    assert re.search(said, error(capsys, "import", folder, "--name", "second"))
    assert "second" not in checkpoints.folders()


def test_a_file_that_could_run_code_is_refused_as_such_whatever_its_size(
    model: Any, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "Tiny llama!" / "model.safetensors").unlink()
    torch.save(
        {"weight": Touch(tmp_path / "it ran")}, tmp_path / "Tiny llama!" / "pytorch_model.bin"
    )
    said = error(capsys, "import", tmp_path / "Tiny llama!")
    assert (
        "pytorch_model.bin holds more than tensors, and opening it could run code: it is not opened"
        in said
    )
    assert not (tmp_path / "it ran").exists()


# The hub


@pytest.mark.parametrize(
    "name", ["gpt2", "HuggingFaceTB/SmolLM2-135M", "a/b.c_d-e", "a/b/c.Q4_K_M.gguf"]
)
def test_a_name_of_the_hub_is_known_as_one(name: str) -> None:
    assert hub.is_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/etc",
        "../x",
        "a/b/c",
        "./folder",
        "a b",
        "https://example.org/a",
        "a/../x.gguf",
        "model.gguf",
        "folder/ckpt.pt",
    ],
)
def test_a_path_is_no_name_of_the_hub(name: str) -> None:
    assert not hub.is_name(name)


@pytest.fixture
def server(model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub that has the model, with a tokenizer for the numbers of its tokens."""
    monkeypatch.setattr(download, "WAIT", 0.0)
    (tmp_path / "Tiny llama!" / "tokenizer.json").write_text(
        SymbolTokenizer.numbers(VOCAB).to_json()
    )
    with fake_hub(tmp_path / "hub", monkeypatch) as server:
        server.add("someone/tiny", tmp_path / "Tiny llama!", licence="mit")
        yield server


def own_models(tmp_path: Path) -> set[str]:
    folder = tmp_path / "home" / "checkpoints"
    return (
        {file.name for file in folder.iterdir() if not file.name.startswith(".")}
        if folder.exists()
        else set()
    )


def test_a_name_of_the_hub_is_fetched_imported_once_and_then_opened_without_the_hub(
    server: FakeHub, model: Any, tmp_path: Path
) -> None:
    lm = gptviz.load("someone/tiny")
    assert lm.name == "tiny"
    assert sum(p.numel() for p in lm.model.parameters()) == sum(
        p.numel() for p in model.parameters()
    )
    card = json.loads((tmp_path / "home" / "checkpoints" / "tiny" / "card.json").read_text())
    assert card["imported_from"] == "someone/tiny"
    server.asked.clear()
    assert gptviz.load("someone/tiny").name == "tiny"
    assert server.asked == []
    assert own_models(tmp_path) == {"tiny"}


def test_a_name_whose_files_left_the_cache_is_fetched_again_for_the_same_model(
    server: FakeHub, model: Any, tmp_path: Path
) -> None:
    gptviz.load("someone/tiny")
    shutil.rmtree(tmp_path / "hub")
    assert gptviz.load("someone/tiny").name == "tiny"
    assert own_models(tmp_path) == {"tiny"}


def test_a_name_that_is_neither_here_nor_on_the_hub_is_said_with_what_is_here(
    server: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    with pytest.raises(
        checkpoints.CheckpointError,
        match="no model named 'gpt-none'; there are .*shakespeare.*the hub has no model",
    ):
        gptviz.load("gpt-none")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(
        checkpoints.CheckpointError, match="there are .*shakespeare.*and the hub cannot be reached"
    ) as caught:
        gptviz.load("gpt-none")
    assert "\n" not in str(caught.value)
    with pytest.raises(
        checkpoints.CheckpointError, match="no model named '../x'; there are [^:]*$"
    ):
        gptviz.load("../x")
    assert own_models(tmp_path) == set()


def test_a_path_of_another_program_opens_where_it_is_and_nothing_is_written(
    model: Any, tmp_path: Path
) -> None:
    lm = gptviz.load(tmp_path / "Tiny llama!")
    ids = some_ids(6, batch=1, vocab=VOCAB)
    text = " ".join(map(str, ids[0].tolist()))
    torch.testing.assert_close(
        lm.trace(text)["logits"], model(ids).logits.detach(), rtol=1e-4, atol=1e-4
    )
    assert lm.name == "Tiny-llama"
    assert not list((tmp_path / "home").iterdir())
    (tmp_path / "cut.gguf").write_bytes(b"GGUF")
    with pytest.raises(checkpoints.CheckpointError, match=r"cut\.gguf"):
        gptviz.load(tmp_path / "cut.gguf")


def test_a_model_on_the_hub_that_cannot_be_opened_is_refused_before_its_weights_are_fetched(
    server: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.repositories["someone/mixture"] = {
        "config.json": b'{"model_type": "mamba"}',
        "model.safetensors": bytes(9_000),
    }
    with pytest.raises(checkpoints.CheckpointError, match="mamba"):
        import_model("someone/mixture")
    monkeypatch.setattr(memory, "free_bytes", lambda device="cpu": 20_000)
    with pytest.raises(
        checkpoints.CheckpointError,
        match="someone/tiny is not fetched: it needs about .* and 20 kB is free",
    ):
        import_model("someone/tiny")
    assert set(server.files_sent()) == {"config.json"}
    assert own_models(tmp_path) == set()


def test_the_command_says_the_size_before_it_fetches_and_ctrl_c_leaves_nothing_half_made(
    server: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(download, "CHUNK", 1_000)
    report = progress.report

    def interrupted(done: int, of: int, step: str) -> None:
        report(done, of, step)
        if done >= 5_000:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(progress, "report", interrupted)
        assert main(["import", "someone/tiny"]) == 130
    error = capsys.readouterr().err
    assert re.search(
        r"someone/tiny: [\d.]+ kB are fetched from the hub, licence mit; Ctrl-C stops", error
    )
    assert "stopped; nothing was imported, and what has arrived is gone on with" in error
    assert own_models(tmp_path) == set()
    assert main(["import", "someone/tiny", "--json"]) == 0
    assert any(
        asked is not None for _, path, asked in server.asked if path.endswith("model.safetensors")
    )
    assert json.loads(capsys.readouterr().out)["name"] == "tiny"
    assert "its weights stay at their place in the cache of huggingface_hub" in output(
        capsys, "import", "someone/tiny"
    )
