"""The command `lessons`: check that lessons work."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from .common import Command, UsageError, print_json

if TYPE_CHECKING:
    from gptviz.language_model import LanguageModel

MOST_MODELS = 4  # that stay open


def add(command: Command) -> None:
    """Add the command and its options."""
    this = command("lessons", run, "Check lessons: open every page of theirs, and compute every answer.", on_device=False)
    this.add_argument("action", choices=["check"], help="check: open every page and compute every answer")
    this.add_argument(
        "folder", nargs="?", type=Path, metavar="DIR", help="a folder with lessons; default: those that ship, and your own"
    )


def run(options: argparse.Namespace) -> None:
    """The command `lessons check [DIR] [--json]`."""
    import gptviz
    from gptviz.lessons.checking import problems
    from gptviz.lessons.library import library
    from gptviz.lessons.quantities import Quantities

    if options.folder is not None and not options.folder.is_dir():
        raise UsageError(f"{options.folder} is no folder")

    @lru_cache(maxsize=MOST_MODELS)
    def opened(name: str, step: int | None) -> LanguageModel:
        return gptviz.load(name, "cpu", step)

    lessons = library() if options.folder is None else library(options.folder)
    failed = list(problems(lessons, lambda lesson: Quantities(opened, lesson.model).functions))
    steps = [step for lesson in lessons.lessons.values() for step in lesson.steps]
    n_question = sum(len(step.questions) for step in steps)
    if options.json:
        counts = {"lessons": len(lessons.lessons), "steps": len(steps), "questions": n_question}
        print_json(counts | {"failed": [asdict(problem) for problem in failed]})
    else:
        for problem in failed:
            print(f"{problem.lesson}{'' if problem.step is None else f', step {problem.step}'}: {problem.problem}")
        print(f"{len(lessons.lessons)} lessons, {len(steps)} steps, {n_question} questions, {len(failed)} problems")
    if failed:
        sys.exit(1)
