"""A model of the user's is exported as a whole or not at all; what an export cannot have is
said.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import gptviz
from gptviz.__main__ import main
from gptviz.model import parameter_count
from gptviz.runs import checkpoints, sharing
from gptviz.runs.checkpoints import CheckpointError
from gptviz.runs.exports import FORMATS, GGUFFormat
from gptviz.runs.imports import import_model
from tests.command_line import Capture, answered, error, output
from tests.pretrained.test_families import GROUPED, VOCAB, theirs
from tests.tiny import TinyModel, some_ids

FOR_ALL = {"tied": True, "d_mlp": 48}  # what every format has


@pytest.mark.parametrize("kind", ["zip", "transformers", "nanogpt"])
def test_what_the_command_exports_is_opened_again_as_the_same_model(
    kind: str,
    tiny_model: TinyModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    folder = tiny_model("mine", card={"licence": "mit", "corpus": "a rhyme"}, **FOR_ALL)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    path = Path(answered(capsys, "export", "mine", "--format", kind)["path"])
    assert path.parent == tmp_path / "here"
    assert (
        main(
            [
                "import",
                str(path / "ckpt.pt" if kind == "nanogpt" else path),
                "--name",
                "again",
                "--json",
            ]
        )
        == 0
    )
    before = checkpoints.load(folder)
    after = checkpoints.load(checkpoints.find("again"))
    ids = some_ids(8, vocab=before.model.config.vocab_size)
    with torch.inference_mode():
        # A GGUF file has float16, and takes GELU for its approximation.
        close = 1e-2 if kind == "gguf" else 1e-5
        torch.testing.assert_close(after.model(ids), before.model(ids), rtol=close, atol=close)
    assert after.tokenizer.encode("the fox").ids == before.tokenizer.encode("the fox").ids


def test_a_model_of_another_program_is_exported_as_its_family_in_its_precision(
    home: Path, tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    theirs("mistral", GROUPED | {"sliding_window": 400}).to(torch.bfloat16).save_pretrained(
        tmp_path / "given"
    )
    folder = import_model(str(tmp_path / "given")).folder
    card = checkpoints.read_card(folder).change_values(
        licence="apache-2.0",
        imported_from="someone/tiny",
        end_tokens=[3, 4],
        chat={"template": "{{ bos_token }}", "tokens": {}},
    )
    checkpoints.write_json(folder / "card.json", card.to_json())
    FORMATS["transformers"].write(folder, tmp_path / "made")
    # Its window is wider than its context, so that Llama computes the same: it stays what it was.
    assert json.loads((tmp_path / "made" / "config.json").read_text())["model_type"] == "mistral"
    given, made = (
        safetensors.torch.load_file(tmp_path / name / "model.safetensors")
        for name in ("given", "made")
    )
    assert given.keys() == made.keys()
    assert all(
        torch.equal(given[name], made[name]) and made[name].dtype is torch.bfloat16
        for name in given
    )
    assert transformers.AutoConfig.from_pretrained(tmp_path / "made").eos_token_id == [3, 4]
    assert (
        transformers.AutoTokenizer.from_pretrained(tmp_path / "made").chat_template
        == "{{ bos_token }}"
    )
    readme = (tmp_path / "made" / "README.md").read_text()
    assert 'license: "apache-2.0"' in readme
    assert "someone/tiny on the Hugging Face hub" in readme
    assert str(tmp_path) not in readme
    again = import_model(str(tmp_path / "made"), "again").folder
    assert checkpoints.read_card(again).end_tokens == (3, 4)
    ids = some_ids(9, vocab=VOCAB)
    with torch.inference_mode():
        assert torch.equal(checkpoints.load(again).model(ids), checkpoints.load(folder).model(ids))


def test_what_a_format_leaves_out_is_said(
    tiny_model: TinyModel, tmp_path: Path, capsys: Capture
) -> None:
    folder = tiny_model("mine", card={"losses": [{"step": 0, "validation": 3.0}]}, **FOR_ALL)
    for step in (0, 5):
        checkpoints.snapshot_path(folder, step).parent.mkdir(exist_ok=True)
        checkpoints.snapshot_path(folder, step).write_bytes(
            (folder / "model.safetensors").read_bytes()
        )
    for kind in ("zip", "transformers", "nanogpt"):
        assert main(["export", "mine", "--format", kind, "--to", str(tmp_path / kind)]) == 0
        said = "Left out: its 2 snapshots and the course of its training;"
        assert (said in capsys.readouterr().out) == (kind != "zip")
    with zipfile.ZipFile(tmp_path / "zip") as archive:
        assert sum("snapshots" in name for name in archive.namelist()) == 2


def test_a_format_that_a_model_has_not_says_why_and_writes_nothing(
    tiny_model: TinyModel, tmp_path: Path, capsys: Capture
) -> None:
    folder = tiny_model("mine", residual="post-norm", tied=True)
    assert FORMATS["zip"].why_not(folder) is None
    for kind in ("transformers", "nanogpt"):
        assert "residual (here post-norm)" in str(FORMATS[kind].why_not(folder))
        assert main(["export", "mine", "--format", kind, "--to", str(tmp_path / "there")]) == 2
        error = capsys.readouterr().err
        assert "residual (here post-norm)" in error
        assert error.count("\n") == 1
        with pytest.raises(CheckpointError, match=r"residual \(here post-norm\)"):
            FORMATS[kind].write_zip(folder, io.BytesIO())
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert not list((tmp_path / "home").glob("*export*"))


@pytest.mark.parametrize("kind", FORMATS)
def test_nothing_is_replaced_and_no_folder_is_made_up(
    kind: str, tiny_model: TinyModel, tmp_path: Path
) -> None:
    folder = tiny_model("mine", **FOR_ALL)
    (tmp_path / "mine.zip").write_text("precious")
    with pytest.raises(CheckpointError, match=r"there is something at .*mine\.zip already"):
        FORMATS[kind].write(folder, tmp_path / "mine.zip")
    with pytest.raises(CheckpointError, match="there is no folder"):
        FORMATS[kind].write(folder, tmp_path / "missing" / "mine.zip")
    assert (tmp_path / "mine.zip").read_text() == "precious"


@pytest.mark.parametrize("kind", ["transformers", "nanogpt"])
def test_a_folder_can_be_had_as_one_zip_file(
    kind: str, tiny_model: TinyModel, tmp_path: Path, home: Path
) -> None:
    folder = tiny_model("mine", **FOR_ALL)
    file = io.BytesIO()
    FORMATS[kind].write_zip(folder, file)
    FORMATS[kind].write(folder, tmp_path / "made")
    with zipfile.ZipFile(file) as archive:
        assert sorted(archive.namelist()) == sorted(
            f"mine/{path.name}" for path in (tmp_path / "made").iterdir()
        )
    assert sharing.unpack(file, "again") == checkpoints.find("again")
    assert {path.name for path in home.iterdir()} == {"checkpoints"}


@pytest.mark.parametrize("kind", ["transformers", "nanogpt"])
def test_a_full_disk_leaves_nothing(
    kind: str, tiny_model: TinyModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_model("mine", **FOR_ALL)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(safetensors.torch, "save_file", full)
    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(CheckpointError, match=r"mine cannot be written to .*No space left"):
        FORMATS[kind].write(folder, tmp_path / "made")
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_the_shipped_models_say_which_formats_they_have() -> None:
    """GPT-2 is built as these two are; nanoGPT's embedding and unembedding are one matrix, as
    theirs are not, or are.
    """
    formats = {
        name: [
            kind
            for kind, each in FORMATS.items()
            if each.why_not(checkpoints.BUNDLED / name) is None
        ]
        for name in ("shakespeare", "bpe", "reversal", "classifier", "seq2seq", "finetune-lora")
    }
    assert formats == {
        "shakespeare": ["zip", "python"],
        "bpe": ["zip", "transformers", "nanogpt", "gguf", "python"],
        "reversal": ["zip", "transformers", "python"],
        "classifier": ["zip"],
        "seq2seq": ["zip"],
        "finetune-lora": ["zip", "transformers", "nanogpt", "peft", "python"],
    }


def test_a_format_without_snapshots_is_as_large_whether_they_are_asked_for_or_not() -> None:
    folder = checkpoints.find("reversal")
    assert checkpoints.snapshots(folder)
    sizes = {
        name: [each.bytes(folder, snapshots=asked) for asked in (True, False)]
        for name, each in FORMATS.items()
    }
    assert [most > least for most, least in sizes.values()] == [name == "zip" for name in sizes]


@pytest.mark.parametrize(("weights", "bits"), [("F16", 16), ("Q8_0", 8.5), ("Q4_0", 4.5)])
def test_a_gguf_file_is_one_file_with_the_weights_that_are_asked_for(
    weights: str, bits: float, tiny_model: TinyModel, tmp_path: Path, capsys: Capture
) -> None:
    folder = tiny_model("mine", d_model=64, d_mlp=96, n_head=2)
    to = tmp_path / "made.gguf"
    assert "Left out: what GELU differs from its approximation" in output(
        capsys, "export", "mine", "--format", "gguf", "--weights", weights, "--to", to
    )
    again = gptviz.load(to, precision="float32")
    twin = (
        gptviz.load("mine")
        if weights == "F16"
        else gptviz.load("mine").edited(f"weights={weights}")
    )
    ids = some_ids(8, vocab=twin.model.config.vocab_size)
    with torch.inference_mode():
        torch.testing.assert_close(again.model(ids), twin.model(ids), rtol=0.02, atol=0.02)
    made = GGUFFormat(weights)
    assert made.bytes(folder) == round(parameter_count(twin.model.config) * bits / 8)
    file = io.BytesIO()
    made.write_zip(folder, file)
    with zipfile.ZipFile(file) as archive:
        assert archive.namelist() == ["mine.gguf"]
        assert archive.read("mine.gguf") == to.read_bytes()


def test_weights_are_asked_for_of_a_gguf_file_alone(tiny_model: TinyModel, capsys: Capture) -> None:
    tiny_model("mine", **FOR_ALL)
    assert "add --format gguf" in error(
        capsys, "export", "mine", "--format", "zip", "--weights", "Q8_0"
    )
