"""A graph of the page Circuit as a file: what the file says of the page, and how the page opens it
again.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import streamlit as st

from gptviz.components.circuit_graph import read_file
from gptviz.components.kit.command import ViewCommand
from gptviz.interp.explaining.circuit import MOST_NODES
from gptviz.machine.hosting import NO_UPLOADS, upload_limit
from gptviz.runs import checkpoints
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import Subject, edits, scrubber
from gptviz.ui.shell.subject.bar import longest_prompt
from gptviz.ui.views.which_logit import ASKED, Logit
from gptviz.ui.widgets import addresses, escape_markdown, visit

from .features import NODES, PARTS
from .graph import ARRANGED, FEWEST, LINKED, OPENED, SHARES, CircuitChoice

MOST = 1  # MB
_ROUND = "graphs opened so far"
_READ = "file with a graph"


def choices(subject: Subject, chosen: CircuitChoice) -> dict[str, Any]:
    """What decides which graph the page shows, for a file."""
    state = frame.shared_state()
    return {
        "model": subject.key.name,
        "step": subject.key.step,
        "prompt": subject.left_off + subject.prompt,
        "edits": state.get(edits.EDITS),
        "edit_text": state.get(edits.TEXT),
        **asdict(chosen),
    }


def open_file(now: dict[str, Any]) -> None:
    """Where a saved graph is opened, and what became of it.

    Args:
        now: the `choices` of the graph on screen.
    """
    if (most := upload_limit(MOST)) is None:
        st.caption(f"A saved graph cannot be opened: {NO_UPLOADS}.")
        return
    key = f"saved graph {st.session_state.setdefault(_ROUND, 0)}"
    with st.popover("Open a saved graph", icon=":material/upload_file:"):
        hint = (
            "A JSON file that “Save” below a graph wrote. It opens that model, text and graph, "
            "with its pins and groups."
        )
        st.file_uploader(
            "A saved graph",
            type="json",
            key=key,
            help=hint,
            on_change=_open,
            args=(key,),
            max_upload_size=most,
        )
    name, asked, problem = visit.remembered_value(_READ) or ("", None, "")
    visit.remember(_READ, None)
    if problem:
        st.error(f"{escape_markdown(name)}: {escape_markdown(problem)}.")
    elif asked is not None:
        if differ := [what for what, value in now.items() if asked[what] != value]:
            st.warning(
                f"{escape_markdown(name)} asks for something that is not available here: "
                f"{', '.join(differ)}."
            )
        else:
            st.success(
                f"{escape_markdown(name)}: this is the saved graph.", icon=":material/check:"
            )


def _open(key: str) -> None:
    """Let the address, the controls and the view show what a file says."""
    file = st.session_state[key]
    if file is None:
        return
    name = file.name[:80]
    try:
        asked, arranged = read_file(file.getvalue())
        asked.setdefault("nodes", PARTS)  # which files did not have before there were features
        check(asked)
    except ValueError as error:
        visit.remember(_READ, (name, None, str(error)))
        return
    step = asked["step"]
    st.session_state["model"] = asked["model"]
    st.session_state["step"] = scrubber.LAST if step is None else str(step)
    st.session_state["prompt"] = asked["prompt"]
    st.session_state[ASKED] = Logit(asked["token"], asked["against"])
    st.session_state.update({key: asked[key] for key in ("share", "boxes", "beyond_mean")})
    st.session_state["nodes"] = asked["nodes"]
    for text in (edits.EDITS, edits.TEXT):
        addresses.put(text, asked[text])
    addresses.write("position", str(asked["position"]))
    for link in (OPENED, LINKED):
        addresses.write(link, None)
    st.session_state[ARRANGED] = ViewCommand.new_command(arranged)
    st.session_state[_ROUND] += 1
    visit.remember(_READ, (name, asked, ""))


def check(asked: dict[str, Any]) -> None:
    """Refuse choices of a file that no page has, or that are of a model which is not here.

    Raises:
        ValueError: the message says what is wrong.
    """

    def whole_numbers(low: int, high: int) -> range:
        return range(low, high + 1)

    numbers = {
        "position": whole_numbers(0, 10**6),
        "token": whole_numbers(0, 10**7),
        "boxes": whole_numbers(FEWEST, MOST_NODES),
    }
    maybe = {"step": whole_numbers(0, 10**9), "against": numbers["token"]}
    for name, possible in (numbers | maybe).items():
        value = asked.get(name)
        if not (type(value) is int and value in possible) and not (value is None and name in maybe):
            raise ValueError(
                f"its “{name}” is no whole number from {possible.start} to {possible.stop - 1:,}"
            )
    share = asked.get("share")
    if isinstance(share, bool) or not (
        isinstance(share, int | float) and SHARES[0] <= share <= SHARES[1]
    ):
        raise ValueError(f"its “share” is no number from {SHARES[0]:g} to {SHARES[1]:g}")
    if asked.get("nodes", PARTS) not in NODES:
        raise ValueError(f"its “nodes” is neither {' nor '.join(NODES)}")
    if type(asked.get("beyond_mean")) is not bool:
        raise ValueError("its “beyond_mean” is neither true nor false")
    may_lack = (edits.EDITS, edits.TEXT)
    for name in ("model", "prompt", *may_lack):
        text = asked.get(name)
        if not (isinstance(text, str) and len(text) <= longest_prompt()) and not (
            text is None and name in may_lack
        ):
            raise ValueError(f"its “{name}” is no text of at most {longest_prompt():,} characters")
    if checkpoints.folder_of(asked["model"]) is None:
        raise ValueError(f"it is a graph of the model “{asked['model'][:80]}”, which is not here")
