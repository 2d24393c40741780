"""The suggestions of the page Neurons: sentences that are true of this block over this text."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gptviz.figures.kit.format import brief, percent, signed
from gptviz.interp.explaining.attribution import attributed, stream_at
from gptviz.interp.units.unit import Unit
from gptviz.labelled_array import LabelledArray
from gptviz.ui.shell.subject import ModelKey, Subject, language_model
from gptviz.ui.views.contrasts import ContrastQuestion, answered, since_when
from gptviz.ui.widgets import Try, in_quotes, jobs

from .choices import CHOSEN, HELD_OUT, TIMES, TOKENS, NeuronSetting
from .computed import Seen, at_once, is_quick, largest_activation, steered_guesses

# A neuron that is active at no more than this share of the tokens is rare.
RARE = 0.02
STRONG = 8.0


def tries(subject: Subject, setting: NeuronSetting, seen: Seen) -> list[Try]:
    """The suggestions for these neurons."""
    activity = seen.activity
    most = activity.ranked("effect")[0]
    known = [_known(setting.key, question) for question in answered(setting.key)]
    offers = [
        *(offer for offer in known if offer is not None),
        Try(
            "The one with the largest effect",
            f"Neuron {most} adds the longest vectors to the stream: it is above 0 at {percent(float(activity.active[most]))} of "
            "the tokens. Is it for something, or always there?",
            {"by": "effect"},
            {CHOSEN: setting.unit(most).name},
        ),
    ]
    rare = np.where((activity.active > 0) & (activity.active <= RARE), activity.largest, 0.0)
    if rare.max(initial=0.0) > 0:
        found = int(rare.argmax())
        notice = (
            f"Neuron {found} is above 0 at {percent(float(activity.active[found]))} of the tokens only, and then up to "
            f"{brief(activity.largest[found])}: what do its contexts have in common?"
        )
        offers.append(Try("A rare one", notice, {"by": "largest"}, {CHOSEN: setting.unit(found).name}))
    return [*offers, _strong(subject, setting, seen, most)]


class Speaker(NamedTuple):
    """The neuron that adds most to a right answer, as far ahead of a wrong one."""

    neuron: Unit
    value: float


def _speaker(key: ModelKey, question: ContrastQuestion) -> Speaker | None:
    """The neuron, and what it adds to the difference of the two logits, or None if none adds anything, or no sum can be had."""
    model = language_model(key).model
    best = None
    try:
        stream = stream_at(model, question.ids)
        for block in range(model.config.n_layer):
            mlp = Unit("mlp", block).name
            values = attributed(stream, question.right, question.wrong, mlp).neurons[mlp]
            neuron = int(values.argmax())
            if best is None or values[neuron] > best.value:
                best = Speaker(Unit("mlp", block, neuron), float(values[neuron]))
    except (ValueError, KeyError):  # a part of the model lets no sum through, or an edit took an MLP away
        return None
    return best if best is not None and best.value > 0 else None


@jobs.data("Looking for the neuron that speaks most for an answer", max_entries=64)
def _known(key: ModelKey, question: ContrastQuestion) -> Try | None:
    """A prompt with a known answer: the neuron that speaks most for it, and what becomes of the answer if it is turned down."""
    found = _speaker(key, question)
    if found is None or found.neuron.block is None or found.neuron.index is None:
        return None
    block, neuron = found.neuron.block, found.neuron.index
    over = NeuronSetting(key, block, HELD_OUT, "", TOKENS[1])
    if not is_quick(over):
        return None
    times, shown = _turned_down(over, question, neuron)
    lm, prompt = language_model(key), question.prompt
    right, wrong = (lm.tokenizer.label(token) for token in (question.right, question.wrong))
    labels, (before, after) = shown.axes[1].labels, shown.values
    at, leads = labels.index(right), labels[int(after.argmax())]
    if leads == right:  # this answer does not hang on one neuron
        return None
    how = "Switched off" if times == 0 else f"Set to {times:g} times its largest activation".replace("-", "−")
    notice = (
        f"After {in_quotes(prompt)} {found.neuron.title} adds {signed(found.value)} to the logit of {in_quotes(right)} minus "
        f"that of {in_quotes(wrong)}, more than any other neuron. {how}, {in_quotes(right)} goes from "
        f"{percent(float(before[at]))} to {percent(float(after[at]))}, and {in_quotes(leads)} leads with "
        f"{percent(float(after.max()))}.{since_when(key, question.contrast, 'neuron')}"
    )
    state = {"prompt": prompt, "text": over.kind, "tokens": over.most, "block": block, "times": times}
    return Try(question.contrast.title, notice, state, {CHOSEN: found.neuron.name})


def _turned_down(over: NeuronSetting, question: ContrastQuestion, neuron: int) -> tuple[float, LabelledArray]:
    """The guesses before and after with the neuron off, or as far below 0 as it takes until another token leads; off where that
    does not happen. With the number of times that its largest activation is taken.
    """
    size = largest_activation(at_once(over).activity, neuron)
    right = language_model(over.key).tokenizer.label(question.right)
    downwards = [times for times in reversed(TIMES) if times <= 0]
    each = {
        times: steered_guesses(over.key, question.ids, over.block, neuron, float(f"{times * size:.6g}")) for times in downwards
    }
    turned = (times for times, shown in each.items() if shown.axes[1].labels[int(shown.values[1].argmax())] != right)
    times = next(turned, downwards[0])
    return times, each[times]


def _strong(subject: Subject, setting: NeuronSetting, seen: Seen, neuron: int) -> Try:
    """A neuron that is set far beyond its usual values."""
    value = float(f"{STRONG * largest_activation(seen.activity, neuron):.6g}")
    shown = steered_guesses(setting.key, subject.seen, setting.block, neuron, value)
    change = shown.values[1].astype(float) - shown.values[0].astype(float)
    at = int(np.abs(change).argmax())
    before, after = (percent(float(side[at])) for side in shown.values)
    token = in_quotes(shown.axes[1].labels[at])
    notice = f"Set to {STRONG:g} times its largest activation, neuron {neuron} takes {token} from {before} to {after}."
    return Try("Turn it up", notice, {"times": STRONG}, {CHOSEN: setting.unit(neuron).name})
