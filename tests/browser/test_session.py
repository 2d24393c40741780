"""The session of a visitor: the runs of a page that it asks for."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.machinery import serve, visiting

pytestmark = [pytest.mark.browser, pytest.mark.full]

# Between "begun" and the end of the pause nothing is drawn, so nothing could interrupt this run.
SCRIPT = """
import threading, time
import streamlit as st
now = sum(thread.name == "ScriptRunner.scriptThread" for thread in threading.enumerate())
pressed = [name for name in ("one", "two") if st.button(name)]
st.text(f"{pressed} begun")
if pressed == ["one"]:
    time.sleep(1)
elif pressed:
    st.text(f"{now} at once")
"""


def test_a_run_of_a_page_begins_when_the_one_before_has_ended(
    browser: Browser, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    with serve(tmp_path, script) as running, visiting(browser, running) as visit:
        page = visit.open("")
        page.get_by_role("button", name="one").click()
        expect(page.get_by_text("['one'] begun")).to_be_visible()
        page.get_by_role("button", name="two").click()
        expect(page.get_by_text("1 at once")).to_be_visible()
