"""A button that was pressed is answered, whatever stops the run of the script that was to answer
it.
"""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest


def page() -> None:
    import streamlit as st

    from gptviz.ui.widgets.buttons import forget_pressed, press_button

    stops, disabled, left = (st.checkbox(label) for label in ("stops", "disabled", "left"))
    if left:
        forget_pressed()
    if stops:
        st.stop()
    if press_button("Go", key="go", disabled=disabled):
        st.text("gone")


def answered(at: AppTest) -> int:
    return [text.value for text in at.text].count("gone")


@pytest.fixture
def at() -> AppTest:
    return AppTest.from_function(page).run()


def press_and_stop(at: AppTest) -> None:
    """Press the button in a run that is stopped before it comes to the button."""
    at.checkbox[0].check()
    at.button[0].click()
    at.run()
    assert answered(at) == 0
    assert not at.button


def test_a_button_answers_once(at: AppTest) -> None:
    assert answered(at) == 0
    assert answered(at.button[0].click().run()) == 1
    assert answered(at.run()) == 0


def test_a_run_that_is_stopped_before_it_answers_leaves_the_answer_to_the_next(at: AppTest) -> None:
    press_and_stop(at)
    assert answered(at.checkbox[0].uncheck().run()) == 1
    assert answered(at.run()) == 0


def test_what_may_no_longer_be_done_when_it_is_answered_is_not_done(at: AppTest) -> None:
    press_and_stop(at)
    at.checkbox[1].check()
    assert answered(at.checkbox[0].uncheck().run()) == 0
    assert answered(at.checkbox[1].uncheck().run()) == 0


def test_who_leaves_the_page_before_the_answer_is_not_surprised_later(at: AppTest) -> None:
    press_and_stop(at)
    at.checkbox[2].check()
    assert answered(at.checkbox[0].uncheck().run()) == 0
