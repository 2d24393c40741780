"""Writes what an agent reads of gptviz from its commands, its library and its documents: `llms.txt`, a list of what there is to
read (llmstxt.org), and `skills/gptviz/SKILL.md`, how to use it (agentskills.io). `make agents` runs it.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import gptviz
from gptviz.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
ABOUT = "Open, train, watch and take apart a transformer, offline: from a shell, from Python, or as an app in a browser."
SKILL = """---
name: gptviz
description: >-
  Looks inside small language models and trains them, offline: attention, next-token probabilities, logit lens, attribution,
  circuits, patching, neurons, sparse features, edits. Use it when somebody asks what a transformer computes for a text, why it
  guesses a token, what a head or a neuron does, how a model learns, or wants a figure or a lesson about it.
license: MIT
---

# gptviz

{about}

## Before you begin

- In a copy of the repository `uvx --torch-backend cpu --from . gptviz COMMAND` needs no installation; after `pip install .` it is
  `gptviz COMMAND`. `gptviz COMMAND --help` has all options.
- Nearly every command takes `--json`: read that, not the lines for people. Exit 0: done. 2: one line on stderr says what was
  wrong and what to write instead. 130: stopped.
- `gptviz models` lists the models. Those that ship are small, and most know one text or one task: `shakespeare` is the usual one.
  Name the model, the step and the prompt with every number that you report.
- Every number is computed for that model and that prompt. Pages say what a view cannot tell: `gptviz app`, or {how}.
- `gptviz export PAGE --model NAME --prompt TEXT --out page.html` gives a figure as a file that needs no server.

## Commands

{commands}

## In Python

```python
import gptviz

lm = gptviz.load("shakespeare")
```

Arrays have named axes: `array.axes`, `array.values`, `array.unit`.

{methods}

## Read on

{documents}
"""


def first_sentence(text: str | None) -> str:
    """The first sentence of a docstring, in one line."""
    return re.split(r"(?<=\.)\s(?=[A-Z])", " ".join((text or "").split()))[0]


def documents(prefix: str) -> list[str]:
    """The documents that README.md lists, each with what it is about; links lead to them from `prefix`."""
    rows = re.findall(
        r"^\| \[([^\]]+)\]\(([^)]+\.md)\) \| (.+) \|$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    return [f"- [{title}]({prefix}{file}): {about}" for title, file, about in rows]


def commands() -> list[str]:
    """Every command, with the first sentence of what it does."""
    return [f"- `{command.name}`: {first_sentence(command.summary)}" for command in COMMANDS]


def methods() -> list[str]:
    """Every method of a language model, with its parameters that have no default, and the first sentence of what it gives."""
    lines = []
    for name in sorted(name for name in dir(gptviz.LanguageModel) if not name.startswith("_")):
        value = inspect.getattr_static(gptviz.LanguageModel, name)
        function = getattr(gptviz.LanguageModel, name)
        if isinstance(value, property):
            lines.append(f"- `lm.{name}`: {first_sentence(value.__doc__)}")
        elif callable(function) and function.__doc__:
            needed = [
                f"{'*' * (parameter.kind is parameter.VAR_POSITIONAL)}{parameter.name}"
                for parameter in inspect.signature(function).parameters.values()
                if parameter.default is parameter.empty
                and parameter.kind is not parameter.VAR_KEYWORD
                and parameter.name not in ("self", "cls", "lm")
            ]
            lines.append(f"- `lm.{name}({', '.join(needed)})`: {first_sentence(function.__doc__)}")
    return lines


def written() -> dict[str, str]:
    """The files, by their places in the repository."""
    llms = [
        *("# gptviz", f"> {ABOUT}", "## Documents", "\n".join(documents("")), "## Commands", "\n".join(commands())),
        "## Optional",
        "- [For an agent](skills/gptviz/SKILL.md): commands, and the methods of a model in Python",
    ]
    skill = SKILL.format(
        about=ABOUT,
        how="`gptviz/ui/pages/*/about.md`",
        commands="\n".join(commands()),
        methods="\n".join(methods()),
        documents="\n".join(documents("../../")),
    )
    return {"llms.txt": "\n\n".join(llms) + "\n", "skills/gptviz/SKILL.md": skill}


if __name__ == "__main__":
    for place, text in written().items():
        (ROOT / place).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / place).write_text(text, encoding="utf-8")
