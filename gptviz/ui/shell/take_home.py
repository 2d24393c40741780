"""What is on screen, to take home: a page as one HTML file without a server, or as a notebook; a lesson as one HTML file."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import streamlit as st

from . import on_screen

FORMS = {
    "html": ("As one file", ":material/download:", "text/html"),
    "ipynb": ("As a notebook", ":material/code:", "application/json"),
}
PATIENCE = 300  # seconds


def take_home(page: str) -> None:
    """The ways to take the page called `page` home, in the state that its address says."""
    query = dict(parse_qsl(on_screen.query()))
    st.markdown("**Take home**")
    st.caption("A file holds what is on the page now; its views go on working without a server. It takes some seconds to write.")
    with st.container(horizontal=True):
        for ending, (label, icon, kind) in FORMS.items():
            st.download_button(
                label,
                partial(written, page, query, ending),
                f"{page}.{ending}",
                kind,
                icon=icon,
                key=f"take home {ending}",
                on_click="ignore",
            )


def take_lesson_home(name: str, *, key: str) -> None:
    """A button for the lesson called `name` as one file; `key` is its own in the session."""
    about = (
        "The whole lesson as one file, with its pages beside its text and its answers folded: it works in any browser, without a "
        "server. It takes a minute or so to write."
    )
    write = partial(written, f"lesson:{name}", {}, "html")
    look: dict[str, Any] = {"icon": ":material/download:", "type": "tertiary", "help": about, "on_click": "ignore"}
    st.download_button("As one file", write, f"{name}.html", "text/html", key=key, **look)


def written(what: str, query: Mapping[str, str], ending: str) -> bytes:
    """The file of a page or, as `lesson:NAME`, of a lesson. A process of its own writes it: there a page runs from its beginning.

    Raises:
        RuntimeError: it could not be written; the message says why.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / f"taken.{ending}"
        # In one word, so that a key of the address that begins with a dash is no option of the command.
        state = [f"--state={key}={value}" for key, value in query.items()]
        command = [sys.executable, "-m", "gptviz", "export", what, *state, "--out", str(out)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        if ended.returncode:
            raise RuntimeError(ended.stderr.strip().splitlines()[-1] if ended.stderr.strip() else "the file could not be written")
        return out.read_bytes()
