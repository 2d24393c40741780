"""What is chosen on the page Tokens: the text that merges are learned from, and the tokenizer beside that of the model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import streamlit as st

from gptviz.machine.hosting import hosting
from gptviz.runs import checkpoints
from gptviz.text import Tokenizer, corpora, passages
from gptviz.ui.views.texts import PASSAGES
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.figure import pixels
from gptviz.ui.widgets.markdown import escaped

from . import computed, words

OTHER, FROM, MOST = "other", "learned_from", "learn"
LEARNED: Final = "learned here, from a text"
IN_A_FOLDER: Final = "in a folder of yours"
LONGEST_OWN = 1_000_000
LONGEST_PATH = 1_000


@dataclass(frozen=True, eq=False)
class Beside:
    """A tokenizer that is compared.

    Attributes:
        name: what it is called.
        tokenizer: the tokenizer.
        code: the expression that makes it.
    """

    name: str
    tokenizer: Tokenizer
    code: str

    @classmethod
    def of_model(cls, name: str) -> Beside:
        """That of a model of gptviz."""
        return cls(name, computed.tokenizer_named(name), f"gptviz.load({name!r}).tokenizer")

    @classmethod
    def at(cls, name: str, path: Path) -> Beside:
        """That of another program."""
        return cls(name, computed.tokenizer_at(path), f"gptviz.pretrained.opening.tokenizer_at(Path({str(path)!r}))")


def to_learn() -> tuple[str, str, int]:
    """The controls of what is learned: the text, its name, and the most merges.

    Raises:
        CorpusUnavailableError: the text cannot be read.
    """
    ready = [offer.name for offer in corpora() if offer.ready]
    about = "Merges are learned from this text alone. A text of yours may have up to a million characters."
    name = controls.select("Learn from", [*ready, PASSAGES, words.OWN], key=FROM, help=about)
    if name == words.OWN:
        about = "What the merges are learned from. Ctrl + Enter, or a click elsewhere, applies it."
        text = controls.text("Your text", key="pasted", help=about, longest=LONGEST_OWN, height=pixels(110), lasting=True)
    else:
        text = passages() if name == PASSAGES else computed.corpus_text(name)
    about = "How many merges are learned at most: each adds one token to the vocabulary."
    most = controls.notch("Merges to learn", words.LEARNED, key=MOST, help=about, default=1_000, format_func=str)
    return text, name, int(most)


def other(own: str) -> str:
    """The control `other`: what stands beside the tokenizer of the model on screen, which is called `own`."""
    names = [name for name in (*checkpoints.folders(), LEARNED, *computed.places()) if name != own]
    if not hosting().read_only:  # a reader who may type paths learns which files there are
        names.append(IN_A_FOLDER)
    usual = "shakespeare" if own != "shakespeare" else "bpe"
    about = (
        "The tokenizer of any model of the list, or one that another program keeps on this machine, also without a model; one "
        "that is learned here from a text; or one in a folder: only the tokenizer is read."
    )
    return controls.select("Beside it", names, key=OTHER, default=usual, help=about)


def beside(name: str) -> Beside | None:
    """The tokenizer that is called so in the control `other`; None, with a line that says why, as long as there is none.

    Raises:
        ValueError: it cannot be read.
        OSError: as above.
        CheckpointError: as above.
        CorpusUnavailableError: the text that it is learned from cannot be read.
    """
    if checkpoints.folder_of(name) is not None:
        return Beside.of_model(name)
    if name == LEARNED:
        return _learned()
    if name == IN_A_FOLDER:
        return _in_a_folder()
    return Beside.at(name, computed.places()[name].path)


def _learned() -> Beside | None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text, name, most = to_learn()
    if not text.strip():
        st.info("There is no text to learn from: type or paste one above.")
        return None
    found = computed.learned_from(text, most)
    of = f"{name[:1].lower()}{name[1:]}" if name in (PASSAGES, words.OWN) else name
    title = f"{len(found.merges):,} merges learned from {of}"
    return Beside(title, found.tokenizer, f"learned({words.given(text, name)}, {most}).tokenizer")


def _in_a_folder() -> Beside | None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        about = (
            "A folder of this machine with the tokenizer of any model, or with several such folders: tokenizer.json, "
            "tokenizer.model, vocab.json with merges.txt, vocab.txt, or a .gguf file. Enter looks into it."
        )
        typed = controls.text("Folder", key="folder", help=about, longest=LONGEST_PATH, placeholder="the path of a folder")
        if not typed.strip():
            st.info("Type the path of a folder with a tokenizer.")
            return None
        folder = Path(typed.strip().strip("\"'")).expanduser().absolute()
        if not folder.is_dir():
            st.error(escaped(f"There is no folder {folder}: type the path of one."))
            return None
        inside = computed.places_inside(folder)
        if not inside:
            st.warning(escaped(f"No tokenizer was found in {folder}, nor in the folders below it: type the path of another one."))
            return None
        about = "The tokenizers in this folder and below it."
        name = controls.select("Tokenizer", [*inside], key="inside", help=about)
    return Beside.at(name, inside[name].path)
