"""Files from elsewhere: read within bounds, and never waited for."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.machine.bounded import n_values, parse_json, read_regular, require_regular
from tests.systems import named_pipe

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


NOT_REGULAR: dict[str, Callable[[Path], Any]] = {"a folder": Path.mkdir}
if sys.platform != "win32":  # which has no such files, or says it in its own words
    NOT_REGULAR |= {
        "a pipe": os.mkfifo,
        "a socket": lambda path: socket.socket(socket.AF_UNIX).bind(str(path)),
        "a device": lambda path: path.symlink_to("/dev/zero"),
        "symbolic links": lambda path: path.symlink_to(path),
        "No such file": lambda path: None,
    }


@pytest.mark.parametrize("kind", NOT_REGULAR)
def test_what_is_no_regular_file_is_refused_without_waiting(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    path = Path("file")
    NOT_REGULAR[kind](path)
    for read in (
        require_regular,
        lambda path: read_regular(path, 10),
        lambda path: read_regular(path, 10, cut=True),
    ):
        with pytest.raises(OSError, match=kind):
            read(path)


def test_a_pipe_that_takes_the_place_of_a_file_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named_pipe(tmp_path / "pipe")
    monkeypatch.setattr("gptviz.machine.bounded.require_regular", lambda path: None)
    with pytest.raises(OSError, match="a pipe"):
        read_regular(tmp_path / "pipe", 10)


def test_a_file_is_read_up_to_its_limit_and_a_longer_one_is_refused_or_cut(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "file", 5) == read_regular(tmp_path / "link", 6) == b"12345"
    assert read_regular(tmp_path / "file", 4, cut=True) == b"1234"
    with pytest.raises(OSError, match="longer than 4 bytes"):
        read_regular(tmp_path / "file", 4)


def counted(value: Any) -> int:
    """The values in a JSON value, by a walk through it."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(counted, inner))


@given(VALUES)
def test_json_is_read_as_python_reads_it_and_never_with_more_values_than_allowed(
    value: Any,
) -> None:
    for text in (
        json.dumps(value),
        json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"),
    ):
        assert n_values(text) >= counted(value)
        assert parse_json(text, n_values(text)) == value
        with pytest.raises(ValueError, match="values"):
            parse_json(text, n_values(text) - 1)


@given(st.lists(st.text(st.sampled_from("a\ud800\udfff\U0001f600é"), max_size=6)))
def test_half_of_a_character_is_one_that_can_be_shown_unless_all_is_wanted_exactly(
    texts: list[str],
) -> None:
    # Two halves that follow each other in JSON are one character.
    joined = [
        text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") for text in texts
    ]
    value = {"a": [*texts, dict.fromkeys(texts, 1)]}
    written = [each.encode("utf-8", "replace") for each in joined]
    for text in (
        json.dumps(value),
        json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"),
    ):
        assert parse_json(text, 100, exactly=True) == json.loads(text)
        shown = parse_json(text, 100)["a"]
        assert json.dumps(shown, ensure_ascii=False).encode()  # UTF-8 can hold it
        if isinstance(text, str):
            assert [each.replace("\ufffd", "?").encode() for each in shown[:-1]] == written


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[1", "", "\ufeff1"])
def test_json_that_cannot_be_read_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"nested too deeply|Expecting|BOM"):
        parse_json(text, 10**6)
