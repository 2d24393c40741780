"""“Try this”: its sentence is on the page, the prompt stays unless another is needed, and there is
a way back.
"""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from gptviz.runs import checkpoints
from gptviz.ui.menu import PAGES
from gptviz.ui.page import Page
from gptviz.ui.records.heads import READS
from gptviz.ui.widgets import tries
from tests.app.conftest import OF_KIND, with_snapshots
from tests.app.explorer import sent
from tests.app.opening import drawn, opened, says
from tests.tiny import TinyModel

SCRIPT = """
import streamlit as st
from gptviz.ui.widgets import controls
from gptviz.ui.widgets import Try, try_this

def act():
    st.session_state["lamp"] = "on"
    return lambda: st.session_state.pop("lamp")

level = controls.whole_number("Level", 0, 9, key="level", help="", default=2)
seen = {"level": level, "lamp": "off", "note": "none"}
seen |= {key: st.session_state[key] for key in ("lamp", "note") if key in st.session_state}
st.text(f"{', '.join(f'{key} {value}' for key, value in seen.items())}, place {st.query_params.get('place', 'none')}")
st.text_input("Prompt", "mine", key="prompt", bind="query-params")
offers = [
    Try("High", "Higher than before.", {"level": 8}),
    Try("Text", "Another text.", {"prompt": "theirs"}, {"place": "3"}),
    Try("Lamp", "It is lit.", act=act),
    Try("Note", "It is written down.", {"note": "new"}),
    Try("Low", "Only from a height.", {"level": 0}) if level > 5 else Try("Lower", "Lower than before.", {"level": 1}),
]
try_this(offers)
"""


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> AppTest:
    monkeypatch.setattr(tries, "MOST_SHOWN", 5)
    return AppTest.from_string(SCRIPT).run()


def test_a_page_shows_its_first_three() -> None:
    buttons = [str(button.key) for button in AppTest.from_string(SCRIPT).run().button]
    assert buttons == ["try High", "try Text", "try Lamp"]


def shown(at: AppTest) -> tuple[str, str]:
    """The text of the script, and the prompt."""
    return at.text[0].value, at.text_input(key="prompt").value


def click(at: AppTest, key: str) -> AppTest:
    return at.button(key=key).click().run()


def can_go_back(at: AppTest) -> bool:
    return any(button.key == "try back" for button in at.button)


def test_every_sentence_is_on_the_page_before_any_click(at: AppTest) -> None:
    said = [caption.value for caption in at.caption]
    assert said[:2] == ["Higher than before.", "Another text. *(with another prompt)*"]
    assert said[2:] == ["It is lit.", "It is written down.", "Lower than before."]
    assert not can_go_back(at), "there is nothing to go back to"


@pytest.mark.parametrize("title", ["High", "Text", "Lamp", "Note", "Lower"])
def test_the_way_back_leads_to_what_was_on_screen_before(at: AppTest, title: str) -> None:
    at.select_slider(key="level").set_value(4).run()
    at.text_input(key="prompt").set_value("typed").run()
    before = shown(at)
    assert shown(click(at, f"try {title}")) != before
    assert shown(click(at, "try back")) == before
    assert not can_go_back(at)


def test_several_are_taken_back_one_after_the_other(at: AppTest) -> None:
    states = [shown(at), *(shown(click(at, f"try {title}")) for title in ("High", "Text", "Lamp"))]
    assert len(set(states)) == 4
    for before in reversed(states[:-1]):
        assert shown(click(at, "try back")) == before


def test_what_is_no_longer_suggested_keeps_its_sentence_and_the_way_back(at: AppTest) -> None:
    click(click(at, "try High"), "try Low")
    assert "Only from a height." in [caption.value for caption in at.caption]
    assert at.button(key="try Low").disabled
    assert shown(click(at, "try back"))[0].startswith("level 8")


def test_what_does_not_touch_the_prompt_leaves_it_alone(at: AppTest) -> None:
    at.text_input(key="prompt").set_value("typed").run()
    assert shown(click(at, "try High"))[1] == "typed"


def test_another_page_forgets_what_was_taken(tiny_model: TinyModel) -> None:
    tiny_model()
    at = opened("pages/attention.py", model="tiny")
    assert can_go_back(click(at, "try The first token"))
    at.switch_page("pages/positions.py").run()
    assert not can_go_back(at)


def test_a_view_is_told_to_take_back_the_command_it_was_given(tiny_model: TinyModel) -> None:
    tiny_model()
    at = click(opened("pages/attention.py", model="tiny"), "try The first token")
    given = sent(at)[0]["number"]
    command = sent(click(at, "try back"))[0]
    assert command["asked"] == {"back": given}
    assert command["number"] > given


# What some pages open with here: another start than that of a suggestion, or a model with more to
# suggest.
STARTS = {
    "classify": {"view": "A file of yours"},
    "embeddings": {"token": "b"},
    "gradients": {"depth": "5", "seed": "3", "activation": "gelu"},
    "heads": {"view": READS},
    "positions": {"model": "turned"},
    "stream": {"position": "2"},
}


@pytest.mark.usefixtures("one_of_each")
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES.values() if page.group != "Your models"],
    ids=lambda page: page.name,
)
def test_every_suggestion_changes_what_is_on_screen_and_asks_for_nothing_in_vain(
    page: Page, tiny_model: TinyModel
) -> None:
    tiny_model("turned", positions="rotary", d_head=4)
    start = {"model": OF_KIND[page.kinds[0]]} | STARTS.get(page.name, {})
    with_snapshots(checkpoints.find(start["model"]))
    at = opened(page.path, **start)
    for key in [str(button.key) for button in at.button if str(button.key).startswith("try ")]:
        if not [button for button in at.button if button.key == key and not button.disabled]:
            at = opened(page.path, **start)
        before = drawn(at, "number"), says(at)
        click(at, key)
        assert (drawn(at, "number"), says(at)) != before, key
        assert not at.error, key
        assert not [one for one in at.warning if "The link asks" in one.value], key
        assert ":red-badge" not in says(at), key
