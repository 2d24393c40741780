"""`python -m tests.browser.soak MINUTES`: a reader who never stops, with a training beside: nothing
fails, memory is flat.

A browser walks at random over all pages (the same walk every time): links of the menu, addresses,
sliders, prompts, suggestions, reloads and steps back. It fails on an exception, an error of a
script or in the console, and where memory grows after the first third of the time, in which every
page is opened once and caches fill.
"""

from __future__ import annotations

import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from playwright.sync_api import Browser, ConsoleMessage, Locator
from playwright.sync_api import Error as BrowserError

from gptviz.ui.menu import PAGES as RECORDS
from tests.browser.machinery import (
    ALLOWED_MISSES,
    PAGES,
    PATIENCE,
    Server,
    Visit,
    chromium,
    memory,
    serve,
)
from tests.processes import running

PROMPTS = (
    "ROMEO:",
    "What is",
    "3 1 4 1 5",
    "שלום",
    "🙂",
    "x" * 400,
    "<b>bold</b> $x$",
    "the film was never dull",
)
ACTIONS_A_SAMPLE = 6
TITLES = [page.title for page in RECORDS.values()]
MEASURED = "Next token"  # each measurement is taken on this page
# The share of actions that load the whole page anew: with few of them, one document lives long.
LOADS = 0.05
# How much of the memory of the second third of the walk the last third may have, at most. The
# numbers of one page differ by what is cached and by what garbage is left; something that is never
# given back passes any such bound in 20 minutes.
MOST_OF_SERVER = 1.25
MOST_OF_BROWSER = 1.5
TRAINING = [
    "train",
    "reversal",
    "--name",
    "beside",
    "--steps",
    "10000000",
    "--evaluations",
    "20",
    "--compile",
    "no",
    "--precision",
    "float32",
]


@dataclass
class Walk:
    """What was measured and what went wrong.

    Attributes:
        actions: how many things the reader did.
        server: bytes of the server's memory, once in a while.
        browser: bytes of the page's heap once its garbage is collected, on the same page each time.
        wrong: what went wrong.
    """

    actions: int = 0
    server: list[float] = field(default_factory=list)
    browser: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def verdict(self) -> list[str]:
        """What went wrong, and where memory grew."""
        grown = [
            grew("the server", self.server, MOST_OF_SERVER),
            grew("the browser", self.browser, MOST_OF_BROWSER),
        ]
        return [*self.wrong, *filter(None, grown)]


def resident(pid: int) -> float:
    """The bytes of memory that a process has."""
    return float(psutil.Process(pid).memory_info().rss)


def grew(whose: str, samples: list[float], most: float) -> str:
    """A sentence where the last third of the samples is more than `most` times the second third,
    else an empty text.
    """
    third = len(samples) // 3
    if not third:
        return ""
    before, after = (
        sorted(part)[len(part) // 2] for part in (samples[third : 2 * third], samples[2 * third :])
    )
    grown = f"{after / 2**20:,.0f} MiB after {before / 2**20:,.0f} MiB"
    return (
        f"the memory of {whose} grew: {grown}, more than {most:g} times as much"
        if after > most * before
        else ""
    )


class Reader:
    """Does something at random in a browser."""

    def __init__(self, visit: Visit, seed: int) -> None:
        self.visit = visit
        self.page = visit.page
        self.draw = random.Random(seed)
        self.unseen = list(TITLES)
        self.doing = ""  # what it does now, or has done last
        self.acts: tuple[Callable[[], object], ...] = (
            self.link,
            self.link,
            self.slider,
            self.slider,
            self.prompt,
            self.suggestion,
        )
        self.rare: tuple[Callable[[], object], ...] = (self.address, self.reload, self.back)

    def act(self) -> None:
        """Do one thing and wait until the page stands.

        Raises:
            AssertionError: the page did not come to stand.
        """
        does = self.draw.choice(self.rare if self.draw.random() < LOADS else self.acts)
        self.doing = does.__name__
        try:
            does()
        # what was there a moment ago is gone or covered: a reader would click elsewhere
        except BrowserError as error:
            if "Timeout" not in str(error) and "not attached" not in str(error):
                raise
        self.visit.settle()

    def _one(self, several: Locator) -> Locator | None:
        shown = [one for one in several.all() if one.is_visible() and one.is_enabled()]
        return self.draw.choice(shown) if shown else None

    def link(self) -> None:
        """To another page by the menu: the page stays the same document, so that what it does not
        give back adds up.
        """
        self.to(self.unseen.pop() if self.unseen else self.draw.choice(TITLES))

    def to(self, title: str, patience: float = 5) -> None:
        """To the page of this title by the menu, with patience in seconds for the click."""
        one = self.page.get_by_test_id("stSidebar").get_by_role("link", name=title, exact=True)
        if one.count() and one.first.is_visible():
            one.first.click(timeout=1_000 * patience)

    def slider(self) -> None:
        """Move a slider by a key."""
        if (one := self._one(self.page.get_by_role("slider"))) is not None:
            one.focus(timeout=5_000)
            one.press(self.draw.choice(["ArrowRight", "ArrowLeft", "Home", "End"]), timeout=5_000)

    def prompt(self) -> None:
        """Type another prompt."""
        box = self.page.get_by_role("textbox", name=re.compile("Prompt"))
        if box.count() == 1 and box.is_visible():
            box.fill(self.draw.choice(PROMPTS), timeout=5_000)
            box.press("Control+Enter", timeout=5_000)

    def suggestion(self) -> None:
        """Press one of the suggestions of the page."""
        if (one := self._one(self.page.locator(".st-key-suggestions button"))) is not None:
            one.click(timeout=5_000)

    def address(self) -> None:
        """Open a page by its address."""
        self.visit.open(self.draw.choice(PAGES))

    def reload(self) -> None:
        """Load the page again."""
        self.page.reload()

    def back(self) -> None:
        """Go back, but not out of the app."""
        self.page.go_back()
        if not self.page.url.startswith(self.visit.server.url):
            self.visit.open()


def acted(reader: Reader) -> list[str]:
    """Let the reader do one thing; what went wrong."""
    wrong = []
    try:
        reader.act()
    except AssertionError as error:
        wrong.append(str(error))
    wrong += reader.visit.wrong()
    return [f"after {reader.doing} at {reader.page.url}", *wrong] if wrong else []


def walk(browser: Browser, server: Server, goes_on: Callable[[Walk], bool], seed: int = 0) -> Walk:
    """Let a reader walk over the app while `goes_on`; the walk ends where something goes wrong."""
    done = Walk()
    visit = Visit.begin(browser, server, fresh=True)

    def told(message: ConsoleMessage) -> None:
        if message.type == "error" and not message.location.get("url", "").endswith(ALLOWED_MISSES):
            done.wrong.append(f"console: {message.text} at {message.location}")

    visit.page.on("console", told)
    reader = Reader(visit, seed)
    try:
        visit.open()
        while goes_on(done):
            for _ in range(ACTIONS_A_SAMPLE):
                done.wrong += acted(reader)
                done.actions += 1
                if done.wrong:
                    return done
            reader.to(MEASURED, PATIENCE)
            visit.settle()
            done.browser.append(memory(visit.page)["heap"])
            done.server.append(resident(server.pid))
            print(
                f"{done.actions:6} actions   server {done.server[-1] / 2**20:6.0f} MiB   heap "
                f"{done.browser[-1] / 2**20:5.1f} MiB"
            )
    finally:
        visit.close()
    return done


def soak(folder: Path, goes_on: Callable[[Walk], bool]) -> Walk:
    """A walk over a server of its own, with a training beside it."""
    with serve(folder) as server, chromium() as browser:
        environment = {**os.environ, "GPTVIZ_HOME": str(folder / "home"), "OMP_NUM_THREADS": "1"}
        quiet = {"stdout": (folder / "training.log").open("w"), "stderr": -2}
        with running(["-m", "gptviz", *TRAINING], env=environment, **quiet) as training:
            done = walk(browser, server, goes_on)
            if training.poll() is not None:
                done.wrong.append(
                    f"the training has ended:\n{(folder / 'training.log').read_text()[-2_000:]}"
                )
    return done


def main(minutes: float) -> None:
    """Walk for some minutes and say what was measured."""
    end = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder:
        done = soak(Path(folder), lambda _: time.monotonic() < end)
    wrong = done.verdict()
    print(
        "\n".join(wrong) or f"{done.actions} actions, nothing went wrong, and memory did not grow"
    )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 20)
