"""Firefox and WebKit beside Chromium, as little of each as a test needs that does the same in all
three.

Firefox is driven by WebDriver BiDi, which it speaks by itself; WebKit by WebDriver, with the driver
and the small browser of WebKitGTK. Their actions are written the same way.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from websockets.sync.client import ClientConnection, connect

from tests.browser.machinery import PATIENCE, chromium
from tests.waiting import on_a_free_port

WIDTH = 1280
HEIGHT = 800
MINI_BROWSERS = "/usr/lib/*/webkit2gtk-4.*/MiniBrowser"
# A browser that is not here, and the packages of Debian that bring it.
PACKAGES = {"Firefox": "firefox-esr", "WebKit": "webkit2gtk-driver xvfb"}
KEYS = dict(
    zip(
        ("End", "Home", "ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown"),
        "\ue010\ue011\ue012\ue013\ue014\ue015",
        strict=True,
    )
)
KEYS |= {"Enter": "\ue006", "Escape": "\ue00c"}
# Writes down in `window.heard` what goes wrong in scripts, from now on.
LISTEN = """() => {
    if (window.heard) return;
    window.heard = [];
    addEventListener('error', (event) => window.heard.push(String(event.message)));
    addEventListener('unhandledrejection', (event) => window.heard.push(String(event.reason)));
    const say = console.error;
    console.error = (...all) => { window.heard.push(all.map(String).join(' ')); say(...all); };
}"""


class Driven(Protocol):
    """A browser with one page of WIDTH × HEIGHT pixels, in which LISTEN has run."""

    def open(self, address: str) -> None:
        """Begin to go there."""

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page, or of its promise."""

    def point(self, x: float, y: float, *, click: bool = False) -> None:
        """Move the pointer there, and maybe click."""

    def press(self, key: str) -> None:
        """Press a key, by the name that the browser has for it."""


class Chromium:
    def __init__(self, browser: Any) -> None:
        self.page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        self.page.add_init_script(f"({LISTEN})()")

    def open(self, address: str) -> None:
        self.page.goto(address)

    def evaluate(self, expression: str) -> Any:
        return self.page.evaluate(expression)

    def point(self, x: float, y: float, *, click: bool = False) -> None:
        self.page.mouse.move(x, y)
        if click:
            self.page.mouse.click(x, y)

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)


class Standard:
    """A browser that is told what to do in the words of WebDriver."""

    def perform(self, actions: list[dict[str, Any]]) -> None:
        raise NotImplementedError

    def point(self, x: float, y: float, *, click: bool = False) -> None:
        deeds: list[dict[str, Any]] = [{"type": "pointerMove", "x": round(x), "y": round(y)}]
        if click:
            deeds += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.perform([{"type": "pointer", "id": "pointer", "actions": deeds}])

    def press(self, key: str) -> None:
        deeds = [{"type": kind, "value": KEYS.get(key, key)} for kind in ("keyDown", "keyUp")]
        self.perform([{"type": "key", "id": "keys", "actions": deeds}])


class Firefox(Standard):
    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.sent = 0
        self.send("session.new", capabilities={})
        self.context: dict[str, str] = {}
        self.send("script.addPreloadScript", functionDeclaration=LISTEN)

    def send(self, method: str, **params: Any) -> Any:
        """The browser's answer to a command."""
        self.sent += 1
        self.connection.send(json.dumps({"id": self.sent, "method": method, "params": params}))
        while (answer := json.loads(self.connection.recv(PATIENCE))).get("id") != self.sent:
            pass
        assert answer["type"] == "success", answer
        return answer["result"]

    def open(self, address: str) -> None:
        self.context = self.send("browsingContext.create", type="tab")  # a new tab has the focus
        self.send(
            "browsingContext.setViewport",
            **self.context,
            viewport={"width": WIDTH, "height": HEIGHT},
        )
        self.send("browsingContext.navigate", **self.context, url=address, wait="interactive")

    def evaluate(self, expression: str) -> Any:
        asked = f"Promise.resolve({expression}).then((value) => JSON.stringify(value ?? null))"
        answer = self.send(
            "script.evaluate", expression=asked, target=self.context, awaitPromise=True
        )
        assert answer["type"] == "success", answer["exceptionDetails"]["text"]
        return json.loads(answer["result"]["value"])

    def perform(self, actions: list[dict[str, Any]]) -> None:
        self.send("input.performActions", **self.context, actions=actions)


class WebKit(Standard):
    def __init__(self, port: int, browser: Path) -> None:
        self.at = f"http://127.0.0.1:{port}/session"
        options = {"binary": str(browser), "args": ["--automation"]}
        asked = {"webkitgtk:browserOptions": options, "pageLoadStrategy": "none"}
        self.at += "/" + self.send("", capabilities={"alwaysMatch": asked})["sessionId"]
        self.send("/window/rect", width=WIDTH, height=HEIGHT)
        inner = self.evaluate("innerHeight")
        # a part of the window is no page
        self.send("/window/rect", width=WIDTH, height=2 * HEIGHT - inner)

    def send(self, path: str, **params: Any) -> Any:
        """The driver's answer to a command."""
        request = urllib.request.Request(
            self.at + path, json.dumps(params).encode(), {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{path}: {error.read().decode()}") from error

    def open(self, address: str) -> None:
        self.evaluate("window.heard = ['of the page before']")
        self.send("/url", url=address)
        while True:
            with suppress(RuntimeError):  # the page before has gone meanwhile
                if not self.evaluate(f"({LISTEN})() ?? window.heard.length"):
                    return

    def evaluate(self, expression: str) -> Any:
        script = (
            f"const done = arguments[0]; Promise.resolve({expression}).then((value) => done(value "
            "?? null));"
        )
        return self.send("/execute/async", script=script, args=[])

    def perform(self, actions: list[dict[str, Any]]) -> None:
        self.send("/actions", actions=actions)


@contextmanager
def a_chromium() -> Iterator[Driven]:
    with chromium() as browser:
        yield Chromium(browser)


@contextmanager
def a_firefox() -> Iterator[Driven]:
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if program is None:
        raise FileNotFoundError
    with tempfile.TemporaryDirectory() as profile:
        command = [
            program,
            "--headless",
            "--no-remote",
            "--remote-debugging-port=0",
            "--profile",
            profile,
        ]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stderr is not None
                address = next(
                    found[1]
                    for line in process.stderr
                    if (found := re.search(r"BiDi listening on (\S+)", line))
                )
                with connect(f"{address}/session", max_size=None) as connection:
                    yield Firefox(connection)
            finally:
                process.terminate()


@contextmanager
def a_webkit() -> Iterator[Driven]:
    driver = shutil.which("WebKitWebDriver")
    display = shutil.which("Xvfb")
    browser = next(Path("/").glob(MINI_BROWSERS[1:]), None)
    if driver is None or display is None or browser is None:
        raise FileNotFoundError
    screen = [display, "-displayfd", "1", "-screen", "0", "1400x1000x24", "-nolisten", "tcp"]
    with subprocess.Popen(
        screen, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as shown:
        assert shown.stdout is not None
        environment = os.environ | {"DISPLAY": f":{shown.stdout.readline().strip()}"}

        def answers(port: int) -> bool:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=5) as answer:
                return bool(json.load(answer)["value"]["ready"])

        process, port = on_a_free_port(partial(_driver, driver, environment), answers)
        try:
            yield WebKit(port, browser)
        finally:
            process.terminate()
            process.wait()
            shown.terminate()


def _driver(program: str, environment: dict[str, str], port: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([program, f"--port={port}"], env=environment, stderr=subprocess.DEVNULL)


BROWSERS: dict[str, Callable[[], Any]] = {
    "Chromium": a_chromium,
    "Firefox": a_firefox,
    "WebKit": a_webkit,
}
