"""The page on screen, to take home: as one HTML file without a server, or as a notebook."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from urllib.parse import parse_qsl

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

FORMS = {
    "html": ("As one file", ":material/download:", "text/html"),
    "ipynb": ("As a notebook", ":material/code:", "application/json"),
}
PATIENCE = 300  # seconds


def take_home(page: str) -> None:
    """The ways to take the page called `page` home, in the state that its address says."""
    context = get_script_run_ctx()
    query = dict(parse_qsl(context.query_string)) if context else {}
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


def written(page: str, query: Mapping[str, str], ending: str) -> bytes:
    """The file, written by a process of its own: a page is run there from its beginning.

    Raises:
        RuntimeError: it could not be written; the message says why.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / f"{page}.{ending}"
        state = [word for key, value in query.items() for word in ("--state", f"{key}={value}")]
        command = [sys.executable, "-m", "gptviz", "export", page, *state, "--out", str(out)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        if ended.returncode:
            raise RuntimeError(ended.stderr.strip().splitlines()[-1] if ended.stderr.strip() else "the page could not be written")
        return out.read_bytes()
