"""A text as tokens, and how a word of it is put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import streamlit as st

from gptviz.components.token_strip import Token, token_strip
from gptviz.figures.kit.format import format_count
from gptviz.figures.kit.theme import KEY, MLP, OUTPUT, PATTERN, QUERY, STREAM, VALUE
from gptviz.figures.reading import tokens as figures
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.settings.address_values import whole_number
from gptviz.text import BPETokenizer, Encoding, Tokenizer, make_visible
from gptviz.text.datasets.languages import FIRST, examples
from gptviz.text.tokenizers.merging import Merging
from gptviz.text.tokenizers.pieces import Piece, cost, pieces
from gptviz.ui.records.tokens import COMPARE, CUT, LEARN
from gptviz.ui.shell.close import PageResult
from gptviz.ui.shell.subject import ModelKey, Subject, language_model, opening
from gptviz.ui.shell.subject.chat_turn import frame_of
from gptviz.ui.widgets import (
    Try,
    addresses,
    capitalise_text,
    controls,
    escape_markdown,
    in_quotes,
    picking,
    say_answer,
    show_figure,
    theme,
)
from gptviz.ui.widgets.playing import Player

# How tokens of each kind look: colour, and the line below.
LOOKS = {
    "whole word": (QUERY, "solid"),
    "part of a word": (KEY, "dashed"),
    "sign": (STREAM, "dotted"),
    "part of a character": (PATTERN, "dashed"),
    "unknown": (OUTPUT, "double"),
    "special": (VALUE, "double"),
    "chat template": (MLP, "double"),
}
# Pixels of a strip: the same for every text, so that nothing moves while merges are played.
HEIGHT = 170
WORD = "word"
TREE = Player("tree", "merges", "Play the merges of this word; at the end, from the start.")
# The tokens of a long text that are shown.
MOST_SHOWN = 2_000
SEVERAL: Final = {
    "whole word": "whole words",
    "part of a word": "parts of words",
    "sign": "signs and spaces",
    "part of a character": "parts of characters",
    "unknown": "unknown",
    "special": "special tokens",
    "chat template": "of the chat template",
}
WAYS: Final = {
    "characters": "This tokenizer has **one token per character**: there is nothing to merge, and "
    "a text has as many tokens as characters.",
    "symbols": "This tokenizer has **one token per symbol**, with white space between any two.",
    "words": "This tokenizer has **one token per word**: a word that it does not know has no "
    "pieces, and is read as unknown.",
    "longest pieces": "This tokenizer is a **WordPiece**: there are no merges. From the left of a "
    "word it takes the longest piece that its vocabulary has, then again from there. A piece that "
    "goes on with a word begins with ##. A word that cannot be cut so is read as unknown as a "
    "whole.",
    "likeliest pieces": "This tokenizer is a **Unigram**: there are no merges. Every piece has a "
    "probability, and of all ways to cut a word it takes the one whose probabilities have the "
    "largest product.",
}
NUMBER: Final = whole_number(0, 10**6)
COMMON = "the king and the queen"
RARE = "the unicorn and the porcupine"


def show_tokens(subject: Subject) -> PageResult:
    """The text on screen as tokens, and how one word of it was put together."""
    shown_pieces = with_template(subject, pieces_of(subject.key, subject.prompt))
    tokenizer = subject.lm.tokenizer
    number = _word(shown_pieces)
    chosen = next(place for place, piece in enumerate(shown_pieces) if piece.word == number)
    whole = len(subject.encoding.ids)
    say_answer(
        f"The model reads this text as {format_count(whole, 'token')}: "
        f"{list_kinds(shown_pieces, whole)}."
    )
    strip(
        shown_pieces,
        tokenizer,
        key="tokens strip",
        label="The tokens of the prompt; choose one to see its word",
        chosen=chosen,
    )
    st.caption(count_bytes(shown_pieces, whole, subject.prompt))
    st.markdown("**How a word is cut**")
    # Each word of the text as its tokens show it, by its number.
    data = dict[int, bytes]()
    labels = dict[int, str]()
    for piece in shown_pieces:
        data[piece.word] = data.get(piece.word, b"") + piece.data
        labels[piece.word] = labels.get(piece.word, "") + piece.label
    texts = {
        word: make_visible(data[word].decode("utf-8", "replace")) or labels[word] for word in data
    }
    with st.container(horizontal=True, vertical_alignment="bottom"):
        picking.pick(
            "Word",
            [*texts],
            number,
            lambda one: addresses.write(WORD, str(one)),
            key="word chosen",
            help="The word whose tokens are explained. A click on a token above chooses it too.",
            format_func=lambda one: texts[one],
        )
        ids = tuple(piece.id for piece in shown_pieces if piece.word == number)
        merging = merging_of(subject.key, ids)
        if merging is not None and merging.merges:
            help_text = (
                "How many merges are made. Move it from 0 to the end to watch the word grow "
                "together."
            )
            count = len(merging.merges)
            shown = play_merges(TREE, list(range(count + 1)), help_text)
    if merging is not None and merging.merges:
        _tree(subject, texts[number], merging, shown)
    st.markdown(way(tokenizer, merging, ids))
    numbers = np.array([[piece.id, len(piece.data)] for piece in shown_pieces])
    axes = (
        Axis("token", tuple(piece.label for piece in shown_pieces)),
        Axis("of it", ("number in the vocabulary", "bytes")),
    )
    return PageResult(lambda: LabelledArray(numbers, axes, "value"), code(subject))


@st.cache_data(max_entries=32, show_spinner=False)
def pieces_of(key: ModelKey, prompt: str) -> list[Piece]:
    """The tokens of the prompt."""
    tokenizer = language_model(key).tokenizer
    return pieces(tokenizer, first_tokens(tokenizer.encode(prompt)))


def first_tokens(encoding: Encoding) -> Encoding:
    """The first `MOST_SHOWN` tokens."""
    return Encoding(
        encoding.ids[:MOST_SHOWN],
        tuple(one for one in encoding.unknown if one.position < MOST_SHOWN),
    )


def with_template(subject: Subject, cut_text: Sequence[Piece]) -> list[Piece]:
    """The tokens, with those of the chat template around a message named as such; special ones stay
    special.
    """
    chat = subject.lm.card.chat
    around = None if chat is None else frame_of(chat)
    if around is None or around.message(subject.prompt) is None:
        return list(cut_text)
    encode = subject.lm.tokenizer.encode
    before, after = (encode(part).ids for part in (around.before, around.after))
    ids = subject.encoding.ids  # all of them, of which `found` may be the first
    first = next(
        (
            place
            for place, (one, other) in enumerate(zip(ids, before, strict=False))
            if one != other
        ),
        len(before),
    )
    last = next(
        (
            place
            for place, (one, other) in enumerate(zip(ids[::-1], after[::-1], strict=False))
            if one != other
        ),
        len(after),
    )
    inside = range(first, len(ids) - last)
    return [
        piece
        if place in inside or piece.kind == "special"
        else replace(piece, kind="chat template")
        for place, piece in enumerate(cut_text)
    ]


def _word(cut_text: Sequence[Piece]) -> int:
    """The number of the word that is explained: unless another is chosen, the one of most tokens,
    and of those the longest.
    """

    def parse_number(text: str) -> int:
        if int(text) > cut_text[-1].word:
            raise ValueError(f"the words of this text are numbered from 0 to {cut_text[-1].word}")
        return int(text)

    size = Counter(piece.word for piece in cut_text)
    length = Counter[int]()
    for piece in cut_text:
        length[piece.word] += len(piece.data)
    usual = max(size, key=lambda one: (size[one], length[one], -one))
    return controls.linked_choice(WORD, parse_number, usual, values=NUMBER)


def strip(
    cut_text: Sequence[Piece],
    tokenizer: Tokenizer,
    *,
    key: str,
    label: str,
    chosen: int | None = None,
) -> None:
    """The tokens as chips with their numbers; where `chosen` is given, that one is outlined and a
    click chooses another.
    """
    token_strip(
        [
            Token(piece.label, note=describe_piece(piece), kind=piece.kind, below=f"{piece.id}")
            for piece in cut_text
        ],
        key=key,
        selected=chosen,
        on_pick=None
        if chosen is None
        else lambda at: addresses.write(WORD, str(cut_text[at].word)),
        label=label,
        legend="",
        height=HEIGHT,
        spaced=tokenizer.is_spaced,
        kinds=LOOKS,
    )


def describe_piece(piece: Piece) -> str:
    """What the card of a token says."""
    if piece.instead_of:
        read = f", read instead of “{piece.instead_of}”"
    else:
        read = ""
    if piece.data:
        data = f" · {format_count(len(piece.data), 'byte')}: {piece.data.hex(' ').upper()}"
    else:
        data = ""
    return f"{piece.kind}{read} · number {piece.id:,}{data}"


def summary(cut_text: Sequence[Piece], whole: int, text: str) -> str:
    """How many tokens there are, and of what kinds; `whole` counts those that are not shown too."""
    listed = capitalise_text(list_kinds(cut_text, whole))
    return f"{count_bytes(cut_text, whole, text)} {listed}."


def list_kinds(cut_text: Sequence[Piece], whole: int) -> str:
    """How many of these tokens are of which kind, the most frequent kind first."""
    kinds = Counter(piece.kind for piece in cut_text)
    return ("of those shown: " if whole > len(cut_text) else "") + ", ".join(
        f"{count:,} {kind if count == 1 else SEVERAL[kind]}" for kind, count in kinds.most_common()
    )


def count_bytes(cut_text: Sequence[Piece], whole: int, text: str) -> str:
    """How many tokens there are for how many characters and bytes."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if whole > len(cut_text):
        shown = f" The first {len(cut_text):,} are shown."
    else:
        shown = ""
    return (
        f"**{format_count(whole, 'token')}** for {format_count(len(text), 'character')}, "
        f"{format_count(size, 'byte')}: "
        f"{size / max(1, whole):.2f} bytes per token.{shown}"
    )


@st.cache_data(max_entries=64, show_spinner=False)
def merging_of(key: ModelKey, ids: tuple[int, ...]) -> Merging | None:
    """The merges that made these tokens."""
    return language_model(key).tokenizer.merging(ids)


def play_merges(player: Player, options: list[int], about: str) -> int:
    """The slider through merges, with the button that plays them."""
    player.button(options, options[-1])
    made = controls.notch(
        "Merges made",
        options,
        key=player.key,
        help=about,
        default=options[-1],
        format_func=str,
        follows=True,
    )
    player.go_on(options, made)
    return int(made)


def _tree(subject: Subject, text: str, merging: Merging, shown: int) -> None:
    label = subject.lm.tokenizer.label
    symbols = [label(symbol) for symbol in merging.symbols]
    # The merges [merge, what it has], each by the token that it makes.
    values = np.array(
        [[merge.start, merge.middle, merge.end, merge.rank] for merge in merging.merges]
    )
    made = Axis("merge", tuple(label(merge.id) for merge in merging.merges))
    merges = LabelledArray(values, (made, Axis("of it", figures.FIELDS)), "place")
    levels = figures.height_of(merges, len(symbols))
    after = " · ".join(label(one) for one in merging.after(shown))
    show_figure(
        figures.tree(symbols, merges, theme(), height=70 + 44 * levels, shown=shown),
        key="merge tree",
        alt=f"The first {shown} of {format_count(len(merging.merges), 'merge')} that make {text}: "
        f"{after}.",
    )
    last = ""
    if shown:
        one = merging.merges[shown - 1]
        last = (
            f" Merge {shown} made {in_quotes(label(one.id))}: number {one.rank + 1:,} in the "
            "tokenizer’s list."
        )
    st.caption(
        f"**{format_count(shown, 'merge')} of {len(merging.merges)}**: "
        f"{escape_markdown(after)}.{last} Of all "
        "neighbours, the pair that comes first in that list is merged next."
    )


def way(tokenizer: Tokenizer, merging: Merging | None, ids: Sequence[int]) -> str:
    """What the tokenizer does with a word, as Markdown, with its scores where it has such."""
    if tokenizer.way == "merges":
        if merging is None:
            return (
                "These tokens are **not the result of merges**: this tokenizer looks some words "
                "up as a whole, or reads them as "
                "tokens that were added to its vocabulary."
            )
        if merging.merges:
            return ""
        return (
            "**Nothing was merged** here: each token is a byte, a character, or was added as "
            "a whole."
        )
    if isinstance(tokenizer, BPETokenizer):
        scores = tokenizer.scores()
    else:
        scores = {}
    if not scores:
        return WAYS[tokenizer.way]
    assert isinstance(tokenizer, BPETokenizer)
    own = [
        (tokenizer.label(i), scores[text])
        for i, text in zip(ids, tokenizer.written_tokens(ids), strict=True)
        if text in scores
    ]
    listed = " + ".join(
        f"{escape_markdown(label)} ({score:.2f})".replace("-", "−") for label, score in own
    )
    total = f"{sum(score for _, score in own):.2f}".replace("-", "−")
    return f"{WAYS[tokenizer.way]} Here, as logarithms: {listed} = {total}."


def code(subject: Subject) -> str:
    """The lines of `gptviz` that cut the text."""
    return f"""{opening(subject.lm)}
pieces = lm.pieces({subject.prompt!r})  # each with its number, bytes and kind
lm.tokenizer.merging([piece.id for piece in pieces])  # the merges that made them; None for other kinds of tokenizers"""


def tries(subject: Subject) -> list[Try]:
    """The suggestions for this model; every number is counted with its tokenizer."""
    tokenizer = subject.lm.tokenizer
    texts = examples()
    offers = []
    if tokenizer.way in ("merges", "longest pieces", "likeliest pieces"):
        common, rare = (cost(tokenizer, text).tokens for text in (COMMON, RARE))
        notice = (
            f"“{RARE}” takes {format_count(rare, 'token')}, “{COMMON}” {common}: words that are "
            "frequent have a token of their own, "
            "rare ones are put together."
        )
        offers.append(Try("Rare words", notice, {"view": CUT, "prompt": RARE}))
    own = cost(tokenizer, texts[FIRST])
    other = cost(tokenizer, texts["Hindi"])
    notice = (
        f"The same sentences take {own.tokens} tokens in {FIRST} and {other.tokens} in Hindi. See "
        "what others cost."
    )
    if other.lacking or not own.tokens or not other.tokens:
        notice = (
            "This tokenizer cannot read the same sentences in Hindi. See which languages it "
            "reads, and what another one does."
        )
    offers.append(Try("Other languages", notice, {"view": COMPARE}))
    notice = (
        "Every merge joins the two neighbours that are most frequent: move the slider from 0, and "
        "watch the prompt grow together."
    )
    return [*offers, Try("Watch merges being learned", notice, {"view": LEARN})]
