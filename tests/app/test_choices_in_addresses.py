"""Choices that the address has and no control of Streamlit is bound to; and who may write into the
address.
"""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

from gptviz.settings.address_values import NOTED, reject_keys
from tests.test_architecture import FILES
from tests.waiting import PATIENCE


def page() -> None:
    import streamlit as st

    from gptviz.settings.address_values import whole_number
    from gptviz.ui.widgets import addresses, controls

    def parse(asked: str) -> int:
        if asked == "13":
            raise ValueError("13 is *unlucky*")
        return int(asked)

    addresses.forget_taken()
    last = st.number_input("Last", value=9)
    chosen = controls.linked_choice(
        "place", parse, 1, values=whole_number(0, last), instead="the first"
    )
    st.text(str(chosen))
    st.button("Next", on_click=addresses.write, args=("place", str(chosen + 1)))
    st.button("None", on_click=addresses.write, args=("place", None))


def opened(last: int = 9, **query: str) -> AppTest:
    at = AppTest.from_function(page, default_timeout=PATIENCE)
    for key, value in query.items():
        at.query_params[key] = value
    at.run()
    return at.number_input[0].set_value(last).run() if last != 9 else at


def shown(at: AppTest) -> tuple[str, list[str], list[str]]:
    """The choice, the warnings, and what an export would reject."""
    query = {
        key: value if isinstance(value, str) else value[-1]
        for key, value in at.query_params.items()
    }
    return (
        at.text[0].value,
        [one.value for one in at.warning],
        [*reject_keys("page", query, at.session_state[NOTED]).values()],
    )


def test_the_address_names_the_choice_and_without_one_it_is_the_default() -> None:
    assert shown(opened(place="7")) == ("7", [], [])
    assert shown(opened()) == ("1", [], [])
    at = opened()
    at.button[0].click().run()
    assert (shown(at), at.query_params["place"]) == (("2", [], []), "2")
    at.button[1].click().run()
    assert (shown(at), "place" in at.query_params) == (("1", [], []), False)


@pytest.mark.parametrize("asked", ["10", "-1", "", "x", "<b>", "1e3"])
def test_a_choice_that_is_not_possible_is_named_and_the_default_is_shown(asked: str) -> None:
    chosen, (warning,), (refused,) = shown(opened(place=asked))
    assert chosen == "1"
    assert warning.startswith("The link asks for place = “")
    assert warning.endswith("which is not available here; showing the first.")
    assert refused == f"the page page has no place = {asked!r}; it takes a whole number from 0 to 9"


def test_the_reason_why_a_choice_is_not_possible_is_said_and_is_no_markup() -> None:
    at = opened(last=20, place="13")
    chosen, (warning,), (refused,) = shown(at)
    assert (chosen, refused) == ("1", "the page page has no place = '13': 13 is *unlucky*")
    assert r"place = “13”: 13 is \*unlucky\*." in warning


def test_a_choice_that_was_possible_for_the_text_before_is_not_warned_of() -> None:
    at = opened(place="7")
    at.number_input[0].set_value(5).run()
    assert shown(at)[:2] == ("1", [])
    at.number_input[0].set_value(7).run()
    assert shown(at)[:2] == ("7", [])


def test_one_module_alone_writes_the_address_on_the_server() -> None:
    """Beside it, a step back in the browser's history restores what Streamlit dropped, as it
    was.
    """
    writes = (
        r"query_params(?:\[[^\]]+\] = "
        r"|\.(?:pop|update|clear|from_dict|setdefault|__setitem__)\b)|del st\.query_params"
    )
    found = {
        file.name: len(re.findall(writes, file.read_text()))
        for file in FILES
        if file.name != "streamlit_internals.py"
    }
    counts = {name: number for name, number in found.items() if number}
    assert counts.keys() == {"addresses.py", "frame.py"}
    assert counts["frame.py"] == 1
