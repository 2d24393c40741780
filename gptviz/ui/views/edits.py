"""Buttons that switch a piece of the model off and on again, for any page, and what an edit changes of a picture in words."""

from __future__ import annotations

import streamlit as st

from gptviz.interp.edits import MEAN, PATTERNS, ZERO, edit
from gptviz.interp.units import Unit
from gptviz.language_model import LanguageModel
from gptviz.ui.shell import edits
from gptviz.ui.shell.edits import asked, set_to, take_away, toggle

__all__ = ["about_patterns", "asked", "set_to", "switch", "take_away", "toggle"]


def switch(unit: Unit, *, key: str) -> None:
    """A button that switches `unit` off on every page, or, where it is edited already, takes that edit away.

    Args:
        key: tells the buttons of one page apart.
    """
    present = next((text for text in edits.asked() if text.partition("=")[0] == unit.name), None)
    if present is None:
        st.button(
            f"Switch off {unit.title}",
            icon=":material/power_settings_new:",
            key=key,
            on_click=edits.toggle,
            args=(unit.name,),
            help=f"Replace what it computes by zero, on every page: the edit `{unit.name}`.",
        )
    else:
        st.button(
            f"Bring back {unit.title}",
            icon=":material/undo:",
            key=key,
            on_click=edits.take_away,
            args=(present,),
            help=f"Take the edit `{present}` away: it computes what it did before, to the bit.",
        )


def about_patterns(lm: LanguageModel) -> list[str]:
    """For each edit of an attention of the model, a sentence on what a picture of its patterns shows."""
    sentences = []
    for one in (edit(text, lm.model.config) for text in lm.edits):
        if one.unit.part not in ("attention", "cross_attention"):
            continue
        name = one.unit.title[0].upper() + one.unit.title[1:]
        if one.to in PATTERNS:
            sentences.append(f"{name} has its pattern from an edit: scores are computed and shown, but no softmax of them is taken.")
        elif one.to in (ZERO, MEAN):
            instead = "nothing" if one.to == ZERO else "its mean over the reference text"
            sentences.append(f"{name} is switched off: its pattern is still computed and shown, but {instead} is passed on.")
    return sentences
