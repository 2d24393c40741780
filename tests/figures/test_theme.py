"""Colours that stand in two languages are the same in both."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from gptviz.figures.curves import COLOURS
from gptviz.figures.theme import DARK, LIGHT, Theme

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("name", "theme"), [("light", LIGHT), ("dark", DARK)])
def test_figures_and_streamlit_have_one_theme(name: str, theme: Theme) -> None:
    with (ROOT / ".streamlit/config.toml").open("rb") as file:
        look = tomllib.load(file)["theme"][name]
    assert (look["backgroundColor"], look["textColor"], look["borderColor"]) == (theme.background, theme.text, theme.faint)


def test_the_heads_of_the_explorer_have_the_colours_of_runs() -> None:
    scripts = "".join(file.read_text() for file in (ROOT / "gptviz/components/attention_explorer").glob("*.js"))
    lists = re.findall(r'\[((?:\s*"#[0-9A-F]{6}",?){2,})\s*\]', scripts)
    assert set(COLOURS) in [set(re.findall(r"#[0-9A-F]{6}", colours)) for colours in lists]
