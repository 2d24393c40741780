"""Attribution patching: what every patch would do, guessed from one backward pass (Nanda 2023; Syed, Rager and Conmy 2023).

The answer to the corrupted prompt is taken to change along a straight line with each piece a: a patch then adds
∂answer/∂a · (clean − corrupted).
That is exact for small differences only, so it is a preview: `patching` computes what patches really do.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from gptviz.machine import progress
from gptviz.machine.memory import release_memory
from gptviz.model import Edit, Transformer, Watch

from ..trace import run
from .patchable import quantity
from .patching import Patched, PromptPair, check_pair


def preview(model: Transformer, pair: PromptPair, whats: Sequence[str] = ("resid_pre",)) -> dict[str, Patched]:
    """The results that `patching.patch` would give for each of the quantities `whats`, to first order, by their names.

    It takes a pass over each prompt and a backward pass, however many patches there are. The parameters get no gradient.

    Raises:
        ValueError: as in `patching.patch`.
    """
    check_pair(model, pair)
    chosen = [quantity(what, model.config) for what in whats]
    ids, source = pair.ids(model.embed.weight.device), pair.sources(model.embed.weight.device)
    kept = {one.tap(block) for one in chosen for block in range(one.blocks(model.config))}
    with progress.part(0, 2):
        clean = run(model, ids[:1], [*kept, "logits"], source=None if source is None else source[:1], logits_at=slice(-1, None))
    clean_answer, values = float(pair.answer(clean["logits"])[0]), dict(clean)
    del clean
    release_memory()  # a pass with derivatives does not do so on its way
    gains: dict[str, Tensor] = {}

    def see(name: str, value: Tensor) -> None:
        before = value.detach()  # the same memory; a hook that held `value` itself would keep it after the backward pass

        def gain(gradient: Tensor) -> None:
            apart = values.pop(name) - before
            gains[name] = (gradient * apart)[0].flatten(1).sum(-1).cpu().double()  # [T] or [H]

        if value.requires_grad:  # not where an edit has put in what does not depend on the prompt
            value.register_hook(gain)

    with progress.part(1, 2):
        corrupted = _backward(model, pair, Watch(kept, see))
    found: dict[str, Patched] = {}
    for one in chosen:
        places = one.places(model.config, len(pair.clean), len(pair.clean_source or ()))
        none = torch.zeros(len(places.labels))
        blocks = [gains.get(one.tap(block), none).numpy() for block in range(one.blocks(model.config))]
        found[one.name] = Patched(one, places, corrupted + np.stack(blocks), clean_answer, corrupted)
    return found


def _backward(model: Transformer, pair: PromptPair, watch: Watch) -> float:
    """The answer to the corrupted prompt, after a backward pass from it to the embeddings, which calls the hooks that `watch`
    sets.
    """
    leaves: list[Tensor] = []

    def leaf(value: Tensor) -> Tensor:
        leaves.append(value.detach().requires_grad_())
        return leaves[-1].clone()

    begins: dict[str, Callable[[Tensor], Tensor]] = {"embed": leaf, "encoder.embed": leaf}
    with torch.inference_mode(False), torch.enable_grad():
        ids, source = pair.ids(model.embed.weight.device)[1:], pair.sources(model.embed.weight.device)
        source_ids = None if source is None else source[1:]
        answer = pair.answer(_constant(model)(ids, source_ids, tap=Edit(begins, watch), logits_at=slice(-1, None)))[0]
        torch.autograd.grad(answer, leaves)
    return float(answer.detach())


def _constant(model: Transformer) -> Transformer:
    """A twin with the same numbers in the same memory, of which no derivative is taken: for that of a weight every product would
    hold what it was multiplied with until the backward pass.
    """
    return copy.deepcopy(model, {id(one): one.detach() for one in (*model.parameters(), *model.buffers())})


def correlation(exact: Patched, guess: Patched) -> float:
    """How well the preview orders and sizes what patches really do: Pearson's correlation over all cells, from −1 to 1; NaN where
    one of them is the same everywhere.
    """
    x, y = exact.answers.ravel() - exact.answers.mean(), guess.answers.ravel() - guess.answers.mean()
    size = float(np.sqrt((x**2).sum() * (y**2).sum()))
    return float((x * y).sum()) / size if size > 0 else float("nan")
