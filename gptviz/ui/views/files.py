"""Files that are read in on a page, and those that it offers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import streamlit as st

from gptviz.machine.errors import reason_of
from gptviz.machine.hosting import NO_UPLOADS, upload_limit
from gptviz.ui.widgets import escape_markdown

MOST_UPLOADED = 1_000  # MB


def read_in(
    label: str, ending: str | None, read: Callable[[Path], None], *, key: str, help: str
) -> None:
    """Where a file is dropped, or a folder if there is no `ending`, which `read` then reads; if it
    cannot (a ValueError or an OSError), a message says why.
    """
    if (most := upload_limit(MOST_UPLOADED)) is None:
        st.caption(NO_UPLOADS)
        return

    def take() -> None:
        st.session_state.pop(f"{key} refused", None)
        dropped = st.session_state[key]
        files = dropped if isinstance(dropped, list) else [dropped]
        if not any(files):
            return
        with tempfile.TemporaryDirectory() as made:
            # of the names of folders that the browser tells, only that of the last one
            first = PurePosixPath(files[0].name)
            if ending is None:
                place = Path(made) / (first.parent.name.strip(".") or "dropped")
                place.mkdir()
                paths = [place / PurePosixPath(file.name).name for file in files]
            else:
                place = Path(made) / f"{first.stem[-80:]}.{ending}"
                paths = [place]
            try:
                for path, file in zip(paths, files, strict=True):
                    path.write_bytes(file.getvalue())
                read(place)
            except (ValueError, OSError) as error:
                st.session_state[f"{key} refused"] = (
                    f"The {'folder' if ending is None else 'file'} was not taken: "
                    f"{escape_markdown(reason_of(error))}."
                )

    st.file_uploader(
        label,
        type=ending,
        accept_multiple_files="directory" if ending is None else False,
        key=key,
        on_change=take,
        max_upload_size=most,
        help=help,
    )
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
