"""The pictures of a lesson: files in its folder, which its texts then carry inside them, also into
a file that is taken home.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from markdown_it import MarkdownIt

from gptviz.machine.bounded import read_regular

from .lesson import Lesson, LessonStep

KINDS = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".gif": "gif", ".webp": "webp"}
MOST_BYTES = 2_000_000  # of all pictures of a lesson
NEEDED = (
    "a PNG, JPEG, GIF or WebP file in the folder of the lesson, of which all together have at "
    f"most {MOST_BYTES:,} bytes"
)
_PICTURE = re.compile(r"(!\[[^]\n]*\]\()(?:<([^>\n]+)>|([^\s)]+))")


def with_pictures(lesson: Lesson, folder: Path) -> Lesson:
    """The lesson with its pictures from `folder` inside its texts, as addresses `data:…`; any other
    picture stays as it is.
    """
    room = MOST_BYTES

    def embed_picture(found: re.Match[str]) -> str:
        nonlocal room
        source = unquote(found[2] or found[3])
        kind = KINDS.get(Path(source).suffix.lower())
        try:
            if kind is None or not (path := (folder / source).resolve()).is_relative_to(
                folder.resolve()
            ):
                return found[0]
            content = read_regular(path, room)
        except (OSError, ValueError):  # ValueError: a name with a character that no file has
            return found[0]
        room -= len(content)
        return f"{found[1]}data:image/{kind};base64,{b64encode(content).decode()}"

    taken = partial(_PICTURE.sub, embed_picture)
    steps = list[LessonStep]()
    for step in lesson.steps:
        asked = [
            replace(each, ask=taken(each.ask), hint=taken(each.hint), reveal=taken(each.reveal))
            for each in step.questions
        ]
        steps.append(replace(step, text=taken(step.text), questions=tuple(asked)))
    return replace(lesson, steps=tuple(steps))


def left_behind(step: LessonStep) -> Iterator[tuple[int, str]]:
    """The pictures that the texts of a step name and do not carry, each with its line."""
    for first, text in step.texts:
        for token in MarkdownIt("commonmark").parse(text):
            for child in token.children or ():
                source = str(child.attrGet("src"))
                if child.type == "image" and not source.startswith("data:"):
                    yield first + (token.map or [0])[0], source
