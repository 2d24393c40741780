"""A server of the app and a browser that watches it: what the browser tests and the screenshots share."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlparse

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.browser.chromium import installed

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    *("", "generate", "attention", "next_token", "positions", "embeddings"),
    *("gradients", "classify", "translate", "train", "runs"),
)
# Text that would do harm if a page took it for markup, or break its layout.
HOSTILE = (
    "<img src=x onerror=\"document.title='pwned'\">",
    "</script><script>document.title='pwned'</script>",
    "**bold** :red[x] $x$ [a](javascript:alert(1))",
    "a\u202ecba\u202c and \u2066b\u2069",  # overrides and isolates of the direction of writing
    "a\u200bb\u200c\u200d\ufeffc",  # characters of no width
    "xyz " * 2_500,  # 10,000 characters
)
# A deep link makes Streamlit look for its own endpoints below the page first; it then finds them at the root.
ALLOWED_MISSES = ("/_stcore/health", "/_stcore/host-config")


@dataclass
class Server:
    """A running app.

    Attributes:
        url: where it answers.
        log: the file its output goes to.
    """

    url: str
    log: Path


@contextlib.contextmanager
def serve(folder: Path, script: Path = ROOT / "app.py") -> Iterator[Server]:
    """The app on a free port of this machine, with a home of its own in `folder`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = folder / "server.log"
    command = [sys.executable, "-m", "streamlit", "run", str(script), f"--server.port={port}", "--server.headless=true"]
    environment = {**os.environ, "GPTVIZ_HOME": str(folder / "home")}
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{url}/_stcore/health", timeout=5).close()
                break
            except OSError:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, "the server did not answer within a minute"
                time.sleep(0.1)
        yield Server(url, log)
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser."""
    where = installed()
    assert where is not None, "no browser: run 'make browser'"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=where, args=["--no-sandbox", "--disable-background-networking"])
        yield browser
        browser.close()


@dataclass
class Visit:
    """One browser looking at the app, and everything that went wrong on the way.

    Attributes:
        troubles: what went wrong.
        sent: the size of every message the page has sent to the server so far: a view that answers by itself adds none.
    """

    server: Server
    context: BrowserContext
    page: Page
    troubles: list[str] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)

    @classmethod
    def begin(cls, browser: Browser, server: Server, *, dark: bool = False, width: int = 1280, height: int = 720) -> Visit:
        """A fresh browser profile of the given size and colour scheme; requests to other hosts are refused and noted."""
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light")
        visit = cls(server, context, context.new_page())
        home = urlparse(server.url).netloc

        def inspect(route, request) -> None:  # type: ignore[no-untyped-def]
            address = urlparse(request.url)
            if address.scheme in ("http", "https", "ws", "wss") and address.netloc != home:
                visit.troubles.append(f"request to another host: {request.url}")
                route.abort()
            else:
                route.continue_()

        context.route("**/*", inspect)
        visit.page.on("pageerror", lambda error: visit.troubles.append(f"page error: {error}"))
        visit.page.on("response", visit._answered)
        visit.page.on("websocket", lambda socket: socket.on("framesent", lambda message: visit.sent.append(len(message))))
        return visit

    def _answered(self, response) -> None:  # type: ignore[no-untyped-def]
        if response.status >= 400 and not response.url.endswith(ALLOWED_MISSES):
            self.troubles.append(f"{response.status} for {response.url}")

    def open(self, path: str = "", **query: object) -> Page:
        """Go to a page by its address and wait until it stands."""
        address = f"{self.server.url}/{path}"
        self.page.goto(f"{address}?{urlencode(query)}" if query else address)
        return self.settle()

    def settle(self) -> Page:
        """Wait until the script has run and what it drew is drawn."""
        self.page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=60_000)
        self.page.wait_for_timeout(150)
        self.page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=60_000)
        self.page.wait_for_function("!document.querySelector('[data-testid=stSkeleton]')", timeout=60_000)
        return self.page

    def memory(self) -> dict[str, float]:
        """What the page holds once its garbage is collected: bytes of the heap, and the numbers of nodes and listeners."""
        session = self.context.new_cdp_session(self.page)
        for _ in range(2):
            session.send("HeapProfiler.collectGarbage")
        counters = session.send("Memory.getDOMCounters")
        heap = session.send("Runtime.getHeapUsage")["usedSize"]
        session.detach()
        return {"heap": heap, "nodes": counters["nodes"], "listeners": counters["jsEventListeners"]}

    def wrong(self) -> list[str]:
        """Everything that went wrong so far: exceptions on the page, failed or foreign requests, tracebacks in the log."""
        shown = [f"exception on the page: {box.inner_text()}" for box in self.page.get_by_test_id("stException").all()]
        log = self.server.log.read_text(errors="replace")
        return [*self.troubles, *shown, *([f"the server's log:\n{log}"] if "Traceback" in log else [])]


@contextlib.contextmanager
def visiting(browser: Browser, server: Server, **look: Any) -> Iterator[Visit]:
    """A visit, `look` as in `Visit.begin`, that fails in the end if anything went wrong on the way."""
    visit = Visit.begin(browser, server, **look)
    yield visit
    wrong = visit.wrong()
    visit.context.close()
    assert not wrong, "\n".join(wrong)


def check_on_a_phone(browser: Browser, server: Server, path: str, **query: object) -> None:
    """Open a page on a screen 390 pixels wide: nothing sticks out, nothing goes wrong."""
    with visiting(browser, server, width=390, height=844) as visit:
        page = visit.open(path, **query)
        page.wait_for_timeout(500)
        assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 390
