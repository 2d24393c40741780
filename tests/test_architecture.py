"""Which part may import which: every import of every file counts, also inside functions and under
`TYPE_CHECKING`.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests import nodes
from tests.command_line import printed_elsewhere

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted([*(ROOT / "gptviz").rglob("*.py"), *(ROOT / "pages").rglob("*.py"), ROOT / "app.py"])

# For each part (the longest that fits a file counts), what its files may import beside the standard
# library and themselves. A module stands for all below it; only "gptviz" stands for the package's
# own `__init__` alone.
MAY_IMPORT: dict[str, set[str]] = {
    "gptviz._version": set(),
    "gptviz.settings": set(),
    "gptviz.machine": {"torch", "cachetools", "filelock", "psutil", "gptviz.settings"},
    "gptviz.model": {"torch", "cachetools", "gguf", "gptviz.settings", "gptviz.machine"},
    "gptviz.text": {
        "numpy",
        "tokenizers",
        "sentencepiece",
        "jinja2",
        "gptviz.settings",
        "gptviz.machine",
    },
    "gptviz.generate": {"torch", "gptviz.settings", "gptviz.machine", "gptviz.model"},
    "gptviz.twin": {"torch", "gptviz.settings", "gptviz.model", "gptviz.text"},
    "gptviz.pretrained": {
        *("torch", "numpy", "safetensors", "gguf", "huggingface_hub", "httpx2", "filelock"),
        *("gptviz.settings", "gptviz.machine", "gptviz.model", "gptviz.text"),
    },
    "gptviz.data": {
        "torch",
        "numpy",
        "scipy",
        "sklearn",
        "gptviz.machine",
        "gptviz.model",
        "gptviz.text",
        "gptviz.generate",
    },
    "gptviz.train": {
        "torch",
        "numpy",
        "gptviz.settings",
        "gptviz.machine",
        "gptviz.model",
        "gptviz.data",
    },
    "gptviz.runs": {
        *(
            "torch",
            "safetensors",
            "filelock",
            "tqdm",
            "gptviz._version",
            "gptviz.settings",
            "gptviz.machine",
        ),
        *(
            "gptviz.model",
            "gptviz.text",
            "gptviz.twin",
            "gptviz.data",
            "gptviz.train",
            "gptviz.pretrained",
        ),
    },
    "gptviz.languages": {"gptviz.machine.hosting"},
    "gptviz.labelled_array": {"numpy"},
    "gptviz.interp": {
        *("torch", "numpy", "sklearn", "umap", "threadpoolctl"),
        *(
            "gptviz.settings",
            "gptviz.machine",
            "gptviz.model",
            "gptviz.text",
            "gptviz.labelled_array",
        ),
        "gptviz.generate.sampling",
        *("gptviz.train.optimisers", "gptviz.train.recipe", "gptviz.runs.fitted"),
    },
    "gptviz.figures": {"numpy", "plotly", "PIL", "gptviz.labelled_array"},
    "gptviz.components": {
        *(
            "streamlit",
            "numpy",
            "gptviz.settings",
            "gptviz.figures.kit.theme",
            "gptviz.labelled_array",
        ),
        *("gptviz.interp", "gptviz.generate.tree", "gptviz.machine.bounded"),
    },
    "gptviz.takehome": {
        *("streamlit", "numpy", "pandas", "plotly", "markdown_it", "latex2mathml", "PIL"),
        *(
            "gptviz._version",
            "gptviz.settings",
            "gptviz.machine",
            "gptviz.components",
            "gptviz.figures",
            "gptviz.language_model",
        ),
        *(
            "gptviz.interp.trace",
            "gptviz.labelled_array",
            "gptviz.languages",
            "gptviz.lessons",
            "gptviz.model",
            "gptviz.runs",
            "gptviz.text",
            "gptviz.train",
            "gptviz.twin",
        ),
        "gptviz.streamlit_internals",
    },
    "gptviz.streamlit_internals": {"streamlit", "gptviz.settings", "gptviz.machine"},
    "gptviz.language_model": {
        *(
            "torch",
            "numpy",
            "gptviz.settings",
            "gptviz.machine",
            "gptviz.model",
            "gptviz.text",
            "gptviz.generate",
        ),
        *("gptviz.data", "gptviz.runs", "gptviz.interp", "gptviz.labelled_array"),
        *(
            "gptviz.pretrained.control_vectors",
            "gptviz.pretrained.published_lenses",
            "gptviz.pretrained.sae_lens",
        ),
        "gptviz.figures.kit.format",  # how numbers are written, which draws nothing
    },
    "gptviz.lessons": {
        *(
            "torch",
            "simpleeval",
            "cachetools",
            "numpy",
            "yaml",
            "markdown_it",
            "gptviz.settings",
            "gptviz.machine",
            "gptviz.languages",
        ),
        *(
            "gptviz.streamlit_internals",
            "gptviz.model",
            "gptviz.text",
            "gptviz.interp",
            "gptviz.generate.sampling",
        ),
        *("gptviz.generate.speculation", "gptviz.runs", "gptviz.language_model"),
    },
    "gptviz": {
        "gptviz._version",
        "gptviz.machine.lazily",
        "gptviz.language_model",
        "gptviz.takehome",
    },
    "gptviz.serve": {"gptviz.streamlit_internals"},
    "gptviz.commands": {
        *(
            "torch",
            "tqdm",
            "gptviz",
            "gptviz.settings",
            "gptviz.machine",
            "gptviz.streamlit_internals",
            "gptviz.language_model",
        ),
        *(
            "gptviz.model",
            "gptviz.text",
            "gptviz.generate",
            "gptviz.data",
            "gptviz.train",
            "gptviz.runs",
            "gptviz.interp",
        ),
        *("gptviz.languages", "gptviz.lessons", "gptviz.takehome", "gptviz.labelled_array"),
        "gptviz.ui.menu",  # the records of pages, which import nothing of the interface
    },
    "gptviz.__main__": {"gptviz", "gptviz.machine.terminal", "gptviz.commands"},
}
# Modules of the standard library that are not everywhere.
POSIX_ONLY = {
    "crypt",
    "curses",
    "fcntl",
    "grp",
    "posix",
    "pty",
    "pwd",
    "readline",
    "resource",
    "syslog",
    "termios",
    "tty",
}

# These may import what they like.
FREE = ("app", "pages", "gptviz.ui")

# The rooms of the interface: each may import those before it. Within the last, no page imports
# another: a link to a page needs its record alone. What a record is (`page`) and all of them in
# their order (`menu`) belong to the records.
ROOMS = ("records", "widgets", "shell", "views", "pages")


def module_name(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def below(module: str, package: str) -> bool:
    return module == package or (package != "gptviz" and module.startswith(f"{package}."))


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def imports(file: Path) -> frozenset[str]:
    """The full name of every module a file imports; of `from package import name`, `package.name`
    where that is a module.
    """
    package = module_name(file).split(".")
    if file.name != "__init__.py":
        package = package[:-1]
    names = set()
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                path = ROOT.joinpath(*base.split("."), alias.name)
                is_module = path.is_dir() or path.with_suffix(".py").is_file()
                names.add(f"{base}.{alias.name}" if is_module else base)
    return frozenset(names)


def import_graph() -> dict[str, set[str]]:
    """For each module of gptviz, the modules of gptviz that run when it is imported,
    `TYPE_CHECKING` counted too.

    To import `a.b.c` also runs `a` and `a.b`, the packages' `__init__`. For a module inside of a
    package, that package is running already: only for others it is an import.
    """
    modules = {module_name(file): file for file in FILES if file.is_relative_to(ROOT / "gptviz")}
    graph: dict[str, set[str]] = {}
    for module, file in modules.items():
        graph[module] = set()
        for name in imports(file):
            parts = name.split(".")
            packages = {".".join(parts[:n]) for n in range(1, len(parts))}
            graph[module] |= {name} | {
                package for package in packages if not f"{module}.".startswith(f"{package}.")
            }
        graph[module] &= modules.keys()
    return graph


def circle(graph: dict[str, set[str]]) -> str:
    """A circle of imports in words; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " imports ".join(reversed(error.args[1]))
    return ""


def room_and_page(module: str) -> tuple[str, str]:
    """Of a module of the interface the room and, in the room of the pages, the page; else empty."""
    parts = module.split(".")
    if parts[:2] != ["gptviz", "ui"] or len(parts) < 3:
        return "", ""
    room = "records" if parts[2] in ("page", "menu") else parts[2]
    return room, parts[3] if room == "pages" and len(parts) > 3 else ""


def test_the_walk_sees_relative_late_and_aliased_imports() -> None:
    assert {"gptviz.model.tap", "gptviz.model.parts.attention", "torch"} <= imports(
        ROOT / "gptviz/model/transformer.py"
    )
    assert {"gptviz.runs.checkpoints", "gptviz.train.trainer", "tqdm", "shlex"} <= imports(
        ROOT / "gptviz/commands/train.py"
    )
    assert "gptviz.language_model" in imports(ROOT / "gptviz/__init__.py")
    assert len(FILES) > 30


def strangers(file: Path) -> set[str]:
    """What a file imports although its part may not."""
    module = module_name(file)
    if any(below(module, free) for free in FREE):
        return set()
    part = max((part for part in MAY_IMPORT if below(module, part)), key=len, default="")
    allowed = MAY_IMPORT.get(part, set()) | sys.stdlib_module_names | {part}
    return {name for name in imports(file) if not any(below(name, package) for package in allowed)}


def test_a_part_imports_only_what_its_layer_may() -> None:
    found = {module_name(file): strangers(file) for file in FILES}
    assert {module: names for module, names in found.items() if names} == {}, (
        "or a part has no line in MAY_IMPORT"
    )


def test_a_page_touches_no_tensors() -> None:
    found = {file.name: imports(file) for file in FILES if file.parent == ROOT / "pages"}
    assert len(found) > 15
    assert {
        name
        for name, names in found.items()
        if any(below(one, "torch") or below(one, "numpy") for one in names)
    } == set()


def test_what_pages_show_turns_no_logits_into_probabilities() -> None:
    """That is computed in `interp`, once; an exponential of a single number is one of `math`."""
    computed = {"softmax", "log_softmax", "logsumexp", "exp", "exp2", "expm1", "einsum", "matmul"}
    found = set()
    for file in FILES:
        if below(module_name(file), "gptviz.ui"):
            used = [
                node
                for node in ast.walk(parsed(file))
                if isinstance(node, ast.Attribute) and node.attr in computed
            ]
            found |= {
                f"{module_name(file)}: {node.attr}"
                for node in used
                if not (isinstance(node.value, ast.Name) and node.value.id == "math")
            }
    assert found == set()


def test_what_windows_lacks_is_imported_only_inside_of_functions() -> None:
    found = set()
    for file in FILES:
        whole = [node for node in parsed(file).body if not isinstance(node, ast.FunctionDef)]
        inner = [
            node
            for one in whole
            for node in ast.walk(one)
            if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        names = {
            node.module if isinstance(node, ast.ImportFrom) else alias.name
            for node in inner
            for alias in node.names
        }
        found |= {f"{module_name(file)} imports {name}" for name in names & POSIX_ONLY}
    assert found == set()


def test_a_circle_is_named() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) == ""
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) in (
        "b imports c imports b",
        "c imports b imports c",
    )
    assert circle({"a": {"a"}}) == "a imports a"


def test_the_graph_counts_a_packages_own_file_for_those_outside_of_it() -> None:
    graph = import_graph()
    assert {"gptviz.text", "gptviz.text.datasets"} <= graph["gptviz.data.seq2seq"]
    assert "gptviz.text.tokenizers" in graph["gptviz.text.datasets.tasks"]
    assert (
        not {"gptviz", "gptviz.text", "gptviz.text.tokenizers"}
        & graph["gptviz.text.tokenizers.bpe"]
    )
    assert "gptviz" in graph["gptviz.__main__"]
    assert "gptviz.language_model" in graph["gptviz"]


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert not circle(import_graph())


def test_the_rooms_of_the_interface_stand_in_one_order_and_no_page_imports_another() -> None:
    broken = set()
    for module, names in import_graph().items():
        room, page = room_and_page(module)
        for name in names:
            other, other_page = room_and_page(name)
            if (
                room
                and other
                and (
                    ROOMS.index(other) > ROOMS.index(room) or (page != other_page and room == other)
                )
            ):
                broken.add((module, name))
    assert not {f"{module} imports {name}" for module, name in broken}


def test_the_records_of_all_pages_are_read_without_the_code_of_any_page() -> None:
    printed_elsewhere(
        "import sys\n"
        "from gptviz.ui.menu import PAGES\n"
        "read = {name for name in sys.modules if name.startswith('gptviz.ui.')}\n"
        "records = {f'gptviz.ui.records.{name}' for name in PAGES}\n"
        "expected = {'gptviz.ui.page', 'gptviz.ui.menu', 'gptviz.ui.records', *records}\n"
        "if read != expected: sys.exit(f'{read ^ expected}')\n"
        "if 'streamlit' in sys.modules: sys.exit('Streamlit was imported')\n"
    )


def test_pages_that_visitors_open_at_the_same_time_are_all_imported() -> None:
    printed_elsewhere(
        "import sys\n"
        "import streamlit  # the server's own, there before the first visitor\n"
        "from importlib import import_module\n"
        "from pathlib import Path\n"
        "from threading import Barrier, Thread\n"
        "sys.setswitchinterval(1e-5)\n"
        "names = []\n"
        "for room in ('ui/records', 'text/tokenizers', 'text/datasets', 'pretrained/families'):\n"
        "    names += [f'gptviz.{room}.{file.stem}'.replace('/', '.') for file in Path('gptviz', "
        "room).glob('*.py')]\n"
        "begin, failed = Barrier(len(names)), []\n"
        "def visit(name):\n"
        "    begin.wait()\n"
        "    try:\n"
        "        import_module(name)\n"
        "        from gptviz.text import BPETokenizer, task\n"
        "        from gptviz.ui.menu import PAGES\n"
        "        from gptviz.pretrained.families import FAMILIES\n"
        "    except BaseException as error:\n"
        "        failed.append(f'{name}: {error!r}')\n"
        "visitors = [Thread(target=visit, args=(name,)) for name in names]\n"
        "for visitor in visitors: visitor.start()\n"
        "for visitor in visitors: visitor.join()\n"
        "sys.exit('\\n'.join(failed) or None)\n"
    )


def test_the_library_the_help_and_the_texts_wait_for_neither_torch_nor_streamlit() -> None:
    printed = printed_elsewhere(
        "import contextlib, sys, gptviz\n"
        "from gptviz.__main__ import main\n"
        "with contextlib.suppress(SystemExit): main(['--help'])\n"
        "heavy = {'torch', 'streamlit', 'numpy', 'plotly', 'pandas', 'tokenizers'} & "
        "set(sys.modules)\n"
        "if heavy: sys.exit(f'the help imported {heavy}')\n"
        "import gptviz.text\n"
        "heavy = {'torch', 'tokenizers'} & set(sys.modules)\n"
        "if heavy: sys.exit(f'gptviz.text imported {heavy}')\n"
    )
    assert printed.startswith("usage:")


def test_the_heading_of_a_page_waits_for_neither_torch_nor_what_pages_compute_with() -> None:
    printed_elsewhere(
        "import sys\n"
        "import gptviz.ui.shell.frame\n"
        "heavy = {'torch', 'sklearn', 'pandas', 'tokenizers', 'gptviz.language_model', "
        "'gptviz.interp'} & set(sys.modules)\n"
        "if heavy: sys.exit(f'the frame imported {heavy}')\n"
    )


def test_the_heading_of_every_page_is_shown_before_the_page_imports_its_room() -> None:
    for file in [*(ROOT / "pages").glob("*.py"), ROOT / "app.py"]:
        before: set[str] = set()
        for line in parsed(file).body:
            if isinstance(line, ast.Expr) and ast.unparse(line) == "open_page(PAGE)":
                break
            before |= {ast.unparse(line)} if isinstance(line, ast.ImportFrom) else set()
        record = f"gptviz.ui.records.{'home' if file.name == 'app.py' else file.stem}"
        allowed = {f"from {record} import PAGE", "from gptviz.ui.menu import pages_here"}
        assert before - allowed <= {
            "from gptviz.ui.shell import frame",
            "from gptviz.ui.shell.frame import open_page",
        }, file.name


def test_only_one_function_cuts_a_text_into_lines() -> None:
    files = (path for path in FILES if "splitlines(" in path.read_text(encoding="utf-8"))
    assert [path.name for path in files] == [], "use gptviz.machine.lines.lines_of"


def test_unrelated_values_are_assigned_in_lines_of_their_own() -> None:
    together = []
    for file in FILES:
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
                targets = {ast.unparse(one) for one in getattr(node.targets[0], "elts", ())}
                read = {
                    ast.unparse(one) for one in ast.walk(node.value) if isinstance(one, ast.expr)
                }
                # of a swap, each value is another's target
                is_plain = all(name.replace(".", "").isidentifier() for name in targets)
                if targets and is_plain and not targets & read:
                    together.append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert together == []


def test_no_conditional_expression_stands_in_another() -> None:
    nested = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in FILES
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.IfExp)
        and any(isinstance(one, ast.IfExp) for one in (node.test, node.body, node.orelse))
    ]
    assert nested == []


def test_no_room_has_more_nodes_than_its_budget() -> None:
    """To raise a budget takes a commit of its own that says why: `tests/nodes.py`."""
    over = {
        room: f"{count} of {nodes.BUDGET.get(room, 0)}"
        for room, count in nodes.here().items()
        if count > nodes.BUDGET.get(room, 0)
    }
    assert not over, "merge or delete what pays for it, or raise the budget and say why"
