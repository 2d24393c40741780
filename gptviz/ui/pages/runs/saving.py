"""Taking a model along, in each format, as a download or, where it is large, as a file in the user's folder; and its report."""

from __future__ import annotations

import io
from itertools import count
from pathlib import Path

import streamlit as st

from gptviz.machine import job, memory, progress
from gptviz.machine.files import home
from gptviz.runs import checkpoints, names, sharing
from gptviz.runs.exports import FORMATS, Format
from gptviz.ui.widgets import escaped, jobs, pressed

AT_ONCE = 0.5  # seconds: what is written by then needs no bar
MOST_DOWNLOADED = 128_000_000  # bytes: a download is held in memory


def save_as(name: str) -> None:
    """A popover with every format, and why the model cannot be had in one of them."""
    folder = checkpoints.find(name)
    with st.popover("Save as…", icon=":material/download:"):
        try:
            sharing.check_is_whole(folder)
            offered = {key: each for key, each in FORMATS.items() if each.is_for(folder)}
            reasons = {key: each.why_not(folder) for key, each in offered.items()}
        except checkpoints.CheckpointError as error:
            st.text(str(error))
            return
        with_snapshots = _asks_for_snapshots(name, len(checkpoints.snapshots(folder)))
        for key, each in offered.items():
            if (why_not := reasons[key]) is not None:
                st.button(each.title, key=f"no {key}", disabled=True, icon=":material/download:", width="stretch")
                st.caption(f"Not for this model: {escaped(why_not)}.")
                continue
            _offer(name, key, each.bytes(folder, snapshots=with_snapshots), snapshots=with_snapshots)
            left_out = each.left_out(folder)
            st.caption(each.about + (f" Left out: {left_out}." if left_out else ""))


def report_of(name: str) -> None:
    """A button that downloads the report of the run that made the model, as one HTML file."""
    st.download_button(
        "Report",
        lambda: written_report(name),
        f"{names.possible(name)}-report.html",
        "text/html",
        key=f"report of {name}",
        on_click="ignore",
        icon=":material/description:",
        help="How it was trained, as one file for any browser: curves, settings, what it wrote on the way, and its card.",
    )


def written_report(name: str) -> bytes:
    """The report as an HTML file."""
    from gptviz.takehome.page_file import as_html  # takes a moment to import, which nobody waits for who wants no report
    from gptviz.takehome.report import report

    return as_html(report(name)).encode("utf-8", "replace")


def _asks_for_snapshots(name: str, number: int) -> bool:
    """Whether the zip file is to have the snapshots of training; without any, nothing is asked."""
    if not number:
        return False
    about = "The weights after so many steps of its training: with them the slider on every page goes through its training."
    what = "snapshot" if number == 1 else f"{number} snapshots"
    return st.checkbox(f"With its {what} (zip file for gptviz alone)", True, key=f"with snapshots of {name}", help=about)


def _offer(name: str, key: str, size: int, *, snapshots: bool) -> None:
    """The button that saves the model in one format."""
    chosen, how_large = FORMATS[key], memory.in_bytes(size)
    if size <= MOST_DOWNLOADED:
        st.download_button(
            f"{chosen.title}{'' if key == 'zip' else ', zipped'} ({how_large})",
            lambda: zipped(name, chosen, snapshots=snapshots),
            f"{names.possible(name)}{'' if key == 'zip' else f'-{key}'}.zip",
            "application/zip",
            key=f"download {key}",
            on_click="ignore",
            icon=":material/download:",
            width="stretch",
        )
        return
    label = f"{chosen.title} ({how_large}), into a folder"
    about = "export", name, key, snapshots
    if pressed(label, key=f"save {key}", icon=":material/save:", width="stretch"):
        job.forget(about)
        job.begin(about, f"Writing {name}", lambda _: _save(name, key, size, snapshots=snapshots)).wait(AT_ONCE)
    if (going := job.found(about)) is not None:
        jobs.follow(going, f"save {key}")
        if going.value is not None:
            st.success(f"It is in {escaped(str(going.value))}", icon=":material/check:")
    st.caption(
        f"It is larger than a download may be ({memory.in_bytes(MOST_DOWNLOADED)}), so it is written to {home() / 'exports'}."
    )


def zipped(name: str, chosen: Format, *, snapshots: bool) -> io.BytesIO:
    """The model in one format as a zip file in memory."""
    file = io.BytesIO()
    chosen.write_zip(checkpoints.find(name), file, snapshots=snapshots)
    file.seek(0)
    return file


def _save(name: str, key: str, size: int, *, snapshots: bool) -> Path:
    """Write the model into the user's own folder of exports, and give its place. Stopped, it leaves nothing there."""
    folder = home() / "exports"
    folder.mkdir(parents=True, exist_ok=True)
    to = _free(folder, names.possible(name), FORMATS[key].ending)
    with progress.part(0, size, size, doing=memory.in_bytes(size)):
        FORMATS[key].write(checkpoints.find(name), to, snapshots=snapshots)
    return to


def _free(folder: Path, stem: str, ending: str) -> Path:
    """The first of `stem`, `stem-2`, … in the folder at which nothing is."""
    paths = (folder / f"{stem}{'' if number == 1 else f'-{number}'}{ending}" for number in count(1))
    return next(path for path in paths if not path.exists())
