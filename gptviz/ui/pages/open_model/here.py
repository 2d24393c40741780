"""The models on this machine: those that other programs keep, those opened before, and what is
being opened.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gptviz.figures.kit.format import format_count
from gptviz.machine import memory
from gptviz.machine.bounded import read_regular
from gptviz.machine.memory import in_bytes
from gptviz.model.costs.memory_needed import refusal
from gptviz.pretrained.places import stores
from gptviz.pretrained.places.hub import BYTE
from gptviz.pretrained.places.stores import Place, Store, Summary
from gptviz.runs import checkpoints, import_job, manage
from gptviz.runs.card import Card
from gptviz.runs.checkpoints import LONGEST
from gptviz.runs.import_job import ImportJob
from gptviz.runs.manage import is_own
from gptviz.ui.records.home import PAGE as HOME
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject.model_list import describe_import, line_about, model_groups
from gptviz.ui.views.open_in import links, open_in
from gptviz.ui.widgets import escape_markdown, press_button, say_answer

SECONDS = 0.4  # that reading may take before the page shows what it has
FIRST_SHOWN = 12
_DONE = "removed"
_TOKEN = "removed token"
_FAILED = "open failed"
_ENDED = "an import ended"


@dataclass(frozen=True)
class ImportedModel:
    """A model that was imported: the place of its weights, and their bytes there, or None if its
    own folder has them.
    """

    name: str
    card: Card
    place: str
    size: int | None

    @property
    def line(self) -> str:
        """Its family, its licence and its size, in a line."""
        count = self.card.values.get("parameters")
        return ", ".join(
            [
                *describe_import(self.card),
                *([f"{count:,} parameters"] if isinstance(count, int) else []),
            ]
        )

    @property
    def notes(self) -> list[str]:
        """Sentences that a reader should know of it."""
        if self.size is None:
            weights = "It has its weights itself."
        else:
            weights = f"Its weights ({in_bytes(self.size)}) stay at {self.place}."
        return [*self.card.notes, weights]


def progress() -> None:
    """How far the import is that was begun last, on this page or another one."""
    now = import_job.current_import()
    if st.session_state.pop(_ENDED, False) and now is not None:
        done = now.value is not None
        st.toast(
            f"{escape_markdown(now.title)} is open."
            if done
            else f"{escape_markdown(now.title)} was not opened."
        )
    if failed := st.session_state.pop(_FAILED, None):
        st.error(escape_markdown(failed))
    if now is None:
        return
    with st.container(border=True):
        if now.is_active:
            going_on(now, "top")
        else:
            if (made := now.value) is not None:
                name = made.folder.name
                st.success(
                    f"{escape_markdown(name)} is open: {escape_markdown(made.family)}, "
                    f"{made.parameters:,} "
                    "parameters. Every tensor of its files "
                    "has found its place, and none is missing.",
                    icon=":material/check:",
                )
                for note in made.notes:
                    st.caption(escape_markdown(note))
                with st.container(horizontal=True):
                    links(name)
            elif now.state == "stopped" and now.revisions:
                st.info(
                    f"{escape_markdown(now.title)} was stopped. Revisions that have arrived are "
                    "snapshots of the model; the next time goes on with the others.",
                    icon=":material/stop:",
                )
            elif now.state == "stopped":
                st.info(
                    f"{escape_markdown(now.title)} was stopped. Nothing was imported; what has "
                    "arrived is "
                    "kept, and the next time goes "
                    "on there.",
                    icon=":material/stop:",
                )
            else:
                st.error(escape_markdown(now.problem))
            if press_button(
                "Close", key="close the import", type="tertiary", icon=":material/close:"
            ):
                import_job.dismiss()
                st.rerun()


def going_on(now: ImportJob, key: str) -> None:
    """How far an import is, and a way to stop it; `key` tells the places where this stands
    apart.
    """
    name = escape_markdown(now.title)
    far = now.progress
    if now.is_stopping:
        st.progress(far.share, f"Stopping {name}")
        return
    if not far.of:
        st.progress(0.0, f"Opening {name}")
        return
    if far.step == BYTE:
        what = f", {escape_markdown(far.doing)}" if far.doing else ""
        st.progress(far.share, f"Fetching {name}{what}: {in_bytes(far.done)} of {in_bytes(far.of)}")
    else:
        st.progress(
            far.share,
            f"Opening {name}: {far.done} of {far.of} tensors are read and compared with its config",
        )
    if press_button(
        "Stop",
        key=f"stop the import: {key}",
        icon=":material/stop:",
        help="What has arrived is kept for the next time.",
    ):
        now.stop()
        st.rerun()


def note_the_end() -> None:
    """Run the page again after an import has ended, so that a message says so wherever the reader
    is.
    """
    st.session_state[_ENDED] = True
    st.rerun()


def free_memory() -> str:
    """How much memory is free, in a sentence."""
    return f"{in_bytes(memory.free_bytes('cpu'))} of memory are free on this machine."


def models_here() -> list[Place]:
    """All models found on this machine, in the order of their stores."""
    return [place for store in _stores() for place in store.models]


_stores = st.cache_data(ttl=20, show_spinner="Looking for models on this machine")(stores.stores)


def read_more(places: Sequence[Place]) -> tuple[int, int]:
    """Read some more of these models; how many are read, of how many."""
    return len(summaries(places, SECONDS)), len(places)


def summaries(places: Sequence[Place], seconds: float = 0.0) -> dict[Place, Summary]:
    """The summaries of these models: of all that were read before, and of as many others as can be
    read in `seconds`.
    """
    read = _read_summaries()
    end = time.monotonic() + seconds
    known = {}
    for place in places:
        key = place.path, _change_time(place.path)
        if key not in read and time.monotonic() < end:
            if len(read) >= 10 * stores.MOST_MODELS:
                read.clear()
            read[key] = stores.summary(place.path)
        if key in read:
            known[place] = read[key]
    return known


@st.cache_resource(max_entries=1, show_spinner=False)
def _read_summaries() -> dict[tuple[Path, int], Summary]:
    """The summaries read so far, by path and time of the last change, for all sessions."""
    return {}


def _change_time(path: Path) -> int:
    try:
        return (path / "config.json" if path.is_dir() else path).stat().st_mtime_ns
    except OSError:
        return 0


def _shipped() -> list[str]:
    """The names of the models that came with gptviz."""
    return [name for name, folder in checkpoints.folders().items() if not is_own(folder)]


def say_what_opens() -> None:
    """What can be opened, and how."""
    came = f"one of the {format_count(len(_shipped()), 'model')} that came with gptviz"
    if found := models_here():
        others = f", one of the {format_count(len(found), 'model')} found on this machine"
    else:
        others = ""
    say_answer(f"Type the name of a model here, or choose {came}{others}.")


def models_that_ship() -> None:
    """A link to each model that came with gptviz, with a line about it, by what they are about."""
    with st.container(gap="xsmall"):
        for group in model_groups():
            shipped = [name for name, folder in group.folders.items() if not is_own(folder)]
            if not shipped:
                continue
            st.markdown(f"**{group.title}**")
            folded = [name for name in shipped if name in group.folded]
            for name in shipped:
                if name in folded[:1]:
                    fold = st.expander(f"{name} to {folded[-1]}")
                # on a phone the line stands below the name
                row = (fold if name in folded else st).container(
                    horizontal=True, gap="small", vertical_alignment="center"
                )
                with row:
                    frame.link(HOME, escape_markdown(name), query={"model": name})
                    st.caption(escape_markdown(line_about(group.folders[name])))


def on_this_machine() -> None:
    """The list of all models of other programs on this machine."""
    of_programs = _stores()
    if not of_programs:
        st.caption(
            "No model of another program was found on this machine: not in the caches of Hugging "
            "Face and llama.cpp, nor among "
            "the models of Ollama and LM Studio. Type the folder where you keep some, or a name "
            "on the hub."
        )
        return
    for store in of_programs:
        list_models(store)


def list_models(store: Store) -> None:
    """The models of a store, a card each: first those that open, the smallest of them first."""
    st.markdown(f"**{escape_markdown(store.title)}**", help=escape_markdown(f"In {store.path}"))
    key = f"{store.title} {store.path}"
    known = summaries(store.models)
    opened = names_by_place()

    def rank(about: Summary | None) -> tuple[int, int]:
        if about is None:
            return 1, 0
        if problem(about):
            return (2, 0)
        return (0, about.parameters or 0)

    order = sorted(store.models, key=lambda place: rank(known.get(place)))
    if st.session_state.get(f"all of {key}"):
        shown = order
    else:
        shown = order[:FIRST_SHOWN]
    with cards(key):
        for place in shown:
            card(place, known.get(place), opened)
    if len(shown) < len(order):
        everything = ({f"all of {key}": True},)
        st.button(
            f"Show all {len(order)}",
            key=f"show {key}",
            on_click=st.session_state.update,
            args=everything,
            type="tertiary",
        )
    if store.is_cut:
        st.caption(
            f"There may be more: the list ends after {stores.MOST_MODELS} models or "
            f"{stores.MOST_LOOKED_AT:,} files. Any other "
            "opens by its path above."
        )


def names_by_place() -> dict[str, str]:
    """The names of these models by the place of their weights."""
    return {model.place: model.name for model in imported_models()}


def imported_models() -> list[ImportedModel]:
    """The models of the user's own that other programs made."""
    models = []
    for name, folder in checkpoints.folders().items():
        if not manage.is_own(folder):
            continue
        try:
            card = checkpoints.read_card(folder)
        except checkpoints.CheckpointError:
            continue
        if card.family is not None:
            place, weights = (
                _weights(folder) if checkpoints.is_reference(folder) else (str(folder), None)
            )
            models.append(ImportedModel(name, card, place, weights))
    return models


def card(
    place: Place, about: Summary | None, opened: Mapping[str, str], where: str = "listed"
) -> None:
    """A model of another program: what it is, and the button that opens it, or why it cannot be
    opened.

    Args:
        opened: the names of the models that were opened before, by the place of their weights.
        where: tells two cards of one model on a page apart.
    """
    with st.container(border=True, gap="xsmall"):
        st.markdown(f"**{escape_markdown(place.name)}**")
        if about is None:
            st.caption("It was not read yet.")
            return
        if said := line(about):
            st.caption(escape_markdown(said))
        key = f"{place.store} {place.name} {where}"
        now = import_job.current_import()
        if now is not None and now.is_active and now.given == place.given:
            going_on(now, key)
        elif name := opened.get(str(place.path.resolve())):
            open_in(name, key=f"{key}: open in")
        elif trouble := problem(about):
            st.caption(f":material/block: {escape_markdown(trouble)}")
        elif press_button(
            "Open",
            key=f"open {key}",
            icon=":material/folder_open:",
            help=escape_markdown(str(place.path)),
        ):
            # Ollama and the cache of the hub name files by hashes: a path there does not tell the
            # model's name.
            by_hash = place.store in ("Ollama", "Hugging Face") and place.given != place.name
            begin(
                place.given,
                place.name.rpartition("/")[2].removesuffix(".gguf") if by_hash else None,
            )


def line(about: Summary) -> str:
    """A line with all that is known of a model before it is opened."""
    parts = [
        about.family,
        f"{about.parameters:,} parameters" if about.parameters is not None else "",
        f"{in_bytes(about.size)} on disk" if about.size is not None else "",
        f"needs about {in_bytes(about.needs.total)} of memory" if about.needs is not None else "",
        f"licence {about.licence}" if about.licence else "",
    ]
    return ", ".join(part for part in parts if part)


def problem(about: Summary) -> str:
    """Why a model cannot be opened now; empty if nothing is known against it."""
    if about.problem or about.needs is None:
        return about.problem
    return refusal(about.needs, memory.room(about.needs.total)) or ""


def begin(
    given: str,
    suggested: str | None = None,
    additions: Mapping[str, Any] | None = None,
    revisions: Sequence[str] = (),
) -> None:
    """Begin to open a model, with the arguments of `import_job.begin`; its progress is shown at the
    top of the page.
    """
    try:
        import_job.begin(given, suggested, additions, revisions)
    except checkpoints.CheckpointError as error:
        st.session_state[_FAILED] = str(error)
    st.rerun()


def _weights(folder: Path) -> tuple[str, int | None]:
    """Where source.json says that the weights are, and how many bytes they have."""
    try:
        content = json.loads(read_regular(folder / "source.json", LONGEST["source.json"]))
        return str(content["path"]), sum(int(each) for each in content["files"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "a place that its source.json does not name", None


def cards(key: str) -> DeltaGenerator:
    """Where cards stand side by side; how wide they are stands in components/kit/page.css."""
    return st.container(horizontal=True, key=f"cards {key}")


def opened_before() -> None:
    """The list of these models; nothing if there is none."""
    # A line on the model that the last click removed or brought back.
    if done := st.session_state.pop(_DONE, None):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.info(escape_markdown(done), width="stretch")
            if token := st.session_state.pop(_TOKEN, None):
                st.button(
                    "Undo",
                    key="undo",
                    on_click=_attempt,
                    args=(lambda: f"{manage.undelete(token)} is back.",),
                    icon=":material/undo:",
                )
    models = imported_models()
    if not models:
        return
    st.header("Opened before", anchor=False)
    with cards("opened before"):
        for model in models:
            with st.container(border=True, gap="xsmall"):
                st.markdown(f"**{escape_markdown(model.name)}**")
                st.caption(escape_markdown(model.line))
                for note in model.notes:
                    st.caption(escape_markdown(note))
                with st.container(horizontal=True):
                    open_in(model.name)
                    hint = (
                        "Takes it from your list. The files that it refers to stay where they are."
                    )
                    st.button(
                        "Remove",
                        key=f"remove {model.name}",
                        icon=":material/delete:",
                        help=hint,
                        on_click=_remove,
                        args=(model.name,),
                    )


def _attempt(action: Callable[[], str]) -> None:
    try:
        st.session_state[_DONE] = action()
    except checkpoints.CheckpointError as error:
        st.session_state[_DONE] = str(error)


def _remove(name: str) -> None:
    def remove() -> str:
        st.session_state[_TOKEN] = manage.delete(name)
        if st.session_state.get("model") == name:
            st.session_state.pop("model")
        return f"{name} is in the trash."

    _attempt(remove)


models_inside = st.cache_data(
    ttl=20, show_spinner="Looking for models in the folder", max_entries=8
)(stores.store_inside)
