"""What the browser tests stand on: whatever goes wrong during a visit is noticed, and a mounted
view is as it is in the app.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from gptviz.components import kit, token_strip
from tests.browser import machinery
from tests.browser.machinery import Server, Visit, serve, visiting
from tests.browser.mounting import Message, mounting, variables

pytestmark = pytest.mark.browser

SCRIPT = """
import time
import streamlit as st
st.session_state.runs = st.session_state.get("runs", 0) + 1
if st.button("Slow"):
    time.sleep(0.3)
    st.text("The slow part is done")
if st.button("Wrong", key="wrong"):
    raise ValueError("as asked for")
st.text(f"run {st.session_state.runs}")
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of a small script."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "script.py").write_text(SCRIPT)
    with serve(folder, folder / "script.py") as running:
        yield running


@pytest.mark.parametrize(
    "address", ["http://example.com/x.js", "http://93.184.215.14/x.js", "ws://example.com/x"]
)
def test_a_request_to_another_host_goes_nowhere_and_is_written_down(
    browser: Browser, small: Server, address: str
) -> None:
    visit = Visit.begin(browser, small)
    visit.open()
    failed = visit.page.evaluate(
        """(address) => address.startsWith('ws')
            ? new Promise((done) => { new WebSocket(address).onerror = () => done(true); })
            : fetch(address, { mode: 'no-cors' }).then(() => false, () => true)""",
        address,
    )
    wrong = visit.wrong()
    visit.close()
    assert failed
    assert wrong == [f"request to another host: {address}"]


@pytest.mark.parametrize(
    ("act", "trouble"),
    [
        ("setTimeout(() => { throw new Error('by the test') })", "page error: .*by the test"),
        ("fetch('/media/nowhere.js')", "404 for .*nowhere"),
        (
            "document.querySelector('.st-key-wrong button').click()",
            "exception on the page: (.|\n)*Traceback(.|\n)*as asked for",
        ),
    ],
    ids=["script", "missing file", "server"],
)
def test_an_error_of_a_script_of_the_server_or_a_missing_file_fails_its_visit_and_no_other(
    browser: Browser, small: Server, act: str, trouble: str
) -> None:
    def body() -> None:
        with visiting(browser, small) as visit:
            visit.open().evaluate(f"() => {{ {act}; }}")
            visit.settle()

    with pytest.raises(AssertionError, match=trouble):
        body()
    with visiting(browser, small) as visit:
        visit.open()


def test_a_visit_whose_body_fails_is_closed(browser: Browser, small: Server) -> None:
    with pytest.raises(ZeroDivisionError), visiting(browser, small) as visit:
        raise ZeroDivisionError
    assert visit.page.is_closed()


def test_settling_waits_for_the_answer_to_what_was_just_clicked(
    browser: Browser, small: Server
) -> None:
    with visiting(browser, small) as visit:
        page = visit.open()
        assert page.get_by_text("run 1", exact=True).count() == 1
        for run in range(2, 5):
            page.get_by_role("button", name="Slow").click()
            visit.settle()
            assert page.get_by_text("The slow part is done").count() == 1
            assert page.get_by_text(f"run {run}", exact=True).count() == 1


def test_visits_share_the_cache_and_nothing_else(browser: Browser, small: Server) -> None:
    cached = (
        "performance.getEntriesByType('resource').filter((one) => one.name.endsWith('.js') && "
        "one.transferSize === 0).length"
    )
    with visiting(browser, small) as first:
        page = first.open()
        page.evaluate("localStorage.setItem('kept', '1'); document.cookie = 'kept=1'")
        with visiting(browser, small) as other:
            assert other.context is not first.context, "two visits at once are two browsers"
    with visiting(browser, small) as second:
        page = second.open()
        assert second.context is first.context
        assert page.evaluate("localStorage.getItem('kept')") is None
        assert "kept" not in page.evaluate("document.cookie")
        assert page.evaluate(cached) > 3


@pytest.mark.full
def test_a_port_that_is_taken_is_given_up_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "script.py").write_text("")
    taken: list[socket.socket] = []
    popen = subprocess.Popen

    def late(command: list[str], **options: object) -> subprocess.Popen[bytes]:
        if not taken:
            port = next(
                int(part.split("=")[1]) for part in command if part.startswith("--server.port=")
            )
            taken.append(socket.create_server(("127.0.0.1", port)))
        return popen(command, **options)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(machinery.subprocess, "Popen", late)
    with serve(tmp_path, tmp_path / "script.py") as server:
        assert server.url.rsplit(":", 1)[1] != str(taken[0].getsockname()[1])
    taken[0].close()


SETTINGS = {
    "generation": 1,
    "kinds": {},
    "colour": "#000000",
    "selected": None,
    "picks": False,
    "label": "Tokens",
    "legend": "",
    "height": None,
    "bars": False,
    "spaced": False,
}


@pytest.mark.parametrize(
    ("act", "trouble"),
    [
        (
            "setTimeout(() => { setStateValue('failed', 1); throw new Error('by the test') })",
            "page error: .*by the test",
        ),
        (
            "fetch('http://example.com/x.js').catch(() => setStateValue('failed', 1))",
            "request to another host: http://example.com/x.js",
        ),
    ],
    ids=["error", "request"],
)
def test_a_mounted_view_that_fails_or_asks_another_host_fails_the_test(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, act: str, trouble: str
) -> None:
    monkeypatch.setattr(
        kit, "script", lambda _: f"export default ({{ setStateValue }}) => {{ {act} }};"
    )

    def body() -> None:
        with mounting(browser, []) as mounted:
            view = mounted("token_strip", b"", alone=True)
            view.page.wait_for_function("window.sent.length === 1")
            assert view.sent == [Message("state", "failed", 1)]

    with pytest.raises(AssertionError, match=trouble):
        body()


@pytest.mark.full
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_mounted_view_has_the_variables_and_the_place_that_it_has_in_the_app(
    browser: Browser, server: Server, dark: bool
) -> None:
    shown = """(names) => {
        const within = document.querySelector('[data-testid=stMain]') ?? document;  // the side bar has colours of its own
        const host = [...within.querySelectorAll('*')].find((one) => one.shadowRoot?.querySelector('.root')?.offsetHeight);
        const root = host.shadowRoot.querySelector('.root'), style = getComputedStyle(root);
        const values = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(name).trim().toLowerCase()]));
        return { ...values, color: style.color, size: style.fontSize };
    }"""
    names = list(variables(dark=dark))
    with visiting(browser, server, dark=dark) as visit:
        in_app = visit.open("next_token", prompt="ROMEO").evaluate(shown, names)
    with mounting(browser, []) as mounted:
        view = mounted("token_strip", token_strip.payload([], SETTINGS), dark=dark, alone=True)
        assert view.page.evaluate(shown, names) == in_app
