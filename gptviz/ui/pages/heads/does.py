"""What each head does: every head scored, and one of them in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
import torch

from gptviz.components import head_pattern
from gptviz.components.cell_grid import Cell
from gptviz.components.token_strip import Token, token_strip
from gptviz.figures.kit.format import brief, format_fixed, percent
from gptviz.figures.kit.theme import PATTERN
from gptviz.interp.reading import attention as patterns
from gptviz.interp.reading.cross_attention import SOURCE, WRITES
from gptviz.interp.units.head_scores import (
    CLEARLY,
    LOSS_TOKENS,
    MOST_TOKENS,
    SCORES,
    HeadScores,
    scored_tokens,
)
from gptviz.interp.units.unit import Unit, unit
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.language_model import units
from gptviz.language_model.units import repeated_tokens, repeats_of
from gptviz.model.costs.effort import LITTLE, effort
from gptviz.ui.records.attention import PAGE as ATTENTION
from gptviz.ui.records.heads import DOES, READS
from gptviz.ui.shell import frame
from gptviz.ui.shell.close import PageResult
from gptviz.ui.shell.subject import AskedAnalysis, ModelKey, Subject, ask, language_model
from gptviz.ui.shell.subject.bar import read_prompt
from gptviz.ui.shell.subject.unit_titles import name_with, title_of, titles_of
from gptviz.ui.views import attention, edits, encoder_decoder, held_out
from gptviz.ui.views.contrasts import known_contrasts, known_offers
from gptviz.ui.views.notes import show_notes
from gptviz.ui.views.read import PromptRead
from gptviz.ui.views.texts import HELD_OUT, OWN, PASSAGES, PROMPT, text_of
from gptviz.ui.widgets import (
    Try,
    addresses,
    capitalise_text,
    controls,
    escape_markdown,
    in_quotes,
    jobs,
    picking,
    say_answer,
)
from gptviz.ui.widgets.cells import show_cells
from gptviz.ui.widgets.figure import pixels
from gptviz.ui.widgets.headings import heading

from .reads import ask_composition, chance, largest_pairs

RANDOM = "Repeated random tokens"
# The key in the address of the head that is shown.
CHOSEN = "unit"
# How many tokens of a long text are on the picture of a head's pattern.
MOST_SHOWN = 128
ROWS_HIGH = 340
FEW_ROWS = 8
# Of more heads only the first is called “head” above its column: on a phone the names would touch.
FEW_HEADS = 6
# How many tokens of a text are shown before the first of the two that an example is about.
BEFORE = 4
# A token that takes no more than this share of a head's attention is hardly read.
HARDLY = 0.1
# Shares that differ by no more than this are about as large.
NEARLY = 0.02
# At most this many blocks are multiplied with each other before the reader asks for it.
FEW_BLOCKS = 12
# The state in which heads are ordered by what answers lose without them.
BY_LOSS = {"view": DOES, "over": HELD_OUT, "score": "delta_loss"}
# What repeated random tokens are, and why heads read them.
TWICE = "They read random tokens, said twice: only the first time tells what comes the second time."
TITLES = {
    "induction": "The induction head",
    "previous_token": "A previous-token head",
    "first_token": "A head that rests",
    "duplicate_token": "A duplicate-token head",
}
# Where a high score is seen in a pattern.
SEEN = {
    "induction": "The slanted stripe: at the second A of “A B … A” it reads B.",
    "previous_token": "The cells beside the diagonal: the token just before.",
    "first_token": "The dark first column: it rests on the first token where it finds nothing to "
    "read.",
    "duplicate_token": "The other cells: earlier copies of the token that reads.",
}
NOTICES = {
    "induction": "gives {share} of its attention to what came next the last time: see the stripe "
    "in its pattern.",
    "previous_token": "gives {share} to the token just before: see the cells beside the diagonal.",
    "first_token": "gives {share} to the first token: see the column at the left. Many heads rest "
    "there.",
    "duplicate_token": "gives {share} to earlier copies of the token that reads.",
}


def ask_scores(subject: Subject, stack: str, view: str) -> AskedAnalysis[HeadScores]:
    """The scores of all heads of the stack, over what the control `over` says. An encoder–decoder
    reads the prompt and writes its own answer.
    """
    asked = partial(ask, analysis=units.head_scores, title="Scoring the heads", stack=stack)
    if subject.kind.has_source or repeats_of(subject.lm) is None:
        return asked(subject)
    hint = (
        "Random tokens that are repeated once: what follows a token in the second half can only "
        "be known from the first half, so "
        "heads that look back cannot be mistaken for heads that know the language. Your own "
        "prompt. Or "
        f"{held_out.describe_texts(subject.key)}, where these are on this machine. For a model "
        "from "
        "elsewhere, passages of old books that "
        "come with gptviz, or a text of yours."
    )
    options = [RANDOM, PROMPT]
    options += [HELD_OUT] if subject.kind.continues and held_out.is_here(subject.key) else []
    options += [PASSAGES, OWN] if subject.is_imported else []
    # The skill that a model was trained for shows in texts that need it, not in random tokens.
    usual = HELD_OUT if known_contrasts(subject.lm) else RANDOM
    over = controls.select(
        "Heads read",
        options,
        key="over",
        default=usual,
        help=hint,
        disabled=view != DOES,
        # the words of a name that is greyed out are too faint to read
        label_visibility="visible" if view == DOES else "hidden",
    )
    if over in (PASSAGES, OWN):
        return asked(
            read_prompt(
                subject.key,
                subject.lm,
                text_of(over, subject.prompt),
                subject.prompt,
                needs_prompt=False,
            )
        )
    if over == PROMPT:
        return asked(subject)
    return asked(subject.key, held_out=held_out.MOST_TOKENS if over == HELD_OUT else 0)


def show(subject: Subject, asked: AskedAnalysis[HeadScores], row: Any) -> PageResult:
    """The whole view, with the control `score` in the container `row`."""
    asked, scores, say_how_far = with_losses(asked)
    shown = PageResult(scores.labelled, code(asked), DOES)
    if not scores.known_scores:
        st.info(
            "A text of one token says nothing about heads: there is nothing else to look at. Type "
            "a longer prompt above."
        )
        return shown
    for sentence in edits.about_patterns(subject.lm):
        st.caption(escape_markdown(sentence))
    with row:
        hint = (
            "Colours the cells, and orders the table. Each column of the table says how its score "
            "is defined."
        )
        first = first_score(asked, scores)
        named = {name: SCORES[name].title for name in scores.known_scores}
        name = controls.select(
            "Score",
            list(named),
            key="score",
            default=first,
            help=hint,
            format_func=named.__getitem__,
        )
    order = rank_heads(scores, name)
    best = scores.unit(*order[0])
    own = capitalise_text(title_of(subject.key, best))
    answer, how_much = scores.answer(name)
    answer = answer.replace(capitalise_text(best.title), own)
    is_random = not {"prompt", "held_out"} & dict(asked.settings).keys()
    if (is_random or name in scores.on_random) and name != "copying":
        how_much = f"{how_much} {TWICE}"
    say_answer(escape_markdown(answer), escape_markdown(how_much))
    left, right = st.columns([6, 5], gap="large")
    heads = [scores.unit(*at) for at in order]
    with left:
        at = order[heads.index(chosen_head(subject, heads))]
        cells(asked, scores, name, at)
        example = st.container()
    with right:
        one_head(subject, asked, scores, at, example)
    columns = [name, *(other for other in scores.known_scores if other != name)]
    number = st.column_config.NumberColumn
    config = {
        SCORES[each].title: number(format="%.3f", help=SCORES[each].about) for each in columns
    }
    picking.table(
        frame_of(asked.key, scores, columns, order),
        lambda row: addresses.write(CHOSEN, heads[row].name),
        key="heads table",
        height="content" if len(order) <= FEW_ROWS else pixels(ROWS_HIGH),
        column_config={
            "head": st.column_config.TextColumn(pinned=True, help="1.2 is head 2 of block 1."),
            **config,
        },
        alt="All heads, one per row, with their scores",
    )
    if say_how_far is not None:
        say_how_far()
    show_notes(subject, scores.unit(*at))
    return shown


def by_score(scores: HeadScores, name: str) -> list[Unit]:
    """All heads, the highest score called `name` first."""
    return [scores.unit(*at) for at in rank_heads(scores, name)]


def chosen_head(subject: Subject, heads: Sequence[Unit]) -> Unit:
    """The head that the address asks for; the first of `heads` where it asks for none of them."""
    head = controls.linked_choice(
        CHOSEN, lambda address: unit(address, subject.lm.model.config), heads[0]
    )
    return head if head in heads else heads[0]  # the address may name a head of another stack


def with_losses(
    asked: AskedAnalysis[HeadScores],
) -> tuple[AskedAnalysis[HeadScores], HeadScores, Callable[[], None] | None]:
    """What is asked for, the scores, and what shows how far the losses without each head are; None
    where there are no losses.

    Losses that take a moment are computed at once, others when somebody asks for them. Once they
    are there, the scores have them.
    """
    scores = asked.value
    lm = language_model(asked.key)
    if lm.kind.guesses == "label" or scores.n_tokens < 2:
        return asked, scores, None
    whole = replace(asked, settings=(*asked.settings, ("losses", True)))
    n_heads = math.prod(scores.shape)
    title = f"The loss without each of {n_heads:,} heads"
    if "held_out" in dict(asked.settings):
        tokens = scores.n_tokens
    else:
        tokens = min(scores.n_tokens, LOSS_TOKENS)
    begins = effort(lm.model, tokens, n_heads) <= LITTLE

    def compute() -> HeadScores:
        read = {name: value for name, value in asked.settings if name != "stack"}
        return units.with_losses(lm, scores, **read)

    computed, show = jobs.on_demand(whole, title, compute, begins=begins)
    label = "Compute the loss without each head"
    about = f"{n_heads:,} forward passes; they go on while you look at other pages."
    say_how_far = partial(show, label, label, "head losses", about)
    if computed is None or computed.value is None:
        return asked, scores, say_how_far
    return whole, computed.value, say_how_far


def first_score(asked: AskedAnalysis[HeadScores], scores: HeadScores) -> str:
    """The score that the page opens on: over data held out the loss without a head, where that is
    known; else induction, where there is a head of that kind, or the kind that some head is most
    of.
    """
    if "held_out" in dict(asked.settings) and "delta_loss" in scores.known_scores:
        return "delta_loss"
    shares = {
        name: float(np.nanmax(scores.values[name]))
        for name in TITLES
        if name in scores.known_scores
    }
    if shares.get("induction", 0.0) >= CLEARLY or not shares:
        return next(
            name for name in ("induction", *scores.known_scores) if name in scores.known_scores
        )
    return max(shares, key=shares.__getitem__)


def rank_heads(scores: HeadScores, name: str) -> list[tuple[int, int]]:
    """Block and head of all heads, the highest score first; those without one last."""
    values = np.nan_to_num(scores.values[name], nan=-np.inf)
    order = np.argsort(-values, axis=None, kind="stable")
    return [
        (int(block), int(head))
        for block, head in zip(*np.unravel_index(order, values.shape), strict=True)
    ]


def cells(
    asked: AskedAnalysis[HeadScores], scores: HeadScores, name: str, at: tuple[int, int]
) -> None:
    """All heads as cells, coloured by the score called `name`; a click on one chooses it."""
    kind = SCORES[name]
    values = scores.values[name]
    if kind.high is None:
        highest = float(np.nanmax(np.abs(values))) or 1.0
    else:
        highest = kind.high
    lowest = -highest if kind.low is None else kind.low
    n_block, n_head = values.shape
    listed = ", ".join(
        f"head {head} of block {block} ({brief(values[block, head])})"
        for block, head in rank_heads(scores, name)[:3]
    )

    title = titles_of(asked.key)

    def cell(block: int, head: int) -> Cell:
        one = scores.unit(block, head)
        value = float(values[block, head])
        return Cell(one.name, title(one), value, format_fixed(value), chosen=(block, head) == at)

    show_cells(
        [
            (f"block {block}", [cell(block, head) for head in range(n_head)])
            for block in range(n_block)
        ],
        [
            f"head {head}" if n_head <= FEW_HEADS or head == 0 else str(head)
            for head in range(n_head)
        ],
        (lowest, highest),
        key="heads grid",
        alt=f"The score {kind.title.lower()} of every head, by block; the highest: {listed}.",
        choose=partial(addresses.write, CHOSEN),
        says=kind.title.lower(),
        unit="",
        legend="Blue: above 0; orange: below." if lowest < 0 else "",
        hint="A click, or Enter, chooses a head; the arrow keys walk.",
        code=code(asked),
        table=("head", "", kind.title.lower()),
    )
    chosen = dict(asked.settings)
    if "held_out" in chosen:
        own = "data held out"
    elif "prompt" in chosen:
        own = "the text"
    else:
        own = "repeated random tokens"
    read = "repeated random tokens" if name in scores.on_random else own
    # copying is computed from weights, as its own words say
    where = "" if name == "copying" else f", over {read}"
    if name in scores.on_random:
        missing = " No token of this text comes back."
    else:
        missing = ""
    most = ""
    if values.size > 1:
        middle = brief(float(np.nanmedian(values)))
        most = f" Half of the {values.size} heads have at most {middle}."
    st.caption(f"**{kind.title}**{where}.{missing} {kind.about}{most}")


def one_head(
    subject: Subject,
    asked: AskedAnalysis[HeadScores],
    scores: HeadScores,
    at: tuple[int, int],
    example: Any,
) -> None:
    """The pattern of one head, where its scores are seen in it, and the way to its page; one row of
    it in the container `example`. Beside scores over other texts it is that over the prompt.
    """
    head = scores.unit(*at)
    chosen = dict(asked.settings)
    lm = subject.lm
    is_random = not {"prompt", "held_out"} & chosen.keys()
    ids = repeated_tokens(lm)[0].tolist() if is_random else []
    if is_random:
        read = PromptRead(tuple(ids))
    else:
        read = attention.stack_read(subject, str(chosen.get("stack", encoder_decoder.DECODER)))
    title = title_of(subject.key, head)
    about = heading(f"The attention pattern of {title} over what it reads")
    lines = attention.code_of_head(lm, read, head.block, head.index)
    square = pattern(asked.key, read, head)
    with example:
        show_example(subject, square, head, title)
    shares = head_pattern.payload(square, about, lines, capitalise_text(title))
    head_pattern.head_pattern(shares, key="heads pattern")
    count = min(len(read.ids), MOST_TOKENS)
    if count > MOST_SHOWN:
        cut = f" The picture has the last {MOST_SHOWN} of {count:,} tokens."
    else:
        cut = ""
    seen = " ".join(
        words
        for name, words in SEEN.items()
        if name in scores.values and scores.values[name][at] >= CLEARLY
    )
    if chosen.get("prompt") == subject.text:
        own = "the text that is read"
    else:
        own = "the prompt"
    st.caption(
        "What this head looks at, over "
        f"{'the first of the random texts' if is_random else own}.{cut} {seen}"
    )
    query = {"block": str(head.block), "head": str(head.index)}
    if subject.kind.has_source:
        query["stack"] = read.stack
    written = lm.tokenizer.decode(ids[lm.tokenizer.text_slice(ids)])
    # these tokens can be written as a text
    if is_random and list(lm.tokenizer.encode(written).ids) == ids:
        query["prompt"] = written
    with st.container(horizontal=True, vertical_alignment="center"):
        query = frame.shared_state() | query
        frame.link(ATTENTION, f"Open {escape_markdown(title)} on Attention", query=query)
        edits.switch(subject.key, head, key="switch head")


def strongest_cell(square: LabelledArray, *, crosses: bool) -> tuple[int, int]:
    """Where a pattern [query, key] has its largest share, or nearly so, the last such place. The
    first token, where heads rest, and the token that reads count only where nothing else is read.
    """
    values = np.nan_to_num(square.values.astype(np.float64))
    others = values.copy()
    if not crosses:
        others[:, 0] = 0.0
        np.fill_diagonal(others, 0.0)
    largest = values if others.max() <= HARDLY else others
    of_query = largest.max(1)
    query = int(np.flatnonzero(of_query >= of_query.max() - NEARLY)[-1])
    return query, int(largest[query].argmax())


def show_example(subject: Subject, square: LabelledArray, head: Unit, title: str) -> None:
    """What a head reads at one token, in a row of tokens: the row of its pattern that has the
    largest share.
    """
    query, key = strongest_cell(square, crosses=head.crosses)
    reads, labels = (axis.labels for axis in square.axes)
    last = key if head.crosses else max(query, key)
    shown = range(max(0, min(key, last) - BEFORE), last + 1)
    row = np.nan_to_num(square.values[query])
    share = percent(float(row[key]))
    st.markdown(
        f"**For example:** at {in_quotes(reads[query])} {escape_markdown(title)} reads "
        f"{in_quotes(labels[key])} most, {share}."
    )
    token_strip(
        [Token(labels[i], float(row[i])) for i in shown],
        key="heads example",
        colour=PATTERN,
        selected=None if head.crosses else query - shown.start,
        label=f"What {title} reads at {reads[query]}",
        legend="share of its attention"
        + ("" if head.crosses else "; outlined is the token that reads"),
        spaced=subject.lm.tokenizer.is_spaced,
    )


@st.cache_data(max_entries=32, show_spinner=False)
def pattern(key: ModelKey, read: PromptRead, head: Unit) -> LabelledArray:
    """The pattern of one head over the tokens that it reads, or over the last of them."""
    lm = language_model(key)
    crosses = head.crosses
    assert head.block is not None
    assert head.index is not None
    ids = scored_tokens(torch.tensor(read.ids), lm.model.config).tolist()
    stack = encoder_decoder.stack_of(lm.model, read.stack)
    source = read.source
    part: patterns.AttentionPart = "cross_attention" if crosses else "attention"
    values = patterns.pattern(stack, ids, head.block, head.index, source, part)
    read_ids = ((read.written or ids), source or ()) if crosses else (ids, ids)
    names = (WRITES, SOURCE) if crosses else (patterns.QUERY, patterns.KEY)
    axes = (
        Axis(name, tuple(map(lm.tokenizer.label, of[-MOST_SHOWN:])))
        for name, of in zip(names, read_ids, strict=True)
    )
    return LabelledArray(values[-MOST_SHOWN:, -MOST_SHOWN:], tuple(axes), patterns.UNIT)


def frame_of(
    key: ModelKey, scores: HeadScores, columns: Sequence[str], order: Sequence[tuple[int, int]]
) -> pd.DataFrame:
    """The table: each head as block and number, and its scores in these `columns`."""
    rows = {(row["block"], row["head"]): row for row in scores.rows()}
    add_name = name_with(key)
    return pd.DataFrame(
        [
            {"head": add_name(scores.unit(*at).name, f"{at[0]}.{at[1]}")}
            | {SCORES[name].title: rows[at][name] for name in columns}
            for at in order
        ]
    )


def tries(subject: Subject, asked: AskedAnalysis[HeadScores]) -> list[Try]:
    """The suggestions for these heads."""
    scores = asked.value
    kinds = [offer for name in TITLES if (offer := _of_kind(scores, name)) is not None]
    known = known_offers(subject, BY_LOSS, lambda head: {CHOSEN: head.name})
    return [*known, *kinds[: 2 - min(len(known), 1)], *_composition(asked)]


def _of_kind(scores: HeadScores, name: str) -> Try | None:
    if name not in scores.known_scores:
        return None
    block, head = rank_heads(scores, name)[0]
    share = float(scores.values[name][block, head])
    if share < CLEARLY:
        return None
    notice = f"Head {head} of block {block} {NOTICES[name].format(share=percent(share))}"
    return Try(
        TITLES[name], notice, {"view": DOES, "score": name}, {CHOSEN: scores.unit(block, head).name}
    )


def _composition(asked: AskedAnalysis[HeadScores]) -> list[Try]:
    """Which head reads most of what another one writes, and whether the two are what an induction
    circuit is made of.
    """
    scores = asked.value
    stack = dict(asked.settings).get("stack", encoder_decoder.DECODER)
    if scores.part == "cross_attention" or not 2 <= scores.shape[0] <= FEW_BLOCKS:
        return []
    best = largest_pairs(ask_composition(asked.key, stack, "key").value, 1)
    if best.empty:
        return []
    first = best.iloc[0]
    (reader, induction), (writer, previous) = (
        (
            f"head {head} of block {block}",
            float(np.nan_to_num(scores.values[name][int(block), int(head)])),
        )
        for name, (block, head) in (
            ("induction", first.reads.split(".")),
            ("previous_token", first.writes.split(".")),
        )
    )
    together = "Is one of them a head of a kind that you know?"
    if min(induction, previous) >= CLEARLY:
        together = (
            f"The second is a previous-token head ({percent(previous)}), the first an induction "
            f"head ({percent(induction)}): "
            "together they find what came next before."
        )
    notice = (
        f"By its key, {reader} reads most of what {writer} writes: {first.value:.2f}, by chance "
        f"{chance(asked.key, stack):.2f}. "
        f"{together}"
    )
    return [Try("Who reads whom?", notice, {"view": READS, "reads": "key"})]


def code(asked: AskedAnalysis[HeadScores]) -> str:
    """The lines of `gptviz` that compute the scores."""
    return asked.code("result.labelled()  # [block, head, score]")
