"""The view “Which head reads which”: composition, from weights alone."""

from __future__ import annotations

from typing import cast, get_args

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.figures.units import heads as figures
from gptviz.interp.units.head_weights import HeadInput
from gptviz.labelled_array import LabelledArray
from gptviz.ui.records.heads import READS
from gptviz.ui.shell.close import NOTHING, Shown
from gptviz.ui.shell.subject import language_model, opening
from gptviz.ui.views import attention, encoder_decoder
from gptviz.ui.widgets import controls, show_figure, theme
from gptviz.ui.widgets.figure import pixels
from gptviz.ui.widgets.tables import show_table

from .scores import HeadSetting, chance, composed

KINDS: tuple[str, ...] = get_args(HeadInput)
ABOUT = {
    "key": "By what it looks for in a token: what the writer left there decides whether the reader looks there.",
    "query": "By what it looks for: what the writer left at the token that reads decides where the reader looks.",
    "value": "By what it takes: what the writer left at a token is moved on by the reader.",
}
TALL = 560


def show(setting: HeadSetting) -> Shown:
    """The whole view; nothing where no head can read another one."""
    if setting.stack == attention.CROSS:
        st.info("Composition is between heads of one stack: choose the encoder or the decoder above.")
        return NOTHING
    if setting.shape[0] < 2:
        st.info("This stack has one block: no head stands behind another one, so none can read what another one wrote.")
        return NOTHING
    about = " ".join(f"{kind.capitalize()}: {ABOUT[kind][0].lower()}{ABOUT[kind][1:]}" for kind in KINDS)
    chosen = controls.select("Reads by its", KINDS, key="reads", default="key", help=about, segmented=True)
    reads = cast(HeadInput, chosen)
    values, by_chance = composed(setting.key, setting.stack, reads), chance(setting.key, setting.stack)
    best = largest_pairs(values)
    if best.empty:
        st.info(
            "No head of this stack reads what another head wrote as it wrote it: without residual connections, what stands "
            "between them replaces it."
        )
        return NOTHING
    left, right = st.columns([3, 2], gap="large")
    with left:
        first = best.iloc[0]
        show_figure(
            figures.reads(values, theme(), chance=by_chance, n_block=setting.shape[0], height=TALL),
            key="heads reads",
            alt=f"{reads} composition of all pairs of heads; the strongest: {first.reads} reads {first.writes}.",
        )
    with right:
        st.markdown("**The strongest pairs**")
        show_table(
            best.assign(beside=best["value"] - by_chance).rename(columns={"beside": "beside chance"}),
            hide_index=True,
            height=pixels(TALL - 150),
            column_config={name: st.column_config.NumberColumn(format="%.3f") for name in ("value", "beside chance")},
            alt="The pairs of heads with the strongest composition",
        )
        st.caption(
            f"Read “1.2” as head 2 of block 1. A head that is turned at random in the stream has {by_chance:.3f}: that is "
            f"1 / √{round(by_chance**-2)}, one divided by the root of the width of the stream. {ABOUT[reads]}"
        )
    return Shown(lambda: values, code(setting, reads), READS)


def largest_pairs(values: LabelledArray, most: int = 50) -> pd.DataFrame:
    """The pairs with the largest values, the largest first: reader, writer and value."""
    known = np.argwhere(~np.isnan(values.values.astype(float)))
    order = sorted(known.tolist(), key=lambda at: -float(values.values[tuple(at)]))[:most]
    names = values.axes[0].labels, values.axes[1].labels
    rows = [(names[0][i], names[1][j], float(values.values[i, j])) for i, j in order]
    return pd.DataFrame(rows, columns=["reads", "writes", "value"])


def code(setting: HeadSetting, reads: HeadInput) -> str:
    """The lines of `gptviz` that compute the composition."""
    lm = language_model(setting.key)
    model = "lm.model.encoder" if lm.model.encoder is not None and setting.stack == encoder_decoder.ENCODER else "lm.model"
    return f"""{opening(lm, "from gptviz.interp.units.head_weights import by_chance, composition")}
values = composition({model}, {reads!r})  # [head that reads, head that writes]
by_chance({model})  # what it is by chance"""
