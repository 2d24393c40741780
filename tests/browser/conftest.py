"""One browser and one server for the browser tests, and a visit each that fails if anything went
wrong on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from gptviz.runs import checkpoints
from gptviz.text import WordTokenizer
from tests.browser.machinery import (
    PATIENCE,
    WORDS,
    Server,
    Visit,
    chromium,
    going_on,
    serve,
    visiting,
)
from tests.browser.mounting import Mounted, mounting
from tests.tiny import scrambled, tiny

expect.set_options(timeout=1_000 * PATIENCE)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serve(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="session")
def deep(server: Server) -> Server:
    """The server, with a model of words and of 12 blocks in its home: "deep", which reads `WORDS`,
    as one that
    was trained on chats.
    """
    tokenizer = WordTokenizer(WORDS.split())
    model = scrambled(tiny(vocab_size=tokenizer.vocab_size, n_layer=12, context_length=32), std=0.1)
    card = {"chat": {"template": "{{ messages[0]['content'] }}!", "tokens": {}}}
    checkpoints.save("deep", model, tokenizer, card, root=server.checkpoints)
    return server


@pytest.fixture
def cold_server(tmp_path: Path) -> Iterator[Server]:
    with serve(tmp_path) as running:
        yield running


@pytest.fixture
def visit(browser: Browser, server: Server) -> Iterator[Visit]:
    with visiting(browser, server) as begun:
        yield begun


@pytest.fixture
def standing(browser: Browser, server: Server) -> Iterator[Visit]:
    """A visit that goes on where another test has left: the app is loaded once, so `go` takes a
    third of the time of `open`.
    """
    with going_on(browser, server) as visit:
        yield visit


@pytest.fixture(scope="session")
def idle(browser: Browser) -> list[Mounted]:
    """Pages that no test uses now."""
    return []


@pytest.fixture
def mounted(browser: Browser, idle: list[Mounted]) -> Iterator[Callable[..., Mounted]]:
    """Shows a view made by hand on a page of its own, without Streamlit, from a payload packed in
    Python.

    `mounted("generation_tree", payload, dark=False, width=1280, height=720, **query)`: the name of
    the view's folder in `gptviz/components`, the bytes that its module packs (`kit.pack`), the
    look, and what the page's address says after its "?" (`head=2`). What comes back has

    - `page`: Playwright's page; locators reach into the view's shadow root, and `page.url` shows
      what the view wrote there;
    - `sent`: what the view has sent to the server: `Message(way, name, value)`, `way` being
      "trigger" or "state";
    - `show(payload)`: another payload for the same view, as a new run of the script brings it;
    - `replace()`: the view is taken away; the next `show` puts a new one in its place;
    - `troubles`: what went wrong. Errors of scripts and requests to other hosts fail the test in
      the end.

    The page showed views to other tests before. A test of memory, or one that changes what a page
    keeps when it is loaded anew (its clock, the density of its pixels), asks for a new one:
    `alone=True`.

    The theme's variables and the shadow root are as in the app (`test_machinery.py` compares them).
    This is where anything belongs that leads from a payload to the screen: numbers, keyboard,
    files, hostile text, widths, light and dark. What takes a server (a link, a new run, a click
    that asks for tensors, a reload) is tested with `standing`, or with `visit` where it needs a
    session of its own.
    """
    with mounting(browser, idle) as show:
        yield show
