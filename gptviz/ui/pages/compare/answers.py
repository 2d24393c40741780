"""The view Answers of Compare: sentences that both models complete, beside the share in the data of
each; nearest words; texts.

Both read the same sentences here, whatever the prompts of A and B are.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.data.trained_on import Share
from gptviz.figures.changing import compared as figures
from gptviz.figures.kit.format import percent
from gptviz.generate.sampling import Sampling
from gptviz.interp import compare
from gptviz.interp.compare import Compared
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.language_model import data
from gptviz.machine.lines import lines_of
from gptviz.ui.shell.close import NOTHING, PageResult
from gptviz.ui.shell.subject import ModelKey, ask, language_model
from gptviz.ui.widgets import controls, escape_markdown, in_quotes, jobs, show_figure, theme
from gptviz.ui.widgets.details import folded_part
from gptviz.ui.widgets.figure import pixels
from gptviz.ui.widgets.tables import show_table

from .sides import Sides, code

SENTENCES = "sentences"
WORDS = "answer_words"
WORD = "answer_word"
NEAREST = "nearest_to"
MOST_SENTENCES = 12
MOST_WORDS = 8
LONGEST = 2_000
GUESSES = 3  # words that are asked for where the task of the model names none
NEIGHBOURS = 5
TEXTS = 5
LONGEST_TEXT = 12


def answers(sides: Sides) -> PageResult:
    """Sentences that both complete, beside the shares in their data, unless one of them cannot read
    them.
    """
    sentences, words = ask_sentences(sides)
    try:
        asked_both = [
            ask(one.key, data.answers, "Reading the sentences", sentences=sentences, words=words)
            for one in (sides.a, sides.b)
        ]
        compared = compare.compared(*(each.value for each in asked_both))
    except ValueError as error:
        st.info(f"{escape_markdown(str(error))}.", icon=":material/info:")
        return NOTHING
    # One word after every sentence as bars with the shares in the data, all words as a table,
    # nearest words, and texts.
    chosen = controls.select(
        "Word",
        words,
        key=WORD,
        help="Whose probability is drawn; the table has all of them.",
        segmented=True,
    )
    word = words.index(chosen)
    shares = [_shares(one.key.unedited, sentences, words) for one in (sides.a, sides.b)]
    axis = Axis("sentence", sentences)
    a, b = (
        LabelledArray(one.values[:, word], (axis,), f"probability of “{chosen}”")
        for one in (compared.a, compared.b)
    )
    sides_marks = [marks(some, word, len(sentences)) for some in shares]
    every = [
        float(value)
        for value in np.nan_to_num(
            [*a.values, *b.values, *(m[2] for some in sides_marks for m in some)]
        )
    ]
    figure = figures.pairs(a, b, theme(), limit=max(*every, 1e-9), percent=True)
    show_figure(
        figures.with_shares(figure, sides_marks, theme()),
        key="answers",
        alt=f"The probability of {chosen} after each sentence in A and in B, and its share in the "
        "data of each.",
    )
    st.markdown(describe_difference(chosen, sentences, [a.values, b.values], sides_marks))
    if fold := folded_part("All words, as a table", key="all words"):
        with fold:
            show_table(table(sentences, words, compared, shares), height="content", hide_index=True)
    _nearest_tokens(sides, sentences, words)
    _show_written(sides, sentences)
    call = f"{list(sentences)!r}, {list(words)!r}"
    return PageResult(
        compared.table,
        code(sides, f"compare.compared(a.answers({call}), b.answers({call}))", of_models=True),
    )


def ask_sentences(sides: Sides) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The controls for the sentences, a line each, and the words, with commas between."""
    # Those of the task of A; for another model its prompt and the likeliest words after it.
    a = sides.a
    task = sides.a.lm.task
    sentences, words = ((), ()) if task is None else task.questions()
    if not sentences:
        sentences = (a.prompt,)
        words = _likeliest_words(a.key, a.seen)
    left, right = st.columns([3, 2])
    with left:
        typed = controls.text(
            "Sentences to complete",
            key=SENTENCES,
            help=f"What both models read, a line each, at most {MOST_SENTENCES}. In characters, a "
            "space at the end counts.",
            longest=LONGEST,
            height=pixels(72),
            placeholder="\n".join(sentences),
        )
    with right:
        chosen = controls.text(
            "Words",
            key=WORDS,
            help="How likely is each of these to come next? Commas between them, at most "
            f"{MOST_WORDS}.",
            longest=LONGEST,
            placeholder=", ".join(words),
        )
    lines = tuple(dict.fromkeys(lines_of(typed)))
    own = tuple(dict.fromkeys(word for word in re.split(r"\s*,\s*", chosen.strip()) if word))
    return lines[:MOST_SENTENCES] or sentences, own[:MOST_WORDS] or words


@st.cache_data(max_entries=32, show_spinner=False)
def _likeliest_words(key: ModelKey, ids: tuple[int, ...]) -> tuple[str, ...]:
    lm = language_model(key)
    order = (-compare.distribution(compare.Side(lm.model, ids, ()))).argsort(kind="stable").tolist()
    pieces = (lm.tokenizer.piece(token).strip() for token in order)
    return tuple(dict.fromkeys(piece for piece in pieces if piece and "," not in piece))[:GUESSES]


@jobs.resource("Counting in the data of the model", max_entries=32)
def _shares(key: ModelKey, sentences: tuple[str, ...], words: tuple[str, ...]) -> list[list[Share]]:
    """As `LanguageModel.shares_in_data`; empty where the data are not known."""
    try:
        return language_model(key).shares_in_data(sentences, words)
    except (ValueError, OSError):
        return []


def marks(shares: list[list[Share]], word: int, count: int) -> list[tuple[float, float, float]]:
    """For each sentence the share of a word in the data and its interval; NaN where it is not
    known.
    """
    if not shares:
        return [(np.nan,) * 3] * count
    return [
        (row[word].value, *row[word].interval) if row[word].of else (np.nan,) * 3 for row in shares
    ]


def describe_difference(
    word: str,
    sentences: tuple[str, ...],
    likely: list[np.ndarray],
    data: list[list[tuple[float, float, float]]],
) -> str:
    """The sentence at which A and B differ most, and how far the models are from the shares in
    their data, as Markdown.
    """
    most = int(np.argmax(np.abs(likely[1] - likely[0])))
    text = (
        f"After {in_quotes(sentences[most])} A and B differ most: A gives {in_quotes(word)} "
        f"{percent(likely[0][most])}, B "
        f"{percent(likely[1][most])}."
    )
    known = [
        (p, m)
        for side, some in zip(likely, data, strict=True)
        for p, m in zip(side, some, strict=True)
        if not np.isnan(m[0])
    ]
    if not known:
        return (
            f"{text} What they were trained on is not on this machine, so that there are no "
            "shares to compare with."
        )
    off = max(abs(p - share[0]) for p, share in known)
    inside = sum(share[1] <= p <= share[2] for p, share in known)
    return (
        f"{text} The upright marks are the shares in the data of each model, with the interval "
        "that chance allows (95 %): "
        f"**{inside} of {len(known)}** probabilities lie within it, and none is more than "
        f"{100 * off:.1f} points from its share."
    )


def table(
    sentences: tuple[str, ...],
    words: tuple[str, ...],
    both: Compared,
    shares: list[list[list[Share]]],
) -> pd.DataFrame:
    """A line for every sentence and word: probability, share in the data and its interval, of A and
    of B, in percent.
    """
    lines = []
    for i, sentence in enumerate(sentences):
        for j, word in enumerate(words):
            line: dict[str, object] = {"sentence": sentence, "word": word}
            for name, side, some in zip("AB", (both.a, both.b), shares, strict=True):
                share = some[i][j] if some else None
                line[f"{name}, %"] = round(100 * float(side.values[i, j]), 2)
                line[f"{name}: share in its data, %"] = (
                    None if share is None or not share.of else round(100 * share.value, 2)
                )
                if share is None or not share.of:
                    ends = ""
                else:
                    ends = " to ".join(f"{100 * end:.1f}" for end in share.interval)
                line[f"{name}: chance, %"] = ends
            lines.append(line)
    return pd.DataFrame(lines)


def _nearest_tokens(sides: Sides, sentences: tuple[str, ...], words: tuple[str, ...]) -> None:
    """The tokens nearest to a word in both models: to one in which the sentences differ, one of the
    first, or an answer.
    """
    models = [language_model(one.key) for one in (sides.a, sides.b)]
    tokenizer = models[0].tokenizer
    read = [
        [tokenizer.piece(i).strip() for i in tokenizer.encode(sentence).ids]
        for sentence in sentences
    ]
    if len(read) > 1:
        common = set(read[0]).intersection(*read[1:])
    else:
        common = set[str]()
    listed = (*(word for sentence in read for word in sentence if word not in common), *words)
    offered = [
        word
        for word in listed
        if word and all(lm.tokenizer.id_of(word) is not None for lm in models)
    ]
    if not offered:
        return
    hint = (
        "The tokens whose embeddings have the largest cosine with that of this one, over all "
        "dimensions."
    )
    chosen = controls.select("Nearest to", list(dict.fromkeys(offered)), key=NEAREST, help=hint)
    for column, name, lm in zip(st.columns(2), "AB", models, strict=True):
        each = ", ".join(
            f"{in_quotes(token)} {value:.2f}".replace("-", "−")
            for token, value in lm.nearest(chosen, NEIGHBOURS).items()
        )
        column.markdown(f"**{name}**: nearest to {in_quotes(chosen)} are {each}.")


def _show_written(sides: Sides, sentences: tuple[str, ...]) -> None:
    hint = "What both write after this sentence, drawn with the same seeds."
    sentence = controls.select("They write after", sentences, key="written_after", help=hint)
    for column, name, one in zip(st.columns(2), "AB", (sides.a, sides.b), strict=True):
        column.markdown(f"**{name}** writes")
        column.code(
            "\n".join(sentence + text.rstrip() for text in _texts(one.key, sentence)),
            language=None,
            wrap_lines=True,
        )


@st.cache_data(max_entries=32, show_spinner="Writing")
def _texts(key: ModelKey, sentence: str) -> list[str]:
    lm = language_model(key)
    return [
        lm.generate(sentence, LONGEST_TEXT, **vars(Sampling(seed=seed))) for seed in range(TEXTS)
    ]
