"""What a terminal is given: whatever a model or a user writes, it shows and does not obey."""

from __future__ import annotations

import io
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from gptviz.machine.terminal import Terminal, escape_text

OBEYED = ("Cc", "Cf", "Zl", "Zp", "Cs")


@given(st.text(st.characters(codec=None)) | st.text(st.characters(categories=OBEYED)))
def test_nothing_that_a_terminal_obeys_is_left_and_everything_else_stays(text: str) -> None:
    shown = escape_text(text)
    assert not [
        each
        for each in shown
        if unicodedata.category(each) in OBEYED and each not in "\n\t\u200c\u200d"
    ]
    visible = "".join(each for each in text if unicodedata.category(each) not in OBEYED)
    assert escape_text(visible) == visible
    assert (
        "\\" in text or shown.encode("ascii", "backslashreplace").decode("unicode_escape") == text
    )


def test_letters_of_any_script_and_signs_joined_of_several_stay() -> None:
    for text in ("the end\n\tof it", "naïve Ω 語 שלום", "👩\u200d🔬 می\u200cخواهم", "e\u0301"):
        assert escape_text(text) == text
    assert escape_text("\u202eabc\x1b[2J\r\u2066\ufeff") == r"\u202eabc\x1b[2J\r\u2066\ufeff"


def test_a_stream_is_written_to_escaped_and_is_otherwise_the_same() -> None:
    inner = io.StringIO()
    stream = Terminal(inner)
    print("a\u202eb", end="", file=stream, flush=True)  # type: ignore[arg-type]
    stream.writelines(["\x07", "c"])
    assert inner.getvalue() == r"a\u202eb\x07c"
    assert stream.write("\x07") == 1
    assert stream.getvalue() == inner.getvalue()
