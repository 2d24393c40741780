"""A server of the app and a browser that watches it: what the browser tests, the benchmarks and the
screenshots share.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlparse

from playwright.sync_api import (
    Browser,
    BrowserContext,
    FloatRect,
    Locator,
    Page,
    Request,
    Response,
    WebSocket,
    sync_playwright,
)
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from gptviz.ui.menu import PAGES as RECORDS
from tests.browser.chromium import installed
from tests.waiting import app_answers, on_a_free_port

ROOT = Path(__file__).resolve().parents[2]
# The pages by what their address has after the server's: Home has nothing.
PAGES = tuple("" if name == "home" else name for name in RECORDS)
# A prompt whose tokens are long words.
WORDS = (
    "the astronomers considered whether extraordinarily complicated instruments were necessary "
    "for their observations"
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
# A deep link makes Streamlit look for its own endpoints below the page first; it then finds them at
# the root.
ALLOWED_MISSES = ("/_stcore/health", "/_stcore/host-config")
# How long, in seconds, a page or a server may take on a machine that does other work beside the
# tests.
PATIENCE = 150
# Chromium finds no other host. (A handler that decides about every request, `context.route`, would
# turn its cache off.)
THIS_MACHINE_ALONE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
# What Chromium does not do. It would parse each script beside the page as it arrives, although it
# has it compiled already: a tenth of the time of all tests. The others are those that Playwright
# turns off, so far as a page notices them: of two such lists Chromium takes the last one.
TURNED_OFF = (
    "ScriptStreaming",
    *(
        "AvoidUnnecessaryBeforeUnloadCheckSync",
        "DestroyProfileOnBrowserClose",
        "HttpsFirstBalancedModeAutoEnable",
    ),
    *(
        "HttpsUpgrades",
        "MediaRouter",
        "NetworkTimeServiceQuerying",
        "OptimizationHints",
        "PaintHolding",
    ),
    "ThirdPartyStoragePartitioning",
)


@dataclass
class Server:
    """A running app.

    Attributes:
        url: where it answers.
        log: the file its output goes to.
        pid: the number of its process.
        contexts: a browser profile for every look (width, height and colour scheme) that a visit
            has had so far. The next visit of the same look finds the app's scripts in its cache. An
            idle page stays open in each: the process that draws the pages of a site ends with the
            last of them, and the next visit would have to compile all scripts again, which takes a
            quarter of its time.
        left: the visits that a test has left with the app loaded, for the next one that takes
            `going_on`.
    """

    url: str
    log: Path
    pid: int
    contexts: dict[tuple[Browser, str], BrowserContext] = field(default_factory=dict)
    left: list[Visit] = field(default_factory=list)

    @property
    def checkpoints(self) -> Path:
        """The folder of the models in its home: what a test saves there is among its models at
        once.
        """
        return self.log.parent / "home" / "checkpoints"


@contextlib.contextmanager
def serve(folder: Path, script: Path = ROOT / "app.py") -> Iterator[Server]:
    """The app on a free port of this machine, with a home of its own in `folder`."""
    log = folder / "server.log"
    process, url = started(log, script)
    server = Server(url, log, process.pid)
    try:
        yield server
    finally:
        process.kill()
        process.wait()
        for (browser, _), context in server.contexts.items():
            if browser.is_connected():
                context.close()


def started(log: Path, script: Path) -> tuple[subprocess.Popen[bytes], str]:
    """A server that answers, and its address."""
    # The page "Open a model" looks for models where other programs keep them: not for those of this
    # machine's user.
    user = log.parent / "user"
    elsewhere = {"HOME": str(user), "HF_HOME": str(user / "huggingface"), "HF_HUB_OFFLINE": "1"}
    environment = {**os.environ, **elsewhere, "GPTVIZ_HOME": str(log.parent / "home")}

    def start(port: int) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-m",
            "streamlit",
            "run",
            str(script),
            f"--server.port={port}",
            "--server.headless=true",
        ]
        with log.open("w") as output:
            return subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
            )

    process, port = on_a_free_port(start, partial(app_answers, log))
    return process, f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser that reaches this machine alone."""
    where = installed()
    assert where is not None, "no browser: run 'make browser'"
    with sync_playwright() as playwright:
        # Letters without hinting have the same width in every browser, so what fits on a screen
        # does so in all of them. One process draws all pages that a profile shows of a site, and
        # keeps the scripts that it has compiled.
        flags = ["--no-sandbox", "--disable-background-networking", "--font-render-hinting=none"]
        flags += ["--process-per-site", "--js-flags=--no-flush-bytecode"]
        flags += [f"--disable-features={','.join(TURNED_OFF)}", THIS_MACHINE_ALONE]
        browser = playwright.chromium.launch(executable_path=where, args=flags)
        yield browser
        browser.close()


def record_troubles(page: Page, home: str, troubles: list[str]) -> None:
    """Write down every request of `page` that goes to another host than `home`, and every error of
    its scripts.
    """

    def inspect(url: str) -> None:
        address = urlparse(url)
        if address.scheme in ("http", "https", "ws", "wss") and address.netloc != home:
            troubles.append(f"request to another host: {url}")

    page.on("request", lambda request: inspect(request.url))
    page.on("websocket", lambda opened: inspect(opened.url))
    page.on("pageerror", lambda error: troubles.append(f"page error: {error}"))


class Answered:
    """Whether the server has answered everything that a page has asked of it: a run of the script
    for every request.

    Requests of a fragment that runs by the clock do not count: they go on for ever, and one after
    the other without a pause where the machine is so busy that a run takes longer than the time
    between two.
    """

    def __init__(self, page: Page) -> None:
        self.asked = self.running = self.by_clock = False
        page.on("request", self._loads)
        page.on("websocket", self._connects)

    @property
    def everything(self) -> bool:
        """Whether nothing is asked that has not been answered."""
        return not self.asked and not self.running

    def _loads(self, request: Request) -> None:
        """A page that is loaded asks for a run as soon as it is connected."""
        if request.is_navigation_request() and request.frame.parent_frame is None:
            self.asked = True
            self.running = False

    def _connects(self, connection: WebSocket) -> None:
        connection.on("framesent", self._sent)
        connection.on("framereceived", self._received)

    def _sent(self, message: bytes | str) -> None:
        if isinstance(message, bytes):
            request = BackMsg.FromString(message)
            if (
                request.WhichOneof("type") == "rerun_script"
                and not request.rerun_script.is_auto_rerun
            ):
                self.asked = True

    def _received(self, message: bytes | str) -> None:
        if isinstance(message, str):
            return
        answer = ForwardMsg.FromString(message)
        match answer.WhichOneof("type"):
            case "new_session":
                self.by_clock = not self.asked and not self.running
                self.asked = False
                self.running = not self.by_clock
            case "script_finished":
                self.by_clock = False
                self.running = answer.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN


# What has been clicked is drawn and sent once the browser has come to its next frames.
FRAMES = (
    "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => "
    "setTimeout(done))))"
)
STANDS = """(byClock) => (byClock || !!document.querySelector('[data-testid=stApp][data-test-script-state=notRunning]'))
    && !document.querySelector('[data-testid=stSkeleton]')"""
DRAWN = """() => {
    const inSight = (selector) => [...document.querySelectorAll(selector)].filter((one) => one.checkVisibility());
    const hosts = [...document.querySelectorAll('*')].filter((one) => one.shadowRoot && one.checkVisibility());
    const views = hosts.map((one) => one.shadowRoot.querySelector('.root')).filter((root) => root);
    return inSight('[data-testid=stPlotlyChart]').every((chart) => chart.querySelector('.main-svg'))
        && inSight('[data-testid=stDataFrame]').every((table) => table.querySelector('canvas'))
        && views.every((root) => root.childElementCount > 0);
}"""


# The page's own `pushState` joins steps (components/page_helpers).
GO = """(address) => {
    History.prototype.pushState.call(history, {}, '', address);
    dispatchEvent(new PopStateEvent('popstate', { state: {} }));
}"""

CUT = """() => [...document.querySelectorAll('[data-testid=stMain] :is([role=radiogroup], [data-testid=stPageLink] span)')]
    .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent)"""

# Rows and columns of a fixed height that have not enough of it: they are cut, and take the wheel
# from the page.
TOO_LOW = """() => [...document.querySelectorAll('[data-testid=stMain] :is(.stVerticalBlock, .stHorizontalBlock)')]
    .filter((one) => one.checkVisibility() && getComputedStyle(one).overflowY !== 'visible'
        && one.scrollHeight > one.clientHeight + 1).map((one) => one.textContent)"""


@dataclass
class Visit:
    """One browser looking at the app, and everything that went wrong on the way.

    Attributes:
        fresh: whether the browser's profile is of this visit alone.
        seen_log: how many bytes of the server's log were written before the visit.
        troubles: what went wrong.
        sent: the size of every message the page has sent to the server so far: a view that answers
            by itself adds none.
    """

    server: Server
    context: BrowserContext
    page: Page
    fresh: bool
    seen_log: int
    troubles: list[str] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        record_troubles(self.page, urlparse(self.server.url).netloc, self.troubles)
        self.answered = Answered(self.page)
        self.page.on("response", self._response)
        self.page.on(
            "websocket",
            lambda socket: socket.on("framesent", lambda message: self.sent.append(len(message))),
        )

    @classmethod
    def begin(
        cls,
        browser: Browser,
        server: Server,
        *,
        dark: bool = False,
        width: int = 1280,
        height: int = 720,
        fresh: bool = False,
    ) -> Visit:
        """A page of the given size and colour scheme.

        Visits of the same look use the same browser profile one after the other, emptied but for
        its cache. Where one is still going on, or `fresh` asks for it (as a test of memory does),
        the visit gets a profile of its own: another browser.
        """
        look = {
            "viewport": {"width": width, "height": height},
            "color_scheme": "dark" if dark else "light",
        }
        place = browser, f"{width} × {height}, {look['color_scheme']}"
        context = server.contexts.get(place)
        # Pages of no visit: the idle one, and those that wait for the next test.
        waiting = 1 + sum(one.context is context for one in server.left)
        fresh = fresh or (context is not None and len(context.pages) > waiting)
        if context is None or fresh:
            context = browser.new_context(**look)  # type: ignore[arg-type]
            if not fresh:
                server.contexts[place] = context
                context.new_page().goto(f"{server.url}/_stcore/health")
        page = context.new_page()
        page.set_default_timeout(1_000 * PATIENCE)
        session = context.new_cdp_session(page)
        session.send(
            "Storage.clearDataForOrigin",
            {"origin": server.url, "storageTypes": "cookies,local_storage,indexeddb"},
        )
        session.detach()
        return cls(server, context, page, fresh, server.log.stat().st_size)

    def close(self) -> None:
        """Leave the app."""
        if self.fresh:
            self.context.close()
        else:
            self.page.close()

    def _response(self, response: Response) -> None:
        if response.status >= 400 and not response.url.endswith(ALLOWED_MISSES):
            self.troubles.append(f"{response.status} for {response.url}")

    def open(self, path: str = "", **query: object) -> Page:
        """Go to a page by its address and wait until it stands."""
        self.page.goto(self._address(path, query))
        return self.settle()

    def go(self, path: str = "", **query: object) -> Page:
        """Go to a page by its address as the Back button does: without loading the app again, which
        takes most of the time.

        Where the page is open already its views would keep what they show: it is left first.
        """
        if not self.page.url.startswith(self.server.url):
            return self.open(path, **query)
        if urlparse(self.page.url).path == f"/{path}":
            self.page.evaluate(GO, self._address("lessons" if path != "lessons" else "", {}))
            self.settle()
        self.page.evaluate(GO, self._address(path, query))
        return self.settle()

    def _address(self, path: str, query: dict[str, object]) -> str:
        return f"{self.server.url}/{path}" + (f"?{urlencode(query)}" if query else "")

    def settle(self) -> Page:
        """Wait until the server has answered everything that was asked of it, and what it sent is
        drawn.
        """
        deadline = time.monotonic() + 2 * PATIENCE
        self.page.evaluate(FRAMES)
        # What is drawn may ask for another run: it is over when nothing is asked before and after
        # the next frames.
        while not (self._stands() and self.page.evaluate(FRAMES) is None and self._stands()):
            assert time.monotonic() < deadline, (
                "the script did not come to its end, or what it sent was not drawn"
            )
            self.page.wait_for_timeout(25)
        return self.page

    def _stands(self) -> bool:
        return (
            self.answered.everything and self.page.evaluate(STANDS, self.answered.by_clock) is True
        )

    def drawn(self) -> Page:
        """Wait until charts, tables and views made by hand that are in sight have something in
        them.
        """
        self.settle()
        self.page.wait_for_function(DRAWN, timeout=1_000 * PATIENCE, polling=50)
        self.page.evaluate(FRAMES)
        return self.page

    def wrong(self) -> list[str]:
        """Everything that went wrong so far: exceptions on the page, failed or foreign requests,
        tracebacks in the log.
        """
        shown = [
            f"exception on the page: {box.inner_text()}"
            for box in self.page.get_by_test_id("stException").all()
        ]
        with self.server.log.open("rb") as file:
            file.seek(self.seen_log)
            log = file.read().decode(errors="replace")
        return [
            *self.troubles,
            *shown,
            *([f"the server's log:\n{log}"] if "Traceback" in log else []),
        ]


def memory(page: Page) -> dict[str, float]:
    """What a page holds once its garbage is collected: bytes of the heap, and the numbers of nodes
    and listeners.
    """
    session = page.context.new_cdp_session(page)
    for _ in range(2):
        session.send("HeapProfiler.collectGarbage")
    counters = session.send("Memory.getDOMCounters")
    heap = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return {"heap": heap, "nodes": counters["nodes"], "listeners": counters["jsEventListeners"]}


@contextlib.contextmanager
def visiting(browser: Browser, server: Server, **look: Any) -> Iterator[Visit]:
    """A visit, `look` as in `Visit.begin`, that fails in the end if anything went wrong on the
    way.
    """
    visit = Visit.begin(browser, server, **look)
    try:
        yield visit
        wrong = visit.wrong()
    finally:
        visit.close()
    assert not wrong, "\n".join(wrong)


@contextlib.contextmanager
def going_on(browser: Browser, server: Server) -> Iterator[Visit]:
    """A visit that goes on (`Visit.go`) where another one has ended, and that fails in the end as
    `visiting` does.

    For tests that ask of a page what its address says, and nothing of a session that begins with
    them. Window and colours are as usual when it begins.
    """
    visit = server.left.pop() if server.left else Visit.begin(browser, server)
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    visit.page.emulate_media(color_scheme="light")
    visit.page.mouse.move(0, 0)
    visit.seen_log = server.log.stat().st_size
    try:
        yield visit
        assert not (wrong := visit.wrong()), "\n".join(wrong)
    except BaseException:
        visit.close()
        raise
    server.left.append(visit)


def check_width(page: Page) -> None:
    """Nothing on the page is wider than a phone's screen of 390 pixels, and no choices side by
    side, links and rows are cut.
    """
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 390
    assert page.evaluate(CUT) == []
    assert page.evaluate(TOO_LOW) == []


def box_of(one: Locator) -> FloatRect:
    """Where an element lies on the page, which must be in sight."""
    box = one.bounding_box()
    assert box is not None
    return box
