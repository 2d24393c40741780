"""`python -m benchmarks.classroom`: how soon the app answers a class, each with a browser of their own.

Each visitor is a real session, over a websocket as a browser's. It goes through the steps of the shipped lessons, opens Generate,
Attention and Next token on a prompt of its own, draws tokens, moves a slider and types other prompts, with a pause of
`PAUSE` seconds before each. An interaction ends when all that the page shows has come. Hovering, heads, and the sliders inside
views are answered in the browser and ask nothing of the server; what a browser takes to draw is not counted. The visitors run on
the same machine as the server, and take some of its time.
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
from collections.abc import Coroutine
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

from gptviz.lessons.checking import with_model
from gptviz.lessons.library import SHIPPED, library
from gptviz.location import APP
from tests.browser.machinery import started

from .visitor import Visitor

SIZES = (1, 10, 30)
PAUSE = 2.0, 6.0  # seconds that a visitor looks before the next interaction: any length between, equally likely
STEPS = 4  # tokens drawn one after the other
PROMPTS = [
    f"{name}:\n{words}" for name in ("ROMEO", "JULIET", "HAMLET", "KING RICHARD III") for words in ("My lord, ", "O ", "What ")
]


@dataclass
class Measured:
    """What a class met.

    Attributes:
        seconds: how long each interaction took, by its kind.
        errors: what went wrong, in words.
        peak: the most memory that the server has taken, in bytes.
        load: of the machine, the mean over the last minute when the class left (1 a core).
        busy: how many seconds the server computed meanwhile; other work of the machine does not change it much.
    """

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)
    peak: int = 0
    load: float = 0.0
    busy: float = 0.0

    @property
    def all(self) -> list[float]:
        """How long each interaction took."""
        return [seconds for kind in self.seconds.values() for seconds in kind]


def share(seconds: list[float], percent: int) -> float:
    """The time within which so many percent of the interactions were answered."""
    return statistics.quantiles(seconds, n=100, method="inclusive")[percent - 1] if len(seconds) > 1 else seconds[0]


class Pupil:
    """One visitor of a class, who goes on until the time is over."""

    def __init__(self, url: str, number: int, measured: Measured, until: float, pause: tuple[float, float]) -> None:
        self.visitor, self.measured, self.until, self.pause = Visitor(url), measured, until, pause
        self.random = random.Random(number)

    async def learn(self, steps: int | None = None) -> None:
        """Go through so many steps of the lessons, and try things, until the time is over or something goes wrong."""
        try:
            for page, query in islice(cycle(lesson_links()), steps):
                await self._timed("opens a page", self.visitor.open(page, **query))
                await self._generate()
                await self._look()
        except TimeoutError:
            pass
        except Exception as error:  # whatever it is, it is what this visitor met
            self.measured.errors.append(f"{type(error).__name__}: {error}")
        self.measured.errors += self.visitor.errors
        await self.visitor.leave()

    async def _generate(self) -> None:
        visitor = self.visitor
        await self._timed("opens a page", visitor.open("generate", model="shakespeare", prompt=self._prompt()))
        for _ in range(STEPS):
            await self._timed("draws a token", visitor.press("one token"))
        await self._timed("moves a slider", visitor.move("temperature", self.random.randrange(1, 200) / 100))
        await self._timed("draws a token", visitor.press("one token"))
        await self._timed("types a prompt", visitor.type("prompt", self._prompt()))
        await self._timed("draws a token", visitor.press("one token"))

    async def _look(self) -> None:
        for page in ("attention", "next_token"):
            await self._timed("opens a page", self.visitor.open(page, model="shakespeare", prompt=self._prompt()))
            await self._timed("types a prompt", self.visitor.type("prompt", self._prompt()))

    def _prompt(self) -> str:
        return self.random.choice(PROMPTS)

    async def _timed(self, kind: str, act: Coroutine[None, None, None]) -> None:
        """Look at what is there for a while, then act.

        Raises:
            TimeoutError: the time is over.
        """
        await asyncio.sleep(self.random.uniform(*self.pause))
        if time.monotonic() > self.until:
            act.close()
            raise TimeoutError
        begun = time.perf_counter()
        await act
        self.measured.seconds[kind].append(time.perf_counter() - begun)


def lesson_links() -> list[tuple[str, dict[str, str]]]:
    """The page and what its address says, of each step of the shipped lessons that opens one."""
    return [
        (
            "" if step.page.page == "home" else step.page.page,
            {**with_model(step.page, lesson).query, "lesson": lesson.name, "lesson_step": str(number)},
        )
        for lesson in library(SHIPPED).lessons.values()
        for number, step in enumerate(lesson.steps, 1)
        if step.page is not None
    ]


async def visit(url: str, size: int, seconds: float, pause: tuple[float, float] = PAUSE) -> Measured:
    """Let a class of this size in for so long."""
    first = Visitor(url)
    await first.open("generate", model="shakespeare")  # a server that has just started reads its libraries first
    await first.leave()
    measured = Measured()
    until = time.monotonic() + seconds
    await asyncio.gather(*(Pupil(url, number, measured, until, pause).learn() for number in range(size)))
    measured.load = os.getloadavg()[0]
    return measured


def measure(size: int, seconds: float) -> Measured:
    """The same with a server of its own, whose log and memory are looked at too."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "server.log"
        process, url = started(log, APP)
        try:
            before = computed(process.pid)
            measured = asyncio.run(visit(url, size, seconds))
            measured.busy = computed(process.pid) - before
            measured.peak = peak_memory(process.pid)
        finally:
            process.kill()
            process.wait()
        if "Traceback" in (text := log.read_text(errors="replace")):
            measured.errors.append(text[text.index("Traceback") :][:2_000])
    return measured


def peak_memory(process: int) -> int:
    """The most memory that a process has taken so far, in bytes; 0 where the system does not say."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    except OSError:
        return 0
    return 1024 * int(found[1]) if found else 0


def computed(process: int) -> float:
    """How many seconds of a core a process has taken so far; 0 where the system does not say."""
    try:
        after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print a row for each size of the class, and how long each kind of interaction took the largest."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.classroom", description="How soon the app answers a class.")
    options.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="N", help="visitors at the same time")
    options.add_argument("--seconds", type=float, default=75.0, help="how long each class stays")
    given = options.parse_args()
    print(f"{os.cpu_count()} cores; a visitor looks {PAUSE[0]:.0f} to {PAUSE[1]:.0f} seconds before each interaction\n")
    print("| visitors | interactions | median | 95 % | 99 % | errors | memory at most | computed for each | load |")
    print("|---|---|---|---|---|---|---|---|---|")
    measured = Measured()
    for size in given.sizes:
        measured = measure(size, given.seconds)
        times = " | ".join(f"{share(measured.all, percent):.2f} s" for percent in (50, 95, 99))
        each = f"{measured.busy / len(measured.all):.2f} s"
        cells = f"{times} | {len(measured.errors)} | {measured.peak / 1e9:.2f} GB | {each} | {measured.load:.1f}"
        print(f"| {size} | {len(measured.all)} | {cells} |", flush=True)
        for error in measured.errors[:5]:
            print(error)
    print()
    for kind, seconds in measured.seconds.items():
        print(f"{kind:<16} {len(seconds):5} times, median {share(seconds, 50):.2f} s, 95 % {share(seconds, 95):.2f} s")


if __name__ == "__main__":
    main()
