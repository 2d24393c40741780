"""What to try on the Heads page: sentences that are true of the heads of this model."""

from __future__ import annotations

import numpy as np

from gptviz.figures.format import percent
from gptviz.interp.head_scores import HeadScores
from gptviz.ui.views import attention
from gptviz.ui.widgets.tries import Try

from .choices import CHOSEN, DOES, READS, Setting
from .computed import CLEARLY, KINDS, chance, composed, known, ranked, scores
from .reads import strongest

# At most so many blocks are multiplied with each other before anybody asks for it.
FEW_BLOCKS = 12
TITLES = {
    "induction": "The induction head",
    "previous_token": "A previous-token head",
    "first_token": "A head that rests",
    "duplicate_token": "A duplicate-token head",
}
NOTICES = {
    "induction": "gives {share} of its attention to what came next the last time: see the stripe in its pattern.",
    "previous_token": "gives {share} to the token just before: see the cells beside the diagonal.",
    "first_token": "gives {share} to the first token: see the column at the left. Many heads rest there.",
    "duplicate_token": "gives {share} to earlier copies of the token that reads.",
}


def to_try(setting: Setting) -> list[Try]:
    """What to try with these heads."""
    found = scores(setting)
    offers = [offer for name in KINDS if (offer := _of_kind(setting, found, name)) is not None]
    return [*offers, *_copying(setting, found), *_composition(setting)]


def _of_kind(setting: Setting, found: HeadScores, name: str) -> Try | None:
    if name not in known(found):
        return None
    block, head = ranked(found, name)[0]
    share = float(found.values[name][block, head])
    if share < CLEARLY:
        return None
    notice = f"Head {head} of block {block} {NOTICES[name].format(share=percent(share))}"
    return Try(TITLES[name], notice, {"view": DOES, "score": name}, {CHOSEN: setting.unit(block, head).name})


def _copying(setting: Setting, found: HeadScores) -> list[Try]:
    if "copying" not in known(found):
        return []
    values = found.values["copying"]
    up, down = int((values > CLEARLY).sum()), int((values < -CLEARLY).sum())
    block, head = ranked(found, "copying")[0]
    notice = (
        f"{up} of {values.size} heads make the tokens they read likelier, {down} less likely (the score beyond ±{CLEARLY}). Is a "
        f"head that looks back among the first? Head {head} of block {block} copies most, with {values[block, head]:.2f}."
    )
    return [Try("Who copies?", notice, {"view": DOES, "score": "copying"}, {CHOSEN: setting.unit(block, head).name})]


def _composition(setting: Setting) -> list[Try]:
    if setting.stack == attention.CROSS or not 2 <= setting.shape[0] <= FEW_BLOCKS:
        return []
    best = strongest(composed(setting.key, setting.stack, "key"), 1)
    if best.empty:
        return []
    first, usual = best.iloc[0], chance(setting.key, setting.stack)
    notice = (
        f"By its key, head {first.reads} reads most of what head {first.writes} writes: {first.value:.2f}, by chance "
        f"{usual:.2f}. {_together(setting, str(first.reads), str(first.writes))}"
    )
    return [Try("Who reads whom?", notice, {"view": READS, "reads": "key"})]


def _together(setting: Setting, reader: str, writer: str) -> str:
    """A sentence where the two are what an induction circuit is made of."""
    found = scores(setting)
    at = [tuple(map(int, name.split("."))) for name in (reader, writer)]
    shares = [float(found.values[name][place]) for name, place in zip(("induction", "previous_token"), at, strict=True)]
    if min(np.nan_to_num(shares)) < CLEARLY:
        return "Is one of them a head of a kind that you know?"
    return (
        f"The second is a previous-token head ({percent(shares[1])}), the first an induction head ({percent(shares[0])}): "
        "together they find what came next before."
    )
