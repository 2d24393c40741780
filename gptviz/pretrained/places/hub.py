"""Models on the Hugging Face hub, by name: `gpt2`, `HuggingFaceTB/SmolLM2-135M`.

The files are kept in the cache of the `huggingface_hub` library, where other programs find them
too; its settings for a mirror, a token and working offline apply (HF_ENDPOINT, HF_TOKEN,
HF_HUB_OFFLINE, HF_HOME). Only settings, tokenizers and weights are fetched, never code. What cannot
be fetched is refused with an `ImportRefusedError` that says what can be done, a
`HubUnreachableError` where the hub does not answer.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from gptviz.machine import progress
from gptviz.machine.bounded import parse_json
from gptviz.machine.errors import reason_of
from gptviz.machine.lines import lines_of
from gptviz.machine.memory import in_bytes as in_words

from ..families import FAMILIES, ImportRefusedError
from ..sources.folder import LONGEST_CONFIG, MOST_VALUES
from ..sources.gguf import WHOLE_ALONE
from ..sources.tensors import WEIGHTS, parts_in
from .download import bytes_here, download

NAME = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9_-]*/)?[A-Za-z0-9][A-Za-z0-9._-]*")
# a text with such an ending is the path of a file
FILES = (".gguf", ".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".zip")
GGUF_FILE = re.compile(r"(?P<name>[^/]+/[^/]+)/(?P<file>[A-Za-z0-9._/-]+\.gguf)", re.IGNORECASE)
SETTINGS = (
    *(
        "config.json",
        "generation_config.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
    ),
    *("chat_template.jinja", "README.md"),  # which names the licence
)
# The first of these that a model has is its tokenizer.
TOKENIZERS = (
    ("tokenizer.json",),
    ("vocab.json", "source.spm", "target.spm"),
    ("vocab.json", "merges.txt"),
    ("tokenizer.model",),
    ("vocab.txt",),
)
MOST_FOUND = 20
MOST_SEARCHED = 100
PATIENCE = 10.0  # seconds for an answer of the hub
# The unit of the progress of a download.
BYTE = "byte"


class HubUnreachableError(ImportRefusedError):
    """The hub does not answer: there is no network, or it is turned off; the message says why."""


@dataclass(frozen=True)
class HubFile:
    """A file on the hub."""

    path: str  #: its name in the model's folder there
    size: int  #: bytes
    key: str  #: the name of its content in the cache
    sha256: str | None  #: the hash of its content, if the hub gives it


@dataclass(frozen=True)
class HubModel:
    """A model on the hub, with the files to be fetched."""

    name: str  #: the model's name there
    commit: str  #: the version of it
    files: tuple[HubFile, ...]  #: the files that are needed
    fields: Mapping[str, Any]  #: its `config.json`; empty if it is a GGUF file
    licence: str | None  #: its licence, if its page names it
    revision: str | None = None  #: the name of that version, if it was asked for by one

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def weights(self) -> int:
        """The bytes of the files with its weights."""
        return sum(
            file.size
            for file in self.files
            if file.path.endswith((".safetensors", ".bin", ".gguf"))
        )

    @property
    def missing_bytes(self) -> int:
        """The bytes that are still to be fetched."""
        return sum(max(0, file.size - bytes_here(_blob(self.name, file))) for file in self.files)


@dataclass(frozen=True)
class SearchResult:
    """A result of a search on the hub."""

    name: str
    family: str  #: the usual name of such models
    parameters: int | None  #: how many numbers it has, if the hub knows
    downloads: int  #: how often it was fetched in the last month


def is_name(text: str) -> bool:
    """Whether this could be the name of a model on the hub, or of one of its GGUF files:
    `owner/name/file.gguf`.
    """
    name, gguf = _split(text)
    if gguf is None and Path(name).suffix in FILES:
        return False
    return NAME.fullmatch(name) is not None and ".." not in text and "--" not in text


def _split(text: str) -> tuple[str, str | None]:
    """The name of a model, and the GGUF file that the text names, or None."""
    file = GGUF_FILE.fullmatch(text)
    if file is None:
        return (text, None)
    return (file["name"], file["file"])


def _check(text: str) -> tuple[str, str | None]:
    if not is_name(text):
        raise ImportRefusedError(
            f"{text!r:.80} cannot be the name of a model on the hub, such as "
            "HuggingFaceTB/SmolLM2-135M"
        )
    return _split(text)


def fetch_model(text: str, accept: Callable[[HubModel], None] | None = None) -> Path:
    """The path of the model of this name on this machine: its folder in the cache, fetched from the
    hub unless it is there; a partial download is continued. `accept` is called with the offer
    first; if it raises an error, nothing is fetched.
    """
    folder = cached_path(text)
    if folder is not None and is_whole(folder):
        return folder
    try:
        offer = look_up(text)
    except HubUnreachableError as error:
        if folder is not None:
            return folder
        raise HubUnreachableError(
            f"{text} is not in the cache of huggingface_hub, and {error}: "
            "fetch it once where there is network, or give a folder or a file"
        ) from None
    if accept is not None:
        accept(offer)
    return fetch(offer)


def look_up(text: str, revision: str | None = None) -> HubModel:
    """The files that the hub has of the model of this name, by default of its main version. Its
    weights are not fetched yet.
    """
    from huggingface_hub import HfApi

    name, gguf = _check(text)
    with _answers(name):
        info = HfApi().model_info(name, revision=revision, files_metadata=True, timeout=PATIENCE)
    all_files = dict[str, HubFile]()
    for file in info.siblings or ():
        sha256 = file.lfs.sha256 if file.lfs is not None else None
        key = sha256 or file.blob_id
        if key is not None and file.size is not None and re.fullmatch("[0-9a-f]{40,64}", key):
            all_files[file.rfilename] = HubFile(file.rfilename, file.size, key, sha256)
    paths = _needed_files(name, set(all_files), gguf)
    commit = info.sha or "main"
    fields: Mapping[str, Any] = {} if gguf else _config(name, commit)
    licence = next(
        (tag.removeprefix("license:") for tag in info.tags or () if tag.startswith("license:")),
        None,
    )
    files = tuple(all_files[path] for path in paths)
    return HubModel(name, commit, files, fields, licence, revision)


def revisions(text: str) -> list[str]:
    """The names of the versions that the hub has of the model of this name, but for the main one:
    its branches, then its tags, those with numbers in the order of these.
    """
    from huggingface_hub import HfApi

    name, _ = _check(text)
    with _answers(name):
        refs = HfApi().list_repo_refs(name)
    every = [ref.name for ref in (*refs.branches, *refs.tags) if ref.name != "main"]

    def by_number(revision: str) -> list[str | int]:
        return [
            int(part) if part.isdecimal() else part for part in re.split(r"([0-9]{1,18})", revision)
        ]

    return sorted(dict.fromkeys(every), key=by_number)


def _needed_files(name: str, there: set[str], gguf: str | None) -> list[str]:
    """The files of a model that are fetched, the small ones first."""
    if gguf is not None:
        if gguf not in there:
            raise ImportRefusedError(
                f"{name} on the hub has no file {gguf:.80}: it has {_first_match(there, '*.gguf')}"
            )
        if (part := re.search(r"-(\d{5})-of-(\d{5})\.gguf$", gguf, re.IGNORECASE)) and int(
            part[2]
        ) > 1:
            raise ImportRefusedError(
                f"{gguf:.80} is part {int(part[1])} of {int(part[2])} of a model: {WHOLE_ALONE}"
            )
        return [gguf, *sorted(there & {"README.md"})]
    weights: list[str] = []
    for kind in WEIGHTS:
        stem, _, ending = kind.rpartition(".")
        if kind in there:
            weights = [kind]
        elif f"{kind}.index.json" in there:
            weights = [
                f"{kind}.index.json",
                *sorted(path for path in there if fnmatch(path, f"{stem}-*-of-*.{ending}")),
            ]
        if weights:
            break
    if not weights and (ggufs := _first_match(there, "*.gguf")):
        raise ImportRefusedError(
            f"{name} on the hub has only GGUF files: give the name of one with it, as "
            f"{name}/{ggufs}"
        )
    if not weights or "config.json" not in there:
        if weights:
            what = "config.json"
        else:
            what = "model.safetensors and no pytorch_model.bin"
        raise ImportRefusedError(f"{name} on the hub has no {what}: gptviz cannot open it")
    tokenizer = next((files for files in TOKENIZERS if set(files) <= there), ())
    return [*sorted(there & set(SETTINGS)), *tokenizer, *weights]


def _first_match(there: set[str], pattern: str) -> str:
    return ", ".join(sorted(path for path in there if fnmatch(path, pattern))[:3])


def _config(name: str, commit: str) -> Mapping[str, Any]:
    """The config.json of a model on the hub; nothing is written to the disk."""
    from huggingface_hub import get_session, hf_hub_url, hf_raise_for_status

    with _answers(name):
        answer = get_session().get(
            hf_hub_url(name, "config.json", revision=commit), headers=_headers(), timeout=PATIENCE
        )
        hf_raise_for_status(answer)
    try:
        if len(answer.content) > LONGEST_CONFIG:
            raise ValueError(f"it is longer than {LONGEST_CONFIG:,} bytes")
        fields = parse_json(answer.content, MOST_VALUES)
    except ValueError as error:
        raise ImportRefusedError(
            f"config.json of {name} on the hub cannot be read ({error})"
        ) from None
    if not isinstance(fields, dict):
        raise ImportRefusedError(f"config.json of {name} on the hub is not a table of fields")
    return fields


def _headers() -> dict[str, str]:
    """The headers of every request: the token, if there is one."""
    from huggingface_hub.utils import build_hf_headers

    headers: dict[str, str] = build_hf_headers()
    return headers


def fetch(offer: HubModel) -> Path:
    """Fetch the missing files of an offer. Returns their folder in the cache, or the GGUF file.

    All files arrive before the first of them gets its name in the cache: a download that was
    stopped is in no list, and is continued at the next call.
    """
    from huggingface_hub import hf_hub_download, hf_hub_url

    root = _cache()
    while not root.exists():
        root = root.parent
    free = shutil.disk_usage(root).free
    if offer.missing_bytes > free:
        raise ImportRefusedError(
            f"{offer.name} takes {in_words(offer.missing_bytes)} more on the disk of {root}, and "
            f"{in_words(free)} is free: "
            "free some space"
        )
    arrived = 0
    try:
        with _answers(offer.name):
            for file in offer.files:
                blob = _blob(offer.name, file)
                with progress.part(arrived, offer.size, file.size, step=BYTE):
                    if not blob.exists():
                        url = hf_hub_url(offer.name, file.path, revision=offer.commit)
                        with _lock_blob(offer.name, blob):
                            download(url, blob, file.size, sha256=file.sha256, headers=_headers())
                arrived += file.size
            # this gives each its name
            paths = [Path(hf_hub_download(offer.name, file.path)) for file in offer.files]
    except HubUnreachableError as error:
        missing = in_words(offer.missing_bytes)
        raise HubUnreachableError(
            f"{offer.name}: {error}, {missing} are missing: open it again to go on from there"
        ) from None
    return next((path for path in paths if path.suffix.lower() == ".gguf"), paths[0].parent)


def fetch_into(offer: HubModel, folder: Path) -> None:
    """Fetch the files of an offer into a folder of their own, outside of the cache; what is there
    already is not fetched again.
    """
    from huggingface_hub import hf_hub_url

    arrived = 0
    with _answers(offer.name):
        for file in offer.files:
            if Path(file.path).name != file.path or "\\" in file.path:
                raise ImportRefusedError(f"{file.path!r:.80} is no name of a file")
            with progress.part(arrived, offer.size, file.size, step=BYTE):
                if not (folder / file.path).exists():
                    url = hf_hub_url(offer.name, file.path, revision=offer.commit)
                    to = folder / file.path
                    download(url, to, file.size, sha256=file.sha256, headers=_headers())
            arrived += file.size


@contextmanager
def _lock_blob(name: str, blob: Path) -> Iterator[None]:
    """Keep all others from fetching this file while the block runs."""
    from filelock import FileLock, Timeout

    locks = _cache() / ".locks" / blob.parents[1].name
    try:
        locks.mkdir(parents=True, exist_ok=True)
        # the lock that huggingface_hub itself uses
        with FileLock(locks / f"{blob.name}.lock", timeout=0):
            yield
    except Timeout:
        raise ImportRefusedError(
            f"{name} is being fetched by another window or program: wait until it is there"
        ) from None


def _cache() -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def _blob(name: str, file: HubFile) -> Path:
    """The path of the content of this file in the cache, as the documentation of `huggingface_hub`
    describes it.
    """
    return _cache() / f"models--{name.replace('/', '--')}" / "blobs" / file.key


def cached_path(text: str) -> Path | None:
    """The path of the model of this name in the cache, complete or not, or None if it is not
    there.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    name, gguf = _check(text)
    wanted = gguf or "config.json"
    try:
        folder = Path(snapshot_download(name, local_files_only=True, allow_patterns=[wanted]))
    except (OSError, ValueError, LocalEntryNotFoundError):
        return None
    if not (folder / wanted).exists():
        return None
    if gguf:
        return folder / wanted
    return folder


def is_whole(place: Path) -> bool:
    """Whether a path in the cache has all files that are needed: other programs may fetch only
    some, such as the config.
    """
    if place.is_file():
        return True
    there = set(os.listdir(place))
    if not any(set(files) <= there for files in TOKENIZERS):
        return False
    try:
        return any(
            parts and all(part.exists() for part in parts)
            for parts in (parts_in(place, kind) for kind in WEIGHTS)
        )
    except ImportRefusedError:
        return False


def search(text: str) -> list[SearchResult]:
    """The models on the hub with `text` in their names, of the families that gptviz opens; the most
    downloaded come first.
    """
    from huggingface_hub import ModelInfo, constants, get_session, hf_raise_for_status

    asked_for: dict[str, str | int | Sequence[str]] = {
        "search": text,
        "sort": "downloads",
        "limit": MOST_SEARCHED,
        "expand": ["downloads", "safetensors", "tags", "gated"],
    }
    with _answers(text):
        # `HfApi.list_models` would try for twenty seconds before it reports that there is no
        # network.
        answer = get_session().get(
            f"{constants.ENDPOINT}/api/models",
            params=asked_for,
            headers=_headers(),
            timeout=PATIENCE,
        )
        hf_raise_for_status(answer)
        models = []
        for info in (ModelInfo(**fields) for fields in answer.json()):
            tags = set(info.tags or ())
            kind = next((kind for kind in FAMILIES if kind in tags), None)
            if kind is not None and tags & {"safetensors", "pytorch"} and not info.gated:
                if info.safetensors is not None:
                    total = info.safetensors.total
                else:
                    total = None
                models.append(
                    SearchResult(info.id, FAMILIES[kind].title, total, info.downloads or 0)
                )
    return models[:MOST_FOUND]


@contextmanager
def _answers(name: str) -> Iterator[None]:
    """Turn every error of the hub into an `ImportRefusedError` that says what can be done."""
    import httpx2
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        yield
    except GatedRepoError:
        raise ImportRefusedError(
            f"{name} asks for a permission first: get it on the model's page, and set HF_TOKEN"
        ) from None
    except RepositoryNotFoundError:
        raise ImportRefusedError(
            f"the hub has no model named {name}, or a private one: check the name, set HF_TOKEN"
        ) from None
    except RevisionNotFoundError:
        raise ImportRefusedError(f"the hub has no version of {name} of this name") from None
    except HfHubHTTPError as error:
        raise HubUnreachableError(
            f"the hub refuses with status {error.response.status_code}"
        ) from None
    except OfflineModeIsEnabled:
        raise HubUnreachableError("the hub may not be asked (HF_HUB_OFFLINE is set)") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, ConnectionError, LocalEntryNotFoundError) as error:
        reason = [*lines_of(reason_of(error)), type(error).__name__][0].strip()[:160]
        raise HubUnreachableError(f"the hub cannot be reached ({reason})") from None
