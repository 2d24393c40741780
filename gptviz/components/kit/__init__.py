"""The code that all views made by hand share: how a view is registered, how data are sent to it,
and the modules it is built of.

A view is a folder: `__init__.py` has its content in Python, and the module and the style sheet
named like the folder draw it. All views import the modules of this folder, so that tokens, numbers,
scales of colour and the buttons for numbers, code and picture are the same in all of them.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st

from gptviz.components.kit import modules
from gptviz.figures.kit import theme

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
# The types of numbers that can be sent to the browser, which widens half precision.
ARRAY_KINDS = ("float64", "float32", "float16", "int32", "uint8")
ALIGNED = 8
# The hexadecimal digits of the name of a part; kit/part.js reads as many.
NAME = 16
# The key of the session's state under which the keys of the views stand that have the script of
# their kind, by kind.
_CARRIED = "views with a script"


@dataclass(frozen=True)
class PayloadPart:
    """A part of a payload that no longer changes, packed (`pack`).

    It is sent in a separate element, which Streamlit sends to a browser once: with every run the
    browser lists the messages that it has, and of these only the names are sent again. So a browser
    that lost one, or never had it, gets it.
    """

    data: bytes

    @cached_property
    def name(self) -> str:
        """Its name in payloads."""
        return hashlib.sha256(self.data).hexdigest()[:NAME]

    @property
    def element_bytes(self) -> bytes:
        """The bytes of its element: the name, then the data."""
        return self.name.encode() + self.data

    @classmethod
    def from_element(cls, carried: bytes) -> PayloadPart:
        """The part in the bytes of an element."""
        return cls(carried[NAME:])


@dataclass(frozen=True)
class Packed:
    """A payload, and the parts that it names."""

    data: bytes
    parts: tuple[PayloadPart, ...]

    @property
    def joined_bytes(self) -> bytes:
        """The payload with its parts inside, for a page without a server."""
        header, arrays = unpack(self.data)
        return pack(
            header,
            **arrays,
            **{part.name: np.frombuffer(part.data, np.uint8) for part in self.parts},
        )


def register(folder: Path) -> Callable[..., None]:
    """A function that mounts the view in `folder`; it takes `key=`, `data=` (of `pack` or
    `pack_in_parts`), and
    for each event `<event>=`, a function that is called with what the browser sent.

    Streamlit sends the script of a component with every message that changes. So the script of a
    view is in a separate element, which never changes and which Streamlit therefore sends once
    (kit/arrival.js). Of several views of one kind on a page, the first has it.
    """
    name = f"gptviz_{folder.name}_{hashlib.sha256((script(folder) + style(folder)).encode()).hexdigest()[:8]}"
    view = st.components.v2.component(
        name, html='<div class="root"></div>', js=modules.join_modules(FOLDER / "loader.js")
    )
    # This script hands over the view in `folder` and its style sheet under a name.
    arrival = FOLDER / "arrival.js"
    text = modules.join_modules(folder / f"{folder.name}.js", arrival).replace(
        "\nexport default ", "\nconst mount = "
    )
    handed = ", ".join([json.dumps(name), "mount", json.dumps(style(folder))])
    provided = st.components.v2.component(
        f"{name}_script",
        js=f"{text}\nexport default () => {modules.scope(arrival)}.provide({handed});\n",
    )

    def mount(*, key: str, data: bytes | Packed, **events: Callable[[Any], None]) -> None:
        def tell_view(name: str, act: Callable[[Any], None]) -> Callable[[], None]:
            def tell() -> None:
                # What a view says while its page is left arrives when it is gone already.
                if (state := st.session_state.get(key)) is not None:
                    act(state.get(name))

            return tell

        callbacks: dict[str, Any] = {
            f"on_{name}_change": tell_view(name, act) for name, act in events.items()
        }
        packed = data if isinstance(data, Packed) else Packed(data, ())
        with st.container(gap=None):
            view(key=key, data=packed.data, **callbacks)
            if st.session_state.setdefault(_CARRIED, {}).setdefault(name, key) == key:
                provided(key=f"{key} script")
            for part in packed.parts:
                _part(key=f"{key} {part.name}", data=part.element_bytes)

    return mount


def begin_page() -> None:
    """Forget which views of this visitor's page have a script: the page is shown anew."""
    st.session_state.pop(_CARRIED, None)


PART = "gptviz_part"
_part = st.components.v2.component(PART, js=modules.join_modules(FOLDER / "part.js"))


def page_style(*, lesson: bool = False, presenting: bool = False, view_only: bool = False) -> str:
    """The style sheet of a page with views: the size of its type, which grows with the window.

    The rules for the menu, for a lesson and for a page in front of a class are added only where
    they are needed. Rules that test for such a page (`:root:has(…)`) made a browser check the whole
    page again whenever a part of it changed, and pages opened a fifth slower. With `view_only` the
    controls are folded away.
    """
    has_menu = not lesson and not presenting
    sheets = [
        "page.css",
        *["menu.css"] * has_menu,
        *["lesson.css"] * lesson,
        *["presenting.css"] * presenting,
    ]
    sheets += [*["view_only.css"] * view_only, "print.css"]
    return "\n".join((FOLDER / sheet).read_text(encoding="utf-8") for sheet in sheets)


def script(folder: Path) -> str:
    """The script of the view in `folder`, one module: the file named like the folder, with all it
    imports.
    """
    return modules.join_modules(folder / f"{folder.name}.js")


def style(folder: Path) -> str:
    """The style sheet of the view in `folder`: the colours by role, the kit's, then all files of
    the folder.
    """
    roles = " ".join(f"--{role}: {colour};" for role, colour in ROLES.items())
    sheets = [FOLDER / "kit.css", folder / f"{folder.name}.css"]
    return f":host {{ {roles} }}\n" + "".join(sheet.read_text(encoding="utf-8") for sheet in sheets)


def fingerprint(*what: object) -> str:
    """Identifies what is on screen, so that a late click on something else is not taken for a click
    on this.
    """
    return hashlib.blake2b(
        repr(what).encode("utf-8", "backslashreplace"), digest_size=12
    ).hexdigest()


def pack(header: Mapping[str, Any], **arrays: npt.NDArray[Any]) -> bytes:
    """A payload as bytes: a length, a header in JSON, and the numbers of `arrays` as they lie in
    memory.

    Bytes are used because Streamlit would pack a dictionary again, twice, at every run. Pack once
    and keep the result: the same bytes are not sent again. A ValueError if the header has a number
    that JSON lacks (NaN), or an array is of a kind that the browser lacks.
    """
    layout: dict[str, dict[str, Any]] = {}
    body: list[bytes | memoryview] = []
    offset = 0
    for name, array in arrays.items():
        if array.dtype.name not in ARRAY_KINDS:
            raise ValueError(
                f"the array {name!r} is of {array.dtype.name}; the browser reads "
                f"{', '.join(ARRAY_KINDS)}"
            )
        layout[name] = {"kind": array.dtype.name, "shape": array.shape, "offset": offset}
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        # copied once, below
        body += [little.data.cast("B") if little.size else b"", bytes(-little.nbytes % ALIGNED)]
        offset += little.nbytes + -little.nbytes % ALIGNED
    text = json.dumps({**header, "arrays": layout}, allow_nan=False).encode("ascii")
    head = struct.pack("<I", len(text)) + text
    # a browser reads a number only where its size divides the offset
    return b"".join([head, bytes(-len(head) % ALIGNED), *body])


def pack_in_parts(
    header: Mapping[str, Any], parts: Sequence[PayloadPart], **arrays: npt.NDArray[Any]
) -> Packed:
    """A payload as `pack` makes it, with parts that the view finds unpacked as `payload.parts`, in
    this order.
    """
    parts = tuple({part.name: part for part in parts}.values())
    return Packed(pack({**header, "part_names": [part.name for part in parts]}, **arrays), parts)


def unpack(packed: bytes) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """The header and the arrays of `pack`, as the browser reads them."""
    (length,) = struct.unpack_from("<I", packed)
    header = json.loads(packed[4 : 4 + length])
    start = -(-(4 + length) // ALIGNED) * ALIGNED
    arrays = {}
    for name, layout in header.pop("arrays").items():
        kind = np.dtype(layout["kind"])
        shape = tuple(layout["shape"])
        arrays[name] = np.frombuffer(
            packed, kind, int(np.prod(shape)), start + layout["offset"]
        ).reshape(shape)
    return header, arrays
