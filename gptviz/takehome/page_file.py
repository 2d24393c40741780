"""A page as one HTML file: its text, its figures, and its views made by hand, which work without a
server.
"""

from __future__ import annotations

import base64
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from html import escape
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from markdown_it import MarkdownIt

from gptviz._version import __version__
from gptviz.components import kit
from gptviz.components.kit import modules
from gptviz.languages import ENGLISH, direction, translate
from gptviz.machine.location import FOLDER

from .page import (
    AskedQuestion,
    Code,
    ControlValue,
    Figure,
    Heading,
    Image,
    MarkdownText,
    PageContent,
    PagePiece,
    PageTable,
    PieceGroup,
    PlainText,
    SavedView,
)

HERE = Path(__file__).parent
OwnPrompt = Callable[[str, Mapping[str, str]], str]
MOST_ROWS = 2_000
# What the scripts of a file say to its reader.
SAID = re.compile(r'\binWords\("([^"]+)"\)')
# Streamlit adds to Markdown: icons, colours, and equations between dollar signs.
_ICON = re.compile(r":material/\w+:")
_COLOUR = re.compile(r":(?:\w+-background|\w+-badge|small|\w+)\[([^\]]*)\]")
_EQUATION = re.compile(r"\$\$(.+?)\$\$|(?<!\\)\$([^$\n]+?)(?<!\\)\$", re.DOTALL)


def as_html(page: PageContent, shared: str = "", own: OwnPrompt | None = None) -> str:
    """The page as one HTML file that needs no server.

    Its content security policy forbids loading anything from elsewhere. Text of models and visitors
    is escaped.

    Args:
        shared: the folder of the scripts that several files share, as seen from this file (see
            `shared_scripts`); if it is empty, the file has its scripts in itself.
        own: the address of a page for the reader's own prompt, by the name of a page and its query;
            "" where there is none.
    """
    writer = _Writer(shared, own, page.language)
    say = writer.say
    writer.has_questions = bool(page.lesson)  # a course site is told of a lesson without any too
    of = "".join(f", {key} = {value[:200]}" for key, value in page.query.items())
    if page.source:
        written = say("Written by gptviz {version}.").format(version=__version__)
        by = f"{page.source} {written}"
    else:
        by = f"Page “{page.name}” of gptviz {__version__}{of}."
    computed = say("Every number was computed by the model named.")
    return fill_template(
        HERE / "page.html",
        address=escape(urlencode(page.query)),
        lesson=escape(page.lesson),
        title=escape(f"{page.title} · gptviz"),
        body=writer.write_page(page),
        made=escape(f"{by} {computed}"),
        language=escape(page.language),
        direction=direction(page.language),
        scripts=writer.scripts(),
        beside="'self' file:" if shared else "",
    )


def fill_template(template: Path, **values: str) -> str:
    """The HTML of a template with a value at each `{{ name }}`: one of `values`, a style sheet, or
    the version of gptviz.
    """
    dark = f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_variables('dark')} }} }}"
    values |= {
        "page_style": kit.page_style(),
        "style": (HERE / "page_file.css").read_text(encoding="utf-8"),
        # The views have the app's own colours, light or dark as the reader's system asks.
        "colours": f":root {{ color-scheme: light dark; {_variables('light')} }}\n{dark}",
        "version": __version__,
    }
    return re.sub(
        r"\{\{ (\w+) \}\}", lambda place: values[place[1]], template.read_text(encoding="utf-8")
    )


def shared_scripts(pages: Iterable[PageContent]) -> dict[str, str]:
    """The scripts that files about these pages share, by the names of their files."""
    every = list(pages)
    views = {view.name for page in every for view in page.pieces_of(SavedView)}
    scripts = {
        f"{view}.js": "\n".join(hand_over(name, content) for name, content in _of_view(view))
        for view in sorted(views)
    }
    return scripts | (
        {"plotly.js": _plotly()} if any(page.pieces_of(Figure) for page in every) else {}
    )


def hand_over(name: str, content: str) -> str:
    """A script that hands `content` over to the page under a name, as `partOf` of mounting.js looks
    for it.
    """
    return f"(globalThis.gptvizShared ??= {{}})[{json.dumps(name)}] = {json.dumps(content)};"


def _of_view(view: str) -> list[tuple[str, str]]:
    """The script and the style of a view, by the names under which a page looks for them."""
    folder = kit.FOLDER.parent / view
    return [
        (f"script-{view}", json.dumps(kit.script(folder))),
        (f"style-{view}", json.dumps(kit.style(folder))),
    ]


def _plotly() -> str:
    import plotly.offline

    return str(plotly.offline.get_plotlyjs())


def _variables(scheme: str) -> str:
    """The variables of the theme that views use, from the app's own settings."""
    colours = tomllib.loads((FOLDER / ".streamlit" / "config.toml").read_text(encoding="utf-8"))[
        "theme"
    ][scheme]
    named = {
        "background-color": colours["backgroundColor"],
        "secondary-background-color": colours["secondaryBackgroundColor"],
        "text-color": colours["textColor"],
        "link-color": colours["linkColor"],
        "border-color": colours["borderColor"],
        "primary-color": colours["primaryColor"],
        "base-radius": "0.35rem",
        "font": "system-ui, sans-serif",
        "code-font": "ui-monospace, monospace",
    }
    return " ".join(f"--st-{name}: {value};" for name, value in named.items())


class _Writer:
    """Writes pieces as HTML, and remembers which scripts they need."""

    def __init__(self, shared: str, own: OwnPrompt | None, language: str) -> None:
        self.language = language
        self.shared = shared
        self.own = own
        self.data: dict[str, str] = {}
        self.views: set[str] = set()
        self.has_figures = self.has_questions = False
        # how many levels are added to headings, within a page that is part of another
        self._lower = 0
        self._number = count()
        self._markdown = MarkdownIt("commonmark", {"html": False}).enable("table")

    def say(self, text: str) -> str:
        """A text of the frame in the language of the file."""
        return translate(text, self.language)

    def write_piece(self, piece: PagePiece) -> str:
        """A piece as HTML."""
        writers: dict[type, Callable[[Any], str]] = {
            Heading: self._heading,
            MarkdownText: self._text,
            PlainText: lambda text: f'<p class="plain">{escape(text.body)}</p>',
            Code: lambda one: f"<pre><code>{escape(one.body)}</code></pre>",
            Figure: self._figure,
            SavedView: self._view,
            PageTable: self._table,
            Image: lambda image: f'<img src="{escape(image.source)}" alt="{escape(image.alt)}">',
            ControlValue: lambda shown: (
                f'<span class="settings"><b>{escape(shown.label)}</b>: {escape(shown.value)}</span>'
            ),
            AskedQuestion: self._question,
            PieceGroup: self._group,
            PageContent: self._page,
        }
        return writers[type(piece)](piece)

    def write_page(self, page: PageContent) -> str:
        """All of a page, and a link to where the reader's own prompt can be typed."""
        if self.own is not None:
            address = self.own(page.name, page.query)
        else:
            address = ""
        if address:
            label = escape(self.say("The same with your own prompt"))
            link = [f'<p><a href="{escape(address)}">{label}</a></p>']
        else:
            link = []
        return "\n".join([*(self.write_piece(piece) for piece in page.pieces), *link])

    def _heading(self, heading: Heading) -> str:
        level = min(6, heading.level + self._lower)
        return f"<h{level}>{escape(heading.text) if heading.plain else self._inline(heading.text)}</h{level}>"

    def _page(self, page: PageContent) -> str:
        """A page inside another: its views read its own address, and its headings are below those
        of the outer page.
        """
        self._lower += 2
        inside = self.write_page(page)
        self._lower -= 2
        language = "" if self.language == ENGLISH else f' lang="{ENGLISH}" dir="ltr"'
        return (
            f'<section class="page"{language} '
            f'data-address="{escape(urlencode(page.query))}">{inside}</section>'
        )

    def _group(self, group: PieceGroup) -> str:
        inside = "\n".join(self.write_piece(piece) for piece in group.pieces)
        if group.look == "folded":
            return f"<details><summary>{self._inline(group.label)}</summary>{inside}</details>"
        return f'<div class="{group.look}">{inside}</div>'

    def _question(self, asked: AskedQuestion) -> str:
        self.has_questions = True
        begins = self.say("Question.")
        text = self._render_markdown(f"**{begins}** {asked.ask}")
        question = f'<div class="text">{text}</div>'
        options = "".join(
            f'<label><input type="radio" name="answer" value="{escape(option)}"> '
            f"{escape(shown)}</label>"
            for option, shown in zip(asked.options, asked.shown, strict=True)
        )
        label = escape(self.say("Your answer"))
        checks = escape(self.say("Check"))
        shows = escape(self.say("Show the answer"))
        typed = f'<input name="answer" autocomplete="off" aria-label="{label}">'
        if asked.kind == "state":
            check = ""
        else:
            check = f"{options or typed}<button>{checks}</button>"
        hidden = {
            "name": asked.name,
            "kind": asked.kind,
            "options": asked.options,
            "value": asked.value,
            "within": asked.within,
            "words": asked.words,
        }
        hidden |= {
            "hint": self._render_markdown(asked.hint),
            "reveal": self._render_markdown(asked.reveal),
        }
        packed = base64.b64encode(json.dumps(hidden).encode()).decode()
        return (
            f'<form class="question" data-answer="{packed}">{question}{check}'
            f'<button type="button">{shows}</button><div role="status"></div></form>'
        )

    def _text(self, text: MarkdownText) -> str:
        look = {"text": "text", "caption": "caption"}.get(text.look, "message")
        return f'<div class="{look}">{self._render_markdown(text.body)}</div>'

    def _inline(self, text: str) -> str:
        return str(self._markdown.renderInline(_COLOUR.sub(r"\1", _ICON.sub("", text))))

    def _render_markdown(self, text: str) -> str:
        """Markdown as HTML; equations as MathML, which browsers draw by themselves."""
        equations: list[str] = []

        def keep(found: re.Match[str]) -> str:
            equations.append(_mathml(found[1] or found[2], block=found[1] is not None))
            # characters without a meaning, which no text of gptviz has
            return f"\ue000{len(equations) - 1}\ue001"

        plain = text.replace("\ue000", "").replace("\ue001", "")
        html = str(
            self._markdown.render(_COLOUR.sub(r"\1", _ICON.sub("", _EQUATION.sub(keep, plain))))
        )
        return re.sub("\ue000(\\d+)\ue001", lambda found: equations[int(found[1])], html)

    def _name(self, kind: str, data: str) -> str:
        name = f"{kind}-{next(self._number)}"
        self.data[name] = data
        return name

    def _figure(self, figure: Figure) -> str:
        self.has_figures = True
        name = self._name("figure", figure.spec)
        return (
            f'<div class="figure" id="{name}" role="img" aria-label="{escape(figure.alt)}"></div>'
        )

    def _view(self, view: SavedView) -> str:
        self.views.add(view.name)
        name = self._name("view", base64.b64encode(view.data).decode())
        return f'<div id="{name}" data-view="{view.name}"></div>'

    def _table(self, table: PageTable) -> str:
        shown = table.frame.head(MOST_ROWS)
        more = len(table.frame) - len(shown)
        if more:
            said = self.say("{more} more rows are not in this file.").format(more=f"{more:,}")
            left = f'<p class="caption">{said}</p>'
        else:
            left = ""
        return f'<div class="table">{shown.to_html(escape=True, border=0)}</div>{left}'

    def scripts(self) -> str:
        """The data of all views and figures, then the scripts that show them."""
        parts = [
            f'<script type="application/json" id="data-{name}">{escape_data(data)}</script>'
            for name, data in self.data.items()
        ]
        for view in sorted(self.views):
            if self.shared:
                parts.append(f'<script src="{self.shared}/{view}.js"></script>')
                continue
            parts += [
                f'<script type="application/json" id="{name}">{escape_data(script)}</script>'
                for name, script in _of_view(view)
            ]
        if self.has_figures and self.shared:
            parts.append(f'<script src="{self.shared}/plotly.js"></script>')
        elif self.has_figures:
            parts.append(
                f"<script>{_plotly().replace('</script', '<' + chr(92) + '/script')}</script>"
            )
        own = {"page_file.js": bool(self.data), "questions.js": self.has_questions}
        files = [modules.join_modules(HERE / name) for name, is_needed in own.items() if is_needed]
        if self.language != ENGLISH:
            said = {text: self.say(text) for file in files for text in SAID.findall(file)}
            packed = escape_data(json.dumps(said))
            parts.append(f'<script type="application/json" id="words">{packed}</script>')
        parts += [f'<script type="module">{content}</script>' for content in files]
        return "\n".join(parts)


def escape_data(data: str) -> str:
    """JSON or base64 inside a script element: nothing in it can end the element."""
    return data.replace("<", "\\u003c")


def _mathml(equation: str, *, block: bool) -> str:
    from latex2mathml.converter import convert

    try:
        return str(convert(equation, display="block" if block else "inline"))
    except Exception:  # an equation that the library cannot read is shown as it is written
        return f"<code>{escape(equation)}</code>"
