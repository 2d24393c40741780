"""The views of the page Tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.components.token_strip import Token, token_strip
from gptviz.figures.kit.format import counted
from gptviz.figures.kit.theme import KEY, MLP, OUTPUT, PATTERN, QUERY, STREAM, VALUE
from gptviz.figures.reading import tokens as figures
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.runs import checkpoints
from gptviz.text import CorpusUnavailableError, Tokenizer, visible
from gptviz.text.datasets.languages import FIRST, examples
from gptviz.text.tokenizers.learning import BYTES, Learned
from gptviz.text.tokenizers.merging import Merging
from gptviz.text.tokenizers.pieces import Cost, Piece, pieces
from gptviz.ui.records.tokens import COMPARE, PAGE
from gptviz.ui.records.train import PAGE as TRAIN
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import Subject
from gptviz.ui.shell.subject.chat_turn import frame_of
from gptviz.ui.views.texts import PASSAGES
from gptviz.ui.widgets import addresses, capitalised, controls, escaped, in_quotes, picking, show_figure, theme
from gptviz.ui.widgets.figure import pixels
from gptviz.ui.widgets.playing import Player

from . import choices, computed, words
from .choices import Beside

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
FILM = Player("film", "made", "Play the merges as they were learned; at the end, from the start.")


def strip(found: Sequence[Piece], tokenizer: Tokenizer, *, key: str, label: str, chosen: int | None = None) -> None:
    """The tokens as chips with their numbers; where `chosen` is given, that one is outlined and a click chooses another."""
    token_strip(
        [Token(piece.label, note=about(piece), kind=piece.kind, below=f"{piece.id}") for piece in found],
        key=key,
        selected=chosen,
        on_pick=None if chosen is None else lambda at: addresses.write(WORD, str(found[at].word)),
        label=label,
        legend="",
        height=HEIGHT,
        spaced=tokenizer.is_spaced,
        kinds=LOOKS,
    )


def about(piece: Piece) -> str:
    """What the card of a token says."""
    read = f", read instead of “{piece.instead_of}”" if piece.instead_of else ""
    data = f" · {counted(len(piece.data), 'byte')}: {piece.data.hex(' ').upper()}" if piece.data else ""
    return f"{piece.kind}{read} · number {piece.id:,}{data}"


def summary(found: Sequence[Piece], whole: int, text: str) -> str:
    """How many tokens there are, and of what kinds; `whole` counts those that are not shown too."""
    kinds = Counter(piece.kind for piece in found)
    listed = ("Of those shown: " if whole > len(found) else "") + ", ".join(
        f"{count:,} {kind if count == 1 else words.SEVERAL[kind]}" for kind, count in kinds.most_common()
    )
    size = len(text.encode("utf-8", "surrogatepass"))
    shown = f" The first {len(found):,} are shown." if whole > len(found) else ""
    return (
        f"**{counted(whole, 'token')}** for {counted(len(text), 'character')}, {counted(size, 'byte')}: "
        f"{size / max(1, whole):.2f} bytes per token. {capitalised(listed)}.{shown}"
    )


def with_template(subject: Subject, found: Sequence[Piece]) -> list[Piece]:
    """The tokens, with those of the chat template around a message named as such; special ones stay special."""
    chat = subject.lm.card.chat
    around = None if chat is None else frame_of(chat)
    if around is None or around.message(subject.prompt) is None:
        return list(found)
    encode = subject.lm.tokenizer.encode
    before, after = (encode(part).ids for part in (around.before, around.after))
    ids = subject.encoding.ids  # all of them, of which `found` may be the first
    first = next((place for place, (one, other) in enumerate(zip(ids, before, strict=False)) if one != other), len(before))
    last = next(
        (place for place, (one, other) in enumerate(zip(ids[::-1], after[::-1], strict=False)) if one != other), len(after)
    )
    inside = range(first, len(ids) - last)
    return [
        piece if place in inside or piece.kind == "special" else replace(piece, kind="chat template")
        for place, piece in enumerate(found)
    ]


Shown = tuple[LabelledArray, str]
"""The numbers of a view, and the lines of `gptviz` that compute them."""


def cut(subject: Subject) -> Shown:
    """The text on screen as tokens, and how one word of it was put together."""
    found, tokenizer = with_template(subject, computed.cut(subject.key, subject.prompt)), subject.lm.tokenizer
    number = _word(found)
    chosen = next(place for place, piece in enumerate(found) if piece.word == number)
    strip(found, tokenizer, key="tokens strip", label="The tokens of the prompt; choose one to see its word", chosen=chosen)
    st.caption(summary(found, len(subject.encoding.ids), subject.prompt))
    st.markdown("**How a word is cut**")
    texts = _texts(found)
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
        ids = tuple(piece.id for piece in found if piece.word == number)
        merging = computed.merging(subject.key, ids)
        if merging is not None and merging.merges:
            about = "How many merges are made. Move it from 0 to the end to watch the word grow together."
            count = len(merging.merges)
            shown = _played(TREE, list(range(count + 1)), about)
    if merging is not None and merging.merges:
        _tree(subject, texts[number], merging, shown)
    st.markdown(words.way(tokenizer, merging, ids))
    numbers = np.array([[piece.id, len(piece.data)] for piece in found])
    axes = Axis("token", tuple(piece.label for piece in found)), Axis("of it", ("number in the vocabulary", "bytes"))
    return LabelledArray(numbers, axes, "value"), words.code_of_cut(subject)


def _played(player: Player, options: list[int], about: str) -> int:
    """The slider through merges, with the button that plays them."""
    player.button(options, options[-1])
    made = controls.notch("Merges made", options, key=player.key, help=about, default=options[-1], format_func=str, follows=True)
    player.go_on(options, made)
    return int(made)


def _texts(found: Sequence[Piece]) -> dict[int, str]:
    """Each word of the text as its tokens show it, by its number."""
    data, labels = dict[int, bytes](), dict[int, str]()
    for piece in found:
        data[piece.word] = data.get(piece.word, b"") + piece.data
        labels[piece.word] = labels.get(piece.word, "") + piece.label
    return {number: visible(data[number].decode("utf-8", "replace")) or labels[number] for number in data}


def _word(found: Sequence[Piece]) -> int:
    """The number of the word that is explained: unless another is chosen, the one of most tokens, and of those the longest."""

    def parsed(text: str) -> int:
        if int(text) > found[-1].word:
            raise ValueError(f"the words of this text are numbered from 0 to {found[-1].word}")
        return int(text)

    size = Counter(piece.word for piece in found)
    length = Counter[int]()
    for piece in found:
        length[piece.word] += len(piece.data)
    usual = max(size, key=lambda one: (size[one], length[one], -one))
    return controls.linked(WORD, parsed, usual, values=words.NUMBER)


def merges_labelled(subject: Subject, merging: Merging) -> LabelledArray:
    """The merges [merge, what it has], each by the token that it makes."""
    label = subject.lm.tokenizer.label
    values = np.array([[one.start, one.middle, one.end, one.rank] for one in merging.merges])
    return LabelledArray(
        values, (Axis("merge", tuple(label(one.id) for one in merging.merges)), Axis("of it", figures.FIELDS)), "place"
    )


def _tree(subject: Subject, text: str, merging: Merging, shown: int) -> None:
    label, merges = subject.lm.tokenizer.label, merges_labelled(subject, merging)
    symbols = [label(one) for one in merging.symbols]
    levels = figures.height_of(merges, len(symbols))
    after = " · ".join(label(one) for one in merging.after(shown))
    show_figure(
        figures.tree(symbols, merges, theme(), height=70 + 44 * levels, shown=shown),
        key="merge tree",
        alt=f"The first {shown} of {counted(len(merging.merges), 'merge')} that make {text}: {after}.",
    )
    last = ""
    if shown:
        one = merging.merges[shown - 1]
        last = f" Merge {shown} made {in_quotes(label(one.id))}: number {one.rank + 1:,} in the tokenizer’s list."
    st.caption(
        f"**{counted(shown, 'merge')} of {len(merging.merges)}**: {escaped(after)}.{last} Of all "
        "neighbours, the pair that comes first in that list is merged next."
    )


def compare(subject: Subject) -> Shown | None:
    """Two tokenizers on the text on screen, and on eight languages, numbers and code."""
    own = Beside.of_model(subject.key.name)
    name = choices.other(own.name)
    try:
        other = choices.beside(name)
        if other is None:
            return None
        both = {one.name: one.tokenizer for one in (own, other)}
        read = {one: tokenizer.encode(subject.prompt) for one, tokenizer in both.items()}
        found = {one: computed.costs(tokenizer) for one, tokenizer in both.items()}
    except (ValueError, OSError, checkpoints.CheckpointError, CorpusUnavailableError) as error:
        st.error(escaped(f"{name}: {error}. Choose another one beside it."))
        return None
    for place, (column, (one, tokenizer)) in enumerate(zip(st.columns(2, gap="medium"), both.items(), strict=True)):
        with column:
            st.markdown(f"**{escaped(one)}**: {words.SHORT[tokenizer.way]}, {tokenizer.vocab_size:,} tokens in its vocabulary")
            cut_text = pieces(tokenizer, computed.first(read[one]))
            if one == own.name:
                cut_text = with_template(subject, cut_text)
            strip(cut_text, tokenizer, key=f"tokens {place}", label=f"The tokens of the prompt with {one}")
            st.caption(summary(cut_text, len(read[one].ids), subject.prompt))
    st.markdown("**What languages cost**")
    times = computed.times(found)
    said = "; ".join(f"with {one} {_dearest(times, place)}" for place, one in enumerate(found))
    show_figure(
        figures.costs(times, theme(), height=320),
        key="languages",
        alt=f"How many times as many tokens as in {FIRST} the same sentences take: {said}.",
    )
    st.caption(
        f"The same sentences in eight languages: how many times as many tokens as in {FIRST} they take, {escaped(said)}. A text "
        f"that takes more tokens costs more to read, and fills the context sooner. {escaped(_lacking(times))}"
    )
    st.dataframe(_table(found), hide_index=True, height=pixels(400))
    st.caption(
        "Tokens per word is left out for scripts that write no spaces between words. More bytes per token is a shorter text for "
        "the model; a letter beyond the Latin ones has two to four bytes."
    )
    return times, words.code_of_costs(own.code, other.code)


def _dearest(times: LabelledArray, tokenizer: int) -> str:
    """The language that costs a tokenizer most, in words."""
    values = times.values[:, tokenizer]
    if np.isnan(values).all():
        return "none can be read"
    most = int(np.nanargmax(values))
    return f"most in {times.axes[0].labels[most]}, {values[most]:.1f} times"


def _lacking(times: LabelledArray) -> str:
    """A sentence on the languages that have no bar; empty if all have one."""
    texts, tokenizers = times.axes
    said = [
        f"{name} cannot read {', '.join(label for label, value in zip(texts.labels, row, strict=True) if np.isnan(value))}"
        for name, row in zip(tokenizers.labels, times.values.T, strict=True)
        if np.isnan(row).any()
    ]
    return f"No bar: {'; '.join(said)}." if said else ""


def _table(found: dict[str, dict[str, Cost]]) -> pd.DataFrame:
    """A row for each text and tokenizer."""
    return pd.DataFrame(
        [
            {
                "text": text,
                "tokenizer": name,
                "tokens": costs[text].tokens,
                "tokens per word": "–" if costs[text].tokens_per_word is None else f"{costs[text].tokens_per_word:.2f}",
                "bytes per token": f"{costs[text].bytes_per_token:.2f}",
                "not in its vocabulary": costs[text].lacking,
            }
            for text in examples()
            for name, costs in found.items()
        ]
    )


def learn(subject: Subject) -> Shown | None:
    """Byte-pair encoding learned from a text, with a slider through its merges."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        try:
            text, name, most = choices.to_learn()
        except CorpusUnavailableError as error:
            st.error(escaped(f"{error}."))
            return None
    if not text.strip():
        st.info("There is no text to learn from: type or paste one above.")
        return None
    found = computed.learned_from(text, most)
    count = len(found.merges)
    if not count:
        st.info("This text has no two neighbours that could be merged: type a longer one above.")
        return None
    about = "How many merges are made. The text, the pairs and the mark on the curve follow it."
    options = words.stops(count)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        made = _played(FILM, options, about)
    cut_text = computed.cut_after(text, most, made, subject.prompt)
    strip(cut_text, found.tokenizer, key="tokens strip", label=f"The prompt after {made} merges")
    st.caption(summary(cut_text, len(cut_text), subject.prompt))
    left, right = st.columns([3, 2], gap="medium")
    shrunk = LabelledArray(found.bytes / found.tokens, (Axis("merges", tuple(map(str, range(count + 1)))),), "bytes per token")
    with left:
        show_figure(
            figures.shrinking(shrunk, theme(), height=300, chosen=made),
            key="shrinking",
            alt=f"How many bytes a token stands for, after 0 to {count:,} merges: {shrunk.values[made]:.2f} after {made:,}.",
        )
        st.caption(
            f"The vocabulary has {BYTES} bytes and {made:,} merged tokens: {BYTES + made:,}. The text that is learned from has "
            f"{found.bytes:,} bytes and is now {found.tokens[made]:,} tokens long, {shrunk.values[made]:.2f} bytes per token."
        )
    with right:
        _pairs(found, text, most, made)
    _onwards(name, text, most, count)
    return shrunk, words.code_of_learned(text, name, most)


def _pairs(found: Learned, text: str, most: int, made: int) -> None:
    """The pairs that stand side by side most often, the first of which is merged next."""
    rows = computed.pairs_after(text, most, made)
    st.dataframe(
        pd.DataFrame([{"left": left, "right": right, "side by side": times} for left, right, times in rows]),
        hide_index=True,
        height=pixels(300),
    )
    if rows and made < len(found.merges):
        left, right, times = rows[0]
        st.caption(f"Next: {in_quotes(left)} and {in_quotes(right)}, {times:,} times side by side, become one token.")
    elif rows:
        st.caption("All merges that were to be learned are made. These pairs would come next.")


def _onwards(name: str, text: str, most: int, count: int) -> None:
    """The links to what is done with these merges: a comparison with the tokenizer of the model, and a run on Train that learns
    the same ones from this text.
    """
    pasted = name in (PASSAGES, words.OWN)
    try:
        own = {"pasted": addresses.value_of(text)} if pasted else {}
    except OSError as error:
        st.caption(f"This text cannot be handed on ({escaped(str(error))}): paste it there.")
        return
    shared = frame.shared_state()
    learned = {choices.OTHER: choices.LEARNED, choices.FROM: name, choices.MOST: str(most)}
    with st.container(horizontal=True):
        if count < words.FEWEST_TO_TRAIN:
            st.caption(f"A model is trained with {words.FEWEST_TO_TRAIN} merges or more.")
        else:
            query = {"plan": "bpe", "data": words.PASTED if pasted else name, **own, "tokens": "bpe"}
            size = BYTES + count
            label = f"Train a model with these {size:,} tokens"
            frame.link(TRAIN, label, query={**shared, **query, "run_vocabulary": str(size)})
        own = own if name == words.OWN else {}
        frame.link(PAGE, "Beside the tokenizer of the model", query={**shared, "view": COMPARE, **learned, **own})
