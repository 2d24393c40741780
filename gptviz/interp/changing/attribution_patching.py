"""Attribution patching: what every patch would do, guessed from a few backward passes (Nanda 2023;
Syed, Rager and Conmy 2023).

The answer is taken to change along a straight line with each piece a: a patch then adds ∂answer/∂a
· (clean − corrupted). The slope is the mean of those in some runs whose streams before block 0 lie
between those of both prompts: integrated gradients (Sundararajan, Taly and Yan 2017; Hanna,
Pezzelle and Belinkov 2024). A pattern, queries and keys act on values that stay corrupted: of
these, the slope in the corrupted run is taken.

Softmax, norms and activations are no straight lines, so a preview can be wrong. It is checked: some
of its patches are computed, and the correlation with them says how far it can be trusted.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gptviz.labelled_array import Float64Array
from gptviz.machine import progress
from gptviz.machine.memory import release_memory
from gptviz.model import Edit, Transformer, Watch

from ..trace import run
from .patchable import Quantity, quantity
from .patching import Patched, PatchedPiece, PromptPair, answers, check_pair

# The runs between the corrupted and the clean one in which slopes are taken, both included.
STEPS = 5
# How many patches of a quantity are computed to check a preview.
CHECKED = 16
# The least correlation with them of a preview that is shown as an answer.
TRUSTED = 0.8
# What acts on values that a patch of it leaves corrupted.
_AT_CORRUPTED = (".pattern", ".q", ".k")


@dataclass(frozen=True)
class Preview(Patched):
    """What patches of a quantity are guessed to do; some of its cells are exact."""

    #: [block, place], which cells are exact: those that were computed, and those that have to be
    #: so, as where both runs are the same
    known: NDArray[np.bool_]
    #: Pearson's, of the guess with what the patches that were computed do; NaN where one of them is
    #: the same in all of these, and where none was computed
    correlation: float = float("nan")
    checked: int = 0  #: how many patches were computed

    @property
    def is_trusted(self) -> bool:
        """Whether it can be shown as an answer."""
        return self.correlation >= TRUSTED or bool(self.known.all())

    @property
    def agreement(self) -> str:
        """How well it agrees with what was computed, in words."""
        if self.known.all():
            return "every patch was computed, or has to be as it is"
        if math.isnan(self.correlation):
            return (
                f"no correlation with {self.checked} patches that were computed: some of the "
                "numbers are all the same"
            )
        return f"correlation {self.correlation:.2f} with {self.checked} patches that were computed".replace(
            "-", "−"
        )


def preview(
    model: Transformer,
    pair: PromptPair,
    whats: Sequence[str] = ("resid_pre",),
    steps: int = STEPS,
    checked: int = CHECKED,
) -> dict[str, Preview]:
    """The results that `patching.patch` would give for each of the quantities `whats`, guessed, by
    their names.

    It takes a pass over each prompt, `steps` passes with their backward passes, and what `checked`
    patches of each quantity take, however many patches there are. The parameters get no gradient.

    Args:
        steps: how many runs slopes are taken in, evenly spread; 1 for only the corrupted run.
        checked: the most patches of each quantity that are computed and put in the place of their
            guesses: half of them those that are guessed to do most, the others evenly from the
            order of all others by what they are guessed to do.

    Raises:
        ValueError: as in `patching.patch`.
    """
    check_pair(model, pair)
    chosen = [quantity(what, model.config) for what in whats]
    if not chosen:
        return {}
    with progress.part(0, 2):
        clean, corrupted, gains, same = _slopes(model, pair, chosen, steps)
    differing = [
        at
        for at, (one, other) in enumerate(zip(pair.clean, pair.corrupted, strict=True))
        if one != other
    ]
    # What is padding also changes the mask.
    is_only_difference = (
        len(differing) == 1 and pair.clean_source is None and model.config.padding is None
    )
    guessed: dict[str, Preview] = {}
    for kind in chosen:
        places = kind.places(model.config, len(pair.clean), len(pair.clean_source or ()))
        none = np.zeros(len(places.labels))
        all_same = np.ones(len(places.labels), bool)
        taps = [kind.tap(block) for block in range(kind.blocks(model.config))]
        values = corrupted + np.stack([gains.get(tap, none) for tap in taps])
        known = np.stack([same.get(tap, all_same) for tap in taps])
        if kind.name == "resid_pre" and not model.config.has_shortcuts and is_only_difference:
            # all that the blocks read is then that of the clean prompt
            values[0, differing], known[0, differing] = clean, True
        guessed[kind.name] = Preview(kind, places, values, clean, corrupted, known)
    with progress.part(1, 2):
        return _check_guesses(model, pair, guessed, checked)


def _slopes(
    model: Transformer, pair: PromptPair, chosen: Sequence[Quantity], steps: int
) -> tuple[float, float, dict[str, Float64Array], dict[str, NDArray[np.bool_]]]:
    """The answers to both prompts; by tap what each piece is guessed to add [T] or [H], and whether
    both runs have the same.
    """
    device = model.embed.weight.device
    ids = pair.ids(device)
    source = pair.sources(device)
    begins = ["blocks.0.resid_pre", "encoder.blocks.0.resid_pre"]
    kept = {kind.tap(block): kind for kind in chosen for block in range(kind.blocks(model.config))}
    rows = [(ids[i : i + 1], None if source is None else source[i : i + 1]) for i in (0, 1)]
    with progress.part(0, 2 + steps):
        clean = run(
            model,
            rows[0][0],
            [*kept, *begins, "logits"],
            source=rows[0][1],
            logits_at=slice(-1, None),
        )
    right = float(pair.answer(clean["logits"])[0])
    apart = dict(clean)
    del clean
    release_memory()  # a pass with derivatives does not do so on its way

    def part(name: str, value: Tensor) -> None:
        apart[name] = apart[name] - value

    with progress.part(1, 2 + steps), torch.inference_mode():
        last = model(*rows[1], tap=Watch([*kept, *begins], part), logits_at=slice(-1, None))
    corrupted = float(pair.answer(last)[0])
    at_corrupted = {tap for tap, kind in kept.items() if kind.name.endswith(_AT_CORRUPTED)}
    gains: dict[str, Float64Array] = {}
    # The trapezoidal rule, whose ends are the runs over both prompts.
    weights = np.ones(steps)
    weights[[0, -1]] -= 0.5 * (steps > 1)
    for step, (share, weight) in enumerate(
        zip(np.linspace(0, 1, steps), weights / weights.sum(), strict=True)
    ):

        def see(name: str, value: Tensor, step: int = step, weight: float = weight) -> None:
            counts = float(step == 0) if name in at_corrupted else weight

            def gain(gradient: Tensor) -> None:
                # [T] or [H]
                adds = (gradient * apart[name])[0].flatten(1).sum(-1).cpu().double().numpy()
                gains[name] = gains.get(name, 0.0) + counts * adds

            # not where an edit has put in what does not depend on the prompt
            if value.requires_grad and counts:
                value.register_hook(gain)

        with progress.part(2 + step, 2 + steps):
            _backward(
                model,
                pair,
                {name: apart[name] * float(share) for name in begins if name in apart},
                Watch(kept, see),
            )
    same = {
        name: ~apart[name][0].flatten(1).any(-1).cpu().numpy() for name in kept if name in apart
    }
    return right, corrupted, gains, same


def _backward(
    model: Transformer, pair: PromptPair, moved: Mapping[str, Tensor], watch: Watch
) -> None:
    """A pass over the corrupted prompt, with `moved` added to its values at some taps, and a
    backward pass from the answer to these values, which calls the hooks that `watch` sets.
    """
    leaves: list[Tensor] = []

    def leaf(by: Tensor) -> Callable[[Tensor], Tensor]:
        def moving(value: Tensor) -> Tensor:
            leaves.append((value.detach() + by).requires_grad_())
            return leaves[-1].clone()

        return moving

    with torch.inference_mode(False), torch.enable_grad():
        ids = pair.ids(model.embed.weight.device)[1:]
        source = pair.sources(model.embed.weight.device)
        begins = {name: leaf(by.clone()) for name, by in moved.items()}
        # A twin with the same numbers in the same memory, but without derivatives of its weights:
        # for these every product would hold what it was multiplied with until the backward pass.
        constant = copy.deepcopy(
            model, {id(each): each.detach() for each in (*model.parameters(), *model.buffers())}
        )
        logits = constant(
            ids,
            None if source is None else source[1:],
            tap=Edit(begins, watch),
            logits_at=slice(-1, None),
        )
        torch.autograd.grad(pair.answer(logits)[0], leaves)


def _check_guesses(
    model: Transformer, pair: PromptPair, guesses: Mapping[str, Preview], most: int
) -> dict[str, Preview]:
    """The guesses with some cells computed, and how well they agreed with these."""
    cells: dict[str, NDArray[np.intp]] = {}
    for name, guess in guesses.items():
        unknown = np.flatnonzero(~guess.known)
        size = np.abs(guess.answers.flat[unknown] - guess.corrupted)
        ranked = unknown[np.argsort(-size, kind="stable")]
        largest = min((most + 1) // 2, len(ranked))
        others = np.linspace(largest, len(ranked) - 1, min(most - largest, len(ranked) - largest))
        cells[name] = np.concatenate((ranked[:largest], ranked[others.round().astype(int)]))
    patches = [
        [PatchedPiece(guesses[name].quantity.tap(block), place)]
        for name, each in cells.items()
        for block, place in zip(*np.unravel_index(each, guesses[name].answers.shape), strict=True)
    ]
    if not patches:
        return dict(guesses)
    computed = iter(answers(model, pair, patches)[2])
    previews: dict[str, Preview] = {}
    for name, guess in guesses.items():
        exact = np.array([next(computed) for _ in cells[name]])
        values = guess.answers.copy()
        known = guess.known.copy()
        values.flat[cells[name]], known.flat[cells[name]] = exact, True
        agreement = correlation(exact, guess.answers.flat[cells[name]])
        previews[name] = replace(
            guess, answers=values, known=known, correlation=agreement, checked=len(exact)
        )
    return previews


def correlation(exact: Float64Array, guess: Float64Array) -> float:
    """How well guesses tell what patches do: Pearson's correlation over all cells; NaN where one is
    the same everywhere.
    """
    if not exact.size:
        return float("nan")
    x = exact.ravel() - exact.mean()
    y = guess.ravel() - guess.mean()
    size = float(np.sqrt((x**2).sum() * (y**2).sum()))
    if size > 0:
        return float((x * y).sum()) / size
    return float("nan")
