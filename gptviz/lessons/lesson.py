r"""A lesson: a Markdown file with front matter, cut into steps, each with a state of a page and questions.

The file begins with settings between two lines `---` (YAML): `title`, `about` (a sentence), `minutes`, `based_on` (a list of
sources), `model` (the model that the lesson is about) and perhaps `any_decoder: yes` (it is about the decoder of pieces of words
that the reader opened last; where there is none, `model` stands in for it). Every heading of the second level begins a step. In a
step stand paragraphs, in which `{{ expression }}` is replaced by what the model gives (see `quantities.py`), and fenced blocks of
two kinds, whose content is YAML:

    ```page
    open: next_token
    prompt: "ROMEO:"
    look_at: The tall bar is the likeliest token.
    ```

    ```question
    ask: How likely is a line break after “ROMEO:”?
    kind: number
    answer: 100 * probability("ROMEO:", "\n")
    within: 5
    unit: "%"
    reveal: A name with a colon ends its line in all plays.
    ```
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from gptviz.bounded import read_regular

from .expression import ExpressionError, parsed

LARGEST_FILE = 200_000  # bytes
MOST_STEPS, MOST_QUESTIONS = 40, 12
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}")
EXPRESSION = re.compile(r"\{\{(.+?)\}\}", re.DOTALL)

QuestionKind = Literal["choice", "number", "token", "state"]
KINDS: tuple[QuestionKind, ...] = get_args(QuestionKind)


class LessonError(ValueError):
    """A lesson that cannot be read; the message names the file, the place and what to write instead."""


@dataclass(frozen=True)
class PageState:
    """A page as a step shows it.

    Attributes:
        page: the name of its script, such as "next_token"; "home" for the first page.
        query: what its address says.
        look_at: a sentence that says where to look; may be empty.
    """

    page: str
    query: Mapping[str, str]
    look_at: str = ""


@dataclass(frozen=True)
class Question:
    """A question that the reader answers before the answer is shown.

    Attributes:
        ask: the question, as Markdown; may have expressions.
        kind: "choice" of one of `options`; a "number" within a tolerance; a "token" that is typed; a "state" of the page, which
            the reader brings about by a click.
        answer: an expression whose value is right; it is computed by the model, never written down.
        options: of a choice.
        within: of a number, how far an answer may be off.
        unit: of a number.
        state: of a state, the names in the page's address that the click sets. The answer is their values, with a point between
            two of them: "1.3" for the names block and head.
        reveal: what is said once the reader has answered, as Markdown; may have expressions.
    """

    ask: str
    kind: QuestionKind
    answer: str
    options: tuple[str, ...] = ()
    within: float = 0.0
    unit: str = ""
    state: tuple[str, ...] = ()
    reveal: str = ""

    def said_by(self, query: Mapping[str, str]) -> str | None:
        """Of a state: the answer that stands in an address; None where one of its names has no value there."""
        values = [query[name] for name in self.state if name in query]
        return ".".join(values) if len(values) == len(self.state) else None

    def in_address(self, answer: str) -> dict[str, str]:
        """Of a state: what an address with this answer says."""
        values = [answer] if len(self.state) == 1 else answer.split(".")
        return dict(zip(self.state, values, strict=False))


@dataclass(frozen=True)
class Step:
    """A step of a lesson.

    Attributes:
        title: its heading.
        text: Markdown, in which `{{ expression }}` stands for a value.
        page: what is open beside the text; None leaves the page as it is.
        questions: what it asks.
    """

    title: str
    text: str
    page: PageState | None = None
    questions: tuple[Question, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """All its texts in which expressions may stand."""
        return (self.text, *(text for question in self.questions for text in (question.ask, question.reveal)))


@dataclass(frozen=True)
class Lesson:
    """A lesson.

    Attributes:
        name: of its file, without the ending; it stands in addresses.
        title: its heading.
        about: what there is to see in it, in a sentence.
        steps: at least one.
        minutes: how long it takes.
        based_on: what it is based on.
        model: the model that it is about.
        any_decoder: whether it is about a decoder of pieces of words that the reader opened, and `model` stands in for one.
    """

    name: str
    title: str
    about: str
    steps: tuple[Step, ...]
    minutes: int = 5
    based_on: tuple[str, ...] = ()
    model: str = "shakespeare"
    any_decoder: bool = False

    @property
    def expressions(self) -> list[tuple[int, str]]:
        """Every expression with the number of its step."""
        return [(number, text) for number, step in enumerate(self.steps) for text in _expressions(step)]


def _expressions(step: Step) -> Iterator[str]:
    for text in step.texts:
        yield from (found[1] for found in EXPRESSION.finditer(text))
    yield from (question.answer for question in step.questions)


def read_lesson(path: Path) -> Lesson:
    """The lesson in a file.

    Raises:
        LessonError: the file cannot be read, or is no lesson.
    """
    try:
        content = read_regular(path, LARGEST_FILE).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LessonError(f"{path.name}: {error}") from None
    return parse_lesson(content, path.stem, path.name)


def parse_lesson(content: str, name: str, file: str = "the lesson") -> Lesson:
    """The lesson that a text is.

    Args:
        content: the text of the file.
        name: what the lesson is called in addresses.
        file: the name of the file, for messages.

    Raises:
        LessonError: as in `read_lesson`.
    """
    if not NAME.fullmatch(name):
        raise LessonError(f"{file}: the name of a lesson's file has letters, digits, '-' and '_' only")
    front, text = _front_matter(content.replace("\r\n", "\n"), file)
    settings = _Fields(_mapping(front, f"{file}: its beginning"), f"{file}: its beginning")
    lesson = Lesson(
        name=name,
        title=settings.text("title"),
        about=settings.text("about"),
        minutes=int(settings.number("minutes", 5)),
        based_on=settings.texts("based_on"),
        model=settings.text("model", "shakespeare"),
        any_decoder=settings.truth("any_decoder"),
        steps=tuple(_steps(text, file)),
    )
    settings.nothing_else()
    if not 1 <= len(lesson.steps) <= MOST_STEPS:
        raise LessonError(
            f"{file}: it has {len(lesson.steps)} steps; a step begins with a heading '## …', 1 to {MOST_STEPS} of them"
        )
    for number, expression in lesson.expressions:
        try:
            parsed(expression)
        except ExpressionError as error:
            raise LessonError(f"{file}, step {number + 1}: {error}") from None
    return lesson


def _front_matter(content: str, file: str) -> tuple[str, str]:
    parts = re.split(r"^---[ \t]*$", content.lstrip("\ufeff"), maxsplit=2, flags=re.MULTILINE)
    if len(parts) < 3 or parts[0].strip():
        raise LessonError(f"{file}: it must begin with its settings between two lines ---")
    return parts[1], parts[2]


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """YAML without references: a few lines of them can stand for a text of gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("references (*name) are not possible here")
        return super().compose_node(parent, index)


def _mapping(text: str, where: str) -> dict[str, Any]:
    try:
        content = yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise LessonError(f"{where}: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise LessonError(f"{where}: there must be lines 'name: value'")
    return content


@dataclass
class _Fields:
    """The fields of a block, each read once; what is left over is an error."""

    content: dict[str, Any]
    where: str
    read: set[str] = field(default_factory=set)

    def _get(self, name: str, default: Any) -> Any:
        self.read.add(name)
        value = self.content.get(name, default)
        if value is None:
            raise LessonError(f"{self.where}: '{name}' is missing")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """A text; a number counts as one."""
        value = self._get(name, default)
        if isinstance(value, bool | list | dict):
            raise LessonError(f"{self.where}: '{name}' must be a text")
        return str(value)

    def number(self, name: str, default: float) -> float:
        """A number that is not negative."""
        value = self._get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
            raise LessonError(f"{self.where}: '{name}' is {value!r:.40}; it must be a number, 0 or more")
        return value

    def truth(self, name: str) -> bool:
        """Yes or no; no unless given."""
        value = self._get(name, False)
        if not isinstance(value, bool):
            raise LessonError(f"{self.where}: '{name}' must be yes or no")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts, or one text."""
        value = self._get(name, [])
        entries = value if isinstance(value, list) else [value]
        if not all(isinstance(entry, str | int | float) for entry in entries):
            raise LessonError(f"{self.where}: '{name}' must be a list of texts")
        return tuple(map(str, entries))

    def names(self, name: str) -> tuple[str, ...]:
        """One name or more, with commas between them."""
        return tuple(part.strip() for part in self.text(name).split(","))

    def nothing_else(self) -> None:
        """Refuse fields that nobody has read: a misspelt name would otherwise do nothing."""
        if unknown := sorted(set(self.content) - self.read):
            raise LessonError(f"{self.where}: there is no setting {unknown[0]!r:.40}; there are {', '.join(sorted(self.read))}")


def _steps(text: str, file: str) -> Iterator[Step]:
    lines = text.split("\n")
    tokens = MarkdownIt("commonmark").parse(text)
    starts = [
        (token.map[0], tokens[index + 1].content)
        for index, token in enumerate(tokens)
        if token.type == "heading_open" and token.tag == "h2" and token.level == 0 and token.map
    ]
    fences = [token for token in tokens if token.type == "fence" and token.level == 0 and token.map]
    ends = [*(start for start, _ in starts[1:]), len(lines)]
    for number, ((start, title), end) in enumerate(zip(starts, ends, strict=False), 1):
        inside = [fence for fence in fences if fence.map and start <= fence.map[0] < end]
        yield _step(title, lines, (start + 1, end), inside, f"{file}, step {number}")


def _step(title: str, lines: list[str], of: tuple[int, int], fences: list[Token], where: str) -> Step:
    page: PageState | None = None
    questions: list[Question] = []
    blocks: set[int] = set()
    for fence in fences:
        kind = fence.info.strip()
        if kind not in ("page", "question") or fence.map is None:
            continue
        blocks |= set(range(*fence.map))
        fields = _Fields(_mapping(fence.content, f"{where}, {kind}"), f"{where}, {kind}")
        if kind == "question":
            questions.append(_question(fields))
        elif page is not None:
            raise LessonError(f"{where}: it has two blocks 'page'; a step shows one page")
        else:
            page = _page(fields)
    if len(questions) > MOST_QUESTIONS:
        raise LessonError(f"{where}: it has {len(questions)} questions, and {MOST_QUESTIONS} are the most")
    text = "\n".join(lines[number] for number in range(*of) if number not in blocks).strip()
    return Step(title, text, page, tuple(questions))


def _page(fields: _Fields) -> PageState:
    page, look_at = fields.text("open"), fields.text("look_at", "")
    query = {name: fields.text(name) for name in fields.content if name not in ("open", "look_at")}
    return PageState(page, query, look_at)


def _question(fields: _Fields) -> Question:
    kind = fields.text("kind")
    if kind not in KINDS:
        raise LessonError(f"{fields.where}: its kind is {kind!r:.40}; there are {', '.join(KINDS)}")
    question = Question(
        ask=fields.text("ask"),
        kind=kind,
        answer=fields.text("answer"),
        options=fields.texts("options") if kind == "choice" else (),
        within=fields.number("within", 0.0) if kind == "number" else 0.0,
        unit=fields.text("unit", "") if kind == "number" else "",
        state=fields.names("state") if kind == "state" else (),
        reveal=fields.text("reveal", ""),
    )
    fields.nothing_else()
    if kind == "choice" and (len(question.options) < 2 or len(set(question.options)) < len(question.options)):
        raise LessonError(f"{fields.where}: a choice has two or more options, no two of them alike")
    return question
