"""A script that runs a chat template in a separate process: it reads a request as JSON, and writes the text or an error."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

if TYPE_CHECKING:
    from jinja2.nodes import Node
    from jinja2.parser import Parser

MOST_SECONDS = 3  # of processor time
MOST_MEMORY = 2**29  # bytes


def limit() -> None:
    """Let this process have little memory and time, where the system can do that (Windows cannot)."""
    if sys.platform == "win32":
        return
    import resource

    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def filled(template: str, **values: Any) -> str:
    """The text of a template, with the functions that `transformers` gives to templates."""
    from jinja2.exceptions import TemplateError
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(message: str) -> NoReturn:
        raise TemplateError(message)

    def as_json(value: Any, ensure_ascii: bool = False, **form: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **form)

    class Generation(Extension):
        """The tag `generation`, which marks the text that a model learns to write: its content is written unchanged."""

        tags: ClassVar[set[str]] = {"generation"}  # type: ignore[misc]

        def parse(self, parser: Parser) -> list[Node]:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, Generation])
    environment.filters["tojson"] = as_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment.from_string(template).render(**values)


def main() -> None:
    """Answer the request on the standard input."""
    request = json.load(sys.stdin)
    limit()
    try:
        values = {"messages": request["messages"], "tools": None, "documents": None, "add_generation_prompt": True}
        text = filled(request["template"], **values, **request["tokens"])
        if len(text) > request["longest"]:
            raise ValueError(f"its text has {len(text):,} characters, and {request['longest']:,} are the most")
        answer = {"text": text}
    except MemoryError:
        answer = {"error": "it takes too much memory"}
    except Exception as error:
        answer = {"error": " ".join(str(error).split())[:300] or type(error).__name__}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
