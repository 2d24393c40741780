"""The suggestions of the Heads page: sentences that are true of the heads of this model."""

from __future__ import annotations

import numpy as np

from gptviz.figures.kit.format import counted, percent
from gptviz.interp.units.head_scores import HeadScores
from gptviz.ui.records.heads import DOES, READS
from gptviz.ui.shell.subject import language_model
from gptviz.ui.views import attention
from gptviz.ui.views.contrasts import ContrastQuestion, answered, known_contrasts, loss_of_head, needed_head, when_it_appeared
from gptviz.ui.views.read import Read
from gptviz.ui.widgets import Try, in_quotes

from .choices import CHOSEN, HELD_OUT, HeadSetting
from .computed import CLEARLY, KINDS, chance, composed, known, pattern, ranked, scores, with_losses
from .reads import largest_pairs

# At most this many blocks are multiplied with each other before the reader asks for it.
FEW_BLOCKS = 12
# The state in which heads are ordered by what answers lose without them.
BY_LOSS = {"view": DOES, "over": HELD_OUT, "score": "delta_loss"}
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


def tries(setting: HeadSetting, prompt: str) -> list[Try]:
    """The suggestions for these heads, with the `prompt` on screen."""
    found = scores(setting)
    offers = [offer for name in KINDS if (offer := _of_kind(setting, found, name)) is not None]
    return [*_known(setting, prompt), *offers, *_copying(setting, found), *_composition(setting)]


def _known(setting: HeadSetting, prompt: str) -> list[Try]:
    """For a model that was trained on tasks with known answers: the heads that its answers need, one for each task, and when in
    training one of them appeared.
    """
    offers = [_most_needed(setting), *(_needed(setting, question) for question in answered(setting.key))]
    offers.append(when_it_appeared(setting.key, prompt, lambda head: {CHOSEN: head.name}, **BY_LOSS))
    return [offer for offer in offers if offer is not None]


def _most_needed(setting: HeadSetting) -> Try | None:
    """The order of the heads by what is lost without them over data held out, where that is known."""
    if not known_contrasts(language_model(setting.key)):
        return None
    tested = HeadSetting(setting.key, setting.stack, None, held_out=True)
    found = with_losses(tested, HeadScores({}))
    if "delta_loss" not in found.values:
        return None
    rises = found.values["delta_loss"]
    first, second, third = (f"{setting.unit(*at).title} ({rises[at]:+.2f})" for at in ranked(found, "delta_loss")[:3])
    few = int((rises > rises.max() / 10).sum())
    notice = (
        f"Over data held out, the loss of the answers rises most without {first}, {second} and {third}, in nats. {few} of "
        f"{rises.size} heads matter more than a tenth of the first."
    )
    return Try("The heads that answers need", notice, BY_LOSS)


def _needed(setting: HeadSetting, question: ContrastQuestion) -> Try | None:
    """A prompt with a known answer, the head that the answer needs most, and where that looks at the end of the prompt."""
    found = needed_head(setting.key, question)
    if found is None or found.head.block is None or found.head.index is None:
        return None
    read = HeadSetting(setting.key, setting.stack, Read(question.ids, stack=setting.stack))
    row = pattern(read, found.head.block, found.head.index).values[-1]
    place = int(np.nanargmax(row))
    token = in_quotes(language_model(setting.key).tokenizer.label(question.ids[place]))
    notice = (
        f"{loss_of_head(setting.key, question, found)} At the last token this head looks most at {token} (position {place}): "
        f"{percent(float(row[place]))}."
    )
    state = {**BY_LOSS, "prompt": question.prompt}
    return Try(question.contrast.title, notice, state, {CHOSEN: found.head.name})


def _of_kind(setting: HeadSetting, found: HeadScores, name: str) -> Try | None:
    if name not in known(found):
        return None
    block, head = ranked(found, name)[0]
    share = float(found.values[name][block, head])
    if share < CLEARLY:
        return None
    notice = f"Head {head} of block {block} {NOTICES[name].format(share=percent(share))}"
    return Try(TITLES[name], notice, {"view": DOES, "score": name}, {CHOSEN: setting.unit(block, head).name})


def _copying(setting: HeadSetting, found: HeadScores) -> list[Try]:
    if "copying" not in known(found):
        return []
    values = found.values["copying"]
    up, down = int((values > CLEARLY).sum()), int((values < -CLEARLY).sum())
    block, head = ranked(found, "copying")[0]
    most = f"Head {head} of block {block} copies most, with {values[block, head]:.2f}.".replace("-", "−")
    notice = (
        f"{up} of {counted(values.size, 'head')} make the tokens they read likelier, {down} less likely (the score beyond "
        f"±{CLEARLY}). Is a head that looks back among the first? {most}"
    )
    if not up:
        less = f", but {down} less likely" if down else ""
        notice = f"No head makes the tokens it reads clearly likelier (the score above {CLEARLY}){less}. {most}"
    return [Try("Who copies?", notice, {"view": DOES, "score": "copying"}, {CHOSEN: setting.unit(block, head).name})]


def _composition(setting: HeadSetting) -> list[Try]:
    if setting.stack == attention.CROSS or not 2 <= setting.shape[0] <= FEW_BLOCKS:
        return []
    best = largest_pairs(composed(setting.key, setting.stack, "key"), 1)
    if best.empty:
        return []
    first, usual = best.iloc[0], chance(setting.key, setting.stack)
    notice = (
        f"By its key, {_named(first.reads)} reads most of what {_named(first.writes)} writes: {first.value:.2f}, by chance "
        f"{usual:.2f}. {_together(setting, str(first.reads), str(first.writes))}"
    )
    return [Try("Who reads whom?", notice, {"view": READS, "reads": "key"})]


def _named(name: str) -> str:
    """A head in words: "2.1" is head 1 of block 2."""
    block, head = name.split(".")
    return f"head {head} of block {block}"


def _together(setting: HeadSetting, reader: str, writer: str) -> str:
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
