"""A text is cut into lines as a file is that is read as text."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.machine.lines import lines_of

# What Unicode, or Python's own splitlines, ends a line at, but no file of lines does.
WITHIN = ("\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e")


@given(st.text(alphabet=st.sampled_from(["a", " ", "\n", "\r", *WITHIN])))
def test_lines_are_those_of_a_file_without_the_blank_ones(text: str) -> None:
    read = [line.removesuffix("\n") for line in io.StringIO(text, newline=None)]
    assert lines_of(text) == [line for line in read if line.strip()]


@pytest.mark.parametrize("sign", WITHIN)
def test_a_separator_of_unicode_stands_within_a_line(sign: str) -> None:
    assert lines_of(f"one{sign}two\r\nthree\rfour\n\n") == [f"one{sign}two", "three", "four"]
