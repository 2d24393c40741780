"""How the page Tokens is computed, what it cannot show, its code, and what each kind of tokenizer does with a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from gptviz.settings.address_values import whole
from gptviz.text import BPETokenizer, Tokenizer
from gptviz.text.tokenizers.merging import Merging
from gptviz.ui.shell.subject import Subject, opening
from gptviz.ui.views.texts import PASSAGES, in_code
from gptviz.ui.widgets import escaped

SEVERAL: Final = {
    "whole word": "whole words",
    "part of a word": "parts of words",
    "sign": "signs and spaces",
    "part of a character": "parts of characters",
    "unknown": "unknown",
    "special": "special tokens",
    "chat template": "of the chat template",
}
SHORT: Final = {
    "characters": "one token per character",
    "symbols": "one token per symbol",
    "words": "one token per word",
    "merges": "byte-pair encoding",
    "longest pieces": "WordPiece",
    "likeliest pieces": "Unigram",
}
"""The kinds of tokenizers in a few words."""
WAYS: Final = {
    "characters": "This tokenizer has **one token per character**: there is nothing to merge, and a text has as many tokens as "
    "characters.",
    "symbols": "This tokenizer has **one token per symbol**, with white space between any two.",
    "words": "This tokenizer has **one token per word**: a word that it does not know has no pieces, and is read as unknown.",
    "longest pieces": "This tokenizer is a **WordPiece**: there are no merges. From the left of a word it takes the longest "
    "piece that its vocabulary has, then again from there. A piece that goes on with a word begins with ##. A word that cannot "
    "be cut so is read as unknown as a whole.",
    "likeliest pieces": "This tokenizer is a **Unigram**: there are no merges. Every piece has a probability, and of all ways to "
    "cut a word it takes the one whose probabilities have the largest product.",
}
NUMBER: Final = whole(0, 10**6)
LEARNED: Final = (50, 100, 200, 500, 1_000, 2_000, 5_000)
FEWEST_TO_TRAIN: Final = 44
PASTED: Final = "a text you paste"
OWN: Final = "A text of yours"
LONGEST_IN_CODE = 2_000  # characters

HOW = r"""
The text is cut by the model's own tokenizer (`lm.tokenizer.encode`); the number below a token is the row of the embedding that
the model reads for it. A token is a **whole word** if it begins and ends where a run of letters and digits does. Bytes are those
of UTF-8, in which a Latin letter takes one byte and other characters two to four.

**Merges.** Byte-pair encoding begins with bytes or characters. Of all neighbours that are in its list of merges, it joins the
pair that comes first in the list, and again, until none is left. The tree shows those merges, with their places in the list of
the tokenizer itself; it is drawn only if they lead to exactly the tokens above (`Tokenizer.merging`).

**Languages.** The examples were written for this page and say the same. Words are runs of letters and digits, counted in
`gptviz/text/tokenizers/pieces.py`.

**Learning.** The trainer is that of the `tokenizers` library. It splits the text as GPT-2 does, and no merge reaches across two
parts. How often each merge is made follows from the tokens of the whole text and the tree of each
(`gptviz/text/tokenizers/learning.py`); each time there is one token less.
"""
LIMITS = """How a text is cut says nothing about what the model makes of it. A few sentences are a small sample of a language:
other texts cost more or less."""


def stops(count: int) -> list[int]:
    """Numbers of merges on a slider: each of the first, then ever larger steps up to `count`."""
    return sorted({*range(min(20, count) + 1), *np.geomspace(1, count, 80).round().astype(int).tolist()})


def way(tokenizer: Tokenizer, merging: Merging | None, ids: Sequence[int]) -> str:
    """What the tokenizer does with a word, as Markdown, with its scores where it has such."""
    if tokenizer.way == "merges":
        if merging is None:
            return (
                "These tokens are **not the result of merges**: this tokenizer looks some words up as a whole, or reads them as "
                "tokens that were added to its vocabulary."
            )
        return (
            "" if merging.merges else "**Nothing was merged** here: each token is a byte, a character, or was added as a whole."
        )
    scores = tokenizer.scores() if isinstance(tokenizer, BPETokenizer) else {}
    if not scores:
        return WAYS[tokenizer.way]
    assert isinstance(tokenizer, BPETokenizer)
    own = [(tokenizer.label(i), scores[text]) for i, text in zip(ids, tokenizer.written(ids), strict=True) if text in scores]
    listed = " + ".join(f"{escaped(label)} ({score:.2f})".replace("-", "−") for label, score in own)
    total = f"{sum(score for _, score in own):.2f}".replace("-", "−")
    return f"{WAYS[tokenizer.way]} Here, as logarithms: {listed} = {total}."


def code_of_cut(subject: Subject) -> str:
    """The lines of `gptviz` that cut the text."""
    return f"""{opening(subject.lm)}
pieces = lm.pieces({subject.prompt!r})  # each with its number, bytes and kind
lm.tokenizer.merging([piece.id for piece in pieces])  # the merges that made them; None for other kinds of tokenizers"""


def code_of_costs(*codes: str) -> str:
    """The lines of `gptviz` that compare tokenizers, each made by one of these expressions."""
    uses = {
        "gptviz.text": "import gptviz.text",
        "gptviz.pretrained": "import gptviz.pretrained.opening",
        "learned(": "from gptviz.text.tokenizers.learning import learned",
        "Path(": "from pathlib import Path",
    }
    more = "".join(f"{line}\n" for use, line in uses.items() if any(use in code for code in codes))
    return f"""import gptviz
{more}from gptviz.text.datasets.languages import examples
from gptviz.text.tokenizers.pieces import cost

tokenizers = [{", ".join(codes)}]
[{{name: cost(one, text) for name, text in examples().items()}} for one in tokenizers]"""


def given(text: str, name: str) -> str:
    """The expression that gives the text called `name`."""
    if name == PASSAGES:
        return in_code(text)
    if name == OWN:
        return repr(text) if len(text) <= LONGEST_IN_CODE else 'open("your text.txt", encoding="utf-8").read()'
    return f"next(one for one in gptviz.text.corpora() if one.name == {name!r}).open().text"


def code_of_learned(text: str, name: str, merges: int) -> str:
    """The lines of `gptviz` that learn merges from the text called `name`."""
    return f"""import gptviz
import gptviz.text
from gptviz.text.tokenizers.learning import learned

found = learned({given(text, name)}, {merges})
found.tokens  # of the text, before the first merge and after each
found.pairs(0)  # the pairs that are most frequent before the first merge"""
