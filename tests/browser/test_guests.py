"""A server for a class, with real browsers: who is its owner, and one voice for each browser."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.machinery import PATIENCE, Server, serve

pytestmark = [pytest.mark.browser, pytest.mark.full]

LESSON = "lesson=03-attention-is-an-average&lesson_step=1"


@pytest.fixture
def class_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("GPTVIZ_LAN", "1")
    with serve(tmp_path) as running:
        yield running


def pump(one: socket.socket, other: socket.socket) -> None:
    """Hand on what comes, until it ends."""
    with suppress(OSError):
        while data := one.recv(65_536):
            other.sendall(data)
    for each in (one, other):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def forwarder(to: int, **headers: str) -> str:
    """The address of a forwarder to a port of this machine. It puts these headers in the place of
    the browser's.
    """
    listening = socket.create_server(("127.0.0.1", 0))

    def serve_one(client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            if not (data := client.recv(65_536)):
                return
            head += data
        lines, _, rest = head.partition(b"\r\n\r\n")
        own = {name.replace("_", "-").lower(): value for name, value in headers.items()}
        kept = [
            line for line in lines.split(b"\r\n") if line.split(b":")[0].decode().lower() not in own
        ]
        kept += [f"{name}: {value}".encode() for name, value in own.items()]
        server = socket.create_connection(("127.0.0.1", to))
        server.sendall(b"\r\n".join(kept) + b"\r\n\r\n" + rest)
        Thread(target=pump, args=(server, client), daemon=True).start()
        pump(client, server)

    def listen() -> None:
        while True:
            client, _ = listening.accept()
            Thread(target=serve_one, args=(client,), daemon=True).start()

    Thread(target=listen, daemon=True).start()
    return f"http://127.0.0.1:{listening.getsockname()[1]}"


def only_reads(page: Page, url: str) -> bool:
    """Whether the server at this address says so on the page Train."""
    page.goto(f"{url}/train?plan=copy")
    expect(page.get_by_role("button", name="Train", exact=True)).to_be_visible()
    return "this server shows models and trains none" in page.inner_text("body")


def test_only_who_opens_this_machine_by_its_own_address_is_its_owner(
    browser: Browser, class_server: Server
) -> None:
    port = int(class_server.url.rpartition(":")[2])
    page = browser.new_page()
    page.set_default_timeout(1_000 * PATIENCE)
    assert not only_reads(page, class_server.url)
    assert not only_reads(page, f"http://localhost:{port}")
    for headers in (
        {"Host": "gptviz.school.example"},
        {"Host": "localhost:8501", "X_Forwarded_For": "127.0.0.1"},
        {"Host": "gptviz.school.example", "X_Forwarded_For": "127.0.0.1"},
    ):
        assert only_reads(page, forwarder(port, **headers)), headers
    page.close()


def answer(context: BrowserContext, url: str, option: str) -> Page:
    """A new tab in which a question was answered."""
    page = context.new_page()
    page.set_default_timeout(1_000 * PATIENCE)
    page.goto(f"{url}/?{LESSON}")
    page.get_by_text(option, exact=True).click()
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("That is right").or_(page.get_by_text("Not yet")).first).to_be_visible()
    return page


def test_tabs_and_reloads_of_a_browser_have_one_voice(
    browser: Browser, class_server: Server
) -> None:
    port = int(class_server.url.rpartition(":")[2])
    way = forwarder(port, Host="gptviz.school.example")
    pupils = browser.new_context(), browser.new_context()
    answer(pupils[0], way, "0 %")
    last = answer(pupils[0], way, "100 %")
    answer(pupils[1], way, "50 %")
    expect(last.get_by_text("Each browser has one voice").first).to_be_visible()
    teacher = answer(browser.new_context(), class_server.url, "100 %")
    expect(teacher.get_by_text("In all 2.")).to_be_visible()
    teacher.get_by_role("button", name="Show the result").click()
    for option in ("100 %", "50 %"):
        bar = teacher.locator(".class-answers li").filter(has_text=option)
        expect(bar.locator("small").first).to_have_text("1")
    late = answer(pupils[1], way, "100 %")
    expect(late.get_by_text("The result is shown already")).to_be_visible()
    for each in (*pupils, teacher.context):
        each.close()


def test_a_class_guesses_the_next_token_on_its_phones_and_sees_both_shares_once_they_are_shown(
    browser: Browser, class_server: Server
) -> None:
    way = forwarder(int(class_server.url.rpartition(":")[2]), Host="gptviz.school.example")
    teacher = browser.new_context().new_page()
    teacher.set_default_timeout(1_000 * PATIENCE)
    prompt = "When Mary and John went to the shop, John gave a book to Mary"
    teacher.goto(
        f"{class_server.url}/next_token?"
        + urlencode({"model": "sentences", "prompt": prompt, "position": 13, "asks": "True"})
    )
    expect(teacher.get_by_role("button", name="Show the result")).to_be_visible()

    def guess(context: BrowserContext, word: str) -> Page:
        page = context.new_page()
        page.set_default_timeout(1_000 * PATIENCE)
        page.goto(f"{way}/next_token?asks=True")
        box = page.get_by_role("textbox", name="What comes next?")
        box.fill(word)
        box.press("Enter")
        expect(page.get_by_text(f"Your guess: “{word}”")).to_be_visible()
        return page

    phones = [
        browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
        for _ in range(2)
    ]
    guess(phones[0], "John")
    first = guess(phones[0], "Mary")  # another tab of the same browser: its voice is changed
    guess(phones[1], "Peter")
    assert first.evaluate("document.documentElement.scrollWidth") <= 390
    expect(teacher.get_by_text("In all 2.")).to_be_visible()
    teacher.get_by_role("button", name="Show the result").click()
    for page in (teacher, first):
        expect(page.get_by_text("Next came “Mary”: class 50").first).to_be_visible()
        bars = page.locator(".class-answers li")
        expect(bars.filter(has_text="Mary ✓").locator("small").first).to_contain_text("50")
    for each in (*phones, teacher.context):
        each.close()
