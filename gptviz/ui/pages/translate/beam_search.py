"""The beam search of the Translate page: its controls, its tree and its answers."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from gptviz.figures.kit.format import format_count, format_signed, percent
from gptviz.figures.reading import beams
from gptviz.generate.decoding import Beams
from gptviz.language_model import writing
from gptviz.ui.records.translate import BEAM_SEARCH
from gptviz.ui.shell.close import PageResult
from gptviz.ui.shell.subject import AskedAnalysis, Subject, ask, language_model
from gptviz.ui.views.encoder_decoder import longest_answer
from gptviz.ui.widgets import controls, show_figure, theme
from gptviz.ui.widgets.tables import show_table

from .translation import limit, special_tokens_of

WIDEST = 8


def ask_beams(subject: Subject) -> AskedAnalysis[Beams]:
    """The controls `width` and `penalty`, and the search that they describe."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        width = controls.whole_number(
            "Beam width",
            1,
            WIDEST,
            key="width",
            default=3,
            help="How many outputs are kept at each step; 1 is greedy decoding.",
        )
        penalty = controls.decimal_number(
            "Length penalty",
            0.0,
            1.0,
            key="penalty",
            default=0.0,
            step=0.1,
            help=(
                "Answers are compared by sum ÷ length^penalty: with 0 by their probability, which "
                "favours short answers; with 1 "
                "by the mean per token."
            ),
        )
    special_tokens_of(subject)  # the page stops where nothing can be searched
    config = subject.lm.model.config
    if longest_answer(config) < config.context_length:
        longest = longest_answer(config)
    else:
        longest = None
    how = {"width": width, "longest": longest, "length_penalty": penalty}
    return ask(subject, writing.beams, "Searching", text=subject.text, **how)


def show_tree(subject: Subject, asked: AskedAnalysis[Beams]) -> None:
    """The tree, with the path of the best answer."""
    search = asked.value
    width = dict(asked.settings)["width"]
    best = search.best
    nodes = _drawn_nodes(asked)
    alt = (
        f"A beam search of width {width}: {format_count(len(nodes) - 1, 'candidate')}, "
        f"{format_count(len(search.finished), 'answer')}. "
        f"The best is “{subject.lm.tokenizer.decode(best.ids)}”, with a sum of "
        f"{format_signed(best.total)} nats."
    )
    show_figure(
        beams.tree(nodes, search.path(best.node), theme(), width=width), key="tree", alt=alt
    )


@st.cache_resource(max_entries=4, show_spinner=False)
def _drawn_nodes(asked: AskedAnalysis[Beams]) -> tuple[beams.DrawnNode, ...]:
    """The nodes of a search as the tree draws them."""
    tokenizer = language_model(asked.key).tokenizer
    search = asked.value
    return tuple(
        beams.DrawnNode(
            node.parent,
            tokenizer.label(node.token),
            node.log_probability,
            node.total,
            node.depth,
            node.kept,
            tokenizer.decode(ids),
        )
        for node, ids in zip(search.nodes, search.outputs, strict=True)
    )


def show_answers(subject: Subject, search: Beams) -> None:
    """The answers as a table, best first."""
    answers = search.finished
    columns = {
        "answer": [subject.lm.tokenizer.decode(one.ids) for one in answers],
        "sum (nats)": [one.total for one in answers],
        "probability": [percent(math.exp(one.total)) for one in answers],
        "score": [one.score for one in answers],
        "ends": [one.ended for one in answers],
    }
    digits = st.column_config.NumberColumn(format="%.3f")
    show_table(
        pd.DataFrame(columns),
        hide_index=True,
        column_config={"sum (nats)": digits, "score": digits},
    )
    if not all(one.ended for one in answers):
        most = longest_answer(subject.lm.model.config)
        st.caption(
            f"Those that do not end were stopped after {most} tokens, as many as {limit(subject)}."
        )


def details(subject: Subject, asked: AskedAnalysis[Beams]) -> PageResult:
    """The sums of all candidates, and the code that computes them."""
    return PageResult(
        lambda: writing.beam_sums(subject.lm, asked.value),
        asked.code(
            "from gptviz.language_model.writing import beam_sums", "", "beam_sums(lm, result)"
        ),
        BEAM_SEARCH,
    )
