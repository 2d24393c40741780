"""The content of the attention explorer for a model and a text, computed once for all sessions that
look at the same.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import streamlit as st

from gptviz.components import attention_explorer
from gptviz.components.kit import fingerprint
from gptviz.components.kit.command import NO_COMMAND, ViewCommand
from gptviz.figures.kit.format import format_count, percent
from gptviz.interp.reading import attention
from gptviz.interp.reading.by_word import in_words
from gptviz.interp.reading.cross_attention import SOURCE, WRITES, hidden_by_mean
from gptviz.interp.reading.overview import (
    Overview,
    clearest_head,
    overview,
    overview_of,
    pooling,
    read_most,
)
from gptviz.interp.units.unit import Unit
from gptviz.language_model import LanguageModel
from gptviz.machine.memory import release_memory
from gptviz.model import Config, Transformer
from gptviz.model.parts.positions import POSITIONS
from gptviz.settings.address_values import Values
from gptviz.text.tokenizers.pieces import word_labels
from gptviz.ui.records.next_token import PAGE as NEXT_TOKEN
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import ModelKey, Subject, language_model, opening, reading
from gptviz.ui.shell.subject.unit_titles import names_of, said_title
from gptviz.ui.views import by_word, edits, encoder_decoder
from gptviz.ui.views.guesses import added_by_parts
from gptviz.ui.views.read import PromptRead, read_by
from gptviz.ui.widgets import addresses, controls, jobs, name_place, say_answer

CROSS = "cross"
STACKS = (encoder_decoder.ENCODER, encoder_decoder.DECODER, CROSS)
# The key of the session's state that holds the last command of a "Try this" to the view.
ASKED = "attention asked"
# The most bytes of one block: of a text that would need more the explorer shows a part. A message
# to the browser may have 64 million, and while a block is computed several arrays of twice its size
# are in memory.
MOST_OF_BLOCK = 36 * 2**20
# A head reads one token clearly if that has at least this share of its attention.
CLEAR = 0.5


def stack_of(subject: Subject) -> str:
    """The control `stack`, if the model has more than one."""
    if not subject.kind.has_source:
        return encoder_decoder.DECODER
    hint = (
        "The encoder reads the source, at once and as a whole. The decoder reads what it has "
        "written, token by token; in "
        "cross-attention it looks from there into the source."
    )
    return controls.select(
        "Stack",
        STACKS,
        key="stack",
        default=encoder_decoder.ENCODER,
        help=hint,
        segmented=True,
        label_visibility="collapsed",
    )


def stack_read(subject: Subject, stack: str) -> PromptRead:
    """The tokens that the `stack` reads on a page about `subject`; if the text is too long for the
    explorer, the part shown.
    """
    if not subject.kind.has_source:
        most = most_tokens(subject.lm.model.config)
        return PromptRead(
            subject.seen[-most:] if subject.kind.continues else subject.seen[:most], stack=stack
        )
    if stack == encoder_decoder.ENCODER:
        return PromptRead(subject.seen, stack=stack)
    both = read_by(subject)
    if stack != CROSS:
        return both
    # A row of cross-attention is named after the token that is written there.
    return replace(both, ids=both.ids[: len(both.written) or None], stack=stack)


def words_of(subject: Subject, read: PromptRead) -> tuple[range, ...] | None:
    """The words of the tokens read, where the tokenizer splits one of them into several tokens and
    the reader asks for words.
    """
    if read.stack == CROSS or view(subject.key, read).whole is None:
        return None
    words = by_word.split(subject, read.ids)
    if words is None:
        return None
    with st.popover("More"):
        if by_word.switch():
            return words
        return None


@dataclass(frozen=True)
class ExplorerContent:
    """The content of the explorer for one text."""

    overview: Overview  #: all heads at a glance
    #: the numbers of all blocks if they can be sent together, or None if a block is read when it is
    #: looked at
    whole: attention.AttentionReading | None


def _stack(key: ModelKey, read: PromptRead) -> tuple[Transformer, attention.AttentionPart]:
    """The stack that reads, and which of its attentions is shown."""
    model = language_model(key).model
    if read.stack == CROSS:
        return (model, "cross_attention")
    return (encoder_decoder.stack_of(model, read.stack), "attention")


def _size(
    config: Config, queries: int, keys: int, triangle: bool, of_itself: bool
) -> attention_explorer.BlockSize:
    """How many numbers each block of the explorer has; `of_itself` if it is self-attention."""
    terms = of_itself and POSITIONS[config.positions].acts_on == "scores"
    return attention_explorer.BlockSize(
        config.n_head,
        queries,
        keys,
        config.head_size,
        config.n_head * (1 + terms) + of_itself,
        triangle,
    )


def most_tokens(config: Config) -> int:
    """The most tokens of a text that the explorer shows: as many as one block can be sent for."""

    def fits_view(tokens: int) -> bool:
        return (
            2 * _size(config, tokens, tokens, config.mask == "causal", of_itself=True).numbers
            <= MOST_OF_BLOCK
        )

    return max(
        1,
        bisect_left(
            range(1, config.context_length + 1), True, key=lambda tokens: not fits_view(tokens)
        ),
    )


# Two entries, each within the bytes that all blocks may take. Read-only, other sessions share it.
@jobs.resource("Reading the prompt", max_entries=2)
def view(key: ModelKey, read: PromptRead) -> ExplorerContent:
    """The attention of every head of one stack of the model over the tokens `read`."""
    model, part = _stack(key, read)
    of_itself = part == "attention"
    keys = len(read.ids) if part == "attention" else len(read.source or ())
    triangle = of_itself and attention_explorer.is_causal(
        attention.blocked_everywhere(model, read.ids), len(read.ids), keys
    )
    size = _size(model.config, len(read.ids), keys, triangle, of_itself)
    if len(attention_explorer.blocks_sent(size, model.config.n_layer, 0)) < model.config.n_layer:
        seen = overview(model, read.ids, read.source, part)
        release_memory()  # a block is read next
        return ExplorerContent(seen, None)
    whole = attention.read_attention(model, read.ids, read.source, part)
    return ExplorerContent(overview_of(whole.patterns, read.ids if of_itself else None), whole)


def reading_of(key: ModelKey, read: PromptRead, block: int) -> attention.AttentionReading:
    """The numbers of all blocks, or, if these are too many, only of `block`."""
    seen = view(key, read)
    if seen.whole is not None:
        return seen.whole
    # not kept: the patterns of a block over 2,048 tokens take 150 MB
    model, part = _stack(key, read)
    return attention.read_attention(
        model, read.ids, read.source, part, range(block, block + 1), seen.overview.midway
    )


def heads(
    key: ModelKey, read: PromptRead, block: int, words: tuple[range, ...] | None = None
) -> attention_explorer.Heads:
    """The attention of every head for the explorer, with the numbers of only `block` if those of
    all blocks are too many; with `words`, the attention between them.
    """
    seen = view(key, read).overview
    reading = reading_of(key, read, block)
    if words is not None:
        reading = in_words(reading, words)
        merged = overview_of(reading.patterns, range(len(words)))
        # averages stay those of tokens
        seen = replace(seen, thumbnails=merged.thumbnails, without_first=merged.without_first)
    config = language_model(key).model.config
    patterns = reading.patterns
    is_cross = read.stack == CROSS
    facts = seen.facts
    averages = {"spread": seen.spread} if is_cross else {}
    if facts is not None:
        averages = {
            "previous": facts.previous,
            "first": facts.first,
            "itself": facts.itself,
            "spread": facts.spread,
        }
        averages |= {} if facts.followed is None else {"followed": facts.followed}
    if is_cross:
        rolled = None
    elif reading.rolled is None:
        rolled = attention.rollout(patterns)
    else:
        rolled = reading.rolled
    return attention_explorer.Heads(
        patterns=patterns.blocks,
        blocked=patterns.blocked,
        q=reading.q,
        k=reading.k,
        moved=reading.moved if words is None else None,
        position=reading.position,
        rollout=rolled,
        thumbnails=np.asarray(seen.thumbnails.values, np.float32),
        facts=averages,
        scale=reading.scale,
        cap=reading.cap,
        sharing=config.n_head // config.key_heads,
        hidden=[patterns.blocked_in(held) for held in range(len(patterns.blocks))],
        first=reading.first,
        without_first=seen.without_first,
        scaled=reading.scaled,
        windows=()
        if is_cross or config.window is None
        else attention.windows(_stack(key, read)[0]),
    )


# An entry is within `attention_explorer.MOST_BYTES`, or, of a single block, within `MOST_OF_BLOCK`.
@jobs.resource("Reading the prompt", max_entries=3)
def _pack_patterns(
    key: ModelKey, read: PromptRead, header: str, block: int, words: tuple[range, ...] | None
) -> tuple[bytes, dict[str, Values]]:
    """The payload, and the values that the address may have for the view."""
    shown = heads(key, read, block, words)
    release_memory()  # of the passes over a long text
    return attention_explorer.payload(shown, json.loads(header)), attention_explorer.address(shown)


def show(subject: Subject, stack: str) -> None:
    """The explorer of the `stack`, which has blocks, below a sentence on the head that it opens
    on.
    """
    read = stack_read(subject, stack)
    if len(read.ids) < len(subject.seen):
        which = "last" if subject.kind.continues else "first"
        st.info(
            f"The patterns of one block over {format_count(len(subject.seen), 'token')} are too "
            "many "
            "numbers for a browser: here the "
            f"model reads the {which} {format_count(len(read.ids), 'token')}.",
            icon=":material/content_cut:",
        )
    seen = view(subject.key, read).overview
    start = _telling_head(subject, seen)
    say_answer(_sentence(subject, read, seen, *_in_address(seen, start)))
    words = words_of(subject, read)
    if words is None:
        lines = code(subject, stack)
    else:
        lines = f"{code(subject, stack)}\n{_words_in_code(words)}"
    explore(subject, read, lines, dict(zip(("block", "head"), start, strict=True)), words)
    if words is not None:
        st.caption(by_word.ATTENTION)
    for sentence in edits.about_patterns(subject.lm):
        st.caption(sentence)


def _telling_head(subject: Subject, seen: Overview) -> tuple[int, int]:
    """The block and the head that adds most to the guess, of those whose last token gives at least
    half of its attention to another one than the first; where nothing is known of that, the head
    whose last token gives most to one.
    """
    added = added_by_parts(subject.key, subject.seen)
    clear = {
        place: added[unit]
        for place, share in np.ndenumerate(read_most(seen).max(-1))
        if share >= CLEAR and (unit := Unit("attention", *place).name) in added
    }
    if not clear:
        return clearest_head(seen)
    block, head = max(clear, key=clear.__getitem__)
    return block, head


def _in_address(seen: Overview, usual: tuple[int, int]) -> tuple[int, int]:
    """The block and the head that the address asks for, or `usual` where there are no such."""
    asked = [st.query_params.get(name, "") for name in ("block", "head")]
    if all(
        name.isdecimal() and int(name) < n for name, n in zip(asked, seen.spread.shape, strict=True)
    ):
        return int(asked[0]), int(asked[1])
    return usual


def _sentence(subject: Subject, read: PromptRead, seen: Overview, block: int, head: int) -> str:
    """What a head reads where the last token stands."""
    shares = read_most(seen)[block, head]
    key = int(shares.argmax())
    texts = _texts(subject, read, None)
    return (
        f"At {name_place(texts['queries'], len(texts['queries']) - 1)}, "
        f"{said_title(subject.key, _unit(read, block, head))} reads "
        f"{name_place(texts['keys'], key)} most: {percent(float(shares[key]))} of its attention."
    )


def _own_names(subject: Subject, read: PromptRead) -> dict[str, str]:
    """What the reader calls the heads of the stack that is read, by "block.head"."""
    config = subject.lm.model.config
    name = names_of(subject.key)
    places = product(range(encoder_decoder.n_blocks(config, read.stack)), range(config.n_head))
    named = {place: name(_unit(read, *place).name) for place in places}
    return {f"{block}.{head}": own for (block, head), own in named.items() if own}


def _words_in_code(words: Sequence[range]) -> str:
    """The code that merges the tokens of the `reading` to these words."""
    return (
        "from gptviz.interp.reading.by_word import in_words\nreading = in_words(reading, "
        f"{list(words)})"
    )


def explore(
    subject: Subject,
    read: PromptRead,
    code: str,
    start: Mapping[str, Any],
    words: tuple[range, ...] | None = None,
) -> None:
    """The explorer of the tokens `read`.

    Args:
        subject: the model.
        read: the tokens of its stack.
        code: the code that computes what is shown, as a variable called `reading`.
        start: its first state: `block` and `head` (or the nearest there are), and other names of
            the view's part of the address.
        words: the places of the tokens of each word, to show words in the place of tokens.
    """
    of = fingerprint(subject.key, read, words)
    config = subject.lm.model.config
    n_block = encoder_decoder.n_blocks(config, read.stack)
    text, block = st.session_state.get("explorer block", ("", 0))
    command: ViewCommand = st.session_state.get(ASKED, NO_COMMAND)
    seen = view(subject.key, read)
    first = block if text == of else min(start["block"], n_block - 1)
    header = {
        "of": of,
        "model": subject.key.title
        if subject.key.step is None
        else f"{subject.key.title}, step {subject.key.step}",
        **_texts(subject, read, words),
        "spaced": subject.lm.tokenizer.is_spaced,
        "pooling": seen.overview.pooling
        if words is None
        else pooling(n_block, config.n_head, len(words)),
        "start": dict(start),
        "hidden": _hidden_by_mean(seen.whole.patterns)
        if read.stack == CROSS and seen.whole is not None
        else [],
        "code": code if seen.whole is not None else _of_block(code, first),
        "asked": dict(command.asked) if command.number else None,
        "number": command.number,
        "named": _own_names(subject, read),
        "edited": edits.of_attention(subject.lm, _unit(read, 0, None)),
    }

    def give(value: object) -> None:
        wanted = attention_explorer.read_block(value, of, n_block)
        if wanted is not None:
            st.session_state["explorer block"] = (of, wanted)

    def switch(value: object) -> None:
        asked = attention_explorer.read_switch(value, of, n_block, config.n_head)
        if asked is not None:
            edits.off_or_on(_unit(read, *asked))

    packed, values = _pack_patterns(subject.key, read, json.dumps(header), first, words)
    addresses.takes_all(values)
    attention_explorer.attention_explorer(packed, key="explorer", on_block=give, on_switch=switch)


def _unit(read: PromptRead, block: int, head: int | None) -> Unit:
    """The attention of a block of the stack that reads, or one head of it."""
    part: attention.AttentionPart = "cross_attention" if read.stack == CROSS else "attention"
    return Unit(part, block, head, in_encoder=read.stack == encoder_decoder.ENCODER)


def _of_block(code: str, block: int) -> str:
    """The code that gives a `reading` of only one block."""
    return f"{code.removesuffix(')')}, blocks=range({block}, {block + 1}))"


def _hidden_by_mean(patterns: attention.Patterns) -> list[str]:
    """For each block, a sentence on what the mean of its heads hides; none for blocks with a single
    head.
    """
    if patterns.n_head == 1:
        return []
    each = [hidden_by_mean(patterns, block) for block in range(len(patterns.blocks))]
    return [
        f"What the mean hides: its rows are spread over {one.spread:.1f} tokens, the rows of "
        f"single heads over {one.alone:.1f}, "
        f"the rows of head {one.sharpest[1]} over {one.sharpest_spread:.1f}. A token that gets "
        "all the attention of one head "
        f"and none of the other {one.heads - 1} has {percent(1 / one.heads)} here."
        for one in each
    ]


def _texts(subject: Subject, read: PromptRead, words: tuple[range, ...] | None) -> dict[str, Any]:
    """The labels of queries and keys, which are tokens or `words`, and the names of the two
    axes.
    """
    label = subject.lm.tokenizer.label
    if words is None:
        ids = [label(i) for i in read.ids]
    else:
        ids = word_labels(subject.lm.tokenizer, read.ids, words)
    if read.stack != CROSS:
        return {
            "queries": ids,
            "keys": ids,
            "alone": True,
            "reads": attention.QUERY,
            "isRead": attention.KEY,
        }
    queries = [label(i) for i in read.written] or ids
    source = [label(i) for i in read.source or ()]
    return {"queries": queries, "keys": source, "alone": False, "reads": WRITES, "isRead": SOURCE}


def explorer_state(**asked: Any) -> dict[str, ViewCommand]:
    """The state (as a `Try` sets it) that makes the explorer show something.

    Args:
        asked: `block`, `head`, `query`, `key` and other names of its part of the address. For names
            that are not given the view goes back to its own choice.
    """
    usual = dict.fromkeys(("heads", "show", "direction", "query", "key"))
    return {ASKED: ViewCommand.new_command({**usual, **asked})}


def no_attention(subject: Subject) -> None:
    """Used instead of the view for a stack without blocks: say that there is no attention, and link
    to a page that has something to show.
    """
    guesses = subject.kind.continues
    if guesses:
        alone = ": it guesses the next token only from the last one"
    else:
        alone = ""
    st.info(f"This model has no blocks and therefore no attention{alone}.")
    page = NEXT_TOKEN if guesses else frame.page_about(subject.kind.name)
    frame.link(
        page,
        "See its guesses" if guesses else f"See what this model does with the text: {page.title}",
    )


def code(subject: Subject, stack: str) -> str:
    """The code that computes a `reading`, which contains everything that is shown."""
    read = stack_read(subject, stack)
    prompt = subject.prompt
    if read.source:
        return code_of_two(subject, read)
    if subject.kind.has_source:
        if len(subject.encoding.ids) > reading.capacity(subject.lm):
            prompt = subject.lm.tokenizer.decode(subject.seen)  # a longer source is refused
        model = "lm.model.encoder"
        ids = f"lm.source({prompt!r})"
    else:
        model = "lm.model"
        ids = f"lm.seen(lm.encode({prompt!r}))"
        if len(read.ids) < len(subject.seen):
            ids += f"[-{len(read.ids)}:]" if subject.kind.continues else f"[:{len(read.ids)}]"
    return f"""{opening(subject.lm, "from gptviz.interp.reading.attention import read_attention")}
reading = read_attention({model}, {ids}.tolist())"""


def code_of_two(subject: Subject, read: PromptRead) -> str:
    """The same code for the decoder of an encoder–decoder, or for its cross-attention."""
    part = ', "cross_attention"' if read.stack == CROSS else ""
    return f"""{opening(subject.lm, "from gptviz.interp.reading.attention import read_attention")}
# The ids of the output from its start token on, and of the source.
output = {list(read.ids)}
source = {list(read.source or ())}
reading = read_attention(lm.model, output, source{part})"""


def code_of_head(lm: LanguageModel, read: PromptRead, block: int | None, head: int | None) -> str:
    """The code that computes the pattern of one head, as `shares`."""
    given = (f", {list(read.source)}" if read.source else "") + (
        ', "cross_attention"' if read.stack == CROSS else ""
    )
    if lm.model.encoder is not None and read.stack == encoder_decoder.ENCODER:
        model = "lm.model.encoder"
    else:
        model = "lm.model"
    return f"""{opening(lm, "from gptviz.interp.reading.attention import pattern")}
ids = {list(read.ids)}
shares = pattern({model}, ids, {block}, {head}{given})  # [query, key]"""
