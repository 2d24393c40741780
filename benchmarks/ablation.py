"""`python -m benchmarks.ablation [--steps N] [--seeds N] [--jobs N]`: what each part of the
`shakespeare` recipe is worth.

The base is the shipped model's recipe on a smaller model of its kind (`BASE`), in fewer steps,
without dropout, which only pays once a text has been read many times, and without gains and biases:
that they are worth having, the table told. Every row changes one thing. All are trained on Tiny
Shakespeare with the same
seeds and evaluated over the whole validation split; a change that lowers the loss by more than the
spread of the seeds would be an improvement. The table of the last run is in ablation.md.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

NO_GAINS = dict.fromkeys(("norm_gain", "norm_bias", "qkv_bias", "output_bias", "mlp_bias"), False)
BASE: dict[str, Any] = {
    "n_layer": 4,
    "n_head": 4,
    "d_model": 128,
    "context_length": 128,
    "dropout": 0.0,
    **NO_GAINS,
}
# The changes: fields of the config and of the recipe, with their values.
CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "the base": ({}, {}),
    "AdamW instead of Muon, its best rate of three": (
        {},
        {"optimiser": "adamw", "learning_rate": (1.5e-3, 3e-3, 6e-3)},
    ),
    "half the learning rate": ({}, {"learning_rate": 0.5}),
    "twice the learning rate": ({}, {"learning_rate": 2.0}),
    "cosine to a tenth instead of a line to 0": ({}, {"schedule": "cosine", "final_rate": 0.1}),
    "constant rate": ({}, {"schedule": "constant"}),
    "no warm-up": ({}, {"warmup": 0.0}),
    "no weight decay": ({}, {"weight_decay": 0.0}),
    "no clipping": ({}, {"clip": 0.0}),
    "dropout 0.15": ({"dropout": 0.15}, {}),
    "learned positions instead of rotary": ({"positions": "learned"}, {}),
    "GELU instead of ReLU²": ({"activation": "gelu"}, {}),
    "no norm of queries and keys": ({"qk_norm": False}, {}),
    "RMSNorm instead of LayerNorm": ({"norm": "rmsnorm"}, {}),
    "an unembedding of its own": ({"tied": False}, {}),
    "gains and biases": (dict.fromkeys(NO_GAINS, True), {}),
    "half the batch, twice the steps": ({}, {"batch_size": 0.5, "steps": 2.0}),
    "half the context, twice the batch": ({"context_length": 0.5}, {"batch_size": 2.0}),
    "fewer, wider blocks of as many parameters": ({"n_layer": 0.5, "d_model": math.sqrt(2)}, {}),
}


def run(job: tuple[str, int, int, float]) -> tuple[str, float]:
    """One training: (change, seed, steps, the AdamW rate or 0) → the change and its validation
    loss.
    """
    import torch

    from gptviz.data.registry import source_named
    from gptviz.model import build, change_config
    from gptviz.runs.experiments import PLANS
    from gptviz.train.trainer import Evaluated, Trainer

    torch.set_num_threads(1)
    name, seed, steps, rate = job
    architecture, settings = CHANGES[name]
    plan = PLANS["shakespeare"]
    source = source_named("tiny-shakespeare")
    recipe = replace(plan.recipe, steps=steps, minutes=None, seed=seed, evaluations=1, snapshots=0)
    values = {
        key: rate if isinstance(value, tuple) else _of(getattr(recipe, key), value)
        for key, value in settings.items()
    }
    recipe = replace(recipe, **values)
    tokenizer = plan.learn_tokenizer(source)
    base = change_config(plan.config, vocab_size=tokenizer.vocab_size, **BASE)
    fields = {key: _of(getattr(base, key), value) for key, value in architecture.items()}
    if "d_model" in fields:  # a multiple of what the heads need
        fields["d_model"] = round(fields["d_model"] / (2 * base.n_head)) * 2 * base.n_head
    config = change_config(base, **fields)
    bfloat16 = torch.cpu.get_capabilities().get("avx512_bf16", False)
    trainer = Trainer(
        build(config, seed=seed), source.data(tokenizer, config), recipe, bfloat16=bfloat16
    )
    losses = [event.loss for event in trainer if isinstance(event, Evaluated)]
    return name, losses[-1]


def _of(base: Any, value: Any) -> Any:
    """A number with a point changes the base by that factor where the base is a whole number or a
    rate; else it replaces it.
    """
    if isinstance(value, float) and value in (0.5, 2.0, math.sqrt(2)):
        return type(base)(base * value)
    return value


def main() -> None:
    """Run all and print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", nargs="*", help="rows that contain one of these words")
    parser.add_argument("--into", type=Path, help="a file that takes the table as it grows")
    options = parser.parse_args()
    rates = {name: settings.get("learning_rate") for name, (_, settings) in CHANGES.items()}
    chosen = [
        n
        for n in CHANGES
        if not options.only or n == "the base" or any(word in n for word in options.only)
    ]
    jobs = [
        (name, seed, options.steps, rate)
        for name in chosen
        for rate in (rates[name] if isinstance(rates[name], tuple) else (0.0,))  # type: ignore[union-attr]
        for seed in range(options.seeds)
    ]
    found: dict[tuple[str, float], list[float]] = {}
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for job, (name, loss) in zip(jobs, pool.imap(run, jobs), strict=True):
            found.setdefault((name, job[3]), []).append(loss)
            table = _table(found, options.steps, options.seeds)
            if options.into:
                options.into.write_text(table, encoding="utf-8")
    print(table)


def _table(found: dict[tuple[str, float], list[float]], steps: int, seeds: int) -> str:
    best: dict[str, list[float]] = {}
    for (name, _), losses in found.items():
        if name not in best or mean(losses) < mean(best[name]):
            best[name] = losses
    base = mean(best["the base"])
    rows = [
        f"| {steps:,} steps, {seeds} seeds | validation loss | against the base |",
        "|---|---|---|",
    ]
    for name, losses in best.items():
        spread = f" ± {stdev(losses):.4f}" if len(losses) > 1 else ""
        rows.append(f"| {name} | {mean(losses):.4f}{spread} | {mean(losses) - base:+.4f} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    main()
