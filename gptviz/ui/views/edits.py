"""Buttons that switch a unit of the model off and on again, for any page, and sentences on how an
edit changes a picture.
"""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from gptviz.interp.changing.edit import ZERO
from gptviz.interp.changing.unit_edits import AttentionEdit, PositionsEdit
from gptviz.interp.units.unit import Unit
from gptviz.language_model import LanguageModel
from gptviz.model.parts.positions import POSITIONS
from gptviz.ui.shell.subject import ModelKey
from gptviz.ui.shell.subject.edits import asked_edits, set_to, toggle
from gptviz.ui.shell.subject.unit_titles import said_title
from gptviz.ui.widgets import capitalise_text

__all__ = [
    "about_patterns",
    "about_positions",
    "of_attention",
    "off_or_on",
    "set_to",
    "switch",
    "toggle",
]


def _present(unit: Unit) -> str | None:
    """The edit of this unit that the address asks for, if any."""
    return next((text for text in asked_edits() if text.partition("=")[0] == unit.name), None)


def off_or_on(unit: Unit) -> None:
    """Switch `unit` off on every page; if it is edited already, remove that edit."""
    present = _present(unit)
    toggle(unit.name if present is None else present)


def switch(of: ModelKey, unit: Unit, *, key: str) -> None:
    """A button that switches `unit` off on every page, or, if it is edited already, removes that
    edit.

    Args:
        of: the model.
        unit: the head, MLP or other unit.
        key: tells the buttons of one page apart.
    """
    present = _present(unit)
    title = said_title(of, unit)
    st.button(
        f"Switch off {title}" if present is None else f"Bring back {title}",
        icon=":material/power_settings_new:" if present is None else ":material/undo:",
        key=key,
        on_click=off_or_on,
        args=(unit,),
        help=f"Replace what it computes by zero, on every page: the edit `{unit.name}`."
        if present is None
        else f"Take the edit `{present}` away: it computes what it did before, to the bit.",
    )


def of_attention(lm: LanguageModel, like: Unit) -> dict[str, str]:
    """The edits of one kind of attention of the model, by "block" or, of a head, "block.head".

    Args:
        lm: the model.
        like: an attention of this kind, in any block.
    """
    return {
        ".".join(str(at) for at in (one.unit.block, one.unit.index) if at is not None): one.text
        for one in lm.changes
        if replace(one.unit, block=like.block, index=like.index) == like
    }


def about_patterns(lm: LanguageModel) -> list[str]:
    """For each edit of an attention of the model, a sentence about a picture of its patterns."""
    return [
        f"{capitalise_text(one.unit.title)} {_of_pattern(one)}"
        for one in lm.changes
        if isinstance(one, AttentionEdit)
    ]


def _of_pattern(one: AttentionEdit) -> str:
    if one.is_of_pattern:
        return "has its pattern from an edit: it is not the softmax of its scores."
    instead = "nothing" if one.to == ZERO else "its mean over the reference text"
    return f"is switched off: its pattern is still computed and shown, but {instead} is passed on."


# Sentences about a picture of positions that are switched off or shuffled, by the quantity that the
# positions act on.
_WITHOUT = {
    "embedding": "All their vectors are 0, so that none is like another: the map stays blank.",
    "query and key": "Queries and keys are not turned: all places look alike.",
    "scores": "Nothing is added to a score, whatever the distance.",
}
_SHUFFLED = "The maps show the places in that order."
_BY_DISTANCE = (
    "What is shown by distance is as it was; two places now count as another distance apart."
)


def about_positions(lm: LanguageModel) -> list[str]:
    """For each edit of the positions of the model, a sentence about a picture of them."""
    acts_on = POSITIONS[lm.model.config.positions].acts_on
    shuffled = _BY_DISTANCE if acts_on == "scores" else _SHUFFLED
    return [
        f"{one.title}. {_WITHOUT[acts_on] if one.to == ZERO else shuffled}"
        for one in lm.changes
        if isinstance(one, PositionsEdit)
    ]
