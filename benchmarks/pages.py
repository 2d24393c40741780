"""`python -m benchmarks.pages [--gguf FILE] [--tokens N …] [--only PAGE …] [--at-most SECONDS]
[--into FILE]`: what a page takes with a large model.

Every page is opened in a process of its own by Streamlit's AppTest, with a text of N tokens, once
the model is in memory. The seconds are those of the opening and of what it begins, by the clock and
of the processor. The memory is the most that the process ever had, with Python, the model and the
page. Beside them stand the seconds in a browser: of the second visit, when the server has the model
open and has computed what it keeps, and of one interaction, with the first slider or choice of the
page. What goes on for longer than --at-most is stopped, and how far it was is said: its memory is
that of all its steps, which are alike. The model is one of GPT-2 small's size with random weights,
or the one in FILE. The table of the last run is in pages.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from itertools import islice, product
from pathlib import Path
from string import ascii_lowercase
from typing import Any

from gptviz.ui.menu import PAGES
from gptviz.ui.page import Page
from gptviz.ui.records.heads import PAGE as HEADS
from gptviz.ui.records.lessons import PAGE as LESSONS
from gptviz.ui.records.patching import PAGE as PATCHING
from tests.browser.machinery import Visit, chromium, serve

ROOT = Path(__file__).resolve().parents[1]
# The pages that read a model, and what else they show: a page with what its address says, and the
# button that is pressed.
READING = [
    page
    for page in PAGES.values()
    if "decoder" in page.kinds and page.group != "Your models" and page is not LESSONS
]
OPENED: dict[str, tuple[Page, Mapping[str, str], str]] = {
    ", ".join([page.name.replace("_", " "), *state.values()]): (page, state, "")
    for page in READING
    for state in ({}, *page.states)
} | {
    "heads, loss without each": (HEADS, {}, "compute head losses"),
    "patching, every patch": (PATCHING, {}, "compute patches"),
}
NAME = "measured"
HEADING = (
    "| page | tokens | seconds | of the processor | most memory, MiB | second visit in a browser "
    "| an interaction there |\n"
    "|---|---|---|---|---|---|---|"
)
# What a reader moves or chooses first: a slider, or the choice beside the one that is chosen.
CONTROL = (
    "[data-testid=stMain] :is([role=slider], input[type=range], [data-testid=stButtonGroup] "
    "[aria-checked=true])"
)
# Seconds after which a page is given up.
PATIENCE = 900


def main() -> None:
    """Measure, and print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--gguf", help="a model file; a random model of GPT-2 small's size unless given"
    )
    parser.add_argument("--tokens", type=int, nargs="*", default=[128, 1_024])
    parser.add_argument("--only", nargs="*", choices=tuple(OPENED), default=list(OPENED))
    parser.add_argument("--into", type=Path, help="a file to which the rows are added as they come")
    parser.add_argument(
        "--at-most",
        type=float,
        default=PATIENCE,
        help="seconds after which what a page began is stopped",
    )
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_measured(options.one, options.tokens[0], options.at_most)))
        return
    with tempfile.TemporaryDirectory() as home, contextlib.ExitStack() as stack:
        environment = {**os.environ, "GPTVIZ_HOME": os.environ.get("GPTVIZ_PAGES_HOME", home)}
        os.environ["GPTVIZ_HOME"] = environment["GPTVIZ_HOME"]
        _make_model(options.gguf)
        _tell(HEADING, options.into)
        visit = stack.enter_context(_visiting(Path(environment["GPTVIZ_HOME"])))
        for tokens in options.tokens:
            for name in options.only:
                command = [
                    sys.executable,
                    "-m",
                    "benchmarks.pages",
                    "--one",
                    name,
                    "--tokens",
                    str(tokens),
                ]
                command += ["--at-most", str(options.at_most)]
                try:
                    done = subprocess.run(
                        command,
                        env=environment,
                        cwd=ROOT,
                        capture_output=True,
                        text=True,
                        timeout=PATIENCE,
                    )
                    row = (
                        json.loads(done.stdout.splitlines()[-1])
                        if done.returncode == 0
                        else {"error": done.stderr[-300:]}
                    )
                except subprocess.TimeoutExpired:
                    row = {"error": f"more than {PATIENCE} seconds"}
                if "error" not in row:
                    row |= _in_browser(visit, name, _text(tokens))
                _tell(_row(name, tokens, row), options.into)


def _row(name: str, tokens: int, row: dict[str, Any]) -> str:
    if "error" in row:
        return f"| {name} | {tokens:,} | {row['error']!r} | | | | |"
    far = f" (stopped: {row['stopped']})" if row["stopped"] else ""
    moved = "" if row["moved"] is None else f"{row['moved']:.1f}"
    first = f"{row['wall']:.1f} | {row['cpu']:.1f} | {row['peak']:,.0f}"
    return f"| {name}{far} | {tokens:,} | {first} | {row['again']:.1f} | {moved} |"


@contextlib.contextmanager
def _visiting(home: Path) -> Iterator[Visit]:
    """A browser at a server with the models of `home`."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        (Path(folder) / "home").symlink_to(home, target_is_directory=True)
        with serve(Path(folder)) as server:
            visit = Visit.begin(browser, server, height=800)
            visit.open()
            yield visit


def _in_browser(visit: Visit, name: str, text: str) -> dict[str, float | None]:
    """The seconds of the second visit of a page in a browser, and of one interaction, None where it
    has no such control.
    """
    page, query, _ = OPENED[name]
    for _ in range(2):
        begun = time.perf_counter()
        visit.open("" if page.name == "home" else page.name, model=NAME, prompt=text, **query)
        visit.drawn()
    again = time.perf_counter() - begun
    moved = None
    if (control := visit.page.locator(CONTROL).locator("visible=true").first).count():
        begun = time.perf_counter()
        control.press("ArrowRight")
        visit.drawn()
        moved = time.perf_counter() - begun
    return {"again": again, "moved": moved}


def _tell(line: str, into: Path | None) -> None:
    print(line, flush=True)
    if into is not None:
        with into.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def _make_model(gguf: str | None) -> None:
    """The model that is measured, in the home of this run, where it is not there yet."""
    from gptviz.runs import checkpoints

    if NAME in checkpoints.folders():
        return
    if gguf is not None:
        subprocess.run(
            [sys.executable, "-m", "gptviz", "import", gguf, "--name", NAME], check=True, cwd=ROOT
        )
        return
    from gptviz.model import PRESETS, build
    from gptviz.text import WordTokenizer

    config = PRESETS["gpt2"]
    words = [
        "".join(letters)
        for letters in islice(product(ascii_lowercase, repeat=4), config.vocab_size - 2)
    ]
    checkpoints.save(NAME, build(config, seed=0), WordTokenizer(words), {})


def _text(tokens: int) -> str:
    """A text with this many tokens: the beginning of README.md, or random words of the random
    model.
    """
    import torch

    from gptviz.language_model import load
    from gptviz.runs import checkpoints
    from gptviz.text import WordTokenizer

    tokenizer = load(checkpoints.find(NAME)).tokenizer
    if isinstance(tokenizer, WordTokenizer):
        drawn = torch.randint(
            len(tokenizer.words), (tokens,), generator=torch.Generator().manual_seed(0)
        )
        return " ".join(tokenizer.words[i] for i in drawn.tolist())
    return tokenizer.decode(
        tokenizer.encode((ROOT / "README.md").read_text(encoding="utf-8")).ids[
            len(tokenizer.before) : tokens
        ]
    )


def _measured(name: str, tokens: int, at_most: float) -> dict[str, Any]:
    """Seconds and MiB of opening a page, and of what its button begins, for `at_most` seconds."""
    from streamlit.testing.v1 import AppTest

    from gptviz.machine import job
    from gptviz.model import devices
    from gptviz.ui.shell.subject.models import language_model, model_key

    page, query, button = OPENED[name]
    text = _text(tokens)
    # Not the seconds of importing and of reading the model: it is read as the app reads it, and the
    # page then finds it open.
    language_model(model_key(NAME, devices.devices()[0]))
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=PATIENCE)
    if page.name != "home":
        at.switch_page(page.path)
    for key, value in {"model": NAME, "prompt": text, **query}.items():
        at.query_params[key] = value
    begun = time.perf_counter(), time.process_time()
    at.run()
    if button:
        at.button(key=button).click()
        begun = time.perf_counter(), time.process_time()
        at.run()
    stopped: list[str] = []
    # the page shows how far they are, and goes on when they are ready
    for one in list(job._begun.values()):
        one.wait(at_most)
        if one.is_active:
            stopped.append(f"{one.title}: {one.progress.words}")
            one.stop()
            one.wait()
    at.run()
    wall = time.perf_counter() - begun[0]
    cpu = time.process_time() - begun[1]
    if at.exception:
        raise RuntimeError(at.exception[0].message)
    if at.error:
        raise RuntimeError(at.error[0].value)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"wall": wall, "cpu": cpu, "peak": peak, "stopped": "; ".join(stopped)}


if __name__ == "__main__":
    main()
