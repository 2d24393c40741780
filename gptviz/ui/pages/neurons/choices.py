"""The choices on the Neurons page: the text that is read, a block, how its neurons are ranked, and one of them."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from gptviz.interp.units.unit import Unit, unit
from gptviz.language_model import LanguageModel
from gptviz.model.costs.effort import MOST, effort
from gptviz.ui.shell.subject import ModelKey, Subject, language_model
from gptviz.ui.views import held_out
from gptviz.ui.views.sums import WAVES, task_of
from gptviz.ui.views.texts import OWN, PASSAGES, text_of
from gptviz.ui.widgets import addresses, controls

NEURONS, EXPERTS = "Neurons", "Experts"
ABOUT = {
    NEURONS: "where each is active, and what it speaks for.",
    EXPERTS: "which of them the router chooses for each token.",
    WAVES: "the numbers of the task lie on a clock, so a neuron may be active in waves along them: which frequency does each "
    "follow?",
}
HELD_OUT, WRITTEN, PROMPT = "Held-out data", "What it writes", "The prompt"
TOKENS = (1_024, 4_096, 16_384, 65_536)
# The number of tokens that the model writes itself, one after the other. To write one takes as long as to read `WRITING`.
MOST_WRITTEN, WRITING = 512, 10
RANKINGS = {
    "largest": ("Largest", "The highest activation over the text."),
    "active": ("Active", "The share of tokens at which the activation is above 0."),
    "effect": ("Effect", "The mean length of the vector that the neuron adds to the stream."),
}
# The key in the address of the neuron that is shown.
CHOSEN = "unit"
# The values to set a neuron to, in multiples of the largest size that its activation has in the text.
TIMES = (-4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0)


def view(subject: Subject) -> str:
    """The view that is chosen: of models without experts that were not trained for sums on a clock, the neurons alone."""
    is_there = {EXPERTS: subject.lm.model.config.experts > 0, WAVES: task_of(subject.key) is not None}
    views = [name for name in ABOUT if is_there.get(name, True)]
    about = " ".join(f"{name}: {ABOUT[name]}" for name in views)
    return NEURONS if len(views) == 1 else controls.select("View", views, key="view", help=about, segmented=True)


def forgotten(lm: LanguageModel) -> int:
    """How many tokens the model forgets at a time while it writes what is then read: one by one would take ten times as long."""
    return -(-lm.model.config.context_length // 2)


@dataclass(frozen=True)
class NeuronSetting:
    """Which neurons are observed over which text.

    Attributes:
        key: the model.
        block: the number of the block.
        kind: where the text comes from, one of those above.
        text: the text itself, unless it is held-out data; what the model begins with, where it writes.
        most: how many tokens are read at most.
    """

    key: ModelKey
    block: int
    kind: str
    text: str
    most: int

    def unit(self, neuron: int) -> Unit:
        """A neuron of the block."""
        return Unit("mlp", self.block, neuron)


def setting(subject: Subject) -> tuple[NeuronSetting, str]:
    """The controls of what is read, of the block, and of what its neurons are ranked by (`by`)."""
    config = subject.lm.model.config
    kinds = [HELD_OUT] if held_out.is_here(subject.key) else []
    written = [WRITTEN] if subject.kind == "decoder" else []
    # A large model would write for a long time: unless that is asked for, it reads the prompt.
    is_large = effort(subject.lm.model, WRITING * MOST_WRITTEN) > MOST
    kinds += [PROMPT, *written, OWN] if is_large else [*written, PROMPT, OWN]
    if subject.is_imported:  # what is found is shown while the rest is read: what takes about ten seconds is not waited for
        kinds.insert(0 if effort(subject.lm.model, TOKENS[0]) <= 2 * MOST else 1, PASSAGES)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        about = (
            f"What the neurons are observed over: {held_out.said(subject.key)}, a text that the model writes itself, the prompt, "
            "or a text of yours; of a model from elsewhere, also passages of old books that come with gptviz."
        )
        kind = controls.select("Text", kinds, key="text", help=about)
        most = TOKENS[1]
        if kind in (HELD_OUT, PASSAGES, OWN):
            about = "How many tokens are read at most. More tokens take longer, and find rarer things."
            most = int(controls.notch("Tokens", TOKENS, key="tokens", default=most, format_func="{:,}".format, help=about))
        block = controls.whole(
            "Block", 0, config.n_layer - 1, key="block", default=config.n_layer // 2, help="The block whose MLP is looked at."
        )
        by = _ranking()
    text = subject.prompt if kind == PROMPT else subject.default if kind == WRITTEN else ""
    if kind in (PASSAGES, OWN):
        text = text_of(kind, subject.prompt)
    return NeuronSetting(subject.key, block, kind, text, most), by


def _ranking() -> str:
    about = " ".join(f"{title}: {what[0].lower()}{what[1:]}" for title, what in RANKINGS.values())
    return controls.select(
        "Rank by", list(RANKINGS), key="by", help=about, format_func=lambda name: RANKINGS[name][0], segmented=True
    )


def chosen(setting: NeuronSetting, first: int) -> int:
    """The neuron that the address asks for; `first` where it asks for none of this block."""
    config = language_model(setting.key).model.config
    found = controls.linked(CHOSEN, lambda asked: unit(asked, config), setting.unit(first))
    return found.index if found.is_neuron and found.index is not None and found.block == setting.block else first


def choose(setting: NeuronSetting, neuron: int) -> None:
    """Put a neuron into the address."""
    addresses.write(CHOSEN, setting.unit(neuron).name)
