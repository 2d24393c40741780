"""The view “Which head reads which”: composition, from nothing but weights."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.figures.units import heads as figures
from gptviz.interp.units.head_weights import HeadInput, by_chance
from gptviz.labelled_array import LabelledArray
from gptviz.language_model import units
from gptviz.ui.records.heads import READS
from gptviz.ui.shell.close import NOTHING, PageResult
from gptviz.ui.shell.subject import AskedAnalysis, ModelKey, Subject, ask, language_model
from gptviz.ui.views import attention, encoder_decoder
from gptviz.ui.widgets import controls, show_figure, theme
from gptviz.ui.widgets.figure import pixels
from gptviz.ui.widgets.tables import show_table

KINDS: tuple[str, ...] = get_args(HeadInput)
ABOUT = {
    "key": "By what it looks for in a token: what the writer left there decides whether the reader "
    "looks there.",
    "query": "By what it looks for: what the writer left at the token that reads decides where the "
    "reader looks.",
    "value": "By what it takes: what the writer left at a token is moved on by the reader.",
}
TALL = 560


def show(subject: Subject, stack: str) -> PageResult:
    """The whole view; nothing where no head can read another one."""
    n_block = encoder_decoder.n_blocks(subject.lm.model.config, stack)
    if stack == attention.CROSS:
        st.info(
            "Composition is between heads of one stack: choose the encoder or the decoder above."
        )
        return NOTHING
    if n_block < 2:
        st.info(
            "This stack has one block: no head stands behind another one, so none can read what "
            "another one wrote."
        )
        return NOTHING
    hint = " ".join(
        f"{kind.capitalize()}: {ABOUT[kind][0].lower()}{ABOUT[kind][1:]}" for kind in KINDS
    )
    reads = controls.select(
        "Reads by its", KINDS, key="reads", default="key", help=hint, segmented=True
    )
    asked = ask_composition(subject.key, stack, reads)
    values = asked.value
    usual = chance(subject.key, stack)
    best = largest_pairs(values)
    if best.empty:
        st.info(
            "No head of this stack reads what another head wrote as it wrote it: without residual "
            "connections, what stands "
            "between them replaces it."
        )
        return NOTHING
    left, right = st.columns([3, 2], gap="large")
    with left:
        first = best.iloc[0]
        show_figure(
            figures.reads(values, theme(), chance=usual, n_block=n_block, height=TALL),
            key="heads reads",
            alt=f"{reads} composition of all pairs of heads; the strongest: {first.reads} reads "
            f"{first.writes}.",
        )
    with right:
        st.markdown("**The strongest pairs**")
        show_table(
            best.assign(beside=best["value"] - usual).rename(columns={"beside": "beside chance"}),
            hide_index=True,
            height=pixels(TALL - 150),
            column_config={
                name: st.column_config.NumberColumn(format="%.3f")
                for name in ("value", "beside chance")
            },
            alt="The pairs of heads with the strongest composition",
        )
        st.caption(
            "Read “1.2” as head 2 of block 1. A head that is turned at random in the stream has "
            f"{usual:.3f}: that is "
            f"1 / √{round(usual**-2)}, one divided by the root of the width of the stream. "
            f"{ABOUT[reads]}"
        )
    return PageResult(
        lambda: values, asked.code("result  # [head that reads, head that writes]"), READS
    )


def ask_composition(key: ModelKey, stack: str, reads: str) -> AskedAnalysis[LabelledArray]:
    """How much each head of the stack reads of what the others write."""
    return ask(
        key, units.composition, "Multiplying the weights of the heads", reads=reads, stack=stack
    )


def chance(key: ModelKey, stack: str) -> float:
    """The composition expected by chance."""
    return by_chance(encoder_decoder.stack_of(language_model(key).model, stack))


def largest_pairs(values: LabelledArray, most: int = 50) -> pd.DataFrame:
    """The pairs with the largest values, the largest first: reader, writer and value."""
    known = np.argwhere(~np.isnan(values.values.astype(float)))
    order = sorted(known.tolist(), key=lambda at: -float(values.values[tuple(at)]))[:most]
    names = values.axes[0].labels, values.axes[1].labels
    rows = [(names[0][i], names[1][j], float(values.values[i, j])) for i, j in order]
    return pd.DataFrame(rows, columns=["reads", "writes", "value"])
