"""Every page with an address that nobody wrote: whatever it says, the page opens."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import strategies as st

from gptviz.lessons.library import library
from gptviz.ui.pages import GROUPS, PAGES
from gptviz.ui.shell.around import lesson, present
from gptviz.ui.widgets import addresses
from tests.app.opening import ROOT, opened
from tests.examples import quick, tried


def keys(place: str) -> list[str]:
    """Every name that a control in this folder or file has in the address."""
    files = [ROOT / f"{place}.py", *(ROOT / place).rglob("*.py")]
    content = "\n".join(file.read_text() for file in files if file.exists())
    constants = re.findall(r'^[A-Z_, ]+ = ((?:"[a-z_]+"(?:, )?)+)$', content, re.MULTILINE)
    return sorted({*re.findall(r'key="([a-z_]+)"', content), *re.findall(r'"([a-z_]+)"', " ".join(constants))})


KEYS = keys("gptviz/ui")
VALUES = st.sampled_from(
    [
        *("", "0", "-1", "999999999999", "nan", "inf", "1e999", "1.5", "true", "last", "1,2", "-", "[]", "{}"),
        *("\x00", "\u202e", "\n", "🙂" * 50, "a" * 3_000, "kept-" + "0" * 32, "../../etc", ":red[x]", "<b>", "$x$", "%", "&="),
    ]
)
MODELS = ("ladder-2", "classifier", "seq2seq", "reversal")
ODD = {
    "no part": "blocks.99.attention.head.99",
    "no number": "nan",
    "a large number": "9" * 300,
    "a negative number": "-7",
    "another script": "١٢ שלום 语",
    "5,000 characters": "x" * 5_000,
    "1,000 edits": ",".join(f"blocks.0.mlp.neuron.{number}" for number in range(1_000)),
}


@pytest.mark.parametrize("path", [page.path for page in PAGES.values()])
@tried(2, 10, asked=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=12), model=st.sampled_from(MODELS))
def test_a_page_opens_whatever_its_address_says(path: str, asked: dict[str, str], model: str) -> None:
    page = opened(path, **{"model": model} | asked)
    assert page.title


@pytest.mark.parametrize("kind", quick(ODD, "no part"))
@pytest.mark.parametrize("name", [page.name for page in GROUPS["Take it apart"]])
def test_a_page_that_takes_a_model_apart_opens_where_all_its_address_is_odd(name: str, kind: str) -> None:
    own = keys(f"gptviz/ui/pages/{name}")
    page = opened(f"pages/{name}.py", model="ladder-4", **dict.fromkeys([*own, "edits", "edit_text", "position"], ODD[kind]))
    assert "?" in page.title[0].value
    assert page.warning or page.info or page.error, "nothing is said of the link"


LESSONS = library()
TEXTS = st.text(max_size=60) | st.from_regex(r"(\d{1,3}\.\d{1,3}[rwx]-?){0,6}")


@tried(
    50,
    1_000,
    asked=st.fixed_dictionaries(
        {},
        optional={
            lesson.LESSON: st.sampled_from(sorted(LESSONS.lessons)) | TEXTS,
            lesson.STEP: st.integers().map(str) | TEXTS,
            lesson.DONE: TEXTS,
            present.PRESENT: st.sampled_from(["1", "0", "true"]) | TEXTS,
        },
    ),
)
def test_an_address_opens_a_step_that_the_lesson_has_or_no_lesson(asked: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    session: dict[str, Any] = {}
    with monkeypatch.context() as patch:
        for module in (lesson, present, addresses):
            patch.setattr(module, "st", SimpleNamespace(query_params=dict(asked), session_state=session))
        patch.setattr(lesson, "lessons", lambda: LESSONS)
        one = lesson.opened()
        assert present.is_presenting() == (asked.get(present.PRESENT) == "1")
        assert (one is None) == (asked.get(lesson.LESSON) not in LESSONS.lessons)
        if one is None:
            return
        assert 0 <= one.step < len(one.lesson.steps)
        assert one.address.startswith("./")
        lesson.keep(one)  # what is kept in the session opens the same step
        for module in (lesson, addresses):
            patch.setattr(module, "st", SimpleNamespace(query_params={}, session_state=session))
        assert lesson.opened() == one
