"""The content of a page: the pieces that it shows, read after one run without a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from gptviz.components.kit import PART, Packed, PayloadPart
from gptviz.machine.location import page_names
from gptviz.runs import checkpoints
from gptviz.settings.known_names import name_known
from gptviz.streamlit_internals import Element, run_page

PATIENCE = 600  # seconds, for a page to open
# Containers that are left out: links and suggestions have no use without the app.
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
class MarkdownText:
    """Markdown as Streamlit reads it; `look` is "text", "caption", or the kind of a message such as
    "warning".
    """

    body: str
    look: str = "text"


@dataclass(frozen=True)
class PlainText:
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
class SavedView:
    """A view made by hand: the name of its folder in `gptviz.components`, and its payload."""

    name: str
    data: bytes


@dataclass(frozen=True)
class PageTable:
    """A table."""

    frame: pd.DataFrame


@dataclass(frozen=True)
class Image:
    """A picture inside its own address (data:…), and what it shows."""

    source: str
    alt: str


@dataclass(frozen=True)
class ControlValue:
    """The label and the value of a control."""

    label: str
    value: str


@dataclass(frozen=True)
class AskedQuestion:
    """A question of a lesson: the reader answers it, and the answer is checked without a server."""

    name: str  #: its name within the lesson
    ask: str  #: the question, as Markdown
    kind: str  #: of the answer, as in a lesson; a "state" of a page is only shown
    options: tuple[str, ...]  #: those of a choice
    shown: tuple[str, ...]  #: the same in the reader's language
    value: str | float  #: the right answer
    within: float  #: how far a number may be off
    words: str  #: the right answer in words
    hint: str  #: the text before a second try, as Markdown; may be empty
    reveal: str  #: the text after the answer, as Markdown; may be empty


@dataclass(frozen=True)
class PieceGroup:
    """Pieces that belong together: below each other, side by side, or folded behind a label."""

    pieces: tuple[PagePiece, ...]
    look: str = "column"
    label: str = ""


# The heading of suggestions, which are left out.
TRY_THIS = MarkdownText("**Try this**")


@dataclass(frozen=True)
class PageContent:
    """A page at one moment, or another document of the same form; it may be a piece of another."""

    name: str  #: the name in its address, "home" for the first page
    query: Mapping[str, str]  #: the query of its address
    pieces: tuple[PagePiece, ...]  #: what it shows
    source: str = ""  #: the sentence in its last line; by default the line names the page
    #: a sentence for each key of its address that the page does not accept
    rejected: Mapping[str, str] = field(default_factory=dict)
    lesson: str = ""  #: the name of the lesson that it is, if it is one
    language: str = "en"  #: that of its texts

    def pieces_of(self, kind: type) -> list[Any]:
        """Every piece of a kind, in order."""
        return [piece for piece in _flatten_pieces(self.pieces) if isinstance(piece, kind)]

    @property
    def title(self) -> str:
        """The title of the page."""
        return next((piece.text for piece in self.pieces_of(Heading)), self.name)


PagePiece = (
    Heading
    | MarkdownText
    | PlainText
    | Code
    | Figure
    | SavedView
    | PayloadPart
    | PageTable
    | Image
    | ControlValue
    | AskedQuestion
    | PieceGroup
    | PageContent
)


def _flatten_pieces(pieces: tuple[PagePiece, ...]) -> Iterator[PagePiece]:
    for piece in pieces:
        yield piece
        if isinstance(piece, PieceGroup | PageContent):
            yield from _flatten_pieces(piece.pieces)


def read_page(name: str, query: Mapping[str, str]) -> PageContent:
    """The content of the page called `name` at the address `query`; a PageError if page or model is
    missing, or it fails.
    """
    if name not in page_names():
        raise PageError(f"there is no page {name!r:.40}{name_known(name, page_names())}")
    if "model" in query:  # for a model that is missing the page would open another one and say so
        try:
            checkpoints.find(query["model"])
        except checkpoints.CheckpointError as error:
            raise PageError(f"the page {name} cannot be opened: {error}") from None
    ran = run_page(name, query, PATIENCE)
    if ran.failed:
        raise PageError(f"the page {name} fails: {ran.failed[0]}")
    return PageContent(name, dict(query), tuple(_pieces(ran.shown)), rejected=ran.rejected)


def _pieces(elements: Sequence[Element]) -> Iterator[PagePiece]:
    for element in elements:
        if element.inside is None:
            pieces = _piece(element)
        else:
            pieces = _group(element, element.inside)
        yield from (piece for piece in pieces if piece != TRY_THIS)


def _piece(element: Element) -> Iterator[PagePiece]:
    message = element.message
    match element.kind:
        case "Heading":
            yield Heading(message.body, int(message.tag[1:] or 2))
        case "Markdown":
            yield MarkdownText(
                message.body, "caption" if message.element_type == message.Type.CAPTION else "text"
            )
        case "Alert":
            yield MarkdownText(
                message.body,
                {1: "error", 2: "warning", 3: "info", 4: "success"}.get(message.format, "info"),
            )
        case "Text":
            yield PlainText(message.body)
        case "Code":
            yield Code(message.code_text, message.language)
        case "PlotlyChart":
            yield Figure(message.spec, getattr(message, "alt", ""))
        case "BidiComponent":
            if message.component_name == PART:
                yield PayloadPart.from_element(message.bytes)
            view = _VIEW.fullmatch(message.component_name)
            if view and view[1] != "figure_tools":
                yield SavedView(view[1], message.bytes)
        case "ArrowDataFrame" | "Arrow" | "Dataframe":
            yield PageTable(element.value)
        case "ImageList":
            yield from (
                Image(image.url, image.alt or image.caption)
                for image in message.imgs
                if image.url.startswith("data:")
            )
        case "PageLink":  # without its target
            yield MarkdownText(message.label)
        case _:
            label = getattr(message, "label", "")
            value = element.value
            if label and isinstance(value, str | int | float) and not isinstance(value, bool):
                yield ControlValue(label, str(value))


def _group(container: Element, elements: Sequence[Element]) -> Iterator[PagePiece]:
    message = container.message
    if container.kind == "popover" or _ELSEWHERE.search(getattr(message, "id", "") or ""):
        return
    pieces = list(_pieces(elements))
    if parts := tuple(piece for piece in pieces if isinstance(piece, PayloadPart)):
        # The parts of a view's data, which are separate pieces on a page, are put into the view.
        pieces = [
            SavedView(it.name, Packed(it.data, parts).joined_bytes)
            if isinstance(it, SavedView)
            else it
            for it in pieces
        ]
    inside = tuple(piece for piece in pieces if not isinstance(piece, PayloadPart))
    if not inside:
        return
    if container.kind == "expander":
        yield PieceGroup(inside, "folded", message.label)
    elif (
        container.kind == "flex_container"
        and message.flex_container.direction == message.flex_container.Direction.HORIZONTAL
    ):
        yield PieceGroup(inside, "row")
    else:
        yield PieceGroup(inside)
