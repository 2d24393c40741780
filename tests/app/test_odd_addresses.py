"""Every page with an address that nobody wrote: whatever it says, the page opens."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import strategies as st

from gptviz.lessons.library import library
from gptviz.runs import checkpoints
from gptviz.settings.address_values import NOTED
from gptviz.ui.menu import PAGES
from gptviz.ui.page import Page
from gptviz.ui.shell.around import lesson, present
from gptviz.ui.widgets import addresses, escape_markdown
from tests.app.conftest import OF_KIND, with_snapshots
from tests.app.opening import ROOT, opened, says
from tests.examples import tried


def keys(place: str) -> list[str]:
    """Every name that a control in this folder or file has in the address."""
    files = [ROOT / f"{place}.py", *(ROOT / place).rglob("*.py")]
    content = "\n".join(file.read_text() for file in files if file.exists())
    constants = re.findall(r'^[A-Z_, ]+ = ((?:"[a-z_]+"(?:, )?)+)$', content, re.MULTILINE)
    return sorted(
        {*re.findall(r'key="([a-z_]+)"', content), *re.findall(r'"([a-z_]+)"', " ".join(constants))}
    )


KEYS = keys("gptviz/ui")
VALUES = st.sampled_from(
    [
        *(
            "",
            "0",
            "-1",
            "999999999999",
            "nan",
            "inf",
            "1e999",
            "1.5",
            "true",
            "last",
            "1,2",
            "-",
            "[]",
            "{}",
        ),
        *(
            "\x00",
            "\u202e",
            "\n",
            "🙂" * 50,
            "a" * 3_000,
            "kept-" + "0" * 32,
            "../../etc",
            ":red[x]",
            "<b>",
            "$x$",
            "%",
            "&=",
        ),
    ]
)
MODELS = ("ladder-2", "classifier", "seq2seq", "reversal")


@tried(
    13,
    80,
    path=st.sampled_from([page.path for page in PAGES.values()]),
    asked=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=40),  # a page reads few of them
    model=st.sampled_from(MODELS),
)
def test_a_page_opens_whatever_its_address_says(
    path: str, asked: dict[str, str], model: str
) -> None:
    page = opened(path, **{"model": model} | asked)
    assert page.title


ODD = {
    "markup": "[a](http://b) **c** $d$ <b>",
    "beyond": "blocks.99.attention.head.99",  # or a number, where a number is asked for
    "no number": "nan",
    "a large number": "9" * 300,
    "a negative number": "-7",
    "another script": "١٢ שלום 语",
    "5,000 characters": "x" * 5_000,
    "1,000 edits": ",".join(f"blocks.0.mlp.neuron.{number}" for number in range(1_000)),
}
# What some keys of an address depend on.
MORE_STATES = {
    "embeddings": [{"method": "t-SNE"}],
    "positions": [{"waves": "true", "table": "learned"}],
}
# How a page names what it does not take, where it does so with words of its own.
SENTENCES = {
    "chosen": "The link asks for the model “",
    "edits": "left out, and ",
    "lesson": "There is no lesson “",
}
STATES = [
    (page, state)
    for page in PAGES.values()
    for state in ({}, *page.states, *MORE_STATES.get(page.name, ()))
]
QUICK = "markup, and numbers beyond"
CASES = [
    *((page, state, [QUICK]) for page, state in STATES),
    *(pytest.param(page, state, list(ODD)[:2], marks=pytest.mark.full) for page, state in STATES),
    *(pytest.param(page, {}, list(ODD)[2:], marks=pytest.mark.full) for page in PAGES.values()),
]


@pytest.mark.usefixtures("one_of_each")
@pytest.mark.parametrize(
    ("page", "state", "kinds"), CASES, ids=lambda one: getattr(one, "name", str(one))
)
def test_every_value_that_a_page_does_not_take_is_named_as_it_is_and_the_page_stays(
    page: Page, state: dict[str, str], kinds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = OF_KIND[page.kinds[0]]
    with_snapshots(checkpoints.find(model))
    state = ({"model": model} if page.has_model else {}) | state
    by_views: set[str] = set()
    takes_all = addresses.takes_all
    monkeypatch.setattr(
        addresses, "takes_all", lambda values: (by_views.update(values), takes_all(values))
    )
    noted = {
        key: values
        for key, values in opened(page.path, **state).session_state[NOTED].items()
        if key not in state
    }
    numbers = {
        key
        for key, values in noted.items()
        if values.rule.keys() & {"whole", "real"} or all(map(str.isdecimal, values.names or "x"))
    }
    # Views say by themselves what they do not take. The form of the page Train leaves a number that
    # is none at its default.
    own = by_views | {key for key in noted if key.startswith("run_")}
    for kind in kinds:
        odd = ODD["markup" if kind == QUICK else kind]
        asked = {key: odd for key in noted if kind != "1,000 edits" or key == "edits"}
        if kind in (QUICK, "beyond"):
            asked |= dict.fromkeys(numbers, "7000000")
        at = opened(page.path, **asked, **state)
        assert at.title
        warnings = [one.value for one in at.warning]
        refused = {
            key
            for key, values in at.session_state[NOTED].items()
            if key in asked and not values.has(asked[key])
        }
        assert kind not in (QUICK, "beyond") or numbers - own <= refused
        for key in refused - own:
            named = SENTENCES.get(
                key, f"The link asks for {key} = “{escape_markdown(asked[key][:60])}"
            )
            assert [one for one in warnings if named in one], (key, warnings)
        said = [
            one.value
            for kind in (at.markdown, at.caption, at.info, at.warning, at.error)
            for one in kind
        ]
        assert not [one for one in said if ODD["markup"] in one]


HOSTILE_EDITS = {
    "refused": "blocks.0.mlp.neuron.3=1e30,blocks.0.mlp.neuron.4=1e999,blocks.0.mlp.neuron.5=-7000000",
    "largest": "blocks.0.mlp.neuron.3=100000,blocks.0.mlp.neuron.4=-100000",
}
SHOWN = [page for page in PAGES.values() if page.has_model]
ALWAYS = ("generate", "switch_off", "compare", "costs", "neurons")
EDITED = [
    pytest.param(page, state, id=f"{page.name}-{'-'.join(state.values())}", marks=marks)
    for page in SHOWN
    for state in ({}, *page.states)
    for marks in ([] if page.name in ALWAYS and not state else [pytest.mark.full],)
]


@pytest.mark.usefixtures("one_of_each")
@pytest.mark.parametrize(("page", "state"), EDITED)
def test_no_page_breaks_on_hostile_edits(page: Page, state: dict[str, str]) -> None:
    for kind, edits in HOSTILE_EDITS.items():
        asked = {"model": OF_KIND[page.kinds[0]], "edits": edits} | state
        at = opened(page.path, **asked)
        assert not at.exception, [one.value for one in at.exception]
        if kind == "refused" and asked["edits"] == edits and page.group != "Your models":
            assert "3 edits are left out" in says(at)
            assert "a number from -100,000 to 100,000" in says(at)


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
def test_an_address_opens_a_step_that_the_lesson_has_or_no_lesson(
    asked: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    session: dict[str, Any] = {}
    with monkeypatch.context() as patch:
        for module in (lesson, present, addresses):
            patch.setattr(
                module, "st", SimpleNamespace(query_params=dict(asked), session_state=session)
            )
        patch.setattr(lesson, "lessons", lambda: LESSONS)
        one = lesson.current_lesson()
        words = {"1", "yes", "true", "on", "large", "view", "view only", "view_only", "only"}
        assert present.is_presenting() == (asked.get(present.PRESENT, "").lower() in words)
        assert (one is None) == (asked.get(lesson.LESSON) not in LESSONS.lessons)
        if one is None:
            return
        assert 0 <= one.step < len(one.lesson.steps)
        assert one.address.startswith("./")
        lesson.keep(one)  # what is kept in the session opens the same step
        for module in (lesson, addresses):
            patch.setattr(module, "st", SimpleNamespace(query_params={}, session_state=session))
        assert lesson.current_lesson() == one
