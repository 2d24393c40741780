"""What to try on the Neurons page: sentences that are true of this block over this text."""

from __future__ import annotations

import numpy as np

from gptviz.figures.format import percent
from gptviz.ui.shell.subject import Subject
from gptviz.ui.widgets.tries import Try

from .choices import CHOSEN, Setting
from .computed import Seen, guesses, scale

# A neuron that is active at no more than this share of the tokens is rare.
RARE = 0.02
STRONG = 8.0


def to_try(subject: Subject, setting: Setting, seen: Seen) -> list[Try]:
    """What to try with these neurons."""
    activity = seen.activity
    most = activity.ranked("effect")[0]
    offers = [
        Try(
            "The one with the largest effect",
            f"Neuron {most} adds the longest vectors to the stream: it is above 0 at {percent(float(activity.active[most]))} of "
            "the tokens. Is it for something, or always there?",
            {"by": "effect"},
            {CHOSEN: setting.unit(most).name},
        )
    ]
    rare = np.where((activity.active > 0) & (activity.active <= RARE), activity.largest, 0.0)
    if rare.max(initial=0.0) > 0:
        found = int(rare.argmax())
        notice = (
            f"Neuron {found} is above 0 at {percent(float(activity.active[found]))} of the tokens only, and then up to "
            f"{activity.largest[found]:.3g}: what do its contexts have in common?"
        )
        offers.append(Try("A rare one", notice, {"by": "largest"}, {CHOSEN: setting.unit(found).name}))
    return [*offers, _strong(subject, setting, seen, most)]


def _strong(subject: Subject, setting: Setting, seen: Seen, neuron: int) -> Try:
    """What a neuron does when it is set far beyond what it ever was."""
    value = float(f"{STRONG * scale(seen.activity, neuron):.6g}")
    shown = guesses(setting.key, subject.seen, setting.block, neuron, value)
    change = shown.values[1].astype(float) - shown.values[0].astype(float)
    at = int(np.abs(change).argmax())
    before, after = (percent(float(side[at])) for side in shown.values)
    notice = (
        f"Set to {STRONG:g} times its largest activation, neuron {neuron} takes “{shown.axes[1].labels[at]}” from {before} to "
        f"{after}."
    )
    return Try("Turn it up", notice, {"times": STRONG}, {CHOSEN: setting.unit(neuron).name})
