"""What a server answers to requests that no page of its own makes."""

from __future__ import annotations

import http.client
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosting.starting import is_healthy, started
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the image is a Linux one")


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with started(tmp_path_factory.mktemp("server") / "home") as (_, environment):
        wait_until(lambda: is_healthy(environment))
        yield int(environment["PORT"])


def status(port: int, method: str, path: str, body: bytes | None = None, **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        return connection.getresponse().status
    finally:
        connection.close()


def handshake(port: int, origin: str) -> int:
    key = {"Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec_WebSocket_Version": "13"}
    return status(port, "GET", "/_stcore/stream", Connection="Upgrade", Upgrade="websocket", Origin=origin, **key)


def test_only_pages_of_its_own_address_may_connect(port: int) -> None:
    assert handshake(port, f"http://127.0.0.1:{port}") == 101
    for origin in ("http://elsewhere.example", f"http://127.0.0.1.elsewhere.example:{port}", "null"):
        assert handshake(port, origin) == 403


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_a_file_without_the_token_of_a_session_is_not_taken(port: int, method: str) -> None:
    for path in ("/_stcore/upload_file/session/file", "/_stcore/upload_file/../../x", "/_stcore/upload_file"):
        assert status(port, method, path, b"x" * 1_000) in (400, 403, 404, 405)


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


def test_by_itself_the_app_answers_this_machine_alone() -> None:
    settings = (Path(__file__).resolve().parents[2] / ".streamlit" / "config.toml").read_text()
    assert 'address = "127.0.0.1"' in settings
    assert "enableXsrfProtection = true" in settings
    assert os.environ.get("STREAMLIT_SERVER_ADDRESS") is None
