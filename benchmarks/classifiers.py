"""How often the plan "stars" is right on labelled texts, beside the baseline that counts words: a
line for each file.

    python benchmarks/classifiers.py reviews.csv more.csv --seeds 3 [--plan classifier] [--threads
    2]

Each seed draws another split (nine texts in ten are trained on), other first weights and other
batches. The baseline learns from the same texts. Printed are means over the seeds; ± is the
standard deviation of the difference in accuracy.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from gptviz.data.baseline import baseline
from gptviz.data.classification import LabelledSource, pad_texts
from gptviz.interp.reading.classification import label_probabilities
from gptviz.model import build
from gptviz.runs.experiments import PLANS
from gptviz.text import LabelledTexts, read_labelled
from gptviz.train.trainer import Trainer


def results(labelled: LabelledTexts, plan_name: str, seed: int) -> list[float]:
    """Accuracy and mean absolute error of the model, the same of the baseline, and the seconds of
    training.
    """
    plan = PLANS[plan_name]
    source = LabelledSource(labelled, plan.fraction, seed)
    tokenizer = plan.learn_tokenizer(source)
    config = source.fit_config(plan.config, tokenizer)
    recipe = replace(plan.recipe, seed=seed, evaluations=1)
    model, (training, held_out) = build(config, seed=seed), source.split()
    begun = time.perf_counter()
    trainer = Trainer(model, source.data(tokenizer, config), recipe)
    for step in range(recipe.steps or 0):
        trainer.advance(recipe.rate(step / (recipe.steps or 1)))
    seconds = time.perf_counter() - begun
    own = label_probabilities(
        model.eval(), pad_texts(tokenizer, held_out.texts, config.context_length)
    ).argmax(1)
    counted = baseline(training, held_out).probabilities.argmax(1)
    truth = np.array(held_out.labels)
    measured = [
        number
        for given in (own, counted)
        for number in ((given == truth).mean(), abs(given - truth).mean())
    ]
    return [*measured, seconds]


def main() -> None:
    """Print a row of a table for each file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--plan", default="stars")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(
        "| texts | labels | this model | baseline | difference | mean absolute error | baseline's "
        "| seconds |"
    )
    print("|---" * 8 + "|")
    for file in options.files:
        labelled = read_labelled(file)
        rows = np.array([results(labelled, options.plan, seed) for seed in range(options.seeds)])
        own, error, counted, error_counted, seconds = rows.mean(0)
        difference = rows[:, 0] - rows[:, 2]
        print(
            f"| {labelled.name}, {len(labelled):,} | {len(labelled.names)} | {own:.1%} | "
            f"{counted:.1%} "
            f"| {difference.mean():+.1%} ± {difference.std():.1%} | {error:.2f} | "
            f"{error_counted:.2f} | {seconds:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
