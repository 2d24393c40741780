"""The computations of the page Patching: what patches do, at once for small models; else a preview until the reader asks."""

from __future__ import annotations

from gptviz.interp.changing.attribution_patching import Preview, preview
from gptviz.interp.changing.patchable import Quantity, quantities
from gptviz.interp.changing.patching import PromptPair, n_patches, patch
from gptviz.machine import job, progress
from gptviz.machine.job import Job, Results
from gptviz.model import Config
from gptviz.model.costs.effort import MUCH, effort
from gptviz.ui.shell.subject import ModelKey, language_model
from gptviz.ui.widgets import jobs

BY_POSITION = ("resid_pre", "attention.out", "mlp.out")
BY_HEAD = ("attention.z", "attention.pattern", "attention.q", "attention.k", "attention.v")
# Seconds that a page waits for what should take a moment, where the machine has much else to do.
LONGEST = 10.0


def shown(config: Config, names: tuple[str, ...]) -> list[Quantity]:
    """Those of the quantities `names` that the model has."""
    has = {one.name: one for one in quantities(config)}
    return [has[name] for name in names if name in has]


@jobs.resource("Guessing what patches do", max_entries=8)
def previews(key: ModelKey, pair: PromptPair) -> dict[str, Preview]:
    """By quantity, what attribution patching guesses; read-only, shared by all sessions."""
    model = language_model(key).model
    return preview(model, pair, [one.name for one in shown(model.config, (*BY_POSITION, *BY_HEAD))])


def exact(key: ModelKey, pair: PromptPair) -> Job[None] | None:
    """The computation of what patches really do, if it was begun; its `results` are `Patched`, by quantity. Where it takes no
    longer than a moment, it is begun and waited for.
    """
    found = job.found(("patching", key, pair))
    if found is None and effort(language_model(key).model, len(pair.clean), patches(key, pair)) <= MUCH:
        found = begin(key, pair)
        found.wait(LONGEST)
    return found


def begin(key: ModelKey, pair: PromptPair) -> Job[None]:
    """Begin to compute every patch of every quantity on the page, heads first: they are fewest."""
    model = language_model(key).model
    chosen = shown(model.config, (*BY_HEAD, *BY_POSITION))
    counts = [n_patches(model.config, pair, one.name) for one in chosen]

    def compute(results: Results) -> None:
        before = 0
        for one, number in zip(chosen, counts, strict=True):
            with progress.part(before, sum(counts), number, doing=one.title):
                results[one.name] = patch(model, pair, one.name)
            before += number

    return job.begin(("patching", key, pair), "Patching", compute)


def patches(key: ModelKey, pair: PromptPair) -> int:
    """How many patches there are to compute."""
    config = language_model(key).model.config
    return sum(n_patches(config, pair, one.name) for one in shown(config, (*BY_HEAD, *BY_POSITION)))
