"""Downloading one file by its address: the bytes are counted, and a download can be stopped at any
moment and continued later.

`huggingface_hub` begins a file again if the last download of it did not end. Here the bytes that
have arrived stay next to the file as `<name>.part`, and the next download asks only for the rest.
"""

from __future__ import annotations

import errno
import hashlib
import time
from collections.abc import Mapping
from pathlib import Path

from gptviz.machine import progress

from ..families import ImportRefusedError

CHUNK = 2**17  # bytes: if a connection breaks, at most this many are fetched again
# How often in a row a connection may break before a byte arrives, and the seconds to wait before
# the next.
MOST_FAILURES = 4
WAIT = 1.0


def download(
    url: str,
    to: Path,
    size: int,
    *,
    sha256: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Download the file at `url` to `to`, as a whole or not at all. It reports about once per
    `CHUNK`.

    Args:
        size: how many bytes it has.
        sha256: the hash of its content, compared at the end.
        headers: the headers of every request.

    Raises:
        ImportRefusedError: the disk is full, or the hash is another one.
        httpx2.HTTPError: the server refuses, or can no longer be reached.
    """
    part = partial_file(to)
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        _fill(part, url, size, dict(headers or {}))
        if part.stat().st_size != size or (sha256 is not None and _hash(part) != sha256):
            part.unlink()
            raise ImportRefusedError(
                f"{url} arrived damaged, and was removed: open it again to fetch it anew"
            )
        part.replace(to)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise ImportRefusedError(
                f"the disk of {to.parent} was full before {to.name[:12]}… had arrived as a whole: "
                "free some space, then open the "
                "model again; the download goes on where it stopped"
            ) from None
        raise


def partial_file(to: Path) -> Path:
    """The path where the bytes of this file are collected until it is complete."""
    return to.with_name(f"{to.name}.part")


def bytes_here(to: Path) -> int:
    """The number of bytes of this file on the disk, complete or not."""
    for path in (to, partial_file(to)):
        try:
            return path.stat().st_size
        except OSError:
            continue
    return 0


def _fill(part: Path, url: str, size: int, headers: dict[str, str]) -> None:
    """Append to `part` until it has `size` bytes; a connection that breaks is opened again."""
    import httpx2

    failures = 0
    while True:
        have = part.stat().st_size if part.exists() else 0
        if have == size and size:
            return
        if have > size:
            part.unlink()
            have = 0
        try:
            _append(part, url, have, size, headers)
            if part.stat().st_size >= size:
                return
            raise httpx2.RemoteProtocolError("the answer ended early")
        except httpx2.TransportError:
            if part.exists() and part.stat().st_size > have:
                failures = 0
            else:
                failures += 1
            if failures >= MOST_FAILURES:
                raise
            time.sleep(WAIT * failures)


def _append(part: Path, url: str, have: int, size: int, headers: dict[str, str]) -> None:
    from huggingface_hub import constants, get_session, hf_raise_for_status

    # Not compressed: the bytes are counted, and requested by their offset.
    headers = (
        headers | {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    )
    with get_session().stream(
        "GET", url, headers=headers, timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT
    ) as answer:
        hf_raise_for_status(answer)
        # a server may send the whole file even if only the rest was asked for
        whole = answer.status_code != 206
        with part.open("wb" if whole else "ab") as file:
            have = 0 if whole else have
            progress.report(have, size, "byte")
            for chunk in answer.iter_bytes(CHUNK):
                file.write(chunk)
                have += len(chunk)
                progress.report(have, size, "byte")


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
