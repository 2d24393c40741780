"""A search for heads or neurons by the token that they write for, which leads to them."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from gptviz.figures.kit.format import format_signed
from gptviz.interp.units.by_token import WritesFor, heads_for, neurons_for
from gptviz.ui.page import Page
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import ModelKey, Subject, language_model
from gptviz.ui.shell.subject.unit_titles import said_title
from gptviz.ui.views.guesses import logits_after
from gptviz.ui.views.vocabulary import tokens
from gptviz.ui.widgets import capitalise_text, controls, in_quotes, jobs

Kind = Literal["heads", "neurons"]
NONE = "no token"
# So many of the likeliest tokens after the prompt are listed; any other one can be typed.
LISTED = 30


def by_token(subject: Subject, page: Page, kind: Kind, about: str) -> None:
    """The control `writes`, a token, and links on this `page` to what writes for it; nothing for a
    model that guesses no tokens.

    Args:
        about: what is found, as the help of the control.
    """
    if not subject.kind.continues:
        return
    names = tokens(subject.key).names
    likely = (
        (-logits_after(subject.key, subject.seen, len(subject.seen) - 1))
        .argsort(kind="stable")[:LISTED]
        .tolist()
    )
    listed = [names[i] for i in likely]
    chosen = controls.select(
        "Find by token", (NONE, *listed), key="writes", help=about, other=names.__contains__
    )
    if chosen == NONE:
        return
    with st.container(horizontal=True):
        for unit, value, reads in _find_writers(subject.key, kind, names.index(chosen)):
            if reads is None:
                where = "an activation of 1"
            else:
                where = f"reading {in_quotes(names[reads])}"
            query = {**frame.shared_state(), "unit": unit.name, "writes": chosen}
            query |= {"block": str(unit.block)} if unit.is_neuron else {}
            name = capitalise_text(said_title(subject.key, unit))
            title = f"{name}: {format_signed(value)}"
            frame.link(
                page,
                title,
                description=f"What it adds to the logit of {in_quotes(chosen)} by {where}.",
                query=query,
            )


@jobs.data("Looking through the weights", max_entries=32)
def _find_writers(key: ModelKey, kind: Kind, token: int) -> list[WritesFor]:
    return {"heads": heads_for, "neurons": neurons_for}[kind](language_model(key).model, token)
