r"""A lesson: a Markdown file with front matter, cut into steps, each with a state of a page and
questions.

The file begins with settings between two lines `---` (YAML): `title`, `about` (a sentence),
`minutes`, `level` (one of `LEVELS`, or none), `based_on` (a list of sources), `model` (the model
that the lesson is about) and perhaps `any_decoder: yes` (it is about the decoder with parts of
words as tokens that the reader opened last; if there is none, about `model`). Every heading of the
second level begins a step. A step has paragraphs, in which `{{ expression }}` is replaced by its
value (see `quantities.py`), and fenced blocks of two kinds, whose content is YAML:

    ```page
    open: next_token
    prompt: "ROMEO:"
    look_at: The tall bar is the likeliest token.
    claim: probability("ROMEO:", "\n") > 0.5
    ```

    ```question
    ask: How likely is a line break after “ROMEO:”?
    kind: number
    answer: 100 * probability("ROMEO:", "\n")
    within: 5
    unit: "%"
    hint: A name stands on a line of its own.
    reveal: A name with a colon ends its line in all plays.
    ```

A `claim` is an expression, or a list of them, that must be true for what the step says to be true.
Readers do not see it: the command `lessons check` computes it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from gptviz.machine.bounded import SURROGATE, read_regular
from gptviz.machine.errors import reason_of
from gptviz.settings.known_names import name_known

from .expression import ExpressionError, parse_expression

LARGEST_FILE = 200_000  # bytes
MOST_STEPS = 40
MOST_QUESTIONS = 12
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}")
EXPRESSION = re.compile(r"\{\{(.+?)\}\}", re.DOTALL)

QuestionKind = Literal["choice", "number", "token", "state", "guess"]
KINDS: tuple[QuestionKind, ...] = get_args(QuestionKind)
BLOCKS = ("page", "question")
# How much a lesson asks for: nothing, some idea of what a model does, or the wish to find something
# out.
LEVELS = FIRST_STEPS, INSIDE, RESEARCH = "first steps", "inside", "research"


class LessonError(ValueError):
    """A lesson that cannot be read; the message names the file, the line and what to write
    instead.
    """


@dataclass(frozen=True)
class PageState:
    """A page as a step shows it."""

    page: str  #: the name of its script, such as "next_token"; "home" for the first page
    query: Mapping[str, str]  #: the keys and values of its address
    look_at: str = ""  #: a sentence that says where to look; may be empty
    #: the line of each of its settings in the file
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class LessonClaim:
    """An expression that is true if what a step says is true, and its line in the file."""

    expression: str
    line: int = field(default=1, compare=False)


@dataclass(frozen=True)
class Question:
    """A question that the reader answers before the answer is shown."""

    ask: str  #: the question, as Markdown; may have expressions
    #: "choice" of one of `options`; a "number" within a tolerance; a "token" that is typed; a
    #: "state" of the page, which the reader reaches by a click; a "guess" of the token after
    #: `prompt`, which is compared with the model's
    kind: QuestionKind
    #: an expression whose value is the right answer: the model computes it, no file has it. For a
    #: "guess" it is the text that went on in truth; the first token of it is the right one.
    answer: str
    options: tuple[str, ...] = ()  #: those of a choice
    shown: tuple[str, ...] = ()  #: the options in the reader's language, in the same order
    within: float = 0.0  #: how far the answer to a "number" may be off
    unit: str = ""  #: that of a number
    #: for a "state", the names in the page's address that the click sets. The answer is their
    #: values, joined with a point: "1.3" for the names block and head.
    state: tuple[str, ...] = ()
    #: the text that is shown after a first wrong answer, before a second one, as Markdown; may have
    #: expressions. Without one, a first wrong answer ends the question.
    hint: str = ""
    #: the text that is shown after the reader has answered, as Markdown; may have expressions
    reveal: str = ""
    prompt: str = ""  #: for a "guess", the text that goes on
    #: the line of each of its settings in the file
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)

    def label(self, option: str) -> str:
        """An option as the reader sees it."""
        return dict(zip(self.options, self.shown, strict=False)).get(option, option)

    def answer_in(self, query: Mapping[str, str]) -> str | None:
        """The answer to a "state" that is in an address, or None if one of its names has no value
        there.
        """
        values = [query[name] for name in self.state if name in query]
        if len(values) == len(self.state):
            return ".".join(values)
        return None

    def in_address(self, answer: str) -> dict[str, str]:
        """The part of an address that has this answer to a "state"."""
        values = [answer] if len(self.state) == 1 else answer.split(".")
        return dict(zip(self.state, values, strict=False))


@dataclass(frozen=True)
class LessonStep:
    """A step of a lesson."""

    title: str  #: its heading
    text: str  #: Markdown, in which `{{ expression }}` stands for a value
    #: the page that is open next to the text; None leaves the page as it is
    page: PageState | None = None
    questions: tuple[Question, ...] = ()  #: its questions
    #: what must be true of the models for its texts to be true
    claims: tuple[LessonClaim, ...] = ()
    line: int = field(default=1, compare=False)  #: the line of its heading in the file, from 1
    text_line: int = field(default=1, compare=False)  #: the line in which its text begins

    @property
    def texts(self) -> list[tuple[int, str]]:
        """Its text and those of its questions, each with its line."""
        of_questions = (
            (question, name) for question in self.questions for name in ("ask", "hint", "reveal")
        )
        return [
            (self.text_line, self.text),
            *(
                (question.lines.get(name, self.line), getattr(question, name))
                for question, name in of_questions
            ),
        ]

    @property
    def values(self) -> Iterator[tuple[int, str]]:
        """Every expression in its texts, with its line."""
        for number, (line, text) in enumerate(self.texts):
            for found in EXPRESSION.finditer(text):
                yield line + (text.count("\n", 0, found.start()) if number == 0 else 0), found[1]


@dataclass(frozen=True)
class Lesson:
    """A lesson."""

    name: str  #: that of its file, without the ending; it is used in addresses
    title: str  #: its heading
    about: str  #: its content, in a sentence
    steps: tuple[LessonStep, ...]  #: at least one
    minutes: int = 5  #: how long it takes
    level: str = ""  #: one of `LEVELS`, or empty if its file does not say
    based_on: tuple[str, ...] = ()  #: its sources
    model: str = "shakespeare"  #: the model that it is about
    language: str = "en"  #: that of its texts
    missing: int = 0  #: how many of its texts its catalogue lacks: they are English
    #: the lesson in other languages
    translations: Mapping[str, Lesson] = field(default_factory=dict, compare=False, repr=False)
    #: whether it is about a decoder with parts of words as tokens that the reader opened, else
    #: about `model`
    any_decoder: bool = False
    #: the line of each of its settings in the file
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)

    @property
    def pages(self) -> set[str]:
        """The names of the pages that it opens."""
        return {"home" if step.page is None else step.page.page for step in self.steps[:1]} | {
            step.page.page for step in self.steps if step.page is not None
        }

    @property
    def expressions(self) -> list[tuple[int, int, str]]:
        """Every expression, with the number of its step, from 0, and its line."""
        every = list[tuple[int, int, str]]()
        for number, step in enumerate(self.steps):
            every += [(number, line, expression) for line, expression in step.values]
            every += [
                (number, question.lines.get("answer", step.line), question.answer)
                for question in step.questions
            ]
            every += [(number, claim.line, claim.expression) for claim in step.claims]
        return every


def read_lesson(path: Path) -> Lesson:
    """The lesson in a file. A LessonError if the file cannot be read, or is no lesson."""
    try:
        raw = read_regular(path, LARGEST_FILE)
        content = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise LessonError(
            f"{shown_name(path)}, line {line}: this is no text in UTF-8: save the file again, "
            "with the encoding UTF-8"
        ) from None
    except OSError as error:
        raise LessonError(f"{shown_name(path)}: {reason_of(error)}") from None
    return parse_lesson(content, path.stem, shown_name(path))


def shown_name(path: Path) -> str:
    r"""The name of a file, with an escape such as `\xff` for a byte that is not UTF-8."""
    return os.fsencode(path.name).decode("utf-8", "backslashreplace")


def parse_lesson(content: str, name: str, file: str = "the lesson") -> Lesson:
    """The lesson with this `content`, called `name` in addresses and `file` in messages; a
    LessonError as in `read_lesson`.
    """
    if not NAME.fullmatch(name):
        raise LessonError(
            f"{file}: the name of a lesson's file has letters, digits, '-' and '_' only"
        )
    front, text, first = _front_matter(content.replace("\r\n", "\n"), file)
    settings = _fields(front, _Place(file, 2))
    steps = tuple(_steps(text, file, first))
    level = settings.text("level", "")
    if level and level not in LEVELS:
        raise settings.error(f"its level is {level!r:.40}{name_known(level, LEVELS)}", "level")
    lesson = Lesson(
        name=name,
        title=settings.text("title"),
        about=settings.text("about"),
        minutes=int(settings.number("minutes", 5)),
        level=level,
        based_on=settings.texts("based_on"),
        model=settings.text("model", "shakespeare"),
        any_decoder=settings.truth("any_decoder"),
        steps=steps,
        lines=settings.lines,
    )
    settings.nothing_else()
    _check_steps(lesson, file, first)
    return lesson


def _check_steps(lesson: Lesson, file: str, first: int) -> None:
    if not 1 <= len(lesson.steps) <= MOST_STEPS:
        raise LessonError(
            f"{file}, line {first}: it has {len(lesson.steps)} steps, not 1 to {MOST_STEPS}; a "
            "heading '## …' begins each"
        )
    titles: dict[str, int] = {}
    for number, step in enumerate(lesson.steps, 1):
        if (earlier := titles.setdefault(step.title, number)) != number:
            raise LessonError(
                f"{file}, line {step.line}, step {number}: step {earlier} has this title too, "
                f"{step.title!r:.40}; write another"
            )
    for index, line, expression in lesson.expressions:
        try:
            parse_expression(expression)
        except ExpressionError as error:
            raise LessonError(f"{file}, line {line}, step {index + 1}: {error}") from None


def _front_matter(content: str, file: str) -> tuple[str, str, int]:
    """The settings, the text below them, and the line in which the text begins."""
    content = content.removeprefix("\ufeff")
    if not content.strip():
        raise LessonError(
            f"{file}, line 1: it is empty; it must begin with its settings between two lines ---"
        )
    lines = content.split("\n")
    ends = [number for number, line in enumerate(lines) if line.rstrip() == "---"]
    if not ends or any(line.strip() for line in lines[: ends[0]]):
        raise LessonError(f"{file}, line 1: it must begin with its settings between two lines ---")
    if len(ends) < 2:
        raise LessonError(
            f"{file}, line {ends[0] + 1}: a second line --- must stand below the settings, which "
            "are between two lines ---"
        )
    begin, end = ends[:2]
    return "\n" * begin + "\n".join(lines[begin + 1 : end]), "\n".join(lines[end + 1 :]), end + 2


@dataclass(frozen=True)
class _Place:
    """A place in a file: the line, from 1, and in words the part of the lesson, such as ", step 1,
    page".
    """

    file: str
    line: int
    what: str = ""

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}{self.what}"


NO_CHARACTER = "a lone surrogate is half of a character and no text"


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """YAML without references: with these a few lines can stand for gigabytes of text."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("references (*name) are not possible here")
        node = super().compose_node(parent, index)
        if isinstance(node, yaml.ScalarNode) and SURROGATE.search(node.value):
            raise yaml.MarkedYAMLError(problem=NO_CHARACTER, problem_mark=node.start_mark)
        return node


def _fields(text: str, place: _Place) -> _Fields:
    """The settings in a text of YAML that begins at the line of `place`."""
    try:
        node = yaml.compose(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise LessonError(
            f"{replace(place, line=place.line + (mark.line if mark else 0))}: "
            f"{_explain_error(error)}"
        ) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise LessonError(f"{place}: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(node, yaml.MappingNode) or not all(
        isinstance(key, yaml.ScalarNode) for key, _ in node.value
    ):
        raise LessonError(f"{place}: there must be lines 'name: value'")
    fields = _Fields({}, place)
    for key, value in node.value:
        line = place.line + key.start_mark.line
        if key.value in fields.content:
            raise LessonError(
                f"{replace(place, line=line)}: {key.value!r:.40} stands here twice; leave one of "
                "them out"
            )
        fields.content[key.value], fields.lines[key.value] = value, line
    return fields


def _explain_error(error: yaml.MarkedYAMLError) -> str:
    """The message of YAML about a mistake, and a way to correct it."""
    message = " ".join(str(error.problem or error).split())[:160]
    if message == NO_CHARACTER:
        return message
    if "'\\t'" in message:
        return "a tab cannot stand here; write spaces instead"
    if "mapping values" in message:
        return 'a value with a colon and a space in it must stand in quotes, as in name: "a: b"'
    return (
        f"{message}; a value that has or begins with one of the signs : # [ {{ & * ! % @ ` must "
        "stand in quotes"
    )


_YAML = "tag:yaml.org,2002:"


@dataclass
class _Fields:
    """The fields of a block; a field that is never read is an error. A text stays as it is written:
    `yes` is "yes".
    """

    content: dict[str, yaml.Node]
    place: _Place
    lines: dict[str, int] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)

    def error(self, problem: str, name: str = "") -> LessonError:
        """An error at the line of a field, or at the first line if the field is missing."""
        return LessonError(
            f"{replace(self.place, line=self.lines.get(name, self.place.line))}: {problem}"
        )

    def _get(self, name: str, default: Any) -> Any:
        """The node of a field, or None if it is not there and has a default."""
        self.read.add(name)
        node = self.content.get(name)
        is_empty = node is None or node.tag == f"{_YAML}null"
        if is_empty and (default is None or node is not None):
            raise self.error(f"'{name}' is missing: write a line '{name}: …'", name)
        return node

    def _field_text(self, name: str, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self.error(f"'{name}' must be a text", name)
        if not node.tag.startswith(_YAML):
            raise self.error(f"'{name}' begins with '!', so it must stand in quotes", name)
        return str(node.value)

    def text(self, name: str, default: str | None = None) -> str:
        """A text."""
        node = self._get(name, default)
        if node is None:
            return str(default)
        return self._field_text(name, node)

    def number(self, name: str, default: float) -> float:
        """A number that is not negative."""
        node = self._get(name, default)
        if node is None:
            return default
        written = self._field_text(name, node)
        try:
            value = float(written)
        except ValueError:
            value = -1
        if not 0 <= value < 1e9:
            raise self.error(f"'{name}' is {written!r:.40}; it must be a number, 0 or more", name)
        return value

    def truth(self, name: str) -> bool:
        """Yes or no; no unless given."""
        node = self._get(name, False)
        if node is None:
            written = "no"
        else:
            written = self._field_text(name, node).lower()
        if written not in ("yes", "true", "no", "false"):
            raise self.error(f"'{name}' must be yes or no", name)
        return written in ("yes", "true")

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts, or one text."""
        node = self._get(name, [])
        if node is None:
            return ()
        if isinstance(node, yaml.MappingNode):
            raise self.error(f"'{name}' must be a list of texts", name)
        return tuple(
            self._field_text(name, entry)
            for entry in (node.value if isinstance(node, yaml.SequenceNode) else [node])
        )

    def claims(self) -> tuple[LessonClaim, ...]:
        """The claims of a block, each with its line: one that stands for itself, or a list."""
        node = self.content.get("claim")
        first = self.place.line
        if isinstance(node, yaml.SequenceNode):
            entries = node.value
        else:
            entries = [node]
        each = zip(self.texts("claim"), entries, strict=False)
        return tuple(LessonClaim(text, first + entry.start_mark.line) for text, entry in each)

    def names(self, name: str) -> tuple[str, ...]:
        """One name or more, with commas between them."""
        return tuple(part.strip() for part in self.text(name).split(","))

    def nothing_else(self) -> None:
        """Refuse fields that were not read: a misspelt name would otherwise have no effect."""
        if unknown := sorted(set(self.content) - self.read):
            raise self.error(
                "there is no setting "
                f"{unknown[0]!r:.40}{name_known(unknown[0], sorted(self.read))}",
                unknown[0],
            )


def _steps(text: str, file: str, first: int) -> Iterator[LessonStep]:
    """The steps of a text that begins in the line `first` of its file."""
    lines = text.split("\n")
    tokens = MarkdownIt("commonmark").parse(text)
    starts = [
        (token.map[0], tokens[index + 1].content)
        for index, token in enumerate(tokens)
        if token.type == "heading_open" and token.tag == "h2" and token.level == 0 and token.map
    ]
    fences = [token for token in tokens if token.type == "fence" and token.map]
    for fence in fences:
        _check_fence(fence, lines, file, first)
    ends = [*(start for start, _ in starts[1:]), len(lines)]
    for number, ((start, title), end) in enumerate(zip(starts, ends, strict=False), 1):
        inside = [
            fence
            for fence in fences
            if fence.level == 0 and fence.map and start <= fence.map[0] < end
        ]
        yield _step(
            title, lines, (start + 1, end), inside, _Place(file, first + start, f", step {number}")
        )


def _check_fence(fence: Token, lines: list[str], file: str, first: int) -> None:
    """Refuse a misspelt or misplaced block of a lesson, which would be shown as text."""
    kind, (start, end) = fence.info.strip(), fence.map or (0, 0)
    here = _Place(file, first + start)
    meant = get_close_matches(kind.lower(), BLOCKS, 1, 0.7)
    if kind not in BLOCKS:
        if meant:
            raise LessonError(
                f"{here}: there is no block {kind!r:.40}: did you mean {meant[0]!r}? There are "
                f"{', '.join(BLOCKS)}"
            )
        return
    if fence.level > 0:
        raise LessonError(
            f"{here}: a block {kind!r} must not stand in a list or a quotation: begin its line "
            "with ```"
        )
    ends_well = end - 1 > start and lines[end - 1].strip().startswith("```")
    if not ends_well or "\n```" in f"\n{fence.content}":
        raise LessonError(
            f"{here}: the block {kind!r} that begins here has no end: write a line ``` below it"
        )


def _step(
    title: str, lines: list[str], of: tuple[int, int], fences: list[Token], place: _Place
) -> LessonStep:
    page: PageState | None = None
    questions: list[Question] = []
    claims: list[LessonClaim] = []
    blocks: set[int] = set()
    for fence in fences:
        kind = fence.info.strip()
        if kind not in BLOCKS or fence.map is None:
            continue
        blocks |= set(range(*fence.map))
        # The heading is in the line before `of`; a fence begins `fence.map[0]` lines after the
        # beginning of the text.
        line = place.line + fence.map[0] - of[0] + 2
        fields = _fields(fence.content, replace(place, line=line, what=f"{place.what}, {kind}"))
        claims += fields.claims()
        if kind == "question":
            questions.append(_question(fields))
        elif page is not None:
            raise fields.error(
                "it has two blocks 'page', and a step shows one page: begin another step with a "
                "heading '## …'"
            )
        else:
            opened = fields.text("open")
            look_at = fields.text("look_at", "")
            query = {
                name: fields.text(name)
                for name in fields.content
                if name not in ("open", "look_at", "claim")
            }
            page = PageState(opened, query, look_at, fields.lines)
    if len(questions) > MOST_QUESTIONS:
        raise LessonError(
            f"{place}: it has {len(questions)} questions, and {MOST_QUESTIONS} are the most"
        )
    # Each line of a block becomes an empty line, so that the lines below keep their numbers.
    text = "\n".join("" if number in blocks else lines[number] for number in range(*of))
    above = len(text) - len(text.lstrip())
    text_line = place.line + 1 + text.count("\n", 0, above)
    return LessonStep(
        title, text.strip(), page, tuple(questions), tuple(claims), place.line, text_line
    )


def _question(fields: _Fields) -> Question:
    kind = fields.text("kind")
    if kind not in KINDS:
        raise fields.error(f"its kind is {kind!r:.40}{name_known(kind, KINDS)}", "kind")
    question = Question(
        ask=fields.text("ask"),
        kind=kind,
        answer=fields.text("answer"),
        prompt=fields.text("prompt") if kind == "guess" else "",
        options=fields.texts("options") if kind == "choice" else (),
        within=fields.number("within", 0.0) if kind == "number" else 0.0,
        unit=fields.text("unit", "") if kind == "number" else "",
        state=fields.names("state") if kind == "state" else (),
        hint=fields.text("hint", ""),
        reveal=fields.text("reveal", ""),
        lines=fields.lines,
    )
    fields.nothing_else()
    if kind == "choice" and (
        len(question.options) < 2 or len(set(question.options)) < len(question.options)
    ):
        raise fields.error(
            "a choice has two or more options, no two of them alike: options: [one, other]",
            "options",
        )
    return question
