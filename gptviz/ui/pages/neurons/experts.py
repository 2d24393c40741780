"""The view Experts of the page Neurons, for mixtures of experts: which ones each token passes, and
how often each is chosen.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import streamlit as st

from gptviz.figures.kit.format import format_count, percent
from gptviz.figures.units import experts as figures
from gptviz.interp.reading import experts
from gptviz.interp.units.unit import Unit
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.language_model import reading
from gptviz.ui.shell.subject import Subject, ask, edits
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.figure import show_figure, theme
from gptviz.ui.widgets.tables import show_table

# Tokens of the text that have a row: the last ones.
MOST_TOKENS = 64
HIGH = 560


def show(subject: Subject) -> tuple[Callable[[], LabelledArray], str]:
    """The view; returns its numbers, the load of every expert, and the lines of `gptviz` that
    compute them.
    """
    config = subject.lm.model.config
    asked = ask(subject, reading.experts, "Reading the text")
    weights = asked.value
    shares = experts.load(weights)
    names = weights.axes[2].labels

    # which block and which expert
    with st.container(horizontal=True, vertical_alignment="bottom"):
        block = controls.whole_number(
            "Block",
            0,
            config.n_layer - 1,
            key="block",
            default=config.n_layer // 2,
            help="The block whose experts are looked at.",
        )
        busiest = int(shares.values[block, : config.n_expert].argmax())
        expert = controls.whole_number(
            "Expert",
            0,
            len(names) - 1,
            key="expert",
            default=busiest,
            help="The expert that is framed; first the busiest one.",
        )
        unit = Unit("expert", block, expert)
        st.button(
            "Switch this expert off",
            icon=":material/toggle_off:",
            key="expert off",
            on_click=edits.set_to,
            args=(unit.name,),
            disabled=unit.name in edits.asked_edits(),
            help="On every page, until you take the edit away beside the model: what this expert "
            "adds is left out, and the "
            "weights of the others stay as they are.",
        )

    # the weights of this text at the left, how often each expert is chosen at the right
    left, right = st.columns([3, 2], gap="large")
    first = max(0, len(subject.seen) - MOST_TOKENS)
    with left:
        tokens = Axis("token", weights.axes[1].labels[first:])
        drawn = LabelledArray(
            weights.values[block, first:], (tokens, weights.axes[2]), weights.unit
        )
        show_figure(
            figures.routing(drawn, theme(), chosen=expert, height=HIGH),
            key="routing",
            alt=f"The weight of each expert of block {block} for each token.",
        )
        # How many experts of the block the text needs.
        used = int((weights.values[block, :, : config.n_expert] != 0).any(0).sum())
        if config.d_shared:
            shared = " The last column is the shared expert, which every token passes."
        else:
            shared = ""
        if first:
            cut = f" The last {MOST_TOKENS} tokens have a row."
        else:
            cut = ""
        st.caption(
            f"Each token passes {config.n_active} of the {config.n_expert} experts of block "
            f"{block} (others: blank); this text "
            f"needs {used}.{shared}{cut}"
        )
    with right:
        show_figure(
            figures.load(shares, theme(), chosen=(block, expert)),
            key="load of experts",
            alt="The share of the tokens that each expert of each block is chosen for.",
        )
        even = experts.even_load(config)
        st.caption(
            f"How often each expert is chosen, over {format_count(len(subject.seen), 'token')}: if "
            "all "
            "were chosen alike, each would "
            f"have {percent(even)} of them ({config.n_active} of {config.n_expert}). Switch one "
            "off, and see on "
            "Switch off or Next token what the model guesses without it."
        )
        share = float(shares.values[block, expert])
        st.markdown(
            f"**Expert {names[expert]} of block {block}** is chosen for {percent(share)} of the "
            "tokens:"
        )
        show_table(
            pd.DataFrame(
                experts.tokens_of_expert(weights, block, expert),
                columns=["token", "chosen", "in the text", "mean weight"],
            ),
            hide_index=True,
            height=240,
            column_config={"mean weight": st.column_config.NumberColumn(format="%.3f")},
        )
    imported = "from gptviz.interp.reading.experts import load, tokens_of_expert"
    called = f"tokens_of_expert(result, block={block}, expert={expert})"
    return lambda: shares, asked.code(imported, "", called, "load(result)  # [block, expert]")
