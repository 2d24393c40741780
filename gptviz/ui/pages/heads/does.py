"""The view “What each head does”: all heads as cells and as a table, and the pattern of one of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.components.cell_grid import Cell
from gptviz.figures.kit.format import brief, fixed
from gptviz.figures.kit.heat import attention_pattern
from gptviz.interp.units.head_scores import SCORES, HeadScores
from gptviz.ui.pages.attention import PAGE as ATTENTION
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import Subject
from gptviz.ui.views import attention, edits
from gptviz.ui.widgets import capitalised, escaped, picking, show_figure, theme
from gptviz.ui.widgets.cells import show_cells
from gptviz.ui.widgets.figure import pixels

from .choices import HeadSetting, choose, chosen, score
from .computed import MOST_SHOWN, first_score, known, losses, pattern, ranked, scores, text, with_losses
from .words import code

_GRID, _TABLE = "heads grid", "heads table"
ROWS_HIGH = 340


def show(subject: Subject, setting: HeadSetting, row: Any) -> None:
    """The whole view, with the control `score` in the container `row`."""
    progress = losses(setting)
    found = with_losses(setting, scores(setting))
    names = known(found)
    if not names:
        st.info("A text of one token says nothing about heads: there is nothing else to look at. Type a longer prompt above.")
        return
    for sentence in edits.about_patterns(subject.lm):
        st.caption(escaped(sentence))
    with row:
        name = score(names, first_score(setting, found))
    left, right = st.columns([6, 5], gap="large")
    with left:
        order = ranked(found, name)
        block, head = chosen(setting, order[0])
        cells(subject, setting, found, name, (block, head))
    with right:
        one(subject, setting, block, head)
    table(setting, found, name, order)
    if progress is not None:
        progress()


def cells(subject: Subject, setting: HeadSetting, found: HeadScores, name: str, at: tuple[int, int]) -> None:
    """All heads as cells, coloured by the score called `name`; a click on one chooses it."""
    kind, values = SCORES[name], found.values[name]
    highest = float(np.nanmax(np.abs(values))) or 1.0 if kind.high is None else kind.high
    lowest = -highest if kind.low is None else kind.low
    n_block, n_head = values.shape
    places = {setting.unit(block, head).name: (block, head) for block in range(n_block) for head in range(n_head)}
    best = ranked(found, name)[:3]
    listed = ", ".join(f"head {head} of block {block} ({brief(values[block, head])})" for block, head in best)

    def cell(block: int, head: int) -> Cell:
        unit, value = setting.unit(block, head), float(values[block, head])
        return Cell(unit.name, unit.title, value, fixed(value), chosen=(block, head) == at)

    show_cells(
        [(f"block {block}", [cell(block, head) for head in range(n_head)]) for block in range(n_block)],
        [f"head {head}" for head in range(n_head)],
        (lowest, highest),
        key=_GRID,
        alt=f"The score {kind.title.lower()} of every head, by block; the highest: {listed}.",
        choose=lambda one: choose(setting, *places[one]),
        says=kind.title.lower(),
        unit="",
        legend="Blue: above 0; orange: below." if lowest < 0 else "",
        hint="A click, or Enter, chooses a head; the arrow keys walk.",
        code=code(setting, subject.prompt),
        table=("head", "", kind.title.lower()),
    )
    own = "data held out" if setting.held_out else "repeated random tokens" if setting.read is None else "the text"
    read = "repeated random tokens" if name in found.on_random else own
    where = "" if name == "copying" else f", over {read}"  # copying is computed from weights, as its own words say
    missing = " No token of this text comes back." if name in found.on_random else ""
    most = ""
    if values.size > 1:
        middle = brief(float(np.nanmedian(values)))
        most = f" It is highest in {listed.split(', ')[0]}; half of the {values.size} heads have at most {middle}."
    st.caption(f"**{kind.title}**{where}.{missing} {kind.about}{most}")


def one(subject: Subject, setting: HeadSetting, block: int, head: int) -> None:
    """The pattern of one head, and the way to its page. Beside scores over other texts it is that over the prompt."""
    over_prompt = replace(setting, read=attention.stack_read(subject, setting.stack), held_out=False, text="")
    over = over_prompt if setting.held_out or setting.text else setting
    shown = pattern(over, block, head)
    name = setting.unit(block, head).title
    show_figure(
        attention_pattern(shown, theme(), title=capitalised(name), height=440),
        key="heads pattern",
        alt=f"The attention pattern of {name} over what it reads.",
    )
    count = len(text(over).rows[0])
    cut = f" The picture has the last {MOST_SHOWN} of {count:,} tokens." if count > MOST_SHOWN else ""
    which = "the first of the random texts" if over.read is None else "the text that is read" if over == setting else "the prompt"
    st.caption(f"What this head looks at, over {which}.{cut}")
    with st.container(horizontal=True, vertical_alignment="center"):
        frame.link(ATTENTION, f"Open {name} on Attention", query=attention_link(subject, over, block, head))
        edits.switch(setting.unit(block, head), key="switch head")


def attention_link(subject: Subject, setting: HeadSetting, block: int, head: int) -> dict[str, str]:
    """The address of a head on the page Attention: with the same random tokens, where these can be written as a text."""
    asked = {"block": str(block), "head": str(head)}
    if subject.kind == "encoder-decoder":
        asked["stack"] = setting.stack
    if setting.read is None:
        ids = text(setting).rows[0].tolist()
        tokenizer = subject.lm.tokenizer
        written = tokenizer.decode(ids[tokenizer.inside(ids)])
        if list(tokenizer.encode(written).ids) == ids:
            asked["prompt"] = written
    return {**frame.shared_state(), **asked}


def table(setting: HeadSetting, found: HeadScores, name: str, order: Sequence[tuple[int, int]]) -> None:
    """A row per head, the highest score first; choosing a row shows the head. A click on a title orders by another column."""
    columns = [name, *(other for other in known(found) if other != name)]
    number = st.column_config.NumberColumn
    config = {SCORES[each].title: number(format="%.3f", help=SCORES[each].about) for each in columns}
    picking.table(
        frame_of(found, columns, order),
        lambda row: choose(setting, *order[row]),
        key=_TABLE,
        height=pixels(ROWS_HIGH) if len(order) > 8 else "content",
        column_config={"head": st.column_config.TextColumn(pinned=True, help="1.2 is head 2 of block 1."), **config},
        alt="All heads, one per row, with their scores",
    )


def frame_of(found: HeadScores, columns: Sequence[str], order: Sequence[tuple[int, int]]) -> pd.DataFrame:
    """The table: each head as block and number, and its scores in these `columns`."""
    rows = [
        {"head": f"{block}.{head}"} | {SCORES[name].title: _cell(float(found.values[name][block, head])) for name in columns}
        for block, head in order
    ]
    return pd.DataFrame(rows)


def _cell(value: float) -> float | None:
    return None if math.isnan(value) else value
