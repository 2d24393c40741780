"""Every page that reads a prompt, with prompts that nobody has in mind: a message, and the page stays."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.opening import ROOT
from tests.waiting import PATIENCE

READERS = (
    "",
    "generate",
    "attention",
    "next_token",
    "positions",
    "embeddings",
    "classify",
    "translate",
    "lens",
    "stream",
    "attribution",
    "patching",
    "switch_off",
    "context",
    "circuit",
)
PROMPTS = ("", "🙂", "שלום עולם", "x" * 600)


def alerts(app: AppTest) -> set[str]:
    return {str(alert.value) for alert in [*app.info, *app.warning, *app.error]}


@pytest.mark.parametrize("path", READERS)
def test_an_odd_prompt_gets_a_message_and_the_page_stays(path: str) -> None:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=PATIENCE)
    if path:
        app.switch_page(f"pages/{path}.py")
    usual = alerts(app.run())
    for prompt in PROMPTS:
        app.text_area(key="prompt").set_value(prompt).run()
        assert not app.exception, prompt
        assert "?" in app.title[0].value, prompt
        if path not in ("positions", "embeddings"):  # whose pictures do not depend on the prompt
            assert alerts(app) - usual, prompt
