"""What the Attention page computes, once for all sessions that read the same text with the same model."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from gptviz.interp import attention
from gptviz.labelled import Labelled

from . import kinds
from .cache import ModelKey, call, language_model
from .frame import PAGES, Subject, shared_state

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
    prefix = "encoder." if subject.kind == "encoder-decoder" and stack == kinds.ENCODER else ""
    return f"""import gptviz

lm = {call(subject.lm)}
trace = lm.trace({prompt!r}, ["{prefix}blocks.{block}.attention.pattern"])
pattern = trace["{prefix}blocks.{block}.attention.pattern"][0, {head}]  # [query, key]"""
