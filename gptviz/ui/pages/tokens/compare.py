"""Two tokenizers beside each other, on a text and on eight languages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.figures.reading import tokens as figures
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.machine.errors import reason_of
from gptviz.machine.files import kept_until_written
from gptviz.machine.hosting import hosting
from gptviz.pretrained import opening
from gptviz.pretrained.places import stores
from gptviz.pretrained.places.stores import Place
from gptviz.runs import checkpoints
from gptviz.text import CorpusUnavailableError, Tokenizer
from gptviz.text.datasets.languages import FIRST, TRANSLATED, examples
from gptviz.text.tokenizers.pieces import Cost, cost, pieces
from gptviz.ui.shell.close import NOTHING, PageResult
from gptviz.ui.shell.subject import Subject
from gptviz.ui.views.texts import PASSAGES
from gptviz.ui.widgets import controls, escape_markdown, show_figure, theme
from gptviz.ui.widgets.figure import pixels
from gptviz.ui.widgets.tables import show_table

from .cut import first_tokens, strip, summary, with_template
from .learn import LEARNED, OTHER, OWN, learned_from, text_expression, to_learn

IN_A_FOLDER: Final = "in a folder of yours"
LONGEST_PATH = 1_000
# A tokenizer does not read a text of which it lacks a larger share of the tokens.
MOST_LACKING = 0.1
SHORT: Final = {
    "characters": "one token per character",
    "symbols": "one token per symbol",
    "words": "one token per word",
    "merges": "byte-pair encoding",
    "longest pieces": "WordPiece",
    "likeliest pieces": "Unigram",
}


@dataclass(frozen=True, eq=False)
class Beside:
    """A tokenizer that is compared."""

    name: str  #: what it is called
    tokenizer: Tokenizer  #: the tokenizer
    code: str  #: the expression that makes it

    @classmethod
    def of_model(cls, name: str) -> Beside:
        """That of a model of gptviz."""
        return cls(name, _of_model(checkpoints.find(name)), f"gptviz.load({name!r}).tokenizer")

    @classmethod
    def from_path(cls, name: str, path: Path) -> Beside:
        """That of another program."""
        return cls(name, _at(path), f"gptviz.pretrained.opening.tokenizer_at(Path({str(path)!r}))")


def compare(subject: Subject) -> PageResult:
    """Two tokenizers on the text on screen, and on eight languages, numbers and code."""
    own = Beside.of_model(subject.key.name)
    name = choose_other(own.name)
    try:
        beside_it = other_tokenizer(name)
        if beside_it is None:
            return NOTHING
        both = {one.name: one.tokenizer for one in (own, beside_it)}
        read = {one: tokenizer.encode(subject.prompt) for one, tokenizer in both.items()}
        costs_by_name = {
            one: {title: cost(tokenizer, text) for title, text in examples().items()}
            for one, tokenizer in both.items()
        }
    except (ValueError, OSError, checkpoints.CheckpointError, CorpusUnavailableError) as error:
        st.error(escape_markdown(f"{name}: {reason_of(error)}. Choose another one beside it."))
        return NOTHING

    # the text, cut by each
    for place, (column, (one, tokenizer)) in enumerate(
        zip(st.columns(2, gap="medium"), both.items(), strict=True)
    ):
        with column:
            st.markdown(
                f"**{escape_markdown(one)}**: {SHORT[tokenizer.way]}, {tokenizer.vocab_size:,} "
                "tokens in "
                "its vocabulary"
            )
            cut_text = pieces(tokenizer, first_tokens(read[one]))
            if one == own.name:
                cut_text = with_template(subject, cut_text)
            strip(
                cut_text,
                tokenizer,
                key=f"tokens {place}",
                label=f"The tokens of the prompt with {one}",
            )
            st.caption(summary(cut_text, len(read[one].ids), subject.prompt))

    # the same sentences in eight languages
    st.markdown("**What languages cost**")
    dear = times(costs_by_name)
    dearest = []
    lacking = []
    for name, column in zip(costs_by_name, dear.values.T, strict=True):
        gone = np.isnan(column)
        most = "none can be read"
        if not gone.all():
            most = (
                f"most in {dear.axes[0].labels[np.nanargmax(column)]}, {np.nanmax(column):.1f} "
                "times"
            )
        dearest.append(f"with {name} {most}")
        if gone.any():
            lacking.append(f"{name} cannot read {', '.join(np.array(dear.axes[0].labels)[gone])}")
    said = "; ".join(dearest)
    no_bar = f"No bar: {'; '.join(lacking)}." if lacking else ""
    show_figure(
        figures.costs(dear, theme(), height=320),
        key="languages",
        alt=f"How many times as many tokens as in {FIRST} the same sentences take: {said}.",
    )
    st.caption(
        f"The same sentences in eight languages: how many times as many tokens as in {FIRST} they "
        f"take, {escape_markdown(said)}. A text "
        "that takes more tokens costs more to read, and fills the context sooner. "
        f"{escape_markdown(no_bar)}"
    )

    # the same as a table
    rows = [
        {
            "text": text,
            "tokenizer": one,
            "tokens": costs_of[text].tokens,
            "tokens per word": "–"
            if costs_of[text].tokens_per_word is None
            else f"{costs_of[text].tokens_per_word:.2f}",
            "bytes per token": f"{costs_of[text].bytes_per_token:.2f}",
            "not in its vocabulary": costs_of[text].lacking,
        }
        for text in examples()
        for one, costs_of in costs_by_name.items()
    ]
    show_table(pd.DataFrame(rows), hide_index=True, height=pixels(400))
    st.caption(
        "Tokens per word is left out for scripts that write no spaces between words. More bytes "
        "per token is a shorter text for "
        "the model; a letter beyond the Latin ones has two to four bytes."
    )
    return PageResult(lambda: dear, code(own.code, beside_it.code))


def choose_other(own: str) -> str:
    """The control `other`: what stands beside the tokenizer of the model on screen, which is called
    `own`.
    """
    names = [name for name in (*checkpoints.folders(), LEARNED, *places()) if name != own]
    if not hosting().read_only:  # a reader who may type paths learns which files there are
        names.append(IN_A_FOLDER)
    usual = "shakespeare" if own != "shakespeare" else "bpe"
    hint = (
        "The tokenizer of any model of the list, or one that another program keeps on this "
        "machine, also without a model; one "
        "that is learned here from a text; or one in a folder: only the tokenizer is read."
    )
    return controls.select("Beside it", names, key=OTHER, default=usual, help=hint)


@st.cache_data(ttl=60, show_spinner="Looking for tokenizers on this machine")
def places() -> dict[str, Place]:
    """The tokenizers that other programs keep on this machine, by their names in the list; none on
    a server that only shows models: its readers must not learn what is on it.
    """
    if hosting().read_only:
        return {}
    return {f"{place.name} ({place.store})": place for place in stores.tokenizers()}


def other_tokenizer(name: str) -> Beside | None:
    """The tokenizer that is called so in the control `other`; None, with a line that says why, as
    long as there is none.

    Raises:
        ValueError: it cannot be read.
        OSError: as above.
        CheckpointError: as above.
        CorpusUnavailableError: the text that it is learned from cannot be read.
    """
    if checkpoints.folder_of(name) is not None:
        return Beside.of_model(name)
    if name == LEARNED:
        return _learned_tokenizer()
    if name == IN_A_FOLDER:
        return _in_a_folder()
    return Beside.from_path(name, places()[name].path)


def _learned_tokenizer() -> Beside | None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text, name, most = to_learn()
    if not text.strip():
        st.info("There is no text to learn from: type or paste one above.")
        return None
    learned = learned_from(text, most)
    if name in (PASSAGES, OWN):
        of = f"{name[:1].lower()}{name[1:]}"
    else:
        of = name
    title = f"{len(learned.merges):,} merges learned from {of}"
    return Beside(
        title, learned.tokenizer, f"learn_merges({text_expression(text, name)}, {most}).tokenizer"
    )


def _in_a_folder() -> Beside | None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        hint = (
            "A folder of this machine with the tokenizer of any model, or with several such "
            "folders: tokenizer.json, "
            "tokenizer.model, vocab.json with merges.txt, vocab.txt, or a .gguf file. Enter looks "
            "into it."
        )
        typed = controls.text(
            "Folder",
            key="folder",
            help=hint,
            longest=LONGEST_PATH,
            placeholder="the path of a folder",
        )
        if not typed.strip():
            st.info("Type the path of a folder with a tokenizer.")
            return None
        folder = Path(typed.strip().strip("\"'")).expanduser().absolute()
        if not folder.is_dir():
            st.error(escape_markdown(f"There is no folder {folder}: type the path of one."))
            return None
        inside = places_inside(folder)
        if not inside:
            st.warning(
                escape_markdown(
                    f"No tokenizer was found in {folder}, nor in the folders below it: type the "
                    "path of another one."
                )
            )
            return None
        hint = "The tokenizers in this folder and below it."
        name = controls.select("Tokenizer", [*inside], key="inside", help=hint)
    return Beside.from_path(name, inside[name].path)


@st.cache_data(ttl=20, max_entries=8, show_spinner="Looking for tokenizers in the folder")
def places_inside(folder: Path) -> dict[str, Place]:
    """The tokenizers in a folder that the user names and below it, by their names there."""
    inside = stores.store_inside(folder)
    return {place.name: place for place in (*inside.tokenizers, *inside.models)}


def times(costs_by_name: dict[str, dict[str, Cost]]) -> LabelledArray:
    """How many times as many tokens as `FIRST` each language takes: [text, tokenizer]; of costs by
    tokenizer and text. NaN where the vocabulary lacks much of one of the two texts.
    """
    languages = tuple(examples())[:TRANSLATED]

    def ratio(text: Cost, usual: Cost) -> float:
        is_read = all(
            one.tokens and one.lacking <= MOST_LACKING * one.tokens for one in (text, usual)
        )
        if is_read:
            return text.tokens / usual.tokens
        return np.nan

    values = np.array(
        [[ratio(one[text], one[FIRST]) for one in costs_by_name.values()] for text in languages]
    )
    return LabelledArray(
        values,
        (Axis("text", languages), Axis("tokenizer", tuple(costs_by_name))),
        f"tokens, {FIRST} = 1",
    )


def code(*codes: str) -> str:
    """The lines of `gptviz` that compare tokenizers, each made by one of these expressions."""
    uses = {
        "gptviz.text": "import gptviz.text",
        "gptviz.pretrained": "import gptviz.pretrained.opening",
        "learn_merges(": "from gptviz.text.tokenizers.learning import learn_merges",
        "Path(": "from pathlib import Path",
    }
    more = "".join(f"{line}\n" for use, line in uses.items() if any(use in code for code in codes))
    return f"""import gptviz
{more}from gptviz.text.datasets.languages import examples
from gptviz.text.tokenizers.pieces import cost

tokenizers = [{", ".join(codes)}]
[{{name: cost(one, text) for name, text in examples().items()}} for one in tokenizers]"""


_at = st.cache_resource(max_entries=4, show_spinner="Reading the tokenizer")(opening.tokenizer_at)
_of_model = kept_until_written("tokenizer.json", most=8)(checkpoints.read_tokenizer)
