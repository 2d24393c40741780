"""Every page with an address that nobody wrote: whatever it says, the page opens."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.app.opening import ROOT, opened

# Every name that a control of this page, or of what all pages share, has in the address.
KEYS = sorted({key for file in (ROOT / "gptviz/ui").rglob("*.py") for key in re.findall(r'key="([a-z_]+)"', file.read_text())})
VALUES = st.sampled_from(
    [
        *("", "0", "-1", "999999999999", "nan", "inf", "1e999", "1.5", "true", "last", "1,2", "-", "[]", "{}"),
        *("\x00", "\u202e", "\n", "🙂" * 50, "a" * 3_000, "kept-" + "0" * 32, "../../etc", ":red[x]", "<b>", "$x$", "%", "&="),
    ]
)
PAGES = ("app.py", *sorted(f"pages/{file.name}" for file in (ROOT / "pages").glob("*.py")))
MODELS = ("ladder-2", "classifier", "seq2seq", "reversal")


@pytest.mark.parametrize("path", PAGES)
def test_a_page_opens_whatever_its_address_says(path: str) -> None:
    @settings(max_examples=4)
    @given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=12), st.sampled_from(MODELS))
    def opens(asked: dict[str, str], model: str) -> None:
        page = opened(path, **{"model": model} | asked)
        assert not page.exception, asked
        assert page.title

    opens()
