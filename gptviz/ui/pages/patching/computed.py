"""The computations of the page Patching: the preview at once, and what patches really do where the reader asks for it."""

from __future__ import annotations

from gptviz.interp.changing.attribution_patching import preview
from gptviz.interp.changing.patchable import Quantity, quantities
from gptviz.interp.changing.patching import Patched, PromptPair, n_patches, patch
from gptviz.machine import job, progress
from gptviz.machine.job import Job, Results
from gptviz.model import Config
from gptviz.ui.shell.subject.models import ModelKey, language_model
from gptviz.ui.widgets import jobs

BY_POSITION = ("resid_pre", "attention.out", "mlp.out")
BY_HEAD = ("attention.z", "attention.pattern", "attention.q", "attention.k", "attention.v")


def shown(config: Config, names: tuple[str, ...]) -> list[Quantity]:
    """Those of the quantities `names` that the model has."""
    has = {one.name: one for one in quantities(config)}
    return [has[name] for name in names if name in has]


@jobs.resource("Guessing what patches do", max_entries=8)
def previews(key: ModelKey, pair: PromptPair) -> dict[str, Patched]:
    """By quantity, what attribution patching guesses; read-only, shared by all sessions."""
    model = language_model(key).model
    return preview(model, pair, [one.name for one in shown(model.config, (*BY_POSITION, *BY_HEAD))])


def exact(key: ModelKey, pair: PromptPair) -> Job[None] | None:
    """The computation of what patches really do, if it was begun; its `results` are `Patched`, by quantity."""
    return job.found(("patching", key, pair))


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
