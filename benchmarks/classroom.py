"""`python -m benchmarks.classroom`: how soon the app answers a class, each with a browser of their
own.

Each visitor is a real session, over a websocket as a browser's. All open the page Generate in the
same moment. Then each goes on by itself for as long as the class lasts: it looks for `PAUSE`
seconds, and does one of `MIX`, drawn at random. Mostly it draws a token or hovers; it moves a
slider; now and then it types a prompt of its own, or goes on to the next step of the lessons and
from there back to Generate. An interaction ends when all that the page shows has come. What is
hovered is answered in the browser and asks nothing of the server: it is counted apart. What a
browser takes to draw is not counted. `TRAINING` more visitors begin a small training each, one of
which waits for the other. Trainings take some of the machine's time, and so do the visitors, which
run on the same machine as the server.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import psutil

from gptviz.lessons.checking import with_model
from gptviz.lessons.library import SHIPPED, library
from gptviz.machine.location import APP
from gptviz.runs.status import read_status
from tests.browser.machinery import started

from .visitor import Visitor

SIZES = (1, 10, 30)
# seconds that a visitor looks before the next interaction: any length between, equally likely
PAUSE = 2.0, 6.0
# How often a visitor does what, in relation.
MIX = {
    "hovers": 8,
    "draws a token": 12,
    "moves a slider": 4,
    "types a prompt": 1,
    "opens a step of a lesson": 1,
}
WORDS = (
    "lord",
    "love",
    "night",
    "sword",
    "king",
    "sea",
    "rose",
    "fair",
    "dead",
    "sweet",
    "what",
    "thou",
    "heart",
    "crown",
)
# The page on which a class begins, and trainings that are small enough to end while it stays.
FIRST = {"model": "shakespeare"}
TRAINING = 2
TRAINED = {"plan": "copy", "run_steps": "60", "run_evaluations": "2"}


@dataclass
class Measured:
    """The results of a class.

    Attributes:
        seconds: how long each interaction took, by its kind.
        together: how long each visitor waited for the page that all opened in the same moment.
        hovered: how often a visitor hovered, which the browser answers.
        trained: how many trainings ended well, and how many were begun.
        most_training: how many of them trained at the same time, at most.
        errors: what went wrong, in words.
        peak: the most memory that the server has taken, in bytes.
        load: of the machine, the mean over the last minute when the class left (1 a core).
        busy: how many seconds the server computed meanwhile; other work of the machine does not
            change it much.
    """

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    together: list[float] = field(default_factory=list)
    hovered: int = 0
    trained: tuple[int, int] = (0, 0)
    most_training: int = 0
    errors: list[str] = field(default_factory=list)
    peak: int = 0
    load: float = 0.0
    busy: float = 0.0

    @property
    def all(self) -> list[float]:
        """How long each interaction took."""
        return [seconds for kind in self.seconds.values() for seconds in kind]


def share(seconds: list[float], percent: int) -> float:
    """The seconds within which `percent` percent of the interactions were answered."""
    return (
        statistics.quantiles(seconds, n=100, method="inclusive")[percent - 1]
        if len(seconds) > 1
        else seconds[0]
    )


class Pupil:
    """One visitor of a class, who goes on until the time is over."""

    def __init__(
        self, url: str, number: int, measured: Measured, until: float, pause: tuple[float, float]
    ) -> None:
        self.visitor = Visitor(url)
        self.measured = measured
        self.until = until
        self.pause = pause
        self.random = random.Random(number)
        self.steps = cycle(lesson_links())

    async def learn(self, acts: Iterable[str] | None = None) -> None:
        """Open the page with all others, then do one thing after the other, until the time is over
        or something goes wrong.

        Args:
            acts: what to do, names of `MIX`; drawn at random, without an end, unless given.
        """
        try:
            self.measured.together.append(
                await self._seconds(self.visitor.open("generate", **FIRST))
            )
            for act in self._drawn() if acts is None else acts:
                await self._do(act)
        except TimeoutError:
            pass
        except Exception as error:  # whatever it is, it is what this visitor met
            self.measured.errors.append(f"{type(error).__name__}: {error}")
        self.measured.errors += self.visitor.errors
        await self.visitor.leave()

    def _drawn(self) -> Iterator[str]:
        while True:
            yield self.random.choices(list(MIX), list(MIX.values()))[0]

    async def _do(self, act: str) -> None:
        visitor = self.visitor
        match act:
            case "hovers":
                await self._look()
                self.measured.hovered += 1
            case "draws a token":
                await self._timed(act, visitor.press("one token"))
            case "moves a slider":
                await self._timed(
                    act, visitor.move("temperature", self.random.randrange(1, 200) / 100)
                )
            case "types a prompt":
                await self._timed(act, visitor.type("prompt", self._prompt()))
            case _:
                page, query = next(self.steps)
                await self._timed(act, visitor.open(page, **query))
                await self._timed(
                    "opens Generate again", visitor.open("generate", **FIRST, prompt=self._prompt())
                )

    def _prompt(self) -> str:
        """A text that hardly two visitors share."""
        return f"{self.random.choice(('ROMEO', 'JULIET', 'HAMLET'))}:\n{' '.join(self.random.choices(WORDS, k=4))} "

    async def _look(self) -> None:
        """Look at what is there for a while.

        Raises:
            TimeoutError: the time is over.
        """
        await asyncio.sleep(self.random.uniform(*self.pause))
        if time.monotonic() > self.until:
            raise TimeoutError

    async def _timed(self, kind: str, act: Coroutine[None, None, None]) -> None:
        try:
            await self._look()
        except TimeoutError:
            act.close()
            raise
        self.measured.seconds[kind].append(await self._seconds(act))

    async def _seconds(self, act: Coroutine[None, None, None]) -> float:
        begun = time.perf_counter()
        await act
        return time.perf_counter() - begun


async def begin_training(url: str, name: str, measured: Measured) -> None:
    """Begin a small training on the page Train, as a visitor does."""
    visitor = Visitor(url)
    try:
        await visitor.open("train", **TRAINED)
        await visitor.type("save_as", name)
        await visitor.press("train")
    except Exception as error:  # whatever it is, it is what this visitor met
        measured.errors.append(f"{name}: {type(error).__name__}: {error}")
    measured.errors += visitor.errors
    await visitor.leave()


async def watch_trainings(runs: Path, measured: Measured, patience: float) -> None:
    """Look at the trainings until all that were to begin have ended, or patience ends."""
    names = [f"training-{number}" for number in range(TRAINING)]
    until = time.monotonic() + patience
    states: list[str] = []
    while time.monotonic() < until and not (
        states and all(state not in ("none", "waiting", "running") for state in states)
    ):
        states = [
            read_status(runs / name).state if (runs / name / "status.json").exists() else "none"
            for name in names
        ]
        measured.most_training = max(measured.most_training, states.count("running"))
        await asyncio.sleep(0.5)
    measured.trained = states.count("finished"), TRAINING
    measured.errors += [
        f"{name} ended as {state}"
        for name, state in zip(names, states, strict=True)
        if state == "failed"
    ]


def lesson_links() -> list[tuple[str, dict[str, str]]]:
    """The page and what its address says, of each step of the shipped lessons that opens one."""
    return [
        (
            "" if step.page.page == "home" else step.page.page,
            {
                **with_model(step.page, lesson).query,
                "lesson": lesson.name,
                "lesson_step": str(number),
            },
        )
        for lesson in library(SHIPPED).lessons.values()
        for number, step in enumerate(lesson.steps, 1)
        if step.page is not None
    ]


async def visit(url: str, size: int, seconds: float, runs: Path) -> Measured:
    """Let a class of this size in for so long; `runs` is the folder of the models that the server
    trains.
    """
    first = Visitor(url)
    await first.open("", **FIRST)  # a server that has just started reads its libraries first
    await first.leave()
    measured = Measured()
    until = time.monotonic() + seconds
    watched = asyncio.create_task(watch_trainings(runs, measured, seconds))
    await asyncio.gather(
        *(Pupil(url, number, measured, until, PAUSE).learn() for number in range(size)),
        *(begin_training(url, f"training-{number}", measured) for number in range(TRAINING)),
    )
    measured.load = os.getloadavg()[0]
    await watched
    return measured


def measure(size: int, seconds: float) -> Measured:
    """The results of a class of this size with its own server, whose log and memory are read
    too.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "server.log"
        process, url = started(log, APP)
        try:
            before = computed(process.pid)
            measured = asyncio.run(visit(url, size, seconds, Path(folder) / "home" / "checkpoints"))
            measured.busy = computed(process.pid) - before
            measured.peak = peak_memory(process.pid)
        finally:
            process.kill()
            process.wait()
        if "Traceback" in (text := log.read_text(errors="replace")):
            measured.errors.append(text[text.index("Traceback") :][:2_000])
    return measured


def peak_memory(process: int) -> int:
    """The most memory that a process has taken so far, in bytes; 0 where the system does not
    say.
    """
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    except OSError:
        return 0
    return 1024 * int(found[1]) if found else 0


def computed(process: int) -> float:
    """How many seconds of a core a process has taken so far."""
    times = psutil.Process(process).cpu_times()
    return float(times.user + times.system)


def main() -> None:
    """Print a row for each size of the class, and how long each kind of interaction took the
    largest.
    """
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.classroom", description="How soon the app answers a class."
    )
    options.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=list(SIZES),
        metavar="N",
        help="visitors at the same time",
    )
    options.add_argument("--seconds", type=float, default=75.0, help="how long each class stays")
    given = options.parse_args()
    print(
        f"{os.cpu_count()} cores; a visitor looks {PAUSE[0]:.0f} to {PAUSE[1]:.0f} seconds before "
        "each interaction\n"
    )
    print(
        "| visitors | interactions | median | 95 % | 99 % | slowest of all at once | errors | "
        "memory | computed for each | load |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    measured = Measured()
    for size in given.sizes:
        measured = measure(size, given.seconds)
        times = " | ".join(f"{share(measured.all, percent):.2f} s" for percent in (50, 95, 99))
        each = f"{measured.busy / (len(measured.all) + len(measured.together)):.3f} s"
        cells = (
            f"{times} | {max(measured.together):.2f} s | {len(measured.errors)} | "
            f"{measured.peak / 1e9:.2f} GB | {each}"
        )
        print(f"| {size} | {len(measured.all)} | {cells} | {measured.load:.1f} |", flush=True)
        for error in measured.errors[:5]:
            print(error)
    print()
    for kind, seconds in measured.seconds.items():
        print(
            f"{kind:<24} {len(seconds):5} times, median {share(seconds, 50):.2f} s, 95 % "
            f"{share(seconds, 95):.2f} s"
        )
    ended, begun = measured.trained
    print(f"{'hovers':<24} {measured.hovered:5} times, answered in the browser")
    print(
        f"{'trains':<24} {begun:5} begun, {ended} finished meanwhile, {measured.most_training} at "
        "the same time at most"
    )


if __name__ == "__main__":
    main()
