"""The suggestions of the page Attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from gptviz.figures.kit.format import percent
from gptviz.interp.reading.overview import Overview, largest_head
from gptviz.labelled_array import Float32Array
from gptviz.ui.shell.subject import Subject
from gptviz.ui.views import attention as view
from gptviz.ui.widgets import Try

# A head looks at what followed an earlier copy of its token if that gets this share, and this many
# times the share by chance.
LEAST_FOLLOWED = 0.2
CLEARLY = 3.0
# The experiments that rebuild the model of a published picture (Sinai 2024).
PICTURED = ("generator", "generator-unmasked")
# A line says how many heads rest on the first token if more than this share of them do.
MANY_RESTING = 0.25


def tries(subject: Subject, stack: str) -> list[Try]:
    """The suggestions for the attention of this model over this text."""
    seen = view.view(subject.key, view.stack_read(subject, stack)).overview
    config = subject.lm.model.config
    facts = seen.facts
    offers = list[Try]()

    def offer(title: str, notice: str, **state: Any) -> None:
        offers.append(Try(title, notice, view.explorer_state(**state)))

    if subject.lm.card.plan in PICTURED and config.n_layer > 2 and config.n_head > 2:
        notice = (
            "The head and the text of a published picture (Sinai 2024). It numbers from 1: there "
            "this is block 3, head 3."
        )
        offers.append(
            Try(
                "A published picture",
                notice,
                {"prompt": subject.default, **view.explorer_state(block=2, head=2)},
            )
        )
    if facts is None:
        # The arithmetic of the largest share in the last row of the head that spreads its attention
        # least.
        b, h = largest_head(-seen.spread)
        row = np.nan_to_num(seen.last[b, h])
        query = seen.n_queries - 1
        key = int(row.argmax())
        notice = (
            f"Why the last row of block {b}, head {h} gives {percent(float(row[key]))} to one "
            "key: the products of query and key "
            "in each dimension, their sum, the softmax."
        )
        state = {**view.explorer_state(block=b, head=h, query=query, key=key), "words": False}
        return [*offers, Try("The arithmetic of a cell", notice, state)]
    # The head that looks most at what followed an earlier copy of the token, where it does so far
    # more than by chance.
    if facts.followed is not None:
        b, h = largest_head(facts.followed)
        share = float(facts.followed[b, h])
        if share >= max(LEAST_FOLLOWED, CLEARLY * seen.evenly):
            notice = (
                f"Where a token comes back, block {b}, head {h} gives {percent(share)} on average "
                "to what followed it before; a "
                f"query that shares its attention evenly would give {percent(seen.evenly)}. A "
                "head that finds what came next "
                "before, so that the model can write it again, is called an induction head."
            )
            offer("What came next before", notice, block=b, head=h)
    b, h = largest_head(facts.previous)
    notice = _most_of_all(
        seen, facts.previous, "the token before", "see the cells beside the diagonal"
    )
    offer("The token before", notice, block=b, head=h)
    # How much the heads look at the first token: the head that does most, or, where many do, what
    # else they look at.
    b, h = largest_head(facts.first)
    notice = _most_of_all(seen, facts.first, "the first token", "see the column at the left")
    offer("The first token", notice, block=b, head=h)
    resting = int((facts.first > 0.5).sum())
    if seen.without_first is not None and resting > MANY_RESTING * facts.first.size:
        notice = (
            f"{resting} of {facts.first.size} heads give the first token more than half of their "
            "attention: they rest there when "
            "they find nothing to read, and all the rest looks pale. Without it, what is left of "
            "each row is scaled up to 100 %."
        )
        offer("Without the first token", notice, show="rest")
    return offers


def _most_of_all(seen: Overview, shares: Float32Array, what: str, look: str) -> str:
    """Which head gives the largest of `shares` [block, head], and where to `look`, if it is so far
    above chance that it shows.
    """
    b, h = largest_head(shares)
    share = float(shares[b, h])
    most = (
        f"Block {b}, head {h} looks at {what} more than any other head, with {percent(share)} on "
        "average"
    )
    if share > CLEARLY * seen.alike:
        return f"{most}: {look}."
    return f"{most}; a query that shares its attention evenly would give {percent(seen.alike)}."
