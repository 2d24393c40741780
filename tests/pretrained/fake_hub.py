"""A small server that answers as the Hugging Face hub does, as far as
`gptviz.pretrained.places.hub` asks.
"""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlparse

import pytest

COMMIT = "c0ffee" + "0" * 34
LARGE = 5_000  # bytes from which a file has the key that large files have there


@dataclass
class FakeHub:
    """What there is on the hub, and what was asked of it.

    Attributes:
        repositories: the files of each model, by name.
        revisions: by model the files of its other versions, by the name of the version.
        refused: the models that are answered with a status and an error code instead.
        licences: by model, like the families that its page names.
        cut: how many more bytes of weights are sent before the connection breaks; None for all of
            them.
        asked: every request, as (method, path, bytes asked for).
    """

    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    revisions: dict[str, dict[str, dict[str, bytes]]] = field(default_factory=dict)
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)
    licences: dict[str, str] = field(default_factory=dict)
    families: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    url: str = ""

    def add(self, name: str, folder: Path, licence: str = "mit", family: str = "llama") -> None:
        """Offer the files of a folder as a model."""
        self.repositories[name] = {
            path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()
        }
        self.licences[name], self.families[name] = licence, family

    def add_revision(self, name: str, revision: str, folder: Path) -> None:
        """Offer the files of a folder as a version of a model."""
        files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        self.revisions.setdefault(name, {})[revision] = files

    def version(self, name: str, revision: str) -> tuple[str, dict[str, bytes]] | None:
        """The commit and the files of a version, by its name or its commit."""
        if revision in ("", "main", COMMIT):
            return COMMIT, self.repositories[name]
        for each, files in self.revisions.get(name, {}).items():
            commit = hashlib.sha1(each.encode()).hexdigest()
            if revision in (each, commit):
                return commit, files
        return None

    def files_sent(self) -> list[str]:
        """The names of the files whose content was asked for, without config.json, which is looked
        at before.
        """
        return [
            path.rpartition("/")[2]
            for method, path, _ in self.asked
            if method == "GET" and "/resolve/" in path
        ]


def key_of(content: bytes) -> str:
    if len(content) > LARGE:
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: FakeHub

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = unquote(urlparse(self.path).path)
        self.hub.asked.append((self.command, path, self.headers.get("Range")))
        if path == "/api/models":
            self._listed(parse_qs(urlparse(self.path).query).get("search", [""])[0])
            return
        name = (
            path.removeprefix("/api/models/")
            .lstrip("/")
            .partition("/resolve/")[0]
            .partition("/revision/")[0]
            .removesuffix("/refs")
        )
        if name in self.hub.refused or name not in self.hub.repositories:
            status, code = self.hub.refused.get(name, (401, "RepoNotFound"))
            is_of_file = "/resolve/" in path
            if code != "GatedRepo" or is_of_file:
                self._send(status, b"{}", {"X-Error-Code": code})
                return
        if path == f"/api/models/{name}/refs":
            branches = [
                {"name": each, "ref": f"refs/heads/{each}", "targetCommit": COMMIT}
                for each in ("main", *self.hub.revisions.get(name, {}))
            ]
            self._send(200, json.dumps({"branches": branches, "converts": [], "tags": []}).encode())
            return
        if path.startswith("/api/"):
            found = self.hub.version(name, path.partition("/revision/")[2])
            if found is None:
                self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
                return
            self._send(200, json.dumps(self._about(name, *found)).encode())
            return
        revision, _, file = path.partition("/resolve/")[2].partition("/")
        found = self.hub.version(name, revision)
        content = None if found is None else found[1].get(file)
        if content is None:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        self._file(content)

    def _about(
        self, name: str, commit: str = COMMIT, files: dict[str, bytes] | None = None
    ) -> dict[str, Any]:
        siblings: list[dict[str, Any]] = []
        for file, content in (files or self.hub.repositories[name]).items():
            row: dict[str, Any] = {"rfilename": file, "size": len(content), "blobId": "0" * 40}
            if len(content) > LARGE:
                row["lfs"] = {"sha256": key_of(content), "size": len(content), "pointerSize": 130}
            else:
                row["blobId"] = key_of(content)
            siblings.append(row)
        tags = [
            f"license:{self.hub.licences.get(name, 'mit')}",
            "safetensors",
            self.hub.families.get(name, "mamba"),
        ]
        return {
            "id": name,
            "modelId": name,
            "sha": commit,
            "siblings": siblings,
            "tags": tags,
            "private": False,
            "downloads": 7,
        }

    def _listed(self, search: str) -> None:
        size = {"parameters": {"F32": 1_234}, "total": 1_234}
        rows = [
            {
                "id": name,
                "tags": self._about(name)["tags"],
                "downloads": 7,
                "gated": False,
                "safetensors": size,
            }
            for name in self.hub.repositories
            if search in name
        ]
        self._send(200, json.dumps(rows).encode())

    def _file(self, content: bytes) -> None:
        headers = {
            "X-Repo-Commit": COMMIT,
            "ETag": f'"{key_of(content)}"',
            "Accept-Ranges": "bytes",
        }
        begin = 0
        status = 200
        if (asked := self.headers.get("Range")) is not None:
            begin = int(asked.removeprefix("bytes=").rstrip("-"))
            status = 206
            headers["Content-Range"] = f"bytes {begin}-{len(content) - 1}/{len(content)}"
        self._send(status, content[begin:], headers)

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if self.hub.cut is not None and len(body) > LARGE:
            sent = body[: self.hub.cut]
            self.hub.cut = None
            self.wfile.write(sent)
            self.wfile.flush()
            # closing alone waits until the files made of it are closed
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.wfile.write(body)


@contextmanager
def fake_hub(cache: Path, patch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub on this machine that `huggingface_hub` asks, with an empty cache."""
    from huggingface_hub import constants

    hub = FakeHub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    # how often it looks whether it shall end, in seconds
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    patch.setattr(constants, "ENDPOINT", hub.url)
    patch.setattr(
        constants,
        "HUGGINGFACE_CO_URL_TEMPLATE",
        hub.url + "/{repo_id}/resolve/{revision}/{filename}",
    )
    patch.setattr(constants, "HF_HUB_CACHE", str(cache))
    patch.setattr(constants, "HF_HUB_OFFLINE", False)
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
