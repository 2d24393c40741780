"""Models of one's own in the browser: those that the page “Try it” trains leave it whole, and those
that it opens are read as the library reads them, or refused.
"""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import gptviz
from gptviz.runs import checkpoints, sharing
from gptviz.runs.checkpoints import CheckpointError
from gptviz.takehome.live import page
from gptviz.train.recipe import Recipe
from tests.command_line import Capture, error, printed
from tests.takehome.test_live_training import node

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
TEXTS = page._texts()
NAMES = ("config.json", "tokenizer.json", "model.safetensors")


def trained(out: Path, size: str = "small", *, text: str = TEXTS["names"], **more: Any) -> Any:
    """What a browser trains for a few steps, with its files in `out`."""
    is_list = more.pop("is_list", True)
    sizes = page.TRAINED["sizes"][size] | page.TRAINED["common"]
    asked = {"text": text, "isList": is_list, "sizes": sizes, "seed": 1}
    twin = page._twins()[f"{size} {'list' if is_list else 'text'}"]
    given = {"train": asked | {"steps": 42}, "stopAt": 99, "prompt": "an", "twin": twin}
    return node("own_models.js", given | {"out": str(out)} | more)


def opened(*paths: Path, prompt: str = "a") -> Any:
    """What a browser makes of zip files and folders."""
    asked = {"open": list(map(str, paths)), "fields": page._fields(), "prompt": prompt}
    return node("own_models.js", asked)


def logits_of(name: str, prompt: str, step: int | None = None) -> np.ndarray:
    """Those after the prompt, by the library."""
    lm = gptviz.load(name, step=step)
    with torch.inference_mode():
        return lm.model(lm.seen(lm.encode(prompt))[None])[0, -1].numpy()


def test_a_model_trained_in_a_browser_opens_in_gptviz_with_its_snapshots(
    home: Path, tmp_path: Path
) -> None:
    said = trained(tmp_path)
    assert said["evaluations"][-1]["validation"] < said["evaluations"][0]["validation"] - 0.3
    recipe = Recipe(steps=42, snapshots=3)
    assert said["kept"] == [step for step in range(42) if recipe.saves_snapshot(step)] + [42]
    folder = sharing.unpack(tmp_path / "browser.zip")
    lm = gptviz.load(folder.name)
    assert sum(weights.numel() for weights in lm.model.parameters()) == said["parameters"]
    np.testing.assert_allclose(logits_of(folder.name, "an"), said["logits"], atol=1e-5)
    assert lm.tokenizer.decode(lm.card.end_tokens) == "\n"
    assert lm.card.steps == 42
    assert [loss.step for loss in lm.card.losses] == said["kept"]
    assert list(checkpoints.snapshots(folder)) == said["kept"]
    # The page opens what it saved, snapshots too.
    (again,) = opened(tmp_path / "browser.zip", prompt="an")
    assert [step for step, _ in again["logits"]] == [None, *said["kept"]]
    for step, logits in again["logits"]:
        np.testing.assert_allclose(logits_of(folder.name, "an", step), logits, atol=1e-5)


def test_the_plain_twin_of_a_model_trained_in_a_browser_computes_the_same(tmp_path: Path) -> None:
    for size, text, is_list in (
        ("small", TEXTS["words"], True),
        ("large", "To be, or not to be: that is the question. " * 9, False),
    ):
        said = trained(tmp_path, size, text=text, is_list=is_list, stopAt=2)
        assert said["step"] == 2
        with zipfile.ZipFile(tmp_path / "twin.zip") as archive:
            archive.extractall(tmp_path / size)
        folder = tmp_path / size / "browser"
        names: dict[str, Any] = {"__file__": str(folder / "browser.py"), "__name__": "twin"}
        exec((folder / "browser.py").read_text(encoding="utf-8"), names)
        np.testing.assert_allclose(
            names["forward"](names["encode"]("an"))[-1], said["logits"], atol=1e-5
        )
        command = [sys.executable, str(folder / "browser.py"), "an", "--tokens", "3"]
        ended = subprocess.run(command, capture_output=True, text=True, check=True)
        assert ended.stdout.startswith("an")


def test_no_text_makes_a_model_of_more_than_30_000_parameters(home: Path, tmp_path: Path) -> None:
    every = "".join(map(chr, range(0x4E00, 0x4E00 + 300)))
    said = trained(tmp_path, "large", text=every * 2 + "an" * 99, is_list=False, stopAt=1)
    assert said["dropped"] == 302 - 96
    assert said["parameters"] <= 30_000
    folder = sharing.unpack(tmp_path / "browser.zip")
    np.testing.assert_allclose(logits_of(folder.name, "an"), said["logits"], atol=1e-5)


def test_a_text_that_is_too_short_is_refused_with_what_it_needs(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        trained(tmp_path, text="anna\nbob")
    assert "the text has 10 characters, and at least 22 are needed" in failed.value.stderr


@pytest.mark.parametrize("name", ["sentences", "bpe", "ladder-0", "shakespeare", "induction"])
def test_what_gptviz_exports_opens_in_a_browser(name: str, tmp_path: Path) -> None:
    folder = checkpoints.find(name)
    path = tmp_path / f"{name}.zip"
    sharing.pack(folder, path, snapshots=False)
    lm = gptviz.load(name)
    prompt = lm.tokenizer.decode([5, 6, 7])
    for found in opened(path, folder, prompt=prompt):
        assert found["name"] == name
        assert found["ids"] == list(lm.encode(prompt))
        assert found["ends"] == list(lm.card.end_tokens)
        _, logits = found["logits"][0]
        np.testing.assert_allclose(logits, logits_of(name, prompt), atol=1e-4)


def test_what_the_page_lacks_is_named(tmp_path: Path) -> None:
    said = {}
    for name in ("classifier", "finetune-lora"):
        sharing.pack(checkpoints.find(name), tmp_path / f"{name}.zip", snapshots=False)
        said[name] = opened(tmp_path / f"{name}.zip")[0]["refused"]
    assert said["classifier"].startswith("this page lacks a part of it: positions “sinusoidal”")
    assert said["finetune-lora"].startswith("it is an adapter")


Files = dict[str, bytes]


def changed(**fields: Any) -> Callable[[Files], Files]:
    """The files with other fields in config.json."""

    def change(files: Files) -> Files:
        content = json.loads(files["m/config.json"])
        content["config"] |= fields
        return files | {"m/config.json": json.dumps(content).encode()}

    return change


def replaced(name: str, content: bytes) -> Callable[[Files], Files]:
    return lambda files: files | {f"m/{name}": content}


def without(name: str) -> Callable[[Files], Files]:
    return lambda files: {path: content for path, content in files.items() if path != f"m/{name}"}


def renamed(name: str) -> Callable[[Files], Files]:
    """One more file, with this path."""
    return lambda files: files | {name: b"x"}


def weights(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Files], Files]:
    """The files with other weights."""

    def changed_weights(files: Files, folder: Path = Path()) -> Files:
        tensors = load_file(checkpoints.find("ladder-0") / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "weights")
        return files | {"m/model.safetensors": (folder / "weights").read_bytes()}

    return changed_weights


def lied(find: bytes, instead: bytes) -> Callable[[Files], Files]:
    """Weights whose header says something else, as long as it was."""

    def lie(files: Files) -> Files:
        content = files["m/model.safetensors"]
        assert find in content
        return files | {"m/model.safetensors": content.replace(find, instead.ljust(len(find)), 1)}

    return lie


NAN = weights(lambda tensors: tensors["embed.weight"].fill_(torch.nan))
# What is wrong with a zip file: what is changed in a good one, and what the page says of it.
HOSTILE = {
    "leads out": (renamed("m/../../evil"), "leads out of its folder"),
    "absolute": (renamed("/etc/evil"), "leads out of its folder"),
    "backslash": (renamed("m\\evil"), "is no name for a file"),
    "device": (renamed("m/con.txt"), "some systems take for something else"),
    "control": (renamed("m/a\nb"), "is no name for a file"),
    "alike": (renamed("M/CONFIG.json"), "stands twice"),
    "file and folder": (renamed("m/config.json/x"), "is a file and a folder"),
    "bomb": (replaced("card.json", b" " * 40_000_000), "as those of no model do"),
    "many": (lambda files: files | {f"m/{i}": b"" for i in range(10_001)}, "entries, and 10000"),
    "two models": (
        lambda files: files | {path.replace("m/", "n/"): one for path, one in files.items()},
        "it holds several models",
    ),
    "nothing": (lambda files: {"a.txt": b"x"}, "it holds no model"),
    "no tokenizer": (without("tokenizer.json"), "it lacks tokenizer.json"),
    "no weights": (without("model.safetensors"), "it lacks model.safetensors"),
    "no JSON": (replaced("config.json", b"[1]"), "config.json is not a JSON object"),
    "damaged JSON": (replaced("tokenizer.json", b'{"kind"'), "tokenizer.json is not a JSON"),
    "format": (replaced("config.json", b'{"format": 2, "config": {}}'), "is of format “2”"),
    "long config": (replaced("config.json", b"{" + b" " * 70_000 + b"}"), "has 70002 bytes"),
    "unknown field": (changed(evil=1), "the unknown field “evil”"),
    "text for number": (changed(d_model="64"), "d_model “64”, which no model can have"),
    "negative": (changed(n_layer=-1), "n_layer “-1”, which no model can have"),
    "huge": (changed(context_length=10**9), "context_length “1000000000”"),
    "heads": (changed(n_head=7, d_head=None), "sizes that do not fit"),
    "other shape": (changed(d_model=32, d_head=8), "embed.weight (65, 32); model.safetensors has it (65, 64)"),
    "vocabulary": (
        replaced("tokenizer.json", b'{"kind": "characters", "unknown": null, "characters": ["a", "b"]}'),
        "its tokenizer has 2 tokens, the model 65",
    ),
    "unsorted": (
        replaced("tokenizer.json", b'{"kind": "characters", "unknown": null, "characters": ["b", "a"]}'),
        "not sorted",
    ),
    "tokenizer": (replaced("tokenizer.json", b'{"kind": "toString"}'), "no tokenizer “toString”"),
    "cut weights": (
        lambda files: files | {"m/model.safetensors": files["m/model.safetensors"][:-9]},
        "model.safetensors is damaged or cut short",
    ),
    "more weights": (
        lambda files: files | {"m/model.safetensors": files["m/model.safetensors"] + b"x"},
        "its tensors do not fill it",
    ),
    "long header": (replaced("model.safetensors", b"\xff" * 16), "its header is longer"),
    "type": (lied(b'"F16"', b'"I16"'), "as I16"),
    "offset": (lied(b'"data_offsets":[0,', b'"data_offsets":[8,'), "not where its header says"),
    "not numbers": (NAN, "holds values that are not numbers"),
    "one tensor less": (weights(lambda tensors: tensors.popitem()), "absent"),
    "one tensor more": (
        weights(lambda tensors: tensors.update(evil=torch.zeros(1))),
        "has evil, which a model of this config.json has not",
    ),
}  # fmt: skip


def good() -> Files:
    """The files of a small model that ships."""
    folder = checkpoints.find("ladder-0")
    return {f"m/{name}": (folder / name).read_bytes() for name in NAMES}


def write(path: Path, files: Files) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def test_hostile_files_are_refused_by_name_as_the_library_refuses_them(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = []
    for name, (change, _) in HOSTILE.items():
        write(tmp_path / f"{name}.zip", change(good()))
        paths.append(tmp_path / f"{name}.zip")
    write(tmp_path / "good.zip", good())
    *answers, fine = opened(*paths, tmp_path / "good.zip")
    for (name, (_, words)), answer in zip(HOSTILE.items(), answers, strict=True):
        assert words in answer.get("refused", ""), (name, answer)
        with pytest.raises(CheckpointError):
            sharing.unpack(tmp_path / f"{name}.zip", name.replace(" ", "-"))
    assert fine["name"] == "m"


def damaged_zips(folder: Path) -> dict[str, tuple[bytes, str]]:
    """Zip files that are no good as files, with what the page says of each."""
    write(folder / "whole.zip", good())
    whole = (folder / "whole.zip").read_bytes()
    link = zipfile.ZipInfo("m/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(folder / "link.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with zipfile.ZipFile(folder / "bzip2.zip", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("m/config.json", b"{}")
    listed = whole.rindex(b"PK\x01\x02")
    start = whole.index(b"PK\x01\x02")
    locked = bytearray(whole)
    locked[start + 8] |= 1
    longer = bytearray(whole)
    longer[start + 24] ^= 1
    other = bytearray(whole)
    other[start + 16] ^= 1
    cut = whole[:listed] + whole[listed + 60 :]
    return {
        "link": ((folder / "link.zip").read_bytes(), "is a link or a device"),
        "bzip2": ((folder / "bzip2.zip").read_bytes(), "packed by another method"),
        "locked": (bytes(locked), "is locked by a password"),
        "longer": (bytes(longer), "is not as long as it says"),
        "checksum": (bytes(other), "is not as it was packed"),
        "cut": (cut, "it is no zip file, or damaged"),
        "empty": (b"PK\x05\x06" + bytes(18), "it is empty"),
        "no zip": (b"hello" * 99, "it is no zip file, or damaged"),
        "nothing": (b"", "it is no zip file, or damaged"),
    }


def test_damaged_zip_files_are_refused_as_the_library_refuses_them(
    home: Path, tmp_path: Path
) -> None:
    zips = damaged_zips(tmp_path)
    for name, (content, _) in zips.items():
        (tmp_path / f"{name}.zip").write_bytes(content)
    answers = opened(*(tmp_path / f"{name}.zip" for name in zips))
    for (name, (_, words)), answer in zip(zips.items(), answers, strict=True):
        assert words in answer.get("refused", ""), (name, answer)
        with pytest.raises(CheckpointError):
            sharing.unpack(tmp_path / f"{name}.zip", name.replace(" ", "-"))


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "large.zip", "w") as archive:
        archive.writestr("m/model.safetensors", bytes(31_000_000))
    assert opened(tmp_path / "large.zip")[0]["refused"].startswith("it has more than 30 MB")


def test_the_gallery_of_own_models_is_the_page_about_them(
    home: Path, tmp_path: Path, capsys: Capture
) -> None:
    trained(tmp_path, stopAt=1)
    sharing.unpack(tmp_path / "browser.zip", "mine")
    out = tmp_path / "out"
    asked = ["gallery", "mine", "ladder-0", "--out", str(out), "--without-thumbnails"]
    said = json.loads(printed(capsys, *asked, "--json")[0])
    assert said["files"] == ["try.html"]
    models = sorted(file.name for file in (out / "models").iterdir())
    assert models == ["ladder-0.js", "mine.js"]
    other = ["gallery", "classifier", "--out", str(tmp_path / "other")]
    assert "classifier cannot be on the page “Try it”, which has no positions sinusoidal" in error(
        capsys, *other
    )
    assert not (tmp_path / "other").exists()
    assert "no model named 'nobody'" in error(capsys, "gallery", "nobody", "--out", str(out))
