"""What the documents for readers say is so: their examples run, their commands and links exist,
their pictures are there.
"""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest
import yaml

from gptviz.__main__ import parser
from hatch_build import for_index

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
DOCUMENTS = [README, *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in DOCUMENTS}
EXAMPLES = [
    pytest.param(example, id=f"{name}-{number}")
    for name, text in TEXTS.items()
    for number, example in enumerate(
        re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    )
]
COMMANDS = [
    pytest.param(command.strip(), id=command.strip())
    for text in TEXTS.values()
    for command in re.findall(
        r"^ {4}(?:torchrun \S+ -m|python -m) gptviz (.*)$", text, re.MULTILINE
    )
]


def test_the_readme_is_short() -> None:
    assert README.stat().st_size <= 9_000


def test_every_picture_is_shown_and_every_one_shown_is_there() -> None:
    shown = {
        (file.parent / link).resolve()
        for file in DOCUMENTS
        for link in re.findall(r"\]\(([^)]+\.png)\)", file.read_text())
    }
    assert len(shown) > 10
    assert shown == set((ROOT / "docs" / "pictures").iterdir())


@pytest.mark.parametrize(
    "file", [*DOCUMENTS, *(ROOT / f"{name}.md" for name in ("CONTRIBUTING", "SECURITY", "NOTICE"))]
)
def test_links_to_files_lead_there(file: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", file.read_text(encoding="utf-8"))
    assert all((file.parent / link).exists() for link in links)


@pytest.mark.parametrize("repository", [None, "https://example.org/gptviz"])
def test_where_a_wheel_is_shown_no_link_and_no_picture_of_the_readme_leads_nowhere(
    repository: str | None,
) -> None:
    text = README.read_text(encoding="utf-8")
    shown = for_index(text, repository)
    leads = re.findall(r"\]\(([^)]+)\)", shown)
    assert all(link.startswith("https://") for link in leads)
    n_ours, n_all = (len(re.findall(rf"\]\((?!{other})", text)) for other in ("https?:", " "))
    assert len(leads) == (n_all - n_ours if repository is None else n_all)
    assert re.findall(r"^#+ .*", shown, re.MULTILINE) == re.findall(r"^#+ .*", text, re.MULTILINE)
    assert repository is not None or "![" not in shown


def test_what_ships_is_listed_with_its_source() -> None:
    notice = (ROOT / "NOTICE.md").read_text(encoding="utf-8")
    assert all(
        f"`{folder.name}`" in notice
        for folder in (ROOT / "checkpoints").iterdir()
        if folder.is_dir()
    )
    required = re.findall(r"^[a-z].*$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert all(f"| {name} |" in notice for name in required)
    # A file of another kind than these, such as a font or a text, is of others or may be taken for
    # it.
    own = {".py", ".js", ".css", ".md", ".html", ".po", ".mo", ".typed"}
    files = [
        file
        for file in (ROOT / "gptviz").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    ]
    assert all(
        f"`{file.relative_to(ROOT).as_posix()}`" in notice
        for file in files
        if file.suffix not in own
    )


def test_the_map_of_the_house_has_every_room_and_no_other() -> None:
    block = (
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("\nImports go upwards")[0]
    )
    outer = re.findall(r"^ {4}(?:app\.py, )?(\w+)/ ", block, re.MULTILINE)
    inner = re.findall(r"^ {6}([\w/.]+) ", block, re.MULTILINE)
    assert all((ROOT / "gptviz" / room.removesuffix("/x")).exists() for room in inner)
    package = {path.name for path in (ROOT / "gptviz").iterdir()} - {
        "__init__.py",
        "__pycache__",
        "_version.py",
        "py.typed",
    }
    assert {room.partition("/")[0] for room in inner} == package
    made = {"node_modules", "dist", "build", "site", "gallery", "__pycache__"}
    known = {
        path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")
    } - made
    assert {"gptviz", *outer} >= known - {"gptviz", "film-reviews"}
    assert all((ROOT / room).is_dir() for room in outer)


# A few seconds, and not marked `full`: nothing else runs these lines, and any change of a name may
# break them.
@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_runs_and_gives_the_answers_that_its_comments_say(
    example: str, home: Path
) -> None:
    lines = example.splitlines()
    known = dict[str, object]()
    for statement in ast.parse(example).body:
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), "README.md", "exec"), known)
            continue
        answer = eval(compile(ast.Expression(statement.value), "README.md", "eval"), known)
        comment = lines[(statement.end_lineno or 0) - 1][statement.end_col_offset :].strip(" #")
        if comment.startswith(('"', "{")):
            assert _rounded(answer) == ast.literal_eval(comment)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_one_that_the_command_line_takes(command: str) -> None:
    words = shlex.split(re.sub(r"[\[\]]", "", command), comments=True)
    options, passed_on = parser().parse_known_args(words)
    assert options.command.name == words[0]
    assert not passed_on or options.command.passes_on


def _rounded(answer: object) -> object:
    """Probabilities to three digits, as a comment has them."""
    return (
        {name: round(share, 3) for name, share in answer.items()}
        if isinstance(answer, dict)
        else answer
    )


def test_what_an_agent_reads_is_what_commands_library_and_documents_say() -> None:
    from docs import for_agents

    for place, text in for_agents.written().items():
        assert (ROOT / place).read_text(encoding="utf-8") == text, f"{place}: make agents"
        links = re.findall(r"\]\(([^)#]+)\)", text)
        assert len(links) > 8
        assert all(((ROOT / place).parent / link).exists() for link in links)
    assert for_agents.first_sentence("A, e.g. b.\nOr c.") == "A, e.g. b."
    assert len(for_agents.methods()) > 60


def test_the_paper_has_the_form_that_its_journal_asks_for_and_its_numbers_are_measured_ones() -> (
    None
):
    front, text = (ROOT / "paper.md").read_text(encoding="utf-8").split("---\n", 2)[1:]
    about = yaml.safe_load(front)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= about.keys()
    headings = re.findall(r"^# (.+)$", text, re.MULTILINE)
    assert headings[:4] == [
        "Summary",
        "Statement of need",
        "State of the field",
        "Software design",
    ]
    assert headings[-1] == "References"
    assert 750 <= len(text.split()) <= 1_000  # two pages
    # Every source is cited, and every citation has its source.
    sources = re.findall(r"^@\w+\{(\w+),", (ROOT / about["bibliography"]).read_text(), re.MULTILINE)
    assert sorted(set(re.findall(r"@(\w+)", text))) == sorted(sources)
    # The paragraph of measurements has no number that a benchmark does not have.
    measured = text[text.index("Performance is measured") : text.index("# Research impact")]
    benchmarks = "".join(file.read_text() for file in (ROOT / "benchmarks").glob("*.md"))
    numbers = re.findall(r"(?<![\w-])\d[\d.,]*\d", measured)
    assert len(numbers) > 10
    assert [number for number in numbers if number not in benchmarks] == []
