"""The suggestions of the page Logit lens."""

from __future__ import annotations

from typing import Any

import numpy as np

from gptviz.components.kit.command import ViewCommand
from gptviz.figures.kit.format import percent
from gptviz.interp.reading.layers import layers
from gptviz.interp.reading.lens import Lens, settled
from gptviz.ui.shell.subject import Subject
from gptviz.ui.views.contrasts import ContrastQuestion, answered, when_it_appeared
from gptviz.ui.widgets import Try, in_quotes

from .computed import LensRows, leads_of, seen_by
from .show import ASKED, ROWS, SUBLAYERS


def tries(subject: Subject, read: LensRows) -> list[Try]:
    """The suggestions for this model and text; every sentence is computed from the lens."""
    seen = seen_by(subject.key, read)
    if not _can_be_read(seen):
        return []
    known = [_known(subject, question) for question in answered(subject.key)]
    when = when_it_appeared(subject.key, subject.prompt, lambda _: {}, **lens_state())
    offers = [*known, when, _answer(subject, seen), _late(subject, seen), _lost(subject, seen), _right(seen)]
    return [offer for offer in offers if offer is not None]


def _can_be_read(seen: Lens) -> bool:
    return len(seen.layers) > 1 and bool(np.isfinite(seen.probability).all())


def _known(subject: Subject, question: ContrastQuestion) -> Try:
    """A prompt with a known answer: after which layer it leads."""
    layer, share, before = leads_of(subject.key, question)
    rows, label = layers(subject.lm.model.config), subject.lm.tokenizer.label
    led = f"; one layer earlier {in_quotes(label(before))} does" if before >= 0 else ""
    right = in_quotes(label(question.right))
    notice = (
        f"After {in_quotes(question.prompt)} the right answer, {right}, leads from {rows[layer].title} on, there with "
        f"{percent(share)}{led}. {question.contrast.about}"
    )
    cell = lens_state(layer=rows[layer].name, position=len(question.ids) - 1)
    return Try(question.contrast.title, notice, {"prompt": question.prompt, ROWS: SUBLAYERS, **cell})


def lens_state(**asked: Any) -> dict[str, ViewCommand]:
    """The state (as a `Try` sets it) in which the grid is asked for `layer` and `position`, `colour` or `words`."""
    return {ASKED: ViewCommand.to(asked)}


def _cell_state(seen: Lens, layer: int, index: int) -> dict[str, ViewCommand]:
    return lens_state(layer=seen.layers[layer].name, position=seen.positions[index])


def where_the_answer_comes_from(subject: Subject, seen: Lens) -> str:
    """The guess after the whole text, and the layer after which it first comes on top to stay, as Markdown; empty where nothing
    can be said.
    """
    if not _can_be_read(seen):
        return ""
    layer, token = int(settled(seen)[-1]), int(seen.top[-1, -1, 0])
    share, name = percent(float(seen.probability[-1, -1, 0])), in_quotes(subject.lm.tokenizer.label(token))
    when = f"It comes on top after {seen.layers[layer].title}, and stays there."
    if layer == 0:
        when = "It is on top from the embedding on: the last token alone decides it."
    elif layer == len(seen.layers) - 1:
        when = f"It comes on top only in the last row, after {seen.layers[layer].title}."
    return f"After the whole text the model's guess is {name}, with {share}. {when}"


def _answer(subject: Subject, seen: Lens) -> Try:
    cell = _cell_state(seen, int(settled(seen)[-1]), len(seen.positions) - 1)
    return Try("Where the answer comes from", where_the_answer_comes_from(subject, seen), cell)


def _late(subject: Subject, seen: Lens) -> Try | None:
    """The guess that is decided latest, the surest of them, if that is not the last one; none if all are decided late."""
    when = settled(seen)
    if len(seen.layers) < 3:
        return None
    sure = np.where(when == when.max(), seen.probability[-1, :, 0], -1)
    index = int(sure.argmax())
    if index == len(when) - 1 or when[index] < len(seen.layers) - 2:
        return None
    label = subject.lm.tokenizer.label
    before, after = (in_quotes(label(int(seen.top[layer, index, 0]))) for layer in (when[index] - 1, -1))
    notice = (
        f"At position {seen.positions[index]} the guess changes as late as after {seen.layers[when[index]].title}: from {before} "
        f"to {after}, which ends with {percent(float(sure[index]))}."
    )
    return Try("A late decision", notice, _cell_state(seen, int(when[index]), index))


def _lost(subject: Subject, seen: Lens) -> Try | None:
    """A place where an earlier layer had the true token on top, and the model did not end with it."""
    was_right = (seen.rank[:-1] == 1) & (seen.rank[-1] > 1)
    if not was_right.any():
        return None
    likely = np.where(was_right, np.nan_to_num(seen.true_probability[:-1]), -1)
    layer, index = (int(one) for one in np.unravel_index(likely.argmax(), likely.shape))
    label = subject.lm.tokenizer.label
    true, end = in_quotes(label(int(seen.true[index]))), in_quotes(label(int(seen.top[-1, index, 0])))
    notice = (
        f"At position {seen.positions[index]} the token that really comes next, {true}, is on top after "
        f"{seen.layers[layer].title} with {percent(float(likely[layer, index]))}; the model ends with {end}."
    )
    return Try("Right, then changed", notice, _cell_state(seen, layer, index))


def _right(seen: Lens) -> Try | None:
    """In how much of the text each end of the model has the true token on top."""
    known = seen.rank[-1] > 0
    if not known.any():
        return None
    first, last = (float((seen.rank[row][known] == 1).mean()) for row in (0, -1))
    notice = (
        f"The token that really comes next is the likeliest at {percent(last)} of the positions in the last row, and at "
        f"{percent(first)} in the first. Coloured by its rank, the grid shows where it rises."
    )
    return Try("Right and wrong", notice, lens_state(colour="rank"))
