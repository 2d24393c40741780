"""The beam search of the Translate page: its controls, its tree and its answers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st
import torch

from gptviz.figures.kit.format import counted, percent, signed
from gptviz.figures.reading import beams
from gptviz.generate.decoding import Beams, beam_search
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.ui.shell.subject import ModelKey, Subject, language_model, opening
from gptviz.ui.views.encoder_decoder import longest_answer
from gptviz.ui.widgets import controls, show_figure, theme
from gptviz.ui.widgets.tables import show_table

from .translation import limit, special_tokens_of

WIDEST = 8


@dataclass(frozen=True)
class Search:
    """A beam search over the answers to one source.

    Attributes:
        subject: the model, and the source.
        width: how many outputs are kept at each step.
        penalty: the exponent of an answer's length, by which its sum is divided when answers are compared.
        result: the nodes of the search, and the answers.
        nodes: the same nodes as the tree draws them.
    """

    subject: Subject
    width: int
    penalty: float
    result: Beams
    nodes: tuple[beams.DrawnNode, ...]


def search(subject: Subject) -> Search:
    """The controls `width` and `penalty`, and the search that they describe."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        width = controls.whole(
            "Beam width", 1, WIDEST, key="width", default=3, help="How many outputs are kept at each step; 1 is greedy decoding."
        )
        penalty = controls.real(
            "Length penalty",
            0.0,
            1.0,
            key="penalty",
            default=0.0,
            step=0.1,
            help=(
                "Answers are compared by sum ÷ length^penalty: with 0 by their probability, which favours short answers; with 1 "
                "by the mean per token."
            ),
        )
    special_tokens_of(subject)  # the page stops where nothing can be searched
    return Search(subject, width, penalty, *_search(subject.key, subject.seen, width, penalty))


# Shared by all sessions: read-only.
@st.cache_resource(max_entries=4, show_spinner="Searching")
def _search(key: ModelKey, source: tuple[int, ...], width: int, penalty: float) -> tuple[Beams, tuple[beams.DrawnNode, ...]]:
    lm = language_model(key)
    own, most = lm.special_tokens, longest_answer(lm.model.config)
    result = beam_search(lm.model, torch.tensor(source), own.start, own.end, width, most, penalty, own.unused_ids)
    ids: list[tuple[int, ...]] = []  # the tokens up to each node, which stands after its parent
    for node in result.nodes:
        ids.append(() if node.parent is None else (*ids[node.parent], node.token))
    nodes = tuple(
        beams.DrawnNode(
            node.parent,
            lm.tokenizer.label(node.token),
            node.log_probability,
            node.total,
            node.depth,
            node.kept,
            lm.tokenizer.decode(written),
        )
        for node, written in zip(result.nodes, ids, strict=True)
    )
    return result, nodes


def show_tree(search: Search) -> None:
    """The tree, with the path of the best answer."""
    figure = beams.tree(search.nodes, search.result.path(search.result.best.node), theme(), width=search.width)
    best, found = search.result.best, search.result.finished
    alt = (
        f"A beam search of width {search.width}: {counted(len(search.nodes) - 1, 'candidate')}, {counted(len(found), 'answer')}. "
        f"The best is “{search.subject.lm.tokenizer.decode(best.ids)}”, with a sum of {signed(best.total)} nats."
    )
    show_figure(figure, key="tree", alt=alt)


def show_answers(search: Search) -> None:
    """The answers as a table, best first."""
    answers = search.result.finished
    columns = {
        "answer": [search.subject.lm.tokenizer.decode(one.ids) for one in answers],
        "sum (nats)": [one.total for one in answers],
        "probability": [percent(math.exp(one.total)) for one in answers],
        "score": [one.score for one in answers],
        "ends": [one.ended for one in answers],
    }
    digits = st.column_config.NumberColumn(format="%.3f")
    show_table(pd.DataFrame(columns), hide_index=True, column_config={"sum (nats)": digits, "score": digits})
    if not all(one.ended for one in answers):
        most = longest_answer(search.subject.lm.model.config)
        st.caption(f"Those that do not end were stopped after {most} tokens, as many as {limit(search.subject)}.")


def numbers(search: Search) -> LabelledArray:
    """Every node of the tree but its root: [node, (log-probability, sum)]."""

    def name(node: beams.DrawnNode, before: beams.DrawnNode) -> str:
        end = node.label if node.text == before.text else ""  # a special token has no text
        return f"{node.text}{end}{'' if node.kept else ' (cut)'}"

    inside = [(node, search.nodes[node.parent]) for node in search.nodes if node.parent is not None]
    values = np.array([[node.log_probability, node.total] for node, _ in inside])
    axes = (Axis("output", tuple(name(*pair) for pair in inside)), Axis("of", ("its last token", "all of it")))
    return LabelledArray(values, axes, "log-probability (nats)")


def code(search: Search) -> str:
    """The lines of Python that search the same tree."""
    subject, tokens = search.subject, special_tokens_of(search.subject)
    opened = f"{opening(subject.lm)}\n"
    result = "search.nodes, search.finished  # the tree; the answers, best first"
    config = subject.lm.model.config
    most = f"longest={longest_answer(config)}, " if longest_answer(config) < config.context_length else ""
    if len(subject.encoding.ids) < config.context_length:
        return f"{opened}search = lm.beams({subject.prompt!r}, {search.width}, {most}length_penalty={search.penalty})\n{result}"
    return f"""import torch
from gptviz.generate.decoding import beam_search
{opened}# The ids of what is read of the source, then the start token and the end token.
source = torch.tensor({subject.seen})
search = beam_search(lm.model, source, {tokens.start}, {tokens.end}, {search.width}, {most}length_penalty={search.penalty})
{result}"""
