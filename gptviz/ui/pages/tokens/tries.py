"""The suggestions of the page Tokens."""

from __future__ import annotations

from gptviz.figures.kit.format import counted
from gptviz.text import Tokenizer
from gptviz.text.datasets.languages import FIRST, examples
from gptviz.text.tokenizers.pieces import cost
from gptviz.ui.records.tokens import COMPARE, CUT, LEARN
from gptviz.ui.shell.subject import Subject
from gptviz.ui.widgets import Try

COMMON, RARE = "the king and the queen", "the unicorn and the porcupine"


def tries(subject: Subject) -> list[Try]:
    """The suggestions for this model; every number is counted with its tokenizer."""
    tokenizer = subject.lm.tokenizer
    offers = []
    if tokenizer.way in ("merges", "longest pieces", "likeliest pieces"):
        offers.append(_rare(tokenizer))
    offers.append(_script(tokenizer))
    learn = (
        "Every merge joins the two neighbours that are most frequent: move the slider from 0, and watch the prompt grow together."
    )
    return [*offers, Try("Watch merges being learned", learn, {"view": LEARN})]


def _rare(tokenizer: Tokenizer) -> Try:
    common, rare = (cost(tokenizer, text).tokens for text in (COMMON, RARE))
    notice = (
        f"“{RARE}” takes {counted(rare, 'token')}, “{COMMON}” {common}: words that are frequent have a token of their own, rare "
        "ones are put together."
    )
    return Try("Rare words", notice, {"view": CUT, "prompt": RARE})


def _script(tokenizer: Tokenizer) -> Try:
    texts = examples()
    own, other = cost(tokenizer, texts[FIRST]), cost(tokenizer, texts["Hindi"])
    if other.lacking or not own.tokens or not other.tokens:
        notice = (
            "This tokenizer cannot read the same sentences in Hindi. See which languages it reads, and what another one does."
        )
    else:
        notice = f"The same sentences take {own.tokens} tokens in {FIRST} and {other.tokens} in Hindi. See what others cost."
    return Try("Other languages", notice, {"view": COMPARE})
