"""A page as the pieces it shows: run once without a browser, by its address, and read off."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from streamlit.testing.v1.element_tree import Block, Node

from gptviz.components.kit import PART, Packed, Part
from gptviz.known_names import instead
from gptviz.page_run import in_vain, page_names, run_page
from gptviz.runs import checkpoints

PATIENCE = 600  # seconds, for a page to open
# What leads elsewhere or asks for something: it means nothing without the app.
_ELSEWHERE = re.compile(r"-(suggestions|next step|lesson|about-the-model)$")
_VIEW = re.compile(r"gptviz_(\w+)_[0-9a-f]{8}")


class PageError(ValueError):
    """A page that cannot be exported; the message says why."""


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the title of the page. `plain` text is no Markdown."""

    text: str
    level: int
    plain: bool = False


@dataclass(frozen=True)
class Text:
    """Markdown as Streamlit reads it; `look` is "text", "caption", or the kind of a message such as "warning"."""

    body: str
    look: str = "text"


@dataclass(frozen=True)
class Plain:
    """Text that is no Markdown."""

    body: str


@dataclass(frozen=True)
class Code:
    """Lines of code or text of a fixed width."""

    body: str
    language: str


@dataclass(frozen=True)
class Figure:
    """A figure of plotly, as JSON; `alt` says what it shows."""

    spec: str
    alt: str


@dataclass(frozen=True)
class View:
    """A view made by hand: the name of its folder in `gptviz.components`, and what it was sent."""

    name: str
    data: bytes


@dataclass(frozen=True)
class Table:
    """A table."""

    frame: pd.DataFrame


@dataclass(frozen=True)
class Image:
    """A picture inside its own address (data:…), and what it shows."""

    source: str
    alt: str


@dataclass(frozen=True)
class Setting:
    """What a control said."""

    label: str
    value: str


@dataclass(frozen=True)
class Group:
    """Pieces that stand together: below each other, side by side, or folded behind a label."""

    pieces: tuple[Piece, ...]
    look: str = "column"
    label: str = ""


# The heading of suggestions, which are left out.
TRY_THIS = Text("**Try this**")


@dataclass(frozen=True)
class PageContent:
    """A page at one moment, or something written like one; it may be a piece of another.

    Attributes:
        name: the name in its address, "home" for the first page.
        query: what its address said.
        pieces: what it shows.
        source: what its last line says that it is; by default, which page.
        refused: what its address asked for that it does not take, a sentence for each.
    """

    name: str
    query: Mapping[str, str]
    pieces: tuple[Piece, ...]
    source: str = ""
    refused: Sequence[str] = ()

    def all(self, kind: type) -> list[Any]:
        """Every piece of a kind, in their order."""
        return [piece for piece in _flat(self.pieces) if isinstance(piece, kind)]

    @property
    def title(self) -> str:
        """The title of the page."""
        return next((piece.text for piece in self.all(Heading)), self.name)


Piece = Heading | Text | Plain | Code | Figure | View | Part | Table | Image | Setting | Group | PageContent


def _flat(pieces: tuple[Piece, ...]) -> Iterator[Piece]:
    for piece in pieces:
        yield piece
        if isinstance(piece, Group | PageContent):
            yield from _flat(piece.pieces)


def read_page(name: str, query: Mapping[str, str]) -> PageContent:
    """What the page called `name` shows where its address says `query`.

    Raises:
        PageError: there is no such page or model, or the page fails.
    """
    if name not in page_names():
        raise PageError(f"there is no page {name!r:.40}{instead(name, page_names())}")
    if "model" in query:  # a page opens another model instead, and says so: not what was asked for
        try:
            checkpoints.find(query["model"])
        except checkpoints.CheckpointError as error:
            raise PageError(f"the page {name} cannot be opened: {error}") from None
    at = run_page(name, query, PATIENCE)
    if at.exception:
        raise PageError(f"the page {name} fails: {at.exception[0].message}")
    pieces = tuple(piece for piece in _pieces(at.main) if piece != TRY_THIS)
    return PageContent(name, dict(query), pieces, refused=in_vain(at, name, query))


def _pieces(block: Block) -> Iterator[Piece]:
    for node in block.children.values():
        yield from _piece(node)


def _piece(node: Node) -> Iterator[Piece]:
    if isinstance(node, Block):
        yield from _group(node)
        return
    proto: Any = node.proto
    match type(proto).__name__:
        case "Heading":
            yield Heading(proto.body, int(proto.tag[1:] or 2))
        case "Markdown":
            is_caption = proto.element_type == proto.Type.CAPTION
            yield Text(proto.body, "caption" if is_caption else "text")
        case "Alert":
            looks = {1: "error", 2: "warning", 3: "info", 4: "success"}
            yield Text(proto.body, looks.get(proto.format, "info"))
        case "Text":
            yield Plain(proto.body)
        case "Code":
            yield Code(proto.code_text, proto.language)
        case "PlotlyChart":
            yield Figure(proto.spec, getattr(proto, "alt", ""))
        case "BidiComponent":
            if proto.component_name == PART:
                yield Part.of(proto.bytes)
            found = _VIEW.fullmatch(proto.component_name)
            if found and found[1] != "figure_tools":
                yield View(found[1], proto.bytes)
        case "ArrowDataFrame" | "Arrow" | "Dataframe":
            yield Table(node.value)
        case "ImageList":
            yield from (Image(image.url, image.alt or image.caption) for image in proto.imgs if image.url.startswith("data:"))
        case "PageLink":  # what it leads to stays behind
            yield Text(proto.label)
        case _:
            label = getattr(proto, "label", "")
            value = getattr(node, "value", None)
            if label and isinstance(value, str | int | float) and not isinstance(value, bool):
                yield Setting(label, str(value))


def _whole(pieces: list[Piece]) -> tuple[Piece, ...]:
    """The pieces, with the parts of a view's data, which stand beside it on a page, put into the view."""
    parts = tuple(piece for piece in pieces if isinstance(piece, Part))
    if not parts:
        return tuple(pieces)
    others = (piece for piece in pieces if not isinstance(piece, Part))
    return tuple(View(one.name, Packed(one.data, parts).whole) if isinstance(one, View) else one for one in others)


def _group(block: Block) -> Iterator[Piece]:
    proto: Any = block.proto
    if block.type == "popover" or _ELSEWHERE.search(getattr(proto, "id", "") or ""):
        return
    inside = _whole([piece for piece in _pieces(block) if piece != TRY_THIS])
    if not inside:
        return
    if block.type == "expander":
        yield Group(inside, "folded", proto.label)
    elif block.type == "flex_container" and proto.flex_container.direction == proto.flex_container.Direction.HORIZONTAL:
        yield Group(inside, "row")
    else:
        yield Group(inside)
