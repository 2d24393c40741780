"""What each head does: every head scored, and one of them in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.components.cell_grid import Cell
from gptviz.figures.kit.format import brief, fixed, percent
from gptviz.figures.kit.heat import attention_pattern
from gptviz.interp.units.head_scores import SCORES, HeadScores
from gptviz.ui.records.attention import PAGE as ATTENTION
from gptviz.ui.records.heads import DOES, READS
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import Subject, language_model, opening
from gptviz.ui.views import attention, edits, encoder_decoder, held_out
from gptviz.ui.views.contrasts import known_offers
from gptviz.ui.views.texts import in_code
from gptviz.ui.widgets import Try, capitalised, escaped, picking, show_figure, theme
from gptviz.ui.widgets.cells import show_cells
from gptviz.ui.widgets.figure import pixels

from .reads import largest_pairs
from .scores import (
    CHOSEN,
    CLEARLY,
    HELD_OUT,
    KINDS,
    MOST_SHOWN,
    HeadSetting,
    chance,
    choose,
    chosen,
    composed,
    first_score,
    known,
    losses,
    pattern,
    ranked,
    score,
    scores,
    text,
    with_losses,
)

_GRID, _TABLE = "heads grid", "heads table"
ROWS_HIGH = 340
# At most this many blocks are multiplied with each other before the reader asks for it.
FEW_BLOCKS = 12
# The state in which heads are ordered by what answers lose without them.
BY_LOSS = {"view": DOES, "over": HELD_OUT, "score": "delta_loss"}
TITLES = {
    "induction": "The induction head",
    "previous_token": "A previous-token head",
    "first_token": "A head that rests",
    "duplicate_token": "A duplicate-token head",
}
NOTICES = {
    "induction": "gives {share} of its attention to what came next the last time: see the stripe in its pattern.",
    "previous_token": "gives {share} to the token just before: see the cells beside the diagonal.",
    "first_token": "gives {share} to the first token: see the column at the left. Many heads rest there.",
    "duplicate_token": "gives {share} to earlier copies of the token that reads.",
}


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

    def cell(value: float) -> float | None:
        return None if math.isnan(value) else value

    rows = [
        {"head": f"{block}.{head}"} | {SCORES[name].title: cell(float(found.values[name][block, head])) for name in columns}
        for block, head in order
    ]
    return pd.DataFrame(rows)


def tries(subject: Subject, setting: HeadSetting) -> list[Try]:
    """The suggestions for these heads."""
    found = scores(setting)
    kinds = [offer for name in KINDS if (offer := _of_kind(setting, found, name)) is not None]
    known = known_offers(subject, BY_LOSS, lambda head: {CHOSEN: head.name})
    return [*known, *kinds[: 2 - min(len(known), 1)], *_composition(setting)]


def _of_kind(setting: HeadSetting, found: HeadScores, name: str) -> Try | None:
    if name not in known(found):
        return None
    block, head = ranked(found, name)[0]
    share = float(found.values[name][block, head])
    if share < CLEARLY:
        return None
    notice = f"Head {head} of block {block} {NOTICES[name].format(share=percent(share))}"
    return Try(TITLES[name], notice, {"view": DOES, "score": name}, {CHOSEN: setting.unit(block, head).name})


def _composition(setting: HeadSetting) -> list[Try]:
    if setting.stack == attention.CROSS or not 2 <= setting.shape[0] <= FEW_BLOCKS:
        return []
    best = largest_pairs(composed(setting.key, setting.stack, "key"), 1)
    if best.empty:
        return []
    first, usual = best.iloc[0], chance(setting.key, setting.stack)
    notice = (
        f"By its key, {_named(first.reads)} reads most of what {_named(first.writes)} writes: {first.value:.2f}, by chance "
        f"{usual:.2f}. {_together(setting, str(first.reads), str(first.writes))}"
    )
    return [Try("Who reads whom?", notice, {"view": READS, "reads": "key"})]


def _named(name: str) -> str:
    """A head in words: "2.1" is head 1 of block 2."""
    block, head = name.split(".")
    return f"head {head} of block {block}"


def _together(setting: HeadSetting, reader: str, writer: str) -> str:
    """A sentence where the two are what an induction circuit is made of."""
    found = scores(setting)
    at = [tuple(map(int, name.split("."))) for name in (reader, writer)]
    shares = [float(found.values[name][place]) for name, place in zip(("induction", "previous_token"), at, strict=True)]
    if min(np.nan_to_num(shares)) < CLEARLY:
        return "Is one of them a head of a kind that you know?"
    return (
        f"The second is a previous-token head ({percent(shares[1])}), the first an induction head ({percent(shares[0])}): "
        "together they find what came next before."
    )


def code(setting: HeadSetting, prompt: str) -> str:
    """The lines of `gptviz` that compute the scores; heads that do not read random tokens read the `prompt`."""
    lm, read = language_model(setting.key), text(setting)
    copies = setting.stack == encoder_decoder.DECODER and lm.model.config.kind != "classifier"
    begin = f"""import torch

{opening(lm, "from gptviz.interp.units.head_scores import head_scores", "from gptviz.interp.units.head_weights import copying")}
"""
    model = "lm.model.encoder" if lm.model.encoder is not None and setting.stack == encoder_decoder.ENCODER else "lm.model"
    end = ".including(copying=copying(lm.model))" if copies else ""
    if setting.held_out:
        return _code_of_held_out(setting, begin, end)
    if setting.read is None:
        scores = f"scores = head_scores({model}, lm.repeated_tokens()){end}.table()  # [block, head, score]"
        return f"{begin}{scores}{_losses_code(setting)}"
    ids, arguments = read.ids.tolist(), ""
    if read.source is not None:
        arguments += f", torch.tensor({read.source.tolist()})"
    if setting.stack == attention.CROSS:
        arguments += ", crosses=True"
    elif lm.model.encoder is None:
        arguments += ", repeats=lm.repeated_tokens()"
    scores = f"scores = head_scores({model}, ids{arguments}){end}.table()  # [block, head, score]"
    return f"{begin}ids = torch.tensor({ids})\n{scores}{_losses_code(setting, prompt)}"


def _code_of_held_out(setting: HeadSetting, begin: str, end: str) -> str:
    """The lines that score the heads over what was held out, and compute the loss without each of them."""
    return f"""{begin.replace("import head_scores", "import scores_over_texts")}texts = lm.rows(most={held_out.MOST_TOKENS})
scores = scores_over_texts(lm.model, texts, lm.repeated_tokens()){end}.table()  # [block, head, score]

from gptviz.interp.changing.ablation import Rows, loss, loss_with_each
from gptviz.interp.changing.edits import Inputs, UnitEdit
from gptviz.interp.units.unit import heads_and_mlps

{held_out.code_of_tested(setting.key)}
heads = [UnitEdit(one) for one in heads_and_mlps(lm.model.config) if one.is_head]
usual = loss(lm.model, rows)
changes = {{one.unit.name: value - usual for one, value in loss_with_each(lm.model, rows, heads)}}"""


def _losses_code(setting: HeadSetting, prompt: str | None = None) -> str:
    """The line that computes the loss without each head, of all stacks; nothing for a model that guesses no tokens."""
    if language_model(setting.key).model.config.kind == "classifier":
        return ""
    text = "" if prompt is None else f"{in_code(setting.text or prompt)}, "
    return f"\nrows = lm.heads({text}losses=True)  # with delta_loss, the loss without each head: a pass for each"
