"""What the Attention page computes, once for all sessions that read the same text with the same model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from gptviz.figures import heatmap, marks
from gptviz.interp import attention
from gptviz.interp.attention import one_head
from gptviz.labelled import Labelled
from gptviz.text.marked import MarkedTokenizer

from . import controls, kinds
from .cache import ModelKey, call, language_model
from .frame import PAGES, Subject, shared_state, theme

HOW = r"""
$\text{pattern} = \text{softmax}\big(\text{mask}(q\,k^\top / \sqrt{d_\text{head}})\big)$: every query is compared with every key
it may read, and the softmax turns the row of scores into shares that sum to 1. The picture is what the tap
`blocks.*.attention.pattern` saw in the pass that makes the model's prediction; in an encoder it is called
`encoder.blocks.*.attention.pattern` (`gptviz/model/attention.py`; gathered by
`patterns` in `gptviz/interp/attention.py`). The averages leave out the first row; “spread over n tokens” is $e$ to the mean
entropy of the rows. Blocks and heads are numbered from 0; the seed (Sinai 2024) numbers from 1: its block 3, head 3 is
block 2, head 2 here."""
LIMITS = """Attention says where a head reads, not what it takes from there: what it moves may be small, or be undone by
another head. In later blocks a position no longer holds its token alone but what earlier blocks gathered there. Much
attention on the first token often means that there was nothing to read."""


@dataclass(frozen=True)
class Read:
    """What a stack of the model reads.

    Attributes:
        stack: the encoder, or the decoder, which is all there is of other models.
        ids: its tokens; of a decoder beside an encoder, the start mark and the model's own answer.
        source: what the encoder reads beside a decoder; None for a stack that reads alone.
    """

    stack: str
    ids: tuple[int, ...]
    source: tuple[int, ...] | None = None


def to_the_other(subject: Subject) -> None:
    """The way to the attention between the two stacks of an encoder–decoder."""
    if (page := PAGES.get(kinds.PAGE[subject.kind])) is not None:
        about = "Where the decoder looks in the source: neither of the two stacks' own squares shows it."
        st.page_link(page.path, label="Cross-attention", icon=page.icon, help=about, query_params=shared_state())


def read_by(subject: Subject, stack: str) -> Read:
    """What the `stack` reads where the page is about `subject`."""
    if subject.kind != "encoder-decoder" or stack == kinds.ENCODER:
        return Read(stack, subject.seen)
    return Read(stack, kinds.answered(subject.key, subject.seen), subject.seen)


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
def view(key: ModelKey, read: Read) -> View:
    """The self-attention of every head of one stack of the model over what it reads."""
    patterns = attention.patterns(kinds.part(language_model(key).model, read.stack), read.ids, read.source)
    return View(patterns, attention.thumbnails(patterns), attention.pooling(patterns), attention.facts(patterns))


@dataclass(frozen=True)
class Shown:
    """The head that is shown large.

    Attributes:
        view: all heads of its stack.
        pattern: its own pattern [query, key].
    """

    view: View
    block: int
    head: int
    pattern: Labelled


def show(
    subject: Subject,
    stack: str,
    overview: Any,
    large: Any,
    *,
    default: int,
    height: int = 300,
    beside: Callable[[], None] = lambda: None,
) -> Shown:
    """All heads of the `stack` at a glance in the container `overview`, one of them in `large`; and the controls `block`,
    `head` and `log`.

    Args:
        default: block and head that are shown at first.
        height: of the picture of all heads.
        beside: what else stands in the row of the control `log`.
    """
    read = read_by(subject, stack)
    seen = view(subject.key, read)
    labels = tuple(map(subject.lm.tokenizer.label, read.ids))
    n_block, n_head = seen.thumbnails.values.shape[:2]
    with overview:
        with st.container(horizontal=True):
            about = "Numbered from 0, nearest the input."
            block = controls.whole("Block", 0, n_block - 1, key="block", default=default, help=about)
            about = "The heads of a block read side by side."
            head = controls.whole("Head", 0, n_head - 1, key="head", default=default, help=about)
        glance = st.container()
        with st.container(horizontal=True, vertical_alignment="center"):
            about = "Equal ratios, equal steps of colour, down to 0.1%: small shares show."
            log = controls.switch("Log colours", key="log", help=about)
            beside()
            if seen.pooling > 1:
                st.caption(
                    f"Cell: largest of {seen.pooling} × {seen.pooling}", width="content", help="In the small pictures only."
                )
    name, averages = f"Block {block}, head {head}", seen.averages(block, head)
    pattern = one_head(seen.patterns, block, head, labels)
    meaning = marks.said(labels)
    notes = (*averages, *(("", meaning) if meaning else ()))
    with large:  # sent first: what was asked for is drawn first
        st.plotly_chart(
            heatmap.one_head(pattern, theme(), title=name, notes=notes, log=log),
            key="large",
            width=520,
            config={"displaylogo": False},
            alt=f"{name}: how each of {len(labels)} tokens shares its attention among them. {', '.join(averages)}",
        )
        if notes and seen.patterns.blocked is None:  # else the notes stand in the corner that the mask leaves blank
            st.caption(". ".join(filter(None, (", ".join(averages), meaning))))
    with glance:
        st.plotly_chart(
            heatmap.all_heads(seen.thumbnails, theme(), (block, head), seen.notes(), log=log, height=height),
            key="glance",
            on_select=lambda: pick("glance"),
            selection_mode="points",
            config={"displayModeBar": False},
            alt=f"The attention patterns of all heads of all {n_block} blocks; {name} is outlined. Click one to see it large.",
        )
    return Shown(seen, block, head, pattern)


def pick(chart: str) -> None:
    """Set the controls `block` and `head` to the thumbnail clicked in the chart with that key.

    As a callback, so that it acts on a click once, and not again on every rerun, as the chart's selection would. A
    second click on the same thumbnail selects nothing, and changes nothing.
    """
    points = st.session_state[chart].selection.points
    if points:
        st.session_state["block"], st.session_state["head"] = points[0]["customdata"]


def without(subject: Subject) -> None:
    """In place of the view, for a stack without blocks: that there is no attention, and the way on."""
    guesses = subject.kind == "decoder"
    alone = ": it guesses the next token from the last one alone" if guesses else ""
    st.info(f"This model has no blocks, hence no attention{alone}.")
    page = PAGES.get("pages/next_token.py" if guesses else kinds.PAGE[subject.kind])
    if page is not None:
        label = "See its guesses" if guesses else f"See what it makes of the text: {page.title}"
        st.page_link(page.path, label=label, icon=page.icon, query_params=shared_state())


def code(subject: Subject, stack: str, block: int, head: int) -> str:
    """The lines of `gptviz` that compute the pattern of one head."""
    prompt = subject.prompt
    if subject.kind == "encoder-decoder" and len(subject.encoding.ids) > kinds.room(subject.lm):
        prompt = subject.lm.tokenizer.decode(subject.seen)  # a longer source is refused
    if subject.kind == "encoder-decoder" and stack == kinds.DECODER and (lines := _code_of_cut(subject, block, head)):
        return lines
    prefix = "encoder." if subject.kind == "encoder-decoder" and stack == kinds.ENCODER else ""
    return f"""import gptviz

lm = {call(subject.lm)}
trace = lm.trace({prompt!r}, ["{prefix}blocks.{block}.attention.pattern"])
pattern = trace["{prefix}blocks.{block}.attention.pattern"][0, {head}]  # [query, key]"""


def _code_of_cut(subject: Subject, block: int, head: int) -> str | None:
    """The same where the decoder reads less of its own answer than there is room for; None where it reads all of it."""
    tokenizer = subject.lm.tokenizer
    if not isinstance(tokenizer, MarkedTokenizer):
        return None
    own = kinds.answer(subject.key, subject.seen, tokenizer.start, tokenizer.end)
    if not own.is_cut(subject.lm.model.config):
        return None
    return f"""import gptviz
from gptviz.interp.attention import patterns

lm = {call(subject.lm)}
# The ids of the output from the start mark on, and of the source.
found = patterns(lm.model, {(tokenizer.start, *own.ids)}, {subject.seen})
pattern = found.blocks[{block}][{head}]  # [query, key]"""
