"""A script that does in a separate process what a stranger's file asks for: see `confined.py`. It
reads and writes lines of JSON.

It can be ended at any time, has little memory and time, and imports nothing of gptviz.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

if TYPE_CHECKING:
    from jinja2.nodes import Node
    from jinja2.parser import Parser

MOST_TOKENS = 1_000_000  # of a prompt


def limit_memory(most: int) -> None:
    """Let this process have at most `most` bytes of memory, and write no file, where the system can
    do that (Windows cannot).
    """
    if sys.platform == "win32":
        return
    import resource

    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def limit_time(seconds: float) -> None:
    """Let this process have this many more seconds of processor time, where the system can do
    that.
    """
    if sys.platform == "win32":
        return
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    with suppress(OSError, ValueError):
        most = int(used.ru_utime + used.ru_stime + seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def fill_template(template: str, **values: Any) -> str:
    """The text of a template, with the functions that `transformers` gives to templates."""
    from jinja2.exceptions import TemplateError
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(message: str) -> NoReturn:
        raise TemplateError(message)

    def as_json(value: Any, ensure_ascii: bool = False, **form: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **form)

    class Generation(Extension):
        """The tag `generation`, which marks the text that a model learns to write: its content is
        written unchanged.
        """

        tags: ClassVar[set[str]] = {"generation"}  # type: ignore[misc]

        def parse(self, parser: Parser) -> list[Node]:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, Generation]
    )
    environment.filters["tojson"] = as_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment.from_string(template).render(**values)


def fill(template: str, values: Mapping[str, Any], longest: int) -> str:
    """The text of a template, which has at most `longest` characters."""
    text = fill_template(template, **values)
    if len(text) > longest:
        raise ValueError(f"its text has {len(text):,} characters, and {longest:,} are the most")
    return text


def fit(patterns: list[str], names: list[str]) -> list[int | None]:
    """For each name, the number of the first regular expression that is the name or its end after a
    dot, as in PEFT.
    """
    compiled = []
    for pattern in patterns:
        try:
            compiled.append(re.compile(rf"(.*\.)?({pattern})$"))
        except re.error:
            raise ValueError(f"the pattern {pattern!r:.60} is no regular expression") from None
    return [
        next((place for place, pattern in enumerate(compiled) if pattern.match(name)), None)
        for name in names
    ]


class Reader:
    """The tokenizer that this process reads texts with, if it was started for one."""

    backend: Any

    def open(self, content: str) -> dict[str, Any]:
        """Open a tokenizer.json; what it does to a text before it looks for tokens, in the
        library's own form.
        """
        from tokenizers import Tokenizer

        self.backend = Tokenizer.from_str(content)
        self.backend.no_truncation()
        self.backend.no_padding()
        if getattr(self.backend.model, "dropout", None) is not None:
            self.backend.model.dropout = None
        fields = json.loads(self.backend.to_str())
        return {stage: fields[stage] for stage in ("normalizer", "pre_tokenizer")}

    def read_texts(self, texts: list[str]) -> list[Any]:
        """The ids of each of these texts, and the place of each token in its text."""
        encodings = [self.backend.encode(text, add_special_tokens=False) for text in texts]
        if (count := sum(map(len, encodings))) > MOST_TOKENS:
            raise ValueError(f"the text becomes {count:,} tokens, and {MOST_TOKENS:,} are the most")
        return [(encoding.ids, encoding.offsets) for encoding in encodings]

    def ids(self, texts: list[str]) -> list[Any]:
        """The ids without their places."""
        return [
            encoding.ids
            for encoding in self.backend.encode_batch_fast(texts, add_special_tokens=False)
        ]


def main() -> None:
    """Answer the requests on the standard input, one after the other."""
    limit_memory(int(sys.argv[1]))
    reader = Reader()
    work: dict[str, Callable[..., Any]] = {
        "fill": fill,
        "fit": fit,
        "open": reader.open,
        "read": reader.read_texts,
        "ids": reader.ids,
    }
    for line in sys.stdin:
        answer: dict[str, Any]
        try:
            request = json.loads(line)
            limit_time(request.pop("seconds"))
            answer = {"result": work[request.pop("work")](**request)}
        except MemoryError:
            answer = {"stopped": "it takes too much memory"}
        # the library of tokenizers raises its panics as BaseException
        except BaseException as error:
            answer = {"error": " ".join(str(error).split())[:300] or type(error).__name__}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
