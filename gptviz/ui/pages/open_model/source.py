"""What is asked for by its name or its path: on this machine, on the hub, as a zip file, or with a
mapping.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from gptviz.machine.bounded import parse_json
from gptviz.machine.errors import reason_of
from gptviz.machine.hosting import NO_UPLOADS, upload_limit
from gptviz.machine.memory import in_bytes
from gptviz.model import parameter_count
from gptviz.model.costs.memory_needed import estimate_memory
from gptviz.model.precision import STORED
from gptviz.pretrained import peft
from gptviz.pretrained.families import ImportRefusedError
from gptviz.pretrained.places import hub, stores
from gptviz.pretrained.places.stores import Place, Summary
from gptviz.pretrained.sources.folder import outline_of
from gptviz.pretrained.sources.mapped import Examined
from gptviz.pretrained.sources.source import number_bytes
from gptviz.runs import checkpoints, imports, peft_adapters, sharing, zips
from gptviz.ui.views.open_in import links
from gptviz.ui.widgets import Try, controls, escape_markdown, press_button
from gptviz.ui.widgets.tables import show_table

from . import revisions
from .here import begin, card, line, list_models, models_inside, names_by_place, problem, read_more

CODE = """import gptviz

lm = gptviz.load("shakespeare")  # the name of a model that is open already
# lm = gptviz.load("HuggingFaceTB/SmolLM2-135M")  # a name on the hub: from the cache, or fetched
# lm = gptviz.load(pathlib.Path("SmolLM2-135M.Q8_0.gguf"))  # a file or folder, where it is; needs import pathlib
print(lm.generate("Where is ", max_new_tokens=20))"""
SOURCE = "source"
LONGEST = 1_000  # characters
# Keys of the session's state: what stood in the field when the page was shown last, the name that
# the hub
# may be asked for, and the words of the search.
_LAST = "source shown last"
_ASKED = "name asked for"
_WORDS = "words for the hub"
# characters and values
LONGEST_MAPPING = 200_000
MOST_VALUES = 50_000
MOST_UPLOADED = 1_000  # MB; what is uploaded is held in memory
_ROUND = "uploads so far"
_MADE = "uploaded model"


def field() -> str:
    """The control for what to open; without the quotes and spaces that come with a path that was
    copied.
    """
    typed = controls.text(
        "A folder, a file, or a name on the hub",
        key=SOURCE,
        help=(
            "A folder with config.json and weights, a .gguf file, nanoGPT's ckpt.pt, a zip file "
            "with a model, a LoRA adapter of "
            "PEFT, a folder with many models, or a name on the Hugging Face hub such as "
            "HuggingFaceTB/SmolLM2-135M. Enter looks "
            "at it."
        ),
        placeholder="HuggingFaceTB/SmolLM2-135M, or the path of a folder or a file",
        longest=LONGEST,
    )
    given = typed.strip().strip("\"'")
    # Only what somebody types or chooses here goes to the hub, never what a link has.
    if _LAST in st.session_state and given != st.session_state[_LAST]:
        st.session_state[_ASKED] = given
    st.session_state[_LAST] = given
    return given


def look_at(given: str) -> None:
    """A description of what was typed, and the actions that are possible with it."""
    path = Path(given).expanduser()
    try:
        exists = path.exists()
    except (OSError, ValueError):
        exists = False
    if exists:
        _local(path.absolute())
    elif hub.is_name(given):
        _on_hub(given)
    else:
        st.error(
            f"There is nothing at {escape_markdown(given)}, and a name on the hub looks different: "
            "owner/name."
        )


def _local(path: Path) -> None:
    if zips.is_zip(path):
        _card(
            str(path),
            f"A zip file of {in_bytes(path.stat().st_size)}. Its model is unpacked among yours.",
            "",
        )
        return
    if peft.is_adapter(path):
        try:
            base = checkpoints.name_of(peft_adapters.base_named(peft.read_adapter(path).base))
            _card(
                str(path), f"A LoRA adapter of PEFT on {base}. It is copied among your models.", ""
            )
        except (ImportRefusedError, checkpoints.CheckpointError) as error:
            _card(str(path), "A LoRA adapter of PEFT.", str(error))
        return
    if path.is_dir() and not (path / "config.json").exists():
        inside = models_inside(path)
        if not inside.models:
            st.warning(
                f"No model was found in {escape_markdown(str(path))}, nor in the folders below it."
            )
        else:
            read_more(inside.models)
            list_models(inside)
        return
    if not (path.is_file() and needs_mapping(path)):
        card(Place("", path.name, path, str(path)), stores.summary(path), names_by_place(), "asked")


def _card(given: str, said: str, trouble: str, *, label: str = "Open") -> None:
    with st.container(border=True, gap="xsmall"):
        st.markdown(f"**{escape_markdown(given)}**")
        st.caption(escape_markdown(said))
        if trouble:
            st.caption(f":material/block: {escape_markdown(trouble)}")
        elif press_button(
            label, key="open what was asked for", icon=":material/download:", type="primary"
        ):
            begin(given)


def needs_mapping(path: Path) -> bool:
    """Whether this file needs a mapping; if so, show its draft, how it compares with the tensors,
    and a button to open it.
    """
    try:
        examined = _examine_file(path, path.stat().st_mtime_ns, None)
    except (checkpoints.CheckpointError, OSError):
        return False  # the card of the file says what is wrong with it
    if examined is None or examined.draft is None:
        return False
    st.markdown(
        f"{escape_markdown(path.name)} holds {len(examined.shapes):,} kinds of tensor and does not say "
        "what model they are of. This is "
        "a draft of a **mapping**, made from their names and shapes: which tensor is which, and "
        "what shapes do not tell."
    )
    for sentence in examined.draft.assumed:
        st.caption(f"Assumed: {escape_markdown(sentence)}")
    typed = st.text_area(
        "Mapping",
        json.dumps(examined.draft.as_json(), indent=2, ensure_ascii=False),
        key=f"mapping of {path}",
        height=320,
        max_chars=LONGEST_MAPPING,
        help="JSON. Fields that are null have to be filled in: shapes do not tell them. {} stands "
        "for the number of a block.",
    )
    _compare_tensors(path, typed or "")
    return True


@st.cache_data(max_entries=16, show_spinner="Reading the names of its tensors")
def _examine_file(path: Path, written: int, mapping: str | None) -> Examined | None:
    return imports.examine_tensors(
        str(path), None if mapping is None else {"mapping": json.loads(mapping)}
    )


def _compare_tensors(path: Path, typed: str) -> None:
    try:
        mapping: Any = parse_json(typed, MOST_VALUES)
        examined = _examine_file(path, path.stat().st_mtime_ns, json.dumps(mapping))
    except (ValueError, OSError) as error:  # a checkpoints.CheckpointError is a ValueError
        st.warning(f"This mapping does not open the file: {escape_markdown(reason_of(error))}.")
        return
    rows = examined.rows if examined is not None else ()
    table = [
        {
            "state": row.state,
            "times": row.count,
            "parameter": row.ours,
            "tensor": " + ".join(row.theirs),
            "shape": _shape(row.found),
            "shape asked for": _shape(row.expected),
        }
        for row in rows
    ]
    show_table(
        pd.DataFrame(table),
        hide_index=True,
        alt="Every parameter, the tensor it is made of, and whether they match",
    )
    wrong = sum(row.count for row in rows if row.state != "matched")
    if wrong:
        st.warning(f"{wrong:,} do not match: the table says which. Change the mapping above.")
    elif press_button(
        "Open", key="open with a mapping", icon=":material/folder_open:", type="primary"
    ):
        begin(str(path), additions={"mapping": mapping})


def _shape(shape: tuple[int, ...] | None) -> str:
    if shape is None:
        return ""
    return " × ".join(map(str, shape))


def _on_hub(name: str) -> None:
    cached = hub.cached_path(name)
    if cached is not None:
        whole = hub.is_whole(cached)
        card(
            Place("Hugging Face", name, cached, name if whole else str(cached)),
            stores.summary(cached),
            names_by_place(),
            "asked",
        )
        if whole:
            revisions.offer(name)
            return
    if st.session_state.get(_ASKED) != name:
        if cached is None:
            is_not = "is not on this machine"
        else:
            is_not = "is not on this machine as a whole: the hub may have the rest"
        st.caption(f"{escape_markdown(name)} {is_not}.")
        if press_button(
            "Ask the hub",
            key="ask the hub",
            icon=":material/travel_explore:",
            help="Sends this name to the hub.",
        ):
            st.session_state[_ASKED] = name
            st.rerun()
        return
    try:
        offer = _offer(name)
        about = Summary(licence=offer.licence)  # a GGUF file has no config.json
        if offer.fields:
            outline = outline_of(offer.fields)
            numbers = parameter_count(outline.config)
            needs = estimate_memory(outline.config, number_bytes(offer.weights, numbers, STORED))
            about = Summary(outline.family, numbers, needs, offer.licence)
    except ImportRefusedError as error:
        st.error(f"{escape_markdown(name)} cannot be looked up: {escape_markdown(str(error))}.")
        return
    missing = offer.missing_bytes
    if missing == offer.size:
        fetched = ""
    else:
        fetched = f", of which {in_bytes(offer.size - missing)} are here"
    more = (
        f"{in_bytes(offer.size)} are fetched from the hub{fetched}, and kept in the cache of "
        "huggingface_hub."
    )
    _card(
        name,
        f"{line(about)}. {more}" if about.family else more,
        problem(about),
        label="Fetch and open",
    )
    if offer.fields:
        revisions.offer(name)


_offer = st.cache_data(ttl=60, max_entries=32, show_spinner="Asking the hub")(hub.look_up)


def search_the_hub() -> None:
    """A field whose words are sent to the hub, and what it has found."""
    with (
        st.form("search the hub", border=False),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        words = st.text_input(
            "Search the hub",
            key=_WORDS,
            max_chars=100,
            placeholder="tinystories",
            help="These words are sent to the hub.",
        )
        st.form_submit_button("Search", icon=":material/search:")
    if not words or not words.strip():
        return
    try:
        models = _search(words.strip())
    except ImportRefusedError as error:
        st.warning(
            f"The search is not possible: {escape_markdown(str(error))}. Models on this machine open "
            "without it."
        )
        return
    if not models:
        st.caption(
            f"The hub has no model of a family that gptviz opens with “{escape_markdown(words.strip())}” "
            "in its name."
        )
    for model in models:
        if model.parameters is not None:
            count = f", {model.parameters:,} parameters"
        else:
            count = ""
        st.button(
            f"**{escape_markdown(model.name)}** · {escape_markdown(model.family)}{count}, fetched "
            f"{model.downloads:,} times in a month",
            key=f"choose {model.name}",
            type="tertiary",
            on_click=st.session_state.update,
            args=({SOURCE: model.name},),
        )


_search = st.cache_data(ttl=300, max_entries=32, show_spinner="Asking the hub")(hub.search)


def zip_box() -> None:
    """Where a zip file is dropped; its model is then one of the user's own."""
    if (most := upload_limit(MOST_UPLOADED)) is None:
        st.caption(NO_UPLOADS)
        return
    number = st.session_state.setdefault(_ROUND, 0)
    file = st.file_uploader(
        "A zip file with a model",
        type="zip",
        key=f"uploaded zip {number}",
        max_upload_size=most,
        help="One that gptviz packed (Runs, Download), or a zipped folder of another program. "
        "Nothing in it is run.",
    )
    st.caption(
        f"At most {most:,} MB. A folder or a .gguf file need not be uploaded: type its path into "
        "the field above."
    )
    if file is not None:
        try:
            with st.spinner("Unpacking, and opening it once"):
                made = sharing.unpack(file)
        except (checkpoints.CheckpointError, MemoryError) as error:
            st.error(escape_markdown(str(error)) or "There is not enough memory for this file.")
            return
        st.session_state[_ROUND], st.session_state[_MADE] = number + 1, made.name
        st.rerun()
    if name := st.session_state.get(_MADE):
        st.success(f"{escape_markdown(name)} is one of your models now.", icon=":material/check:")
        with st.container(horizontal=True):
            links(name)


def tries(known: Sequence[tuple[Place, Summary]]) -> list[Try]:
    """The suggestions: the smallest model here that opens, and two that the hub is known for."""
    opens = [
        (about.parameters, place, about)
        for place, about in known
        if about.parameters and not problem(about)
    ]
    offers = []
    if opens:
        count, place, about = min(opens, key=lambda known: known[0])
        here = (
            f"{escape_markdown(place.name)}: {escape_markdown(about.family)}, {count:,} parameters. It is on this "
            "machine already."
        )
        offers.append(Try("The smallest one here", here, {SOURCE: place.given}))
    gpt2 = (
        "The smallest of four models that OpenAI published in 2019. Asks the hub how large it is; "
        "nothing is fetched yet."
    )
    stories = (
        "A small model that learned only from stories for children. Asks the hub how large it is."
    )
    return [
        *offers,
        Try("GPT-2, from the hub", gpt2, {SOURCE: "openai-community/gpt2"}),
        Try("TinyStories, from the hub", stories, {SOURCE: "roneneldan/TinyStories-33M"}),
    ]
