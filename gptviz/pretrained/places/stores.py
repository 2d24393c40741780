"""The models that other programs keep on this machine: the folders of each program, searched within
bounds.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from gptviz.machine.bounded import parse_json, read_regular
from gptviz.machine.errors import reason_of
from gptviz.model.costs.memory_needed import MemoryNeeded, estimate_memory
from gptviz.model.precision import STORED

from ..families import ImportRefusedError
from ..opening import source_at
from ..sources.folder_tokens import FILES
from .hub import is_whole

MOST_MODELS = 100  # of a store
MOST_LOOKED_AT = 5_000  # files and folders in a store
DEEPEST = 4  # folders below that of a store
LONGEST_MANIFEST = 2**18  # bytes
OLLAMA_MODEL = "application/vnd.ollama.image.model"


@dataclass(frozen=True)
class Place:
    """A model of another program on this machine."""

    store: str  #: the program that keeps it, in words
    name: str  #: its name there
    path: Path  #: its folder or file
    given: str  #: the argument that opens it: the path, or its name on the hub


@dataclass(frozen=True)
class Store:
    """The models that one program keeps."""

    title: str  #: the program, in words
    path: Path  #: its folder
    models: tuple[Place, ...]  #: what was found in it, at most `MOST_MODELS`
    is_cut: bool  #: whether there may be more: the search stopped at a bound
    #: folders that have a tokenizer and no model, at most as many
    tokenizers: tuple[Place, ...] = ()


@dataclass(frozen=True)
class Summary:
    """The facts in the headers of a model's files."""

    family: str = ""  #: the usual name of such models; empty if gptviz does not know them
    parameters: int | None = None  #: how many numbers it has
    needs: MemoryNeeded | None = None  #: the memory that it takes when it is open
    licence: str | None = None  #: its licence, if it names one
    size: int | None = None  #: bytes of its weights on the disk, or None if they cannot be read
    problem: str = ""  #: why it cannot be opened, empty if no reason is known


def stores() -> list[Store]:
    """The models of all programs that keep models on this machine; programs without models are left
    out.
    """
    return [store for store in _looked_through() if store.models]


def tokenizers() -> list[Place]:
    """All that has a tokenizer: the models of other programs, and folders of the hub's cache that
    hold only a tokenizer.
    """
    return [place for store in _looked_through() for place in (*store.models, *store.tokenizers)]


def _looked_through() -> list[Store]:
    home = Path.home()
    lm_studio = [home / ".lmstudio" / "models", home / ".cache" / "lm-studio" / "models"]
    caches = {"darwin": "Library/Caches", "win32": "AppData/Local"}.get(sys.platform, ".cache")
    llama_cpp = Path(os.environ.get("LLAMA_CACHE") or home / caches / "llama.cpp")
    return [
        _hugging_face(),
        _ollama(),
        *[_files("LM Studio", folder) for folder in lm_studio],
        _files("llama.cpp", llama_cpp),
    ]


def store_inside(folder: Path) -> Store:
    """The models and tokenizers in a folder that the user names, and in those below it."""
    return _files(str(folder), folder, also_folders=True)


def summary(path: Path) -> Summary:
    """A description of the model at this path; its weights and its tokenizer are not read."""
    summary = Summary()
    try:
        source = source_at(path)
        outline = source.outline()
        needs = estimate_memory(outline.config)
        numbers = round(needs.weights / needs.number)
        summary = Summary(outline.family, numbers, needs, outline.licence)
        needs = estimate_memory(outline.config, source.number_bytes(numbers, STORED))
        return replace(summary, size=source.size(), needs=needs)
    except (ImportRefusedError, OSError) as error:
        return replace(summary, problem=reason_of(error))


def _hugging_face() -> Store:
    """The cache of huggingface_hub: for each model `models--owner--name/snapshots/COMMIT`, of which
    `refs/main` names one.
    """
    from huggingface_hub import constants

    root = Path(constants.HF_HUB_CACHE)
    names = (entry for entry in _entries(root) if entry.startswith("models--"))
    models = list[Place]()
    tokenizers = list[Place]()
    for entry in islice(names, MOST_MODELS):
        name = entry.removeprefix("models--").replace("--", "/", 1)
        folder, is_main = _snapshot(root / entry)
        if folder is None:
            continue
        there = _entries(folder)
        if "config.json" in there:
            # an incomplete model would be looked up on the hub by its name
            by_name = is_main and is_whole(folder)
            models.append(Place("Hugging Face", name, folder, name if by_name else str(folder)))
        else:
            ggufs = sorted(file for file in there if file.lower().endswith(".gguf"))
            models += [
                Place("Hugging Face", f"{name}/{file}", folder / file, str(folder / file))
                for file in ggufs[:MOST_MODELS]
            ]
            if not ggufs and any(file in FILES for file in there):
                tokenizers.append(Place("Hugging Face", name, folder, str(folder)))
    return Store(
        "Hugging Face",
        root,
        tuple(models[:MOST_MODELS]),
        next(names, None) is not None,
        tuple(tokenizers),
    )


def _snapshot(model: Path) -> tuple[Path | None, bool]:
    """The version of a model that is in the cache, and whether it is the one that `refs/main`
    names.
    """
    try:
        commit = read_regular(model / "refs" / "main", 200).decode("ascii").strip()
        is_main = True
    except (OSError, ValueError):
        commit = max(_entries(model / "snapshots"), default="")
        is_main = False
    folder = model / "snapshots" / commit
    return (
        folder if commit and folder.parent == model / "snapshots" and folder.is_dir() else None
    ), is_main


def _ollama() -> Store:
    """Ollama's store: a manifest for each name and tag, and files that are named by their hash."""
    root = Path(os.environ.get("OLLAMA_MODELS") or Path.home() / ".ollama" / "models")
    models: list[Place] = []
    is_cut = False
    for manifest in _walk(root / "manifests", DEEPEST + 1):
        if manifest is None or len(models) == MOST_MODELS:
            is_cut = True
            break
        blob = _model_layer(manifest, root / "blobs")
        if blob is not None:
            name = f"{manifest.parent.name}:{manifest.name}"
            owner = manifest.parent.parent.name
            models.append(
                Place("Ollama", name if owner == "library" else f"{owner}/{name}", blob, str(blob))
            )
    return Store("Ollama", root, tuple(models), is_cut)


def _model_layer(manifest: Path, blobs: Path) -> Path | None:
    """The file with the weights that a manifest names."""
    try:
        content: Any = parse_json(read_regular(manifest, LONGEST_MANIFEST), LONGEST_MANIFEST)
        digests = [
            layer["digest"] for layer in content["layers"] if layer.get("mediaType") == OLLAMA_MODEL
        ]
        name = digests[0].replace(":", "-")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None
    if Path(name).name == name:
        return blobs / name
    return None


def _files(title: str, root: Path, *, also_folders: bool = False) -> Store:
    """The GGUF files in a folder and below it; with `also_folders`, also all other models that
    gptviz opens, and tokenizers.
    """
    places: list[Place] = []
    tokenizers: dict[Path, Place] = {}
    is_cut = False
    for path in _walk(root, DEEPEST):
        if path is None or len(places) == MOST_MODELS:
            is_cut = True
            break
        of_folder = also_folders and path.name == "config.json"
        is_model = path.suffix.lower() == ".gguf" or (
            also_folders and path.suffix in (".pt", ".pth", ".ckpt")
        )
        if of_folder or is_model:
            places.append(_place(title, root, path.parent if of_folder else path))
        elif also_folders and path.name in FILES and not (path.parent / "config.json").exists():
            tokenizers[path.parent] = _place(title, root, path.parent)
    return Store(title, root, tuple(places), is_cut, tuple(tokenizers.values())[:MOST_MODELS])


def _place(title: str, root: Path, path: Path) -> Place:
    name = str(path.relative_to(root)) if path != root else path.name
    return Place(title, name, path, str(path))


def _walk(root: Path, depth: int) -> Iterator[Path | None]:
    """The files below a folder, without links and hidden folders; None at the end if it stopped
    after `MOST_LOOKED_AT` of all.
    """
    left = MOST_LOOKED_AT
    for folder, folders, files in os.walk(root):
        below = len(Path(folder).relative_to(root).parts)
        folders[:] = (
            sorted(name for name in folders if not name.startswith(".")) if below < depth else []
        )
        left -= 1
        for name in sorted(files):
            left -= 1
            if left >= 0:
                yield Path(folder) / name
        if left < 0:
            yield None
            return


def _entries(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
