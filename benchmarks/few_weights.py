"""`python -m benchmarks.few_weights [--shares 1 0.3 0.1] [--steps N]`: what a model of little sentences
loses with fewer weights, and how small the circuits of its tasks become.

All runs have the plan `sentences-sparse`, the same seed and equally many steps; a share of 1 is the
dense twin. A row has the share of weights that each matrix keeps, the validation loss, the accuracy
of each task, and of each task that is asked the weights that keep 90 % of the mean difference
between the right and the wrong answer. Results: benchmarks/few_weights.md.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import torch

import gptviz
from gptviz.language_model.weight_circuits import check_weights
from gptviz.runs import checkpoints
from gptviz.runs.experiments import PLANS
from gptviz.runs.training import train

PLAN = PLANS["sentences-sparse"]
PARTS = ("names", "agreement")


def measure(folder: Path) -> str:
    """The row of a model."""
    card = checkpoints.read_card(folder)
    lm = gptviz.load(folder, device="cpu")
    found = [lm.weight_circuit(part) for part in PARTS]
    held_out = [
        check_weights(lm, circuit, part).right for circuit, part in zip(found, PARTS, strict=True)
    ]
    cells = [
        f"{card.recipe.get('keep_weights', 1):g}",
        f"{found[0].of:,}",
        f"{card.validation_loss:.4f}",
        *(f"{accuracy:.1%}" for accuracy in card.values["accuracy_by_task"].values()),
        *(
            f"{len(circuit.weights):,} ({circuit.share:.1%}; held out {right:.1%})"
            for circuit, right in zip(found, held_out, strict=True)
        ),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Train and measure, one share after the other; or measure models that are there."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--shares", nargs="+", type=float, default=[1, 0.3, 0.1])
    options.add_argument("--steps", type=int, default=PLAN.recipe.steps)
    options.add_argument("--models", nargs="*", type=Path, help="folders to measure instead")
    asked = options.parse_args()
    torch.set_num_threads(1)
    for folder in asked.models or ():
        print(measure(folder), flush=True)
    if asked.models:
        return
    with tempfile.TemporaryDirectory() as below:
        for share in asked.shares:
            recipe = replace(PLAN.recipe, steps=asked.steps, keep_weights=share, snapshots=0)
            folder = PLAN.prepare(f"kept-{share:g}", recipe=recipe, root=Path(below))
            for _ in train(folder):
                pass
            print(measure(folder), flush=True)


if __name__ == "__main__":
    main()
