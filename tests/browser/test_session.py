"""The session of a visitor: the runs of a page that it asks for."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from gptviz.runs import checkpoints
from gptviz.text import CharTokenizer
from gptviz.ui.shell.frame import DEFAULT_MODEL
from tests.browser.machinery import Server, Visit, serve, visiting
from tests.tiny import scrambled, tiny

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


def test_a_run_of_a_page_begins_when_the_one_before_has_ended(browser: Browser, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    with serve(tmp_path, script) as running, visiting(browser, running) as visit:
        page = visit.open("")
        page.get_by_role("button", name="one").click()
        expect(page.get_by_text("['one'] begun")).to_be_visible()
        page.get_by_role("button", name="two").click()
        expect(page.get_by_text("1 at once")).to_be_visible()


def test_a_model_that_is_deleted_elsewhere_is_named_no_more_above_the_numbers_of_another(server: Server, visit: Visit) -> None:
    tokenizer = CharTokenizer("the quick brown fox\njumps over the lazy dog.")
    root = server.checkpoints
    folder = checkpoints.save("soon-gone", scrambled(tiny(vocab_size=tokenizer.vocab_size, n_layer=3)), tokenizer, {}, root=root)
    page = visit.open("lens", model="soon-gone", prompt="the fox")
    model = page.get_by_role("combobox", name=re.compile("^Model"))
    expect(model).to_have_value("soon-gone")
    shutil.rmtree(folder)
    page.get_by_role("textbox", name="Prompt").fill("the dog")
    page.get_by_role("textbox", name="Prompt").press("Control+Enter")
    visit.settle()
    expect(page.get_by_text("There is no model “soon-gone” any more")).to_be_visible()
    expect(model).to_have_value(DEFAULT_MODEL)
