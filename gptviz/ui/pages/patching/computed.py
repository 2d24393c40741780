"""What the page Patching computes: the preview at once, and what patches really do where the reader asks for it."""

from __future__ import annotations

from gptviz.interp.attribution_patching import preview
from gptviz.interp.patchable import Quantity, quantities
from gptviz.interp.patching import Pair, Patched, count, patch
from gptviz.model import Config
from gptviz.ui.shell.models import ModelKey, language_model
from gptviz.ui.widgets import stoppable, work
from gptviz.ui.widgets.work import Work

BY_POSITION = ("resid_pre", "attention.out", "mlp.out")
BY_HEAD = ("attention.z", "attention.pattern", "attention.q", "attention.k", "attention.v")


def shown(config: Config, names: tuple[str, ...]) -> list[Quantity]:
    """Those of the quantities `names` that the model has."""
    has = {one.name: one for one in quantities(config)}
    return [has[name] for name in names if name in has]


@stoppable.resource("Guessing what patches do", max_entries=8)
def previews(key: ModelKey, pair: Pair) -> dict[str, Patched]:
    """By quantity, what attribution patching guesses; read-only, shared by all sessions."""
    model = language_model(key).model
    return preview(model, pair, [one.name for one in shown(model.config, (*BY_POSITION, *BY_HEAD))])


def exact(key: ModelKey, pair: Pair) -> Work | None:
    """The computation of what patches really do, if it was begun; its `results` are `Patched`, by quantity."""
    return work.found(("patching", key, pair))


def begin(key: ModelKey, pair: Pair) -> Work:
    """Begin to compute every patch of every quantity on the page, heads first: they are fewest."""
    model = language_model(key).model
    names = [one.name for one in shown(model.config, (*BY_HEAD, *BY_POSITION))]
    counts = [count(model.config, pair, name) for name in names]

    def compute(one: Work) -> None:
        for place, name in enumerate(names):
            before, title = sum(counts[:place]), shown(model.config, (name,))[0].title

            def watch(done: int, of: int, before: int = before, title: str = title) -> None:
                one.report(before + done, sum(counts), title)

            one.results[name] = patch(model, pair, name, watch)

    return work.begin(("patching", key, pair), "Patching", compute)


def patches(key: ModelKey, pair: Pair) -> int:
    """How many patches there are to compute."""
    config = language_model(key).model.config
    return sum(count(config, pair, one.name) for one in shown(config, (*BY_HEAD, *BY_POSITION)))
