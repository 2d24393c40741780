"""One model: renamed, deleted, saved, and its report."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from urllib.parse import quote

import streamlit as st

from gptviz.machine import job, memory, progress
from gptviz.machine.files import home
from gptviz.machine.hosting import hosting
from gptviz.runs import checkpoints, manage, names, sharing
from gptviz.runs.exports import FORMATS, Format
from gptviz.ui.records.train import PAGE as TRAIN
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import hidden
from gptviz.ui.shell.subject.model_list import describe_import
from gptviz.ui.views.entries import Entry
from gptviz.ui.views.open_in import open_in
from gptviz.ui.widgets import addresses, controls, escape_markdown, jobs, press_button
from gptviz.ui.widgets.figure import pixels

from .curves import NONE

# The actions that the page Train offers for a run in such a state.
ON_TRAIN = {
    "running": "Watch it train",
    "waiting": "Watch it wait",
    "ready": "Begin to train",
} | dict.fromkeys(("paused", "stopped", "interrupted"), "Go on training")
_DONE = "runs done"
_FAILED = "runs failed"
_TOKEN = "runs token"
AT_ONCE = 0.5  # seconds: what is written by then needs no bar
MOST_DOWNLOADED = 128_000_000  # bytes: a download is held in memory


def one_model(entries: Mapping[str, Entry]) -> None:
    """The model chosen, what can be done to it, and what the last click did."""
    # The result of the last click on one of the buttons, or why it did nothing; a deletion can be
    # undone.
    if failed := st.session_state.pop(_FAILED, None):
        st.error(escape_markdown(failed))
    if done := st.session_state.pop(_DONE, None):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.success(escape_markdown(done), width="stretch", icon=":material/check:")
            if token := st.session_state.pop(_TOKEN, None):
                st.button(
                    "Undo", key="undo", on_click=_undelete, args=(token,), icon=":material/undo:"
                )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=pixels(260)):
            hint = "The model that the buttons are about, and that the other pages open."
            name = controls.select(
                "Model", list(entries), key="model", default=frame.default_model(), help=hint
            )
        folder = entries[name].folder
        status = entries[name].status
        open_in(name)
        if status.state in ON_TRAIN and manage.is_own(folder):
            query = {**frame.shared_state(), "run": name}
            st.page_link(
                TRAIN.path,
                label=ON_TRAIN[status.state],
                icon=":material/resume:",
                query_params=query,
            )
        save_as(name)
        if not entries[name].problem:
            report_of(name)
        if manage.is_own(folder):
            fixed = hosting().read_only
            if fixed:
                why = "This server shows models and changes none."
            else:
                why = None
            with st.popover("Rename", icon=":material/edit:", disabled=fixed, help=why):
                new = st.text_input("New name", name, key=f"new name of {name}", max_chars=64)
                st.button(
                    "Rename it",
                    key="rename",
                    on_click=_rename,
                    args=(name, f"new name of {name}"),
                    disabled=new == name,
                )
            hint = (
                why or f"Puts it into the trash, which keeps the last {manage.MOST_DELETED} models."
            )
            st.button(
                "Delete",
                key="delete",
                on_click=_delete,
                args=(name,),
                icon=":material/delete:",
                disabled=fixed,
                help=hint,
            )
        _trash()
    hidden.say_what_hides([name])
    if not manage.is_own(folder):
        st.caption("This model came with gptviz: it can be neither renamed nor deleted.")
    _about_the_import(folder)
    if problem := entries[name].problem or status.message or entries[name].diverged:
        st.text(f"{entries[name].state}: {problem}")


def _undelete(token: str) -> None:
    def undelete() -> None:
        st.session_state["model"] = manage.undelete(token)

    if _attempt(undelete, "It is back."):
        st.session_state[_DONE] = f"{st.session_state['model']} is back."


def _attempt(action: Callable[[], object], done: str) -> bool:
    """Whether `action` worked; the next run of the page shows `done`, or why it did not."""
    try:
        action()
    except checkpoints.CheckpointError as error:
        st.session_state[_FAILED] = str(error)
        return False
    st.session_state[_DONE] = done
    return True


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
        with_snapshots = False
        if number := len(checkpoints.snapshots(folder)):
            what = "snapshot" if number == 1 else f"{number} snapshots"
            with_snapshots = st.checkbox(
                f"With its {what} (zip file that only gptviz reads)",
                True,
                key=f"with snapshots of {name}",
                help="The weights after so many steps of its training, through which the slider on "
                "every page leads.",
            )
        for key, each in offered.items():
            if (why_not := reasons[key]) is not None:
                st.button(
                    each.title,
                    key=f"no {key}",
                    disabled=True,
                    icon=":material/download:",
                    width="stretch",
                )
                st.caption(f"Not for this model: {escape_markdown(why_not)}.")
                continue
            _offer(
                name, key, each.bytes(folder, snapshots=with_snapshots), snapshots=with_snapshots
            )
            left_out = each.left_out(folder)
            st.caption(each.about + (f" Left out: {left_out}." if left_out else ""))


def _offer(name: str, key: str, size: int, *, snapshots: bool) -> None:
    """The button that saves the model in one format."""
    chosen = FORMATS[key]
    how_large = memory.in_bytes(size)
    if size <= MOST_DOWNLOADED:
        st.download_button(
            f"{chosen.title}{'' if key == 'zip' else ', zipped'} ({how_large})",
            lambda: zip_model(name, chosen, snapshots=snapshots),
            f"{names.possible_name(name)}{'' if key == 'zip' else f'-{key}'}.zip",
            "application/zip",
            key=f"download {key}",
            on_click="ignore",
            icon=":material/download:",
            width="stretch",
        )
        return
    if hosting().read_only:
        st.caption(
            f"{chosen.title} has {how_large}: at most {memory.in_bytes(MOST_DOWNLOADED)} are "
            "downloaded, and this server writes no files for its visitors."
        )
        return
    label = f"{chosen.title} ({how_large}), into a folder"
    about = "export", name, key, snapshots
    if press_button(label, key=f"save {key}", icon=":material/save:", width="stretch"):
        job.forget(about)
        write = partial(_save, name, key, size, snapshots=snapshots)
        job.begin(about, f"Writing {name}", write).wait(AT_ONCE)
    if (going := job.find_job(about)) is not None:
        jobs.follow(going, f"save {key}")
        if going.value is not None:
            st.success(f"It is in {escape_markdown(str(going.value))}", icon=":material/check:")
    st.caption(
        f"It is larger than a download may be ({memory.in_bytes(MOST_DOWNLOADED)}), so it is "
        f"written to {home() / 'exports'}."
    )


def zip_model(name: str, chosen: Format, *, snapshots: bool) -> io.BytesIO:
    """The model in one format as a zip file in memory."""
    file = io.BytesIO()
    chosen.write_zip(checkpoints.find(name), file, snapshots=snapshots)
    file.seek(0)
    return file


def _save(name: str, key: str, size: int, *, snapshots: bool) -> Path:
    """Write the model into the user's own folder of exports, and give its place. Stopped, it leaves
    nothing there.
    """
    folder = home() / "exports"
    folder.mkdir(parents=True, exist_ok=True)
    stem = names.possible_name(name)
    ending = FORMATS[key].ending
    paths = (folder / f"{stem}{'' if number == 1 else f'-{number}'}{ending}" for number in count(1))
    to = next(path for path in paths if not path.exists())
    with progress.part(0, size, size, doing=memory.in_bytes(size)):
        FORMATS[key].write(checkpoints.find(name), to, snapshots=snapshots)
    return to


def report_of(name: str) -> None:
    """A button that downloads the report of the run that made the model, as one HTML file."""
    st.download_button(
        "Report",
        lambda: written_report(name),
        f"{names.possible_name(name)}-report.html",
        "text/html",
        key=f"report of {name}",
        on_click="ignore",
        icon=":material/description:",
        help="How it was trained, as one file for any browser: curves, settings, what it wrote on "
        "the way, and its card.",
    )


def written_report(name: str) -> bytes:
    """The report as an HTML file."""
    # takes a moment to import, which nobody waits for who wants no report
    from gptviz.takehome.page_file import as_html
    from gptviz.takehome.report import report

    return as_html(report(name)).encode("utf-8", "replace")


def _rename(name: str, key: str) -> None:
    new = st.session_state[key].strip()
    if _attempt(lambda: manage.rename(name, new), f"{name} is called {new} now."):
        st.session_state["model"] = new
        _replace_chosen(name, new)


def _replace_chosen(name: str, new: str | None) -> None:
    """In the comparison the model gets its `new` name; without one it leaves the comparison."""
    if in_link := st.query_params.get("chosen"):
        names = [new if other == quote(name, safe="") else other for other in in_link.split(",")]
        addresses.write("chosen", ",".join(filter(None, names)) or NONE)


def _delete(name: str) -> None:
    def delete() -> None:
        st.session_state[_TOKEN] = manage.delete(name)

    adapters = [
        checkpoints.name_of(one)
        for one in manage.adapters_of(checkpoints.folders().get(name, Path(name)))
    ]
    if adapters:
        without = f" Without it its LoRA adapters do not open: {', '.join(adapters)}."
    else:
        without = ""
    if _attempt(delete, f"{name} is in the trash.{without}"):
        left = list(checkpoints.folders())
        st.session_state["model"] = (
            frame.default_model() if frame.default_model() in left else next(iter(left), None)
        )
        _replace_chosen(name, None)


def _trash() -> None:
    if deleted := manage.deleted_models():
        with st.popover(f"Trash ({len(deleted)})", icon=":material/restore_from_trash:"):
            st.caption(
                f"The last {manage.MOST_DELETED} models that were deleted; older ones are gone "
                "for good."
            )
            for token, name in deleted.items():
                st.button(
                    escape_markdown(name),
                    key=f"bring back {token}",
                    on_click=_undelete,
                    args=(token,),
                    icon=":material/undo:",
                )


def _about_the_import(folder: Path) -> None:
    """Where a model that another program made came from, its licence, and what to know of it."""
    with suppress(checkpoints.CheckpointError):
        card = checkpoints.read_card(folder)
        if about := ", ".join(describe_import(card)):
            st.caption(escape_markdown(f"{about}. {' '.join(card.notes)}"))
