"""Downloads: a page as one HTML file that needs no server, or as a notebook; a lesson so too; a
model as plain Python.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any
from urllib.parse import parse_qsl

import streamlit as st

from gptviz.languages import wanted
from gptviz.machine.hosting import carry_rights, environment, variable
from gptviz.machine.lines import lines_of
from gptviz.runs import checkpoints, names

from ..subject import on_screen

FORMS = {
    "html": ("As one file", ":material/download:", "text/html"),
    "ipynb": ("As a notebook", ":material/code:", "application/json"),
}
PATIENCE = 300  # seconds
# Writing a file takes a core and as much memory as its page. Requests that wait occupy some of the
# few threads that Streamlit has for all visitors, so only few may wait; further ones are refused at
# once.
AT_ONCE = 2
MOST_WAITING = 2
_places = BoundedSemaphore(AT_ONCE)
_asked = BoundedSemaphore(AT_ONCE + MOST_WAITING)


def take_home(page: str, decoder: str | None) -> None:
    """The ways to take the page called `page` home, in the state that its address gives, and the
    `decoder` on it.
    """
    query = dict(parse_qsl(on_screen.query()))
    st.markdown("**Take home**")
    st.caption(
        "A file holds what is on the page now; its views go on working without a server. It takes "
        "some seconds to write. If it "
        "fails, others may be writing theirs: try again a little later."
    )
    with st.container(horizontal=True):
        for ending, (label, icon, kind) in FORMS.items():
            st.download_button(
                label,
                carry_rights(partial(written_file, page, query, ending, _language())),
                f"{page}.{ending}",
                kind,
                icon=icon,
                key=f"take home {ending}",
                on_click="ignore",
            )
        if decoder is not None and checkpoints.folder_of(decoder) is not None:
            _take_model_home(decoder)


def take_lesson_home(name: str, *, key: str) -> None:
    """A button for the lesson called `name` as one file; `key` tells it apart from others in the
    session.
    """
    about = (
        "The whole lesson as one file, with its pages beside its text and its answers folded: it "
        "works in any browser, without a "
        "server. It takes a minute or so to write. If it fails, others may be writing theirs: try "
        "again a little later."
    )
    write = carry_rights(partial(written_file, f"lesson:{name}", {}, "html", _language()))
    look: dict[str, Any] = {
        "icon": ":material/download:",
        "type": "tertiary",
        "help": about,
        "on_click": "ignore",
    }
    st.download_button("As one file", write, f"{name}.html", "text/html", key=key, **look)


def _take_model_home(name: str) -> None:
    """A button for the model called `name`, a decoder, as plain Python."""
    about = (
        "The whole model as one file to read, with its weights beside it: tokenizer, forward pass "
        "and sampling in at most 250 "
        "lines that need no library. Not for models of more than 5 million parameters, nor for "
        "all from elsewhere: the page Runs "
        "says which part is missing."
    )
    look: dict[str, Any] = {"icon": ":material/data_object:", "help": about, "on_click": "ignore"}
    file = f"{names.possible_name(name)}-python.zip"
    st.download_button(
        "The model as plain Python",
        partial(written_model, name),
        file,
        "application/zip",
        key="take home model",
        **look,
    )


def written_model(name: str) -> bytes:
    """The model as plain Python, in a zip file.

    Raises:
        RuntimeError: as in `written_file`.
    """
    with _turn(), tempfile.TemporaryDirectory() as folder:
        inside = names.possible_name(name)
        _export([name, "--format", "python", "--out", f"{folder}/{inside}"], "")
        return Path(
            shutil.make_archive(f"{folder}/{inside}-python", "zip", folder, inside)
        ).read_bytes()


def _language() -> str:
    """What the reader asks for first; the process that writes a file cannot ask the browser."""
    return next(iter(wanted()), "")


def written_file(what: str, query: Mapping[str, str], ending: str, language: str = "") -> bytes:
    """The file of a page or, as `lesson:NAME`, of a lesson. A separate process writes it: there a
    page runs from its beginning.

    Raises:
        RuntimeError: it could not be written, or too many others are being written; the message
            says why.
    """
    with _turn(), tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / f"taken.{ending}"
        # The state goes through stdin: an address may be too long for a command line, which other
        # users could also read.
        _export([what, "--state", "-", "--out", str(out)], json.dumps(dict(query)), language)
        return out.read_bytes()


def _export(options: list[str], said: str, language: str = "") -> None:
    """Run the command `export` with these options, and with `said` on its standard input, in the
    reader's language.

    Raises:
        RuntimeError: it failed or took too long.
    """
    command = [sys.executable, "-m", "gptviz", "export", *options]
    try:
        ended = subprocess.run(
            command,
            input=said,
            env=environment() | ({variable("language"): language} if language else {}),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"the file was not written within {PATIENCE} seconds") from None
    if ended.returncode:
        raise RuntimeError(["the file could not be written", *lines_of(ended.stderr)][-1])


@contextmanager
def _turn() -> Iterator[None]:
    """Wait until a file may be written.

    Raises:
        RuntimeError: too many wait already.
    """
    if not _asked.acquire(blocking=False):
        raise RuntimeError(
            f"{AT_ONCE} files are being written and {MOST_WAITING} wait: try again a little later"
        )
    try:
        with _places:
            yield
    finally:
        _asked.release()
