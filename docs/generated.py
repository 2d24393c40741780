"""Pages of the site that are written from the records of the package and from the files beside it; mkdocs runs this as a hook."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from gptviz.__main__ import parser
from gptviz.ui.menu import PAGES
from gptviz.ui.widgets.words import MEANINGS

ROOT = Path(__file__).resolve().parents[1]
# Files beside the package, by the page that has them.
BESIDE = {
    "index": "README.md",
    "how-it-is-built": "CONTRIBUTING.md",
    "changelog": "CHANGELOG.md",
    "security": "SECURITY.md",
    "what-ships": "NOTICE.md",
}
# The modules of a page of the reference, by its title.
REFERENCE = {
    "reference": ("The library", ["language_model", "takehome/show.py", "labelled_array.py", "generate/sampling.py"]),
    "reference-model": (
        "The model",
        ["model/config.py", "model/transformer.py", "model/tap.py", "model/presets.py", "train/recipe.py"],
    ),
    "reference-interp": ("What is computed from a trace or from weights", ["interp"]),
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those in docs/."""
    written = {name: beside(file) for name, file in BESIDE.items()}
    written |= {name: reference(title, places) for name, (title, places) in REFERENCE.items()}
    written |= {"command-options": command_options(), "words": words(), "how-it-is-computed": how_it_is_computed()}
    for name, text in written.items():
        files.append(File.generated(config, f"{name}.md", content=text))
    return files


def beside(file: str) -> str:
    """A file beside the package, with its links as they are among the pages."""
    text = (ROOT / file).read_text(encoding="utf-8").replace("](docs/", "](")
    for name, other in BESIDE.items():
        text = text.replace(f"]({other})", f"]({name}.md)")
    return re.sub(r"\[([^]]*)\]\((CITATION\.cff|llms\.txt|skills/[^)]*)\)", r"`\1`", text)


def reference(title: str, places: list[str]) -> str:
    """A page of the reference: what the docstrings of some modules, or of all in a folder, say."""
    package = ROOT / "gptviz"
    found = [file for place in places for file in (sorted((package / place).rglob("*.py")) or [package / place])]
    modules = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in found if file.stem != "__init__"]
    return "\n\n".join([f"# {title}", *(f"::: {module}" for module in modules)])


def command_options() -> str:
    """Every command with its options, as the parser has them."""
    (commands,) = (one for one in parser()._actions if isinstance(one, argparse._SubParsersAction))
    parts = ["# Commands and their options", "`gptviz COMMAND`, or `python -m gptviz COMMAND`."]
    for name, command in commands.choices.items():
        table = "| option | what it does |\n|---|---|\n" + "\n".join(_rows(command))
        parts += [f"## {name}", _plain(command.description or ""), table]
    return "\n\n".join(parts)


def _rows(command: argparse.ArgumentParser) -> list[str]:
    formatter = argparse.HelpFormatter("")
    return [
        f"| `{formatter._format_action_invocation(one)}` | {_plain(formatter._expand_help(one))} |"
        for one in command._actions
        if one.help and one.help is not argparse.SUPPRESS
    ]


def words() -> str:
    """The words of the field, as the app explains them."""
    meanings = (f"| {word} | {_plain(meaning)} |" for word, meaning in sorted(MEANINGS.items(), key=lambda one: one[0].lower()))
    return "# Words\n\n| word | what it means |\n|---|---|\n" + "\n".join(meanings)


def how_it_is_computed() -> str:
    """What the pages of the app say of how their views are computed, and of what these cannot show."""
    parts = ["# How it is computed", "What each page of the app has folded below its figures."]
    for page in PAGES.values():
        for view, about in page.about.items():
            parts += [f"## {page.title}" + (f": {view}" if view != page.title else ""), page.sentence]
            parts += [_with_mathml(about.how), f"**What it cannot tell you.** {_with_mathml(about.limits)}"]
    return "\n\n".join(parts)


def _with_mathml(text: str) -> str:
    """Markdown whose equations browsers draw by themselves."""

    def drawn(equation: re.Match[str]) -> str:
        return str(convert(equation[2], display="block" if equation[1] == "$$" else "inline"))

    return re.sub(r"(\$\$?)(.+?)\1", drawn, text, flags=re.DOTALL)


def _plain(text: str) -> str:
    """A text in a cell of a table that shows it as it is."""
    return re.sub(r"([\\`*_{}\[\]<>|$])", r"\\\1", " ".join(text.split()))
