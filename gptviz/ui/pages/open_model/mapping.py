"""A file of tensors that does not say what model it is of: its mapping, drafted, edited, and compared with the tensors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from gptviz.machine.bounded import parse_json
from gptviz.pretrained.sources.mapped import Examined
from gptviz.runs import checkpoints, imports
from gptviz.ui.widgets import escaped, pressed

from .progress import begin

LONGEST, MOST_VALUES = 200_000, 50_000  # characters and values of a mapping


def mapped(path: Path) -> bool:
    """Whether this file needs a mapping; if so, show its draft, how it compares with the tensors, and a button to open it."""
    try:
        examined = _examined(path, path.stat().st_mtime_ns, None)
    except (checkpoints.CheckpointError, OSError):
        return False  # the card of the file says what is wrong with it
    if examined is None or examined.draft is None:
        return False
    st.markdown(
        f"{escaped(path.name)} holds {len(examined.shapes):,} kinds of tensor and does not say what model they are of. This is "
        "a draft of a **mapping**, made from their names and shapes: which tensor is which, and what shapes do not tell."
    )
    for sentence in examined.draft.assumed:
        st.caption(f"Assumed: {escaped(sentence)}")
    typed = st.text_area(
        "Mapping",
        json.dumps(examined.draft.as_json(), indent=2, ensure_ascii=False),
        key=f"mapping of {path}",
        height=320,
        max_chars=LONGEST,
        help="JSON. Fields that are null have to be filled in: shapes do not tell them. {} stands for the number of a block.",
    )
    _compared(path, typed or "")
    return True


def _compared(path: Path, typed: str) -> None:
    try:
        mapping: Any = parse_json(typed, MOST_VALUES)
        found = _examined(path, path.stat().st_mtime_ns, json.dumps(mapping))
    except (ValueError, OSError) as error:  # a checkpoints.CheckpointError is a ValueError
        st.warning(f"This mapping does not open the file: {escaped(str(error))}.")
        return
    rows = found.rows if found is not None else ()
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
    st.dataframe(pd.DataFrame(table), hide_index=True, alt="Every parameter, the tensor it is made of, and whether they match")
    wrong = sum(row.count for row in rows if row.state != "matched")
    if wrong:
        st.warning(f"{wrong:,} do not match: the table says which. Change the mapping above.")
    elif pressed("Open", key="open with a mapping", icon=":material/folder_open:", type="primary"):
        begin(str(path), additions={"mapping": mapping})


def _shape(shape: tuple[int, ...] | None) -> str:
    return "" if shape is None else " × ".join(map(str, shape))


@st.cache_data(max_entries=16, show_spinner="Reading the names of its tensors")
def _examined(path: Path, written: int, mapping: str | None) -> Examined | None:
    return imports.examined(str(path), None if mapping is None else {"mapping": json.loads(mapping)})
