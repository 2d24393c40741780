"""The limits of what a model can translate: its languages, and words that occur in none of the sources it was trained on."""

from __future__ import annotations

import json
import re

import streamlit as st

from gptviz.data.registry import source_from
from gptviz.data.seq2seq import PairSource, PairTaskSource
from gptviz.ui.shell.subject import Subject
from gptviz.ui.widgets import controls, escaped

# This many sources are looked through; a word counts as known if it is in one of them.
LOOKED_THROUGH = 5_000
# Where fewer of the words held out are known (a text of random letters has a new word each time), nothing is said of words.
KNOWN_SHARE = 0.99
MOST_NAMED = 5

_WORD = re.compile(r"[^\W\d_]+")


def say_languages(subject: Subject) -> None:
    """From which language into which a translator of another program translates, where its files say so."""
    if (languages := subject.lm.card.languages) is not None:
        source, target = (f"“{escaped(one[:40])}”" for one in languages)
        st.caption(f"This model translates from {source} to {target}, as its files name the languages.")


def warn_of_unknown_words(subject: Subject) -> None:
    """Say which words of the source the model was never trained on: its answer then says nothing about them."""
    unknown = unknown_words(subject.prompt, known_words(json.dumps(subject.lm.card.source or {})))
    if not unknown:
        return
    named = ", ".join(f"“{escaped(word[:40])}”" for word in unknown[:MOST_NAMED])
    more = f" and {len(unknown) - MOST_NAMED} more" if len(unknown) > MOST_NAMED else ""
    one = len(unknown) == 1
    controls.notices().warning(
        f"{named}{more}: {'this word occurs' if one else 'these words occur'} in none of {LOOKED_THROUGH:,} sources like those "
        f"that the model was trained on. It cannot know what {'it means' if one else 'they mean'}, and answers all the same: the "
        "output says nothing, however sure the model is.",
        icon=":material/help:",
    )


def unknown_words(text: str, known: frozenset[str]) -> list[str]:
    """The words of `text`, each once, that are not among those `known`; none if the model's words are not known."""
    return [word for word in dict.fromkeys(words(text)) if known and word not in known]


def words(text: str) -> list[str]:
    """Runs of letters, in small letters."""
    return _WORD.findall(text.lower())


# An error is not kept in the cache: the data may come later.
@st.cache_data(max_entries=8, show_spinner=False)
def _known_words(source: str) -> frozenset[str]:
    data = source_from(json.loads(source))
    if not isinstance(data, PairTaskSource | PairSource):
        return frozenset()
    trained, held_out = data.sources(LOOKED_THROUGH)
    known = frozenset(word for text in trained for word in words(text))
    others = [word for text in held_out for word in words(text)]
    return known if others and sum(word in known for word in others) >= KNOWN_SHARE * len(others) else frozenset()


def known_words(source: str) -> frozenset[str]:
    """The words in the sources that a model learned from, by the `source` on its card (JSON); empty if there are none."""
    try:
        return _known_words(source)
    except (ValueError, OSError):
        return frozenset()
