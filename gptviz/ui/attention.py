"""What the Attention page computes, once for all sessions that read the same text with the same model."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from gptviz.interp import attention
from gptviz.labelled import Labelled

from .cache import ModelKey, language_model

HOW = r"""
$\text{pattern} = \text{softmax}\big(\text{mask}(q\,k^\top / \sqrt{d_\text{head}})\big)$: every query is compared with every key
it may read, and the softmax turns the row of scores into shares that sum to 1. The picture is what the tap
`blocks.*.attention.pattern` saw in the pass that also predicts the next token (`gptviz/model/attention.py`; gathered by
`patterns` in `gptviz/interp/attention.py`). The averages leave out the first row; “spread over n tokens” is $e$ to the mean
entropy of the rows. Blocks and heads are numbered from 0; the seed (Sinai 2024) numbers from 1: its block 3, head 3 is
block 2, head 2 here."""
LIMITS = """Attention says where a head reads, not what it takes from there: what it moves may be small, or be undone by
another head. In later blocks a position no longer holds its token alone but what earlier blocks gathered there. Much
attention on the first token often means that there was nothing to read."""


@dataclass(frozen=True)
class View:
    """All the page shows of one text: the patterns, their thumbnails with how many tokens a cell of them stands for, and
    where each head looks on average."""

    patterns: attention.Patterns
    thumbnails: Labelled
    pooling: int
    facts: attention.Facts | None

    def averages(self, block: int, head: int) -> tuple[str, ...]:
        """Where one head looks on average, in lines; none for a single token."""
        return ("on average", *self.facts.phrases(block, head)) if self.facts else ()

    def notes(self) -> list[list[str]]:
        """The averages of every block and head, each as one text with line breaks."""
        n_block, n_head = self.thumbnails.values.shape[:2]
        return [["<br>".join(self.averages(block, head)) for head in range(n_head)] for block in range(n_block)]


# Two entries: GPT-2's patterns over 1,024 tokens alone take 600 MB. Read-only, other sessions share it.
@st.cache_resource(max_entries=2, show_spinner="Reading the prompt")
def view(key: ModelKey, ids: tuple[int, ...]) -> View:
    """The attention of every head of the model over `ids`."""
    patterns = attention.patterns(language_model(key).model, ids)
    return View(patterns, attention.thumbnails(patterns), attention.pooling(patterns), attention.facts(patterns))


def pick(chart: str) -> None:
    """Set the controls `block` and `head` to the thumbnail clicked in the chart with that key.

    As a callback, so that it acts on a click once, and not again on every rerun, as the chart's selection would. A
    second click on the same thumbnail selects nothing, and changes nothing.
    """
    points = st.session_state[chart].selection.points
    if points:
        st.session_state["block"], st.session_state["head"] = points[0]["customdata"]
