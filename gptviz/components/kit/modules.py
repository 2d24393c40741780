"""Join the modules of a view into one script, which Streamlit accepts as text and a plain page can
load.

Every module keeps its own scope: it becomes a function that returns what it exports, called once,
after the modules that it imports. Only the forms that the views use are supported; any other is an
error:

    import { name, other as alias } from "./file.js";
    export function, export async function, export class, export const with one name
    export default …, only in the first module
"""

from __future__ import annotations

import re
from pathlib import Path

IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]*)";$', re.MULTILINE)
EXPORT = re.compile(
    r"^export (?=(?:async function|function\*?|class|const) ([\w$]+))", re.MULTILINE
)
# Comments on separate lines, which are not sent.
COMMENT = re.compile(r"^[ \t]*/\*\*(?:(?!\*/).)*\*/\n", re.MULTILINE | re.DOTALL)
UNKNOWN = re.compile(r"^(?:import\b(?!\()|export\b(?! default )).*", re.MULTILINE)


def join_modules(entry: Path, *others: Path) -> str:
    """The module in the file `entry`, the `others`, and all that they import, as the text of one
    module. A ValueError if a module imports what another does not export, imports itself in a
    circle, or is written in a form that is not supported; a FileNotFoundError if a module imports a
    file that is not there.
    """
    exports: dict[Path, list[str]] = {}
    first = entry.resolve()
    parts = [part for other in others for part in _parts(other.resolve(), exports, (first,))]
    return "".join([*parts, *_parts(first, exports, ())])


def _parts(file: Path, exports: dict[Path, list[str]], above: tuple[Path, ...]) -> list[str]:
    """The modules that `file` needs and that are not in `exports` yet, each after those it imports,
    then `file` itself.
    """
    if file in exports:
        return []
    if file in above:
        circle = " → ".join(module.name for module in (*above[above.index(file) :], file))
        raise ValueError(f"modules import each other in a circle: {circle}")
    text = COMMENT.sub("", file.read_text(encoding="utf-8"))
    parts: list[str] = []
    for names, source in IMPORT.findall(text):
        module = (file.parent / source).resolve()
        parts += _parts(module, exports, (*above, file))
        wanted = [name.split(" as ")[0].strip() for name in names.split(",") if name.strip()]
        missing = [name for name in wanted if name not in exports[module]]
        if missing:
            raise ValueError(
                f"{file.name} imports {', '.join(missing)}, which {module.name} does not export"
            )

    def add_import(found: re.Match[str]) -> str:
        names = found[1].replace(" as ", ": ")
        return f"const {{{names}}} = {scope((file.parent / found[2]).resolve())};"

    exports[file] = EXPORT.findall(text)
    body = EXPORT.sub("", IMPORT.sub(add_import, text))
    if unknown := UNKNOWN.search(body):
        raise ValueError(f"{file.name}: this import or export is not understood: {unknown[0]}")
    if not above:
        return [*parts, body]
    if "\nexport default " in body:
        raise ValueError(f"{file.name} has a default export, which only the first module may have")
    return [
        *parts,
        f"const {scope(file)} = (() => {{\n{body}\nreturn {{ {', '.join(exports[file])} "
        f"}};\n}})();\n",
    ]


def scope(module: Path) -> str:
    """The name in the joined script of the object with a module's exports."""
    return f"${module.parent.name}_{module.stem}"
