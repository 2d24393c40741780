"""The answers of a server to requests that its pages do not make."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from gptviz.machine import terminal
from gptviz.machine.hosting import variable
from tests.hosting.starting import HOSTING, started
from tests.waiting import on_a_free_port

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the image is a Linux one")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """The port of a server that takes files of one megabyte, and the folder with its home and its
    log.
    """
    folder = tmp_path_factory.mktemp("server")
    with started(folder / "home", **{variable("uploads"): "1"}) as (_, environment):
        yield int(environment["PORT"]), folder


@pytest.fixture
def port(server: tuple[int, Path]) -> int:
    return server[0]


@contextmanager
def connected(port: int) -> Iterator[ClientConnection]:
    """A visitor, as the server sees one."""
    protocol = Subprotocol("streamlit")
    with connect(
        f"ws://127.0.0.1:{port}/_stcore/stream", subprotocols=[protocol], max_size=None
    ) as connection:
        yield connection


def visit(visitor: ClientConnection, page: str, query: str) -> str:
    """Let the visitor open a page by its address, and wait until it stands; the session's id."""
    message = BackMsg()
    session = ""
    message.rerun_script.page_name, message.rerun_script.query_string = page, query
    visitor.send(message.SerializeToString())
    while True:
        answer = ForwardMsg.FromString(visitor.recv(decode=False))
        match answer.WhichOneof("type"):
            case "new_session":
                session = answer.new_session.initialize.session_id
            case "script_finished" if (
                session and answer.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN
            ):
                return session


def status(port: int, method: str, path: str, body: bytes | None = None, **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(
            method, path, body, {name.replace("_", "-"): value for name, value in headers.items()}
        )
        return connection.getresponse().status
    finally:
        connection.close()


def handshake(port: int, origin: str) -> int:
    key = {"Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec_WebSocket_Version": "13"}
    return status(
        port,
        "GET",
        "/_stcore/stream",
        Connection="Upgrade",
        Upgrade="websocket",
        Origin=origin,
        **key,
    )


def test_only_pages_of_its_own_address_may_connect(port: int) -> None:
    assert handshake(port, f"http://127.0.0.1:{port}") == 101
    for origin in (
        "http://elsewhere.example",
        f"http://127.0.0.1.elsewhere.example:{port}",
        "null",
    ):
        assert handshake(port, origin) == 403


def token_of(port: int) -> str:
    """The token that the server gives a browser in a cookie."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/_stcore/health")
    cookie = SimpleCookie(connection.getresponse().getheader("Set-Cookie") or "")
    connection.close()
    return cookie["_streamlit_xsrf"].value


def test_a_file_is_taken_with_the_token_of_a_session_alone_and_no_larger_than_the_server_allows(
    port: int,
) -> None:
    token = token_of(port)

    def given(
        megabytes: float,
        header: str = token,
        cookie: str = token,
        name: str = "mine.csv",
        of: str = "",
    ) -> int:
        body = (
            f'--x\r\nContent-Disposition: form-data; name="f"; filename="{name}"\r\n\r\n'.encode()
        )
        body += b"x" * int(megabytes * 2**20) + b"\r\n--x--\r\n"
        headers = {
            "Content_Type": "multipart/form-data; boundary=x",
            "X_Xsrftoken": header,
            "Cookie": f"_streamlit_xsrf={cookie}",
        }
        return status(port, "PUT", f"/_stcore/upload_file/{of or session}/one", body, **headers)

    with connected(port) as visitor:
        session = visit(visitor, "", "")
        assert given(0.9) == 204
        assert given(0.1, name="../../../tmp/there") == 204, "the name is only kept"
        assert given(1.1) == 413
        assert given(0.1, header="") == 403
        assert given(0.1, cookie="") == 403
        assert given(0.1, header="x" * 40) == 403
        assert given(0.1, of="another") == 400
        assert status(port, "DELETE", f"/_stcore/upload_file/{session}/one") == 403
        assert status(port, "POST", f"/_stcore/upload_file/{session}/one", b"x") == 405


# What would look like a line of the log's own, and what a terminal that shows the log would obey.
FORGED = "x\r\n2026-01-01 00:00:00 FORGED\x1b[2J\x1b]0;FORGED\x07\u202eFORGED\u2028FORGED"


@pytest.mark.full
def test_nothing_that_a_visitor_sends_is_in_the_log_as_it_was_sent(
    server: tuple[int, Path],
) -> None:
    port, folder = server
    keys = (
        "model",
        "prompt",
        "edits",
        "step",
        "lesson",
        "lesson_step",
        "unit",
        "block",
        "box",
        "view",
        "chosen",
        "present",
    )
    query = urlencode({**dict.fromkeys(keys, FORGED), FORGED: FORGED})
    with connected(port) as visitor:
        for page in ("", "lens", "runs", FORGED):
            visit(visitor, page, query)
    for message in (b"\xff\xfe" + FORGED.encode(), FORGED):
        with connected(port) as visitor, suppress(ConnectionClosed):
            visitor.send(message)
            visit(visitor, "", "")
    assert (
        status(
            port,
            "GET",
            f"/{quote(FORGED)}?{query}",
            Referer=quote(FORGED),
            User_Agent="\x1b[2JFORGED",
        )
        < 500
    )
    assert status(port, "PUT", f"/_stcore/upload_file/{quote(FORGED)}/{quote(FORGED)}", b"x") == 403
    log = (folder / "log").read_bytes().decode()
    assert "server started" in log
    lines = log.split("\n")
    assert not [line for line in lines if line.lstrip().startswith(("2026-01-01", "FORGED"))]
    assert not [line for line in lines if terminal.escape_text(line) != line]


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/static/../gptviz/hosting.py",
        "/static/%2e%2e/%2e%2e/app.py",
        "/component/../../app.py",
        "/media/../../../etc/passwd",
        "/app.py",
        "/checkpoints/shakespeare/card.json",
        "/_stcore/bidi-components/../../../etc/passwd",
    ],
)
def test_no_path_leads_to_a_file_of_the_machine(port: int, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.putrequest("GET", path, skip_host=False)
    connection.endheaders()
    answer = connection.getresponse()
    content = answer.read().decode("utf-8", "replace")
    connection.close()
    assert "root:" not in content
    assert "require_writable" not in content
    assert "validation_loss" not in content
    assert "open_page" not in content


def test_an_address_that_is_too_long_is_refused_and_the_server_goes_on(port: int) -> None:
    assert status(port, "GET", f"/?prompt={'x' * 1_000_000}") >= 400
    assert status(port, "GET", "/_stcore/health") == 200


@pytest.mark.full
@pytest.mark.skipif(shutil.which("caddy") is None, reason="there is no Caddy here")
def test_behind_the_proxy_answers_have_the_headers_that_the_app_does_not_send(
    server: tuple[int, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # where it keeps certificates

    def start(outside: int) -> subprocess.Popen[bytes]:
        config = re.sub(
            r"^:80 ",
            f"http://127.0.0.1:{outside} ",
            (HOSTING / "Caddyfile").read_text(),
            flags=re.MULTILINE,
        )
        config = "{\n\tadmin off\n}\n" + config.replace(
            "dynamic a app 8501", f"to 127.0.0.1:{server[0]}"
        )
        assert str(outside) in config
        assert str(server[0]) in config
        (tmp_path / "Caddyfile").write_text(config)
        command = ["caddy", "run", "--config", str(tmp_path / "Caddyfile")]
        with (tmp_path / "log").open("w") as log:
            return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    proxy, outside = on_a_free_port(
        start, lambda port: status(port, "GET", "/_stcore/health") == 200
    )
    try:
        connection = http.client.HTTPConnection("127.0.0.1", outside, timeout=60)
        connection.request("GET", "/lens?prompt=x")
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        connection.close()
        assert answer.status == 200
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["content-security-policy"] == "frame-ancestors 'self'"
        assert "server" not in headers
        assert headers["set-cookie"].startswith("gptviz_replica="), (
            "each visitor comes to the same copy again"
        )
        assert handshake(outside, f"http://127.0.0.1:{outside}") == 101
        assert handshake(outside, "http://elsewhere.example") == 403
    finally:
        proxy.kill()
        proxy.wait()


def test_by_itself_the_app_answers_this_machine_alone() -> None:
    settings = (Path(__file__).resolve().parents[2] / ".streamlit" / "config.toml").read_text()
    assert 'address = "127.0.0.1"' in settings
    assert "enableXsrfProtection = true" in settings
    assert os.environ.get("STREAMLIT_SERVER_ADDRESS") is None
