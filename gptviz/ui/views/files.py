"""Files that are read in on a page, and those that it offers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import streamlit as st

from gptviz.machine.errors import reason_of
from gptviz.machine.hosting import NO_UPLOADS, upload_limit
from gptviz.ui.widgets import escape_markdown

MOST_UPLOADED = 1_000  # MB


def read_in(label: str, ending: str, read: Callable[[Path], None], *, key: str, help: str) -> None:
    """Where a file is dropped, which `read` then reads; if it cannot (a ValueError or an OSError),
    a message says why.
    """
    if (most := upload_limit(MOST_UPLOADED)) is None:
        st.caption(NO_UPLOADS)
        return

    def take() -> None:
        st.session_state.pop(f"{key} refused", None)
        if (file := st.session_state[key]) is None:
            return
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{Path(file.name).stem[-80:]}.{ending}"
            path.write_bytes(file.getvalue())
            try:
                read(path)
            except (ValueError, OSError) as error:
                st.session_state[f"{key} refused"] = (
                    f"The file was not taken: {escape_markdown(reason_of(error))}."
                )

    st.file_uploader(label, type=ending, key=key, on_change=take, max_upload_size=most, help=help)
    if refused := st.session_state.get(f"{key} refused"):
        st.error(refused)


def download(label: str, name: str, write: Callable[[Path], None], *, help: str) -> None:
    """A button for a file of this name, which `write` writes when it is clicked."""

    def content() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder) / name)
            return (Path(folder) / name).read_bytes()

    st.download_button(
        label,
        content,
        name,
        "application/octet-stream",
        key=f"download {name}",
        icon=":material/download:",
        type="tertiary",
        help=help,
        on_click="ignore",
    )
