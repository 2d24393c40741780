"""The server's log: whatever an error quotes, every line of the log is the server's own."""

from __future__ import annotations

import io
import logging
import threading
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gptviz.machine import terminal
from gptviz.ui.shell.around import next_step, server_log
from tests.app.opening import opened

FORGED = (
    "x\r\n2026-01-01 00:00:00 FORGED\x1b[2J\x1b]0;FORGED\x07\u202eFORGED\u2028FORGED\nTraceback"
)
FORM = "%(levelname)s %(name)s: %(message)s"


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """The text that a handler writes, set up as Streamlit does, while the log is protected."""
    usual = logging.getLogRecordFactory(), threading.excepthook
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter(FORM))
    names = ("tests.log", "streamlit.error_util", "gptviz")
    for name in names:
        logging.getLogger(name).addHandler(handler)
    server_log.protect()
    yield stream
    for name in names:
        logging.getLogger(name).removeHandler(handler)
    logging.setLogRecordFactory(usual[0])
    threading.excepthook = usual[1]


def check(log: str) -> None:
    lines = log.split("\n")
    assert not [line for line in lines if line.lstrip(" |").startswith(("2026-01-01", "FORGED"))]
    assert not [line for line in lines if terminal.escape_text(line) != line]


def test_a_message_that_quotes_a_visitor_is_one_line(written: io.StringIO) -> None:
    logging.getLogger("tests.log").error("not understood: %s", FORGED)
    logging.getLogger("tests.log").error(FORGED)
    check(written.getvalue())
    assert written.getvalue().count("\n") == 2
    assert r"FORGED\x1b[2J" in written.getvalue()


def test_errors_that_caused_others_and_groups_of_them_say_their_texts_in_one_line_each(
    written: io.StringIO,
) -> None:
    try:
        try:
            raise KeyError(FORGED)
        except KeyError:
            raise ExceptionGroup(
                FORGED, [ValueError(FORGED), type(FORGED.split()[0], (OSError,), {})(FORGED)]
            ) from None
    except ExceptionGroup as group:
        second = RuntimeError(FORGED)
        second.__cause__ = group
        logging.getLogger("tests.log").error("it failed", exc_info=second)
    log = written.getvalue()
    check(log)
    assert log.startswith("ERROR tests.log: it failed\n")
    assert "Traceback (most recent call last)" in log
    # Where it happened is read as usual: a line for the file, and one for its code.
    assert "test_server_log.py" in log
    assert "    raise ExceptionGroup(" in log
    assert log.count("FORGED\\x1b[2J") == 4


def test_a_note_of_an_error_stays_in_its_line(written: io.StringIO) -> None:
    first = ValueError("x")
    member = KeyError("y")
    for one in (first, member):
        one.add_note(f'File "{FORGED}')
    group = ExceptionGroup("both", [member])
    group.add_note(FORGED)
    first.__context__ = group
    logging.getLogger("tests.log").error("it failed", exc_info=first)
    check(written.getvalue())
    assert written.getvalue().count("FORGED\\x1b[2J") == 3


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.text(st.characters(codec=None)))
def test_any_text_stays_within_the_line_that_quotes_it(written: io.StringIO, text: str) -> None:
    written.truncate(0)
    written.seek(0)
    logging.getLogger("tests.log").error("failed: %s", text, exc_info=ValueError(text))
    lines = written.getvalue().removesuffix("\n").split("\n")
    assert len(lines) == 2
    assert not [
        each
        for line in lines
        for each in line
        if unicodedata.category(each) in ("Cc", "Zl", "Zp") and each != "\t"
    ]


def test_what_ends_a_thread_is_logged(written: io.StringIO) -> None:
    def fail() -> None:
        raise ValueError(FORGED)

    thread = threading.Thread(target=fail, name=FORGED)
    thread.start()
    thread.join()
    check(written.getvalue())
    assert written.getvalue().startswith(r"ERROR gptviz: The thread x\r\n2026-01-01")
    assert "ValueError: x" in written.getvalue()


def test_every_page_protects_the_log_from_what_its_address_says(
    written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError(f"no such thing as {FORGED}")

    logging.setLogRecordFactory(logging.LogRecord)
    monkeypatch.setattr(next_step.frame, "shared_state", fail)
    # as on any page that fails in a test (see conftest)
    with pytest.raises(AssertionError, match="encountered an error"):
        opened("pages/costs.py", model="ladder-0", prompt=FORGED)
    assert "ValueError: no such thing as x" in written.getvalue()
    check(written.getvalue())
