"""The models that other programs keep on this machine, read from the heads of their files a few at a time, and in words."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gptviz.machine import memory
from gptviz.machine.memory import in_bytes
from gptviz.model.costs.memory_needed import refusal
from gptviz.pretrained.places import stores
from gptviz.pretrained.places.stores import Place, Store, Summary
from gptviz.runs import import_job
from gptviz.ui.views.open_in import open_in
from gptviz.ui.widgets import escaped, pressed

from .imported import names_by_place
from .progress import begin, going_on

SECONDS = 0.4  # that reading may take before the page shows what it has
FIRST_SHOWN = 12


@st.cache_data(ttl=20, show_spinner="Looking for models on this machine")
def _stores() -> list[Store]:
    return stores.stores()


@st.cache_data(ttl=20, show_spinner="Looking for models in the folder", max_entries=8)
def models_inside(folder: Path) -> Store:
    return stores.inside(folder)


@st.cache_resource(max_entries=1, show_spinner=False)
def _read() -> dict[tuple[Path, int], Summary]:
    """The summaries read so far, by path and time of the last change, for all sessions."""
    return {}


def _changed(path: Path) -> int:
    try:
        return (path / "config.json" if path.is_dir() else path).stat().st_mtime_ns
    except OSError:
        return 0


def summaries(places: Sequence[Place], seconds: float = 0.0) -> dict[Place, Summary]:
    """The summaries of these models: of all that were read before, and of as many others as can be read in `seconds`."""
    read, end, known = _read(), time.monotonic() + seconds, {}
    for place in places:
        key = place.path, _changed(place.path)
        if key not in read and time.monotonic() < end:
            if len(read) >= 10 * stores.MOST_MODELS:
                read.clear()
            read[key] = stores.summary(place.path)
        if key in read:
            known[place] = read[key]
    return known


def models_here() -> list[Place]:
    """All models found on this machine, in the order of their stores."""
    return [place for store in _stores() for place in store.models]


def read_more(places: Sequence[Place]) -> tuple[int, int]:
    """Read some more of these models; how many are read, of how many."""
    return len(summaries(places, SECONDS)), len(places)


def on_this_machine() -> None:
    """The list of all models of other programs on this machine."""
    found = _stores()
    if not found:
        st.info(
            "No model of another program was found on this machine: not in the caches of Hugging Face and llama.cpp, nor among "
            "the models of Ollama and LM Studio. Type the folder where you keep some, or a name on the hub.",
            icon=":material/search_off:",
        )
        return
    for store in found:
        listed(store)


def listed(store: Store) -> None:
    """The models of a store, a card each: first those that open, the smallest of them first."""
    st.markdown(f"**{escaped(store.title)}**", help=escaped(f"In {store.path}"))
    key = f"{store.title} {store.path}"
    known, opened = summaries(store.models), names_by_place()
    order = sorted(store.models, key=lambda place: _rank(known.get(place)))
    shown = order if st.session_state.get(f"all of {key}") else order[:FIRST_SHOWN]
    with cards(key):
        for place in shown:
            card(place, known.get(place), opened)
    if len(shown) < len(order):
        st.button(f"Show all {len(order)}", key=f"show {key}", on_click=_show_all, args=(key,), type="tertiary")
    if store.is_cut:
        st.caption(
            f"There may be more: the list ends after {stores.MOST_MODELS} models or {stores.MOST_LOOKED_AT:,} files. Any other "
            "opens by its path above."
        )


def _show_all(key: str) -> None:
    st.session_state[f"all of {key}"] = True


def _rank(about: Summary | None) -> tuple[int, int]:
    if about is None:
        return 1, 0
    return (2, 0) if problem(about) else (0, about.parameters or 0)


def cards(key: str) -> DeltaGenerator:
    """Where cards stand side by side; how wide they are stands in components/kit/page.css."""
    return st.container(horizontal=True, key=f"cards {key}")


def card(place: Place, about: Summary | None, opened: Mapping[str, str], where: str = "listed") -> None:
    """A model of another program: what it is, and the button that opens it, or why it cannot be opened.

    Args:
        opened: the names of the models that were opened before, by the place of their weights.
        where: tells two cards of one model on a page apart.
    """
    with st.container(border=True, gap="xsmall"):
        st.markdown(f"**{escaped(place.name)}**")
        if about is None:
            st.caption("It was not read yet.")
            return
        if said := line(about):
            st.caption(escaped(said))
        key = f"{place.store} {place.name} {where}"
        now = import_job.current()
        if now is not None and now.is_active and now.given == place.given:
            going_on(now, key)
        elif name := opened.get(str(place.path.resolve())):
            open_in(name, key=f"{key}: open in")
        elif trouble := problem(about):
            st.caption(f":material/block: {escaped(trouble)}")
        elif pressed("Open", key=f"open {key}", icon=":material/folder_open:", help=escaped(str(place.path))):
            begin(place.given, _suggested(place))


def _suggested(place: Place) -> str | None:
    """A name for a model whose path does not tell it: Ollama and the cache of the hub name files by hashes."""
    by_hash = place.store in ("Ollama", "Hugging Face") and place.given != place.name
    return place.name.rpartition("/")[2].removesuffix(".gguf") if by_hash else None


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


def free_memory() -> str:
    """How much memory is free, in a sentence."""
    return f"{in_bytes(memory.available('cpu'))} of memory are free on this machine."
