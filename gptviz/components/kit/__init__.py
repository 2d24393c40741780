"""What the views made by hand share: how a view is registered, what is sent to it, and the parts that views are built from.

A view is a folder: `__init__.py` says in Python what it shows, the module and the style sheet named like the folder draw it. What
all views need is imported from the modules of this folder, so that tokens, numbers, scales of colour and the buttons for numbers,
code and picture are the same in all of them.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st

from gptviz.components.kit import modules
from gptviz.figures import theme

FOLDER = Path(__file__).parent
ROLES = {
    "query": theme.QUERY,
    "key": theme.KEY,
    "value": theme.VALUE,
    "pattern": theme.PATTERN,
    "mlp": theme.MLP,
    "output": theme.OUTPUT,
    "stream": theme.STREAM,
    "weight": theme.WEIGHT,
}
# What a typed array of the browser can be made of; numbers of half precision are widened there.
ARRAY_KINDS = ("float64", "float32", "float16", "int32", "uint8")
ALIGNED = 8


def register(folder: Path) -> Callable[..., None]:
    """The view in `folder`, to be mounted with `key=`, `data=` (from `pack`) and `on_<event>_change=`.

    Streamlit sends the script of a component with every message that changes. So the script of a view travels in an element of
    its own beside it, which never changes, and Streamlit sends that once (kit/arrival.js).
    """
    name = f"gptviz_{folder.name}_{hashlib.sha256((script(folder) + style(folder)).encode()).hexdigest()[:8]}"
    view = st.components.v2.component(name, html='<div class="root"></div>', js=modules.joined(FOLDER / "loader.js"))
    provided = st.components.v2.component(f"{name}_script", js=_provided(folder, name))

    def mount(*, key: str, data: bytes, **events: Any) -> None:
        with st.container(gap=None):
            view(key=key, data=data, **events)
            provided(key=f"{key} script")

    return mount


def _provided(folder: Path, name: str) -> str:
    """A script that hands over the view in `folder` and its style sheet under a name."""
    arrival = FOLDER / "arrival.js"
    text = modules.joined(folder / f"{folder.name}.js", arrival).replace("\nexport default ", "\nconst mount = ")
    handed = ", ".join([json.dumps(name), "mount", json.dumps(style(folder))])
    return f"{text}\nexport default () => {modules.scope(arrival)}.provide({handed});\n"


def page_style() -> str:
    """The style sheet of a page that views stand on: the size of its type, which grows with the window."""
    return (FOLDER / "page.css").read_text(encoding="utf-8")


def script(folder: Path) -> str:
    """The script of the view in `folder`, one module: the file named like the folder, with all it imports."""
    return modules.joined(folder / f"{folder.name}.js")


def style(folder: Path) -> str:
    """The style sheet of the view in `folder`: the colours by role, the kit's, then all files of the folder."""
    roles = " ".join(f"--{role}: {colour};" for role, colour in ROLES.items())
    sheets = [FOLDER / "kit.css", folder / f"{folder.name}.css"]
    return f":host {{ {roles} }}\n" + "".join(sheet.read_text(encoding="utf-8") for sheet in sheets)


def pack(header: Mapping[str, Any], **arrays: npt.NDArray[Any]) -> bytes:
    """What a view gets, as bytes: a length, a header in JSON, and the numbers of `arrays` as they lie in memory.

    Bytes are used because Streamlit would pack a dictionary again, twice, at every run. Pack once and keep the result: the same
    bytes are not sent again.

    Raises:
        ValueError: the header has a number that JSON lacks (NaN), or an array is of a kind that the browser lacks.
    """
    layout: dict[str, dict[str, Any]] = {}
    body: list[bytes | memoryview] = []
    offset = 0
    for name, array in arrays.items():
        if array.dtype.name not in ARRAY_KINDS:
            raise ValueError(f"the array {name!r} is of {array.dtype.name}; the browser reads {', '.join(ARRAY_KINDS)}")
        layout[name] = {"kind": array.dtype.name, "shape": array.shape, "offset": offset}
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        body += [little.data.cast("B") if little.size else b"", bytes(-little.nbytes % ALIGNED)]  # copied once, below
        offset += little.nbytes + -little.nbytes % ALIGNED
    text = json.dumps({**header, "arrays": layout}, allow_nan=False).encode("ascii")
    return b"".join([_aligned(struct.pack("<I", len(text)) + text), *body])


def _aligned(part: bytes) -> bytes:
    """`part`, filled up so that what follows begins where the browser can read any number."""
    return part + bytes(-len(part) % ALIGNED)


def unpack(packed: bytes) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """The header and the arrays of `pack`, as the browser reads them."""
    (length,) = struct.unpack_from("<I", packed)
    header = json.loads(packed[4 : 4 + length])
    start = -(-(4 + length) // ALIGNED) * ALIGNED
    arrays = {}
    for name, layout in header.pop("arrays").items():
        kind, shape = np.dtype(layout["kind"]), tuple(layout["shape"])
        count = int(np.prod(shape))
        arrays[name] = np.frombuffer(packed, kind, count, start + layout["offset"]).reshape(shape)
    return header, arrays


def event(value: object) -> dict[str, Any] | None:
    """What a trigger carried, as a dictionary; None if it is none. It comes from outside: check every field of it."""
    try:
        fields = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return None
    return fields if isinstance(fields, dict) else None
