"""The models of other programs are found where these keep them, within bounds, and summed up from
the heads of their files.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gptviz.model.costs.memory_needed import estimate_memory
from gptviz.pretrained.families import ImportRefusedError
from gptviz.pretrained.opening import source_at, tokenizer_at
from gptviz.pretrained.places import stores
from gptviz.pretrained.places.stores import Place, summary
from gptviz.text import BPETokenizer
from tests.pretrained.test_families import GROUPED, theirs


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user whose programs keep their models in the usual places."""
    from huggingface_hub import constants

    for name in ("OLLAMA_MODELS", "LLAMA_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path


def found() -> dict[str, Place]:
    return {place.name: place for store in stores.stores() for place in store.models}


def write(path: Path, content: bytes = b"GGUF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_nothing_is_found_where_there_is_nothing(user: Path) -> None:
    assert stores.stores() == []


def test_every_store_is_looked_through(user: Path) -> None:
    kept = user / "hub" / "models--someone--tiny" / "snapshots" / "abc"
    write(kept / "config.json", b"{}")
    write(kept.parents[1] / "refs" / "main", b"abc")
    for name in ("tokenizer.json", "model.safetensors"):
        write(kept / name)
    # without a ref
    write(user / "hub" / "models--gpt2" / "snapshots" / "def" / "config.json", b"{}")
    write(user / "hub" / "models--someone--files" / "snapshots" / "abc" / "small.gguf")
    write(user / "hub" / "datasets--someone--texts" / "snapshots" / "abc" / "config.json", b"{}")
    lm = write(user / ".lmstudio" / "models" / "someone" / "repo" / "model.Q4_0.gguf")
    write(user / ".lmstudio" / "models" / "someone" / "repo" / "notes.txt")
    cpp = write(user / ".cache" / "llama.cpp" / "other.gguf")
    blob = write(user / ".ollama" / "models" / "blobs" / "sha256-00ff")
    layers = [{"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:11"}]
    layers += [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:00ff"}]
    manifests = user / ".ollama" / "models" / "manifests" / "registry.ollama.ai"
    write(manifests / "library" / "smollm" / "135m", json.dumps({"layers": layers}).encode())
    write(manifests / "me" / "mine" / "latest", json.dumps({"layers": layers}).encode())
    here = found()
    assert {name: (place.store, place.path) for name, place in here.items()} == {
        "someone/tiny": ("Hugging Face", kept),
        "gpt2": ("Hugging Face", user / "hub" / "models--gpt2" / "snapshots" / "def"),
        "someone/files/small.gguf": (
            "Hugging Face",
            user / "hub" / "models--someone--files" / "snapshots" / "abc" / "small.gguf",
        ),
        "someone/repo/model.Q4_0.gguf": ("LM Studio", lm),
        "other.gguf": ("llama.cpp", cpp),
        "smollm:135m": ("Ollama", blob),
        "me/mine:latest": ("Ollama", blob),
    }
    assert here["someone/tiny"].given == "someone/tiny"
    # its name alone would not lead to this version of it
    assert here["gpt2"].given == str(here["gpt2"].path)
    assert here["smollm:135m"].given == str(blob)
    assert source_at(blob).kind == "gguf"  # though its name does not say so


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"{",
        b"[]",
        b'{"layers": 3}',
        b'{"layers": [{}]}',
        b'{"layers": [{"mediaType": "%s", "digest": "sha256:../../x/../y"}]}',
    ],
)
def test_a_manifest_that_is_none_or_leads_out_of_the_store_is_left_out(
    user: Path, manifest: bytes
) -> None:
    content = manifest.replace(b"%s", stores.OLLAMA_MODEL.encode())
    write(
        user
        / ".ollama"
        / "models"
        / "manifests"
        / "registry.ollama.ai"
        / "library"
        / "odd"
        / "latest",
        content,
    )
    assert found() == {}


def test_a_ref_that_leads_out_of_the_store_is_left_out(user: Path) -> None:
    write(user / "hub" / "models--a--b" / "refs" / "main", b"../../../x")
    write(user / "x" / "config.json", b"{}")
    assert found() == {}


def test_a_store_of_thousands_of_files_is_looked_through_within_bounds(
    user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        write(user / ".lmstudio" / "models" / f"{number:02d}.gguf")
        write(user / "hub" / f"models--a--b{number:02d}" / "snapshots" / "c" / "config.json")
    monkeypatch.setattr(stores, "MOST_MODELS", 20)
    assert [(len(store.models), store.is_cut) for store in stores.stores()] == [
        (20, True),
        (20, True),
    ]
    monkeypatch.setattr(stores, "MOST_LOOKED_AT", 10)
    studio = next(store for store in stores.stores() if store.title == "LM Studio")
    assert (len(studio.models), studio.is_cut) == (9, True)
    for number in range(30):
        (user / "empty" / f"{number}" / "x").mkdir(parents=True)
    assert stores.store_inside(user / "empty").is_cut, "folders count too"


def test_a_folder_that_somebody_names_is_looked_through_for_everything_that_opens(
    user: Path,
) -> None:
    write(user / "mine" / "a" / "config.json", b"{}")
    write(user / "mine" / "b" / "ckpt.pt")
    write(user / "mine" / "c.gguf")
    write(user / "mine" / "d.ckpt")
    write(user / "mine" / ".hidden" / "d.gguf")
    store = stores.store_inside(user / "mine")
    assert {place.name for place in store.models} == {"a", "b/ckpt.pt", "c.gguf", "d.ckpt"}
    assert not store.is_cut


def test_tokenizers_are_found_without_a_model_too(user: Path) -> None:
    tokenizer = BPETokenizer.learn("aababc", 258)
    kept = user / "hub" / "models--someone--words" / "snapshots" / "abc"
    write(kept / "tokenizer.json", tokenizer.to_json().encode())
    write(kept / "tokenizer_config.json", b"{}")
    write(user / "hub" / "models--someone--model" / "snapshots" / "abc" / "config.json", b"{}")
    write(user / "hub" / "models--someone--data" / "snapshots" / "abc" / "data.csv")
    assert [place.name for place in stores.tokenizers()] == ["someone/model", "someone/words"]
    assert "someone/words" not in found(), "it is no model"
    assert tokenizer_at(kept).encode("aab").ids == tokenizer.encode("aab").ids
    mine = user / "mine"
    for name in (
        "both/vocab.txt",
        "both/tokenizer.json",
        "whole/config.json",
        "whole/tokenizer.json",
    ):
        write(mine / name)
    inside = stores.store_inside(mine)
    assert [place.name for place in inside.tokenizers] == ["both"]
    assert [place.name for place in inside.models] == ["whole"]
    with pytest.raises(ImportRefusedError, match="holds no tokenizer"):
        tokenizer_at(kept.parent)


def test_a_summary_says_what_the_files_say_and_why_a_model_cannot_be_opened(user: Path) -> None:
    model = theirs("llama", GROUPED)
    model.save_pretrained(user / "tiny")
    (user / "tiny" / "README.md").write_text(
        "---\nlanguage: en\nlicense: 'apache-2.0'\ntags:\n- x\n---\n# Tiny\nlicense: none\n"
    )
    known = summary(user / "tiny")
    assert known.family == "Llama"
    assert known.parameters == sum(p.numel() for p in model.parameters())
    assert known.size == (user / "tiny" / "model.safetensors").stat().st_size
    assert known.needs == estimate_memory(source_at(user / "tiny").outline().config)
    assert (known.licence, known.problem) == ("apache-2.0", "")
    write(user / "odd" / "config.json", b'{"model_type": "mamba"}')
    assert "mamba" in summary(user / "odd").problem
    cut = write(user / "cut.gguf", b"GGUF" + bytes(5))
    assert "cut.gguf" in summary(cut).problem
    assert "nothing at" in summary(user / "none").problem
